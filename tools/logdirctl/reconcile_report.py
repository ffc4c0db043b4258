"""What ``logdirctl reconcile`` prints: the actions, in the order they are done, and the refusals.

Spec: design §6; docs/json.md; attacks A29.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from logdir.evidence import Evidence, Removed, Unknown
from logdir.service.report.reconcile_item import ReconcileItem
from logdir.service.report.reconcile_result import ReconcileResult
from logdir.text import utc
from tools.cli.arguments import Exit, Streams, answered, put
from tools.cli.columns import Column, table
from tools.cli.report import detail_of


def report(
    arguments: argparse.Namespace, streams: Streams, result: ReconcileResult, head: str, lines: Sequence[str]
) -> Exit:
    """Print the result; return the exit status: refused if nothing may be done, problems if not all can be.

    Args:
        arguments: Of the command.
        streams: Where to print.
        result: The actions, planned or done, with their refusals.
        head: A line for people, before the table.
        lines: Lines for people, after the table.
    """
    status = Exit.REFUSED if result.is_refused else Exit.DONE if result.is_done else Exit.PROBLEMS
    if answered(arguments, streams, status, result.problems, result):
        return status
    put(streams, head)
    if result.items:
        table(streams.out, _COLUMNS, result.items, is_sparse=True)
    elif not result.is_refused:
        put(streams, "nothing to do")
    put(streams, *lines)
    return status


def _shown(evidence: Evidence | None) -> str:
    if evidence is None or isinstance(evidence, Unknown):
        return ""
    proof = evidence.proof.value if isinstance(evidence, Removed) else type(evidence).__name__.lower()
    return f"{proof}, {utc(evidence.as_of_ms)}"


_COLUMNS: tuple[Column[ReconcileItem], ...] = (
    Column("log dir", "log_dir"),
    Column("path", "path"),
    Column("action", lambda one: one.action or ""),
    Column("state", "state"),
    Column("reason", lambda one: one.reason or ""),
    Column("evidence", lambda one: _shown(one.evidence)),
    Column("undo until (UTC)", lambda one: utc(one.undo_until_ms)),
    Column("impact", lambda one: one.impact or ""),
    Column("detail", detail_of),
    Column("rule", lambda one: one.rule or ""),
)
