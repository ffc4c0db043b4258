"""What ``logdirctl reconcile`` tells: on what it rests, each action in its order, and what is refused.

Spec: design §6; docs/json.md; attacks A29.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logdir.errors import Problem
from logdir.evidence import Evidence, Removed, Unknown
from logdir.service.reconcile_item import ReconcileItem, planned_rows
from logdir.service.result import ItemState
from logdir.text import printable, utc, utf8
from tools import render
from tools.cli import Exit, Streams, envelope, say
from tools.logdirctl.report import evidence_json
from tools.logdirctl.source_report import source_json

if TYPE_CHECKING:
    from logdir.service.desired_source import Desired
    from logdir.service.reconcile import Decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is told."""

    decided: Decided
    desired: Desired
    rows: tuple[ReconcileItem, ...] | None
    """As they were done; ``None``: as they are planned."""
    problems: tuple[Problem, ...]
    next_line: str
    lines: tuple[str, ...] = ()
    """Before it, for people."""


def report(arguments: argparse.Namespace, streams: Streams, told: Told) -> Exit:
    """Print it; return the exit status: refused where nothing may follow or all waits, problems where not all can."""
    plan = told.decided.plan
    rows = told.rows
    if rows is None:
        rows = () if plan is None else planned_rows(plan)
    problems = [*told.problems, *(() if plan is None else plan.unseen)]
    refused = told.decided.refused
    if refused is not None:
        problems.append(refused)
    if plan is not None and plan.braked is not None:
        problems.append(plan.braked._replace(fix="look at the plan, then say --even-over-limit"))
    if told.desired.image.ended is not None:
        problems.append(told.desired.image.ended)
    listed = [*problems, *(row.problem for row in rows if row.problem is not None)]
    status = _status(told, rows, listed)
    for problem in listed:
        say(streams, f"logdirctl reconcile: {problem.line()}")
    if arguments.json:
        streams.out.write(envelope("reconcile", status, listed, _json(arguments, told, rows)))
        return status
    streams.out.write(printable(_rests_on(told)) + "\n")
    if rows:
        _table(rows, streams)
    elif refused is None:
        streams.out.write("nothing to do\n")
    for line in (*told.lines, f"next: {told.next_line}"):
        streams.out.write(printable(line) + "\n")
    return status


def _status(told: Told, rows: tuple[ReconcileItem, ...], listed: list[Problem]) -> Exit:
    plan = told.decided.plan
    if told.decided.refused is not None or (plan is not None and plan.braked is not None):
        return Exit.REFUSED
    return (
        Exit.PROBLEMS
        if listed or any(row.state in (ItemState.REFUSED, ItemState.UNDONE, ItemState.WAITING) for row in rows)
        else Exit.DONE
    )


def _rests_on(told: Told) -> str:
    image, document = told.desired.image, told.desired.document
    if document is not None:
        code = "" if told.decided.document is None else f", answered {told.decided.document.code.name}"
        what = f"{document.api.value} v{document.version} of type {document.type.name}"
        return f"{told.desired.uri}: {what}, epoch {document.controller_epoch}, sequence {document.sequence}{code}"
    where = f"{image.source.value} {image.origin}: cluster {image.cluster_id}"
    if image.epoch >= 0:
        where += f", epoch {image.epoch}, offset {image.offset} ({image.certainty.value})"
    return f"{where}, as of {utc(image.as_of_ms)}"


def _json(arguments: argparse.Namespace, told: Told, rows: tuple[ReconcileItem, ...]) -> dict[str, object]:
    image, plan, document = told.desired.image, told.decided.plan, told.decided.document
    return {
        "applied": bool(arguments.apply),
        "source": source_json(str(told.desired.uri), image),
        "holds_purges": plan is not None and plan.holds_purges,
        "code": None if document is None else int(document.code),
        "answers": []
        if document is None
        else [
            {
                "topic": one.item.topic,
                "topic_id": None if one.item.topic_id.is_zero else str(one.item.topic_id),
                "partition": one.item.partition,
                "code": int(one.code),
            }
            for one in document.answers
        ],
        "items": [_item(row) for row in rows],
    }


def _item(row: ReconcileItem) -> dict[str, object]:
    return {
        "do": row.do or None,
        "log_dir": utf8(row.log_dir),
        "path": utf8(row.path),
        "state": row.state.value,
        "topic": row.topic,
        "topic_id": None if row.topic_id is None else str(row.topic_id),
        "partition": row.partition,
        "place": None if row.place is None else utf8(row.place),
        "reason": row.reason,
        "evidence": None if row.evidence is None else evidence_json(row.evidence),
        "rule": row.rule or None,
        "loses": row.loses or None,
        "undo_until_ms": row.undo_until_ms,
        "says": row.says,
    }


def _shown(evidence: Evidence | None) -> str:
    if evidence is None or isinstance(evidence, Unknown):
        return ""
    proof = evidence.proof.value if isinstance(evidence, Removed) else type(evidence).__name__.lower()
    return f"{proof}, {utc(evidence.as_of_ms)}"


def _table(rows: tuple[ReconcileItem, ...], streams: Streams) -> None:
    columns: list[tuple[str, Callable[[ReconcileItem], str]]] = [
        ("log dir", lambda row: row.log_dir),
        ("path", lambda row: row.path),
        ("do", lambda row: row.do),
        ("state", lambda row: row.state.value),
        ("reason", lambda row: row.reason or ""),
        ("evidence", lambda row: _shown(row.evidence)),
        ("undo until (UTC)", lambda row: utc(row.undo_until_ms)),
        ("takes from view", lambda row: row.loses),
        ("what", lambda row: row.says),
        ("rule", lambda row: row.rule),
    ]
    shown = [(name, cell) for name, cell in columns if name == "log dir" or {*map(cell, rows)} - {"-", ""}]
    cells = [[cell(row) for _, cell in shown] for row in rows]
    render.table(streams.out, [name for name, _ in shown], cells, frozenset())
