"""What ``logdirctl reconcile`` prints: the actions, in the order they are done, and the refusals.

Spec: design §6; docs/json.md; attacks A29.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from logdir.evidence import Evidence, Removed, Unknown
from logdir.service.report.reconcile_item import ReconcileItem
from logdir.service.report.use_case import Ran
from logdir.text import utc
from tools.cli.arguments import Exit, Streams, answered, put
from tools.cli.columns import Column, table
from tools.cli.report import detail_of


def report(arguments: argparse.Namespace, streams: Streams, ran: Ran, lines: Sequence[str]) -> Exit:
    """Print what came of a reconcile; return its exit status: refused if nothing may be done.

    Args:
        arguments: Of the command.
        streams: Where to print.
        ran: The actions, planned or done, with their refusals; its line stands before the table.
        lines: Lines for people, after the table.
    """
    if answered(arguments, streams, ran.exit, ran.problems, ran.result):
        return ran.exit
    put(streams, *ran.lines)
    if ran.result.items:
        table(streams.out, _COLUMNS, ran.result.items, is_sparse=True)
    elif ran.exit is not Exit.REFUSED:
        put(streams, "nothing to do")
    put(streams, *lines)
    return ran.exit


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
