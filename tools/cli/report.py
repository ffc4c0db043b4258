"""The output of a command that changes replicas: a table with a row each, or the JSON envelope; the exit status.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

from logdir.errors import Problem
from logdir.service.report.exit_status import Exit
from logdir.service.report.result import ItemResult, ItemsResult, ItemState, status_of
from logdir.text import utc
from tools.cli.arguments import Streams, answered, put
from tools.cli.columns import Column, table


def is_planned(rows: Sequence[ItemResult]) -> bool:
    """Whether any replica is planned to be changed."""
    return any(row.state is ItemState.PLANNED for row in rows)


def detail_of(one: ItemResult) -> str:
    """Return the remark on an item; without one the slug of its refusal, whose line is printed before the table."""
    return one.problem.slug if one.problem is not None and not one.detail else one.detail


_COLUMNS: tuple[Column[ItemResult], ...] = (
    Column("log dir", "log_dir"),
    Column("path", "path"),
    Column("state", "state"),
    Column("new path", "new_path"),
    Column("undo until (UTC)", lambda one: utc(one.undo_until_ms)),
    Column("detail", detail_of),
)


def finish(
    arguments: argparse.Namespace,
    streams: Streams,
    rows: Sequence[ItemResult],
    problems: Sequence[Problem],
    next_line: str,
    *,
    status: Exit | None = None,
    result: Callable[..., ItemsResult] = ItemsResult,
    lines: Sequence[str] = (),
    are_said: bool = False,
) -> Exit:
    """Print what became of every replica, and what to type next; return the exit status.

    Args:
        arguments: Of the command.
        streams: Where to print.
        rows: What became of each replica, in order.
        problems: Problems besides those of the rows.
        next_line: The next command.
        status: The exit status; ``None``: it follows from rows and problems.
        result: Builds the result for ``--json`` from ``applied`` and ``items``.
        lines: Lines for people, between the table and the next command.
        are_said: Whether the details of what is done were printed already; the table then leaves them out.
    """
    status = status_of(rows, problems) if status is None else status
    listed = list(dict.fromkeys([*problems, *(row.problem for row in rows if row.problem is not None)]))
    if answered(arguments, streams, status, listed, result(applied=bool(arguments.apply), items=tuple(rows))):
        return status
    if rows:
        shown = [replace(row, detail="") if are_said and row.state == ItemState.DONE else row for row in rows]
        table(streams.out, _COLUMNS, shown, is_sparse=True)
    put(streams, *lines, f"next: {next_line}")
    return status
