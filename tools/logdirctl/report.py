"""What a command that changes replicas says of each of them: a table or the envelope, and the exit status.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from logdir.errors import Problem
from logdir.evidence import Absent, Evidence, Present, Removed
from logdir.service.result import ItemResult, ItemState
from logdir.text import printable, utc, utf8
from tools import render
from tools.cli import Exit, Streams, envelope, say

WHERE_READ = " where the log dirs and their work roots can be read"
"""Behind the word that nothing was found, where not all was read."""
_QUIET_S, _NOTE_EVERY_S = 1.0, 0.2


def evidence_json(evidence: Evidence) -> dict[str, object]:
    """Return evidence as in a marker."""
    proof = evidence.proof.value if isinstance(evidence, Removed) else None
    as_of_ms = evidence.as_of_ms if isinstance(evidence, Removed | Absent | Present) else None
    return {"kind": type(evidence).__name__.lower(), "proof": proof, "as_of_ms": as_of_ms}


def status_of(rows: Sequence[ItemResult], problems: Sequence[Problem]) -> Exit:
    """Return the exit status: refused if nothing else came of it, problems if something else is wrong."""
    states = {row.state for row in rows}
    if states and states <= {ItemState.REFUSED, ItemState.WAITING}:
        return Exit.REFUSED
    return Exit.PROBLEMS if problems or states & {ItemState.REFUSED, ItemState.UNDONE, ItemState.WAITING} else Exit.DONE


def is_planned(rows: Sequence[ItemResult]) -> bool:
    """Whether anything would be done."""
    return any(row.state is ItemState.PLANNED for row in rows)


def _json(row: ItemResult) -> dict[str, object]:
    return {
        "log_dir": utf8(row.log_dir),
        "path": utf8(row.path),
        "state": row.state.value,
        "topic": row.topic,
        "topic_id": None if row.topic_id is None else str(row.topic_id),
        "partition": row.partition,
        "place": None if row.place is None else utf8(row.place),
        "undo_until_ms": row.undo_until_ms,
        "says": row.says,
    }


def finish(
    arguments: argparse.Namespace,
    streams: Streams,
    rows: Sequence[ItemResult],
    problems: Sequence[Problem],
    next_line: str,
    *,
    status: Exit | None = None,
    more: Mapping[str, object] | None = None,
    lines: Sequence[str] = (),
    are_said: bool = False,
) -> Exit:
    """Print what became of every replica, and what to type next.

    Args:
        arguments: Of the command.
        streams: Where to.
        rows: In order.
        problems: Beside those of the rows.
        next_line: The next command.
        status: The exit status, where the rows do not say it.
        more: Keys of the result beside the rows.
        lines: For people, between the rows and what to type next.
        are_said: What is done was said on standard error before; the table does not repeat it.
    """
    status = status_of(rows, problems) if status is None else status
    listed = list(dict.fromkeys([*problems, *(row.problem for row in rows if row.problem is not None)]))
    for problem in listed:
        say(streams, f"logdirctl {arguments.title}: {problem.line()}")
    if arguments.json:
        result = {"applied": bool(arguments.apply), "items": [_json(row) for row in rows], **(more or {})}
        streams.out.write(envelope(arguments.title, status, listed, result))
        return status
    if rows:
        _table([replace(row, says="") if are_said and row.state == ItemState.DONE else row for row in rows], streams)
    for line in (*lines, f"next: {next_line}"):
        streams.out.write(printable(line) + "\n")
    return status


def _table(rows: Sequence[ItemResult], streams: Streams) -> None:
    columns: list[tuple[str, Callable[[ItemResult], str]]] = [
        ("log dir", lambda row: row.log_dir),
        ("path", lambda row: row.path),
        ("state", lambda row: row.state.value),
        ("place", lambda row: row.place or "-"),
        ("undo until (UTC)", lambda row: utc(row.undo_until_ms)),
        ("what", lambda row: row.says),
    ]
    shown = [(name, cell) for name, cell in columns if name == "log dir" or {*map(cell, rows)} - {"-", ""}]
    render.table(
        streams.out, [name for name, _ in shown], [[cell(row) for _, cell in shown] for row in rows], frozenset()
    )


class TerminalReporter:
    """Prints warnings, and on a terminal one line of progress that is written over, after a second."""

    def __init__(self, streams: Streams, title: str) -> None:
        """Begin.

        Args:
            streams: Where to.
            title: Of the command.
        """
        self._streams, self._err, self._title = streams, streams.err, title
        self._what, self._total, self._done = "", 0, 0
        self._next = 0.0
        self._is_shown = False

    def begin(self, what: str, total: int) -> None:
        """Count from 0."""
        self._what, self._total, self._done = what, total, 0
        self._next = time.monotonic() + _QUIET_S

    def advance(self, count: int) -> None:
        """Show how far it is."""
        self._done += count
        if self._err.isatty() and time.monotonic() >= self._next:
            self._next = time.monotonic() + _NOTE_EVERY_S
            self._is_shown = True
            self._err.write(f"\r{self._what}: {self._done} of {self._total}")
            self._err.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._is_shown = False
            self._err.write("\r\x1b[K")
            self._err.flush()

    def warn(self, line: str) -> None:
        """Print it."""
        say(self._streams, f"logdirctl {self._title}: {line}")
