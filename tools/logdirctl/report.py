"""What a command that changes replicas says of each of them: a table or the envelope, and the exit status.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from logdir.decide.refusal import Refusal
from logdir.decide.selector import Selectable
from logdir.disk.outcome import Outcome, Result
from logdir.errors import Problem
from logdir.evidence import Absent, Evidence, Present, Removed
from logdir.ids import TopicId
from tools import render
from tools.cli import Exit, Streams, envelope, say
from tools.suggestion import did_you_mean

_QUIET_S, _NOTE_EVERY_S = 1.0, 0.2
PLANNED, DONE, UNDONE, REFUSED, WAITING, KEPT = "planned", "done", "undone", "refused", "waiting", "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One replica of a plan or of what was done."""

    log_dir: str
    path: str
    """Relative to its log dir or work root."""
    state: str
    topic: str | None = None
    topic_id: TopicId | None = None
    partition: int | None = None
    place: str | None = None
    """Where it lies now, or will."""
    undo_until_ms: int | None = None
    says: str = ""
    problem: Problem | None = None


def refused(refusals: Iterable[Refusal]) -> list[Row]:
    """Return refusals as rows."""
    return [
        Row(log_dir=one.log_dir, path=one.path, state=REFUSED, says=one.why.value, problem=one.problem)
        for one in refusals
    ]


def after(row: Row, outcome: Outcome) -> Row:
    """Return a planned row as it was carried out."""
    problem = None if outcome.error is None else outcome.error.problem()
    state = DONE if outcome.result is Result.DONE else UNDONE
    return replace(row, state=state, place=outcome.place, problem=problem)


def utc(wall_ms: int | None) -> str:
    """Return an instant for people.

    >>> utc(1_700_000_000_000)
    '2023-11-14T22:13:20Z'
    """
    if wall_ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "far away"


def evidence_json(evidence: Evidence) -> dict[str, object]:
    """Return evidence as in a marker."""
    proof = evidence.proof.value if isinstance(evidence, Removed) else None
    as_of_ms = evidence.as_of_ms if isinstance(evidence, Removed | Absent | Present) else None
    return {"kind": type(evidence).__name__.lower(), "proof": proof, "as_of_ms": as_of_ms}


def status_of(rows: Sequence[Row], problems: Sequence[Problem]) -> Exit:
    """Return the exit status: refused if nothing else came of it, problems if something else is wrong."""
    states = {row.state for row in rows}
    if states and states <= {REFUSED, WAITING}:
        return Exit.REFUSED
    return Exit.PROBLEMS if problems or states & {REFUSED, UNDONE, WAITING} else Exit.DONE


def _json(row: Row) -> dict[str, object]:
    return {
        "log_dir": render.utf8(row.log_dir),
        "path": render.utf8(row.path),
        "state": row.state,
        "topic": row.topic,
        "topic_id": None if row.topic_id is None else str(row.topic_id),
        "partition": row.partition,
        "place": None if row.place is None else render.utf8(row.place),
        "undo_until_ms": row.undo_until_ms,
        "says": row.says,
    }


def finish(
    arguments: argparse.Namespace,
    streams: Streams,
    rows: Sequence[Row],
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
        _table([replace(row, says="") if are_said and row.state == DONE else row for row in rows], streams)
    for line in (*lines, f"next: {next_line}"):
        streams.out.write(render.printable(line) + "\n")
    return status


def _table(rows: Sequence[Row], streams: Streams) -> None:
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("log dir", lambda row: row.log_dir),
        ("path", lambda row: row.path),
        ("state", lambda row: row.state),
        ("place", lambda row: row.place or "-"),
        ("undo until (UTC)", lambda row: utc(row.undo_until_ms)),
        ("what", lambda row: row.says),
    ]
    shown = [(name, cell) for name, cell in columns if name == "log dir" or {*map(cell, rows)} - {"-", ""}]
    render.table(
        streams.out, [name for name, _ in shown], [[cell(row) for _, cell in shown] for row in rows], frozenset()
    )


class Progress:
    """One line on a terminal that is written over, after a second; silent elsewhere."""

    def __init__(self, streams: Streams, what: str, total: int) -> None:
        """Begin.

        Args:
            streams: Where to.
            what: Is being done.
            total: To how many.
        """
        self._err = streams.err
        self._what, self._total, self._done = what, total, 0
        self._next = time.monotonic() + _QUIET_S
        self._is_shown = False

    def add(self, count: int) -> None:
        """Note that so many more are done."""
        self._done += count
        if self._err.isatty() and time.monotonic() >= self._next:
            self._next = time.monotonic() + _NOTE_EVERY_S
            self._is_shown = True
            self._err.write(f"\r{self._what}: {self._done} of {self._total}")
            self._err.flush()

    def done(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._err.write("\r\x1b[K")
            self._err.flush()


def nothing_selected(selector: str, command: str, known: Iterable[Selectable] = ()) -> Problem:
    """Return what is said where a selector finds nothing.

    Args:
        selector: As typed.
        command: Lists what there is.
        known: What there is, for *did you mean*.
    """
    number = selector.rpartition("-")[2]
    names = {name for one in known if one.topic for name in (one.topic, f"{one.topic}-{one.partition}")}
    fits = sorted(name for name in names if not number.isdecimal() or name.endswith(f"-{number}"))
    fix = f"{did_you_mean(selector, fits)} logdirctl {command} lists what there is".lstrip()
    return Problem("nothing-selected", selector, "a partition that is there", "none", fix)
