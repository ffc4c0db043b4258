"""What a change of layout says of itself: its steps, what became of each replica, and the exit status.

Spec: design §6; docs/json.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logdir.decide.layout_action import (
    Action,
    Bar,
    Decision,
    Forget,
    Say,
    TakeToIds,
    TakeToNames,
    ToIds,
    ToNames,
    Unbar,
)
from logdir.decide.layout_precondition import RELEASES
from logdir.disk.layout import Report
from logdir.disk.outcome import Outcome
from logdir.errors import Problem, RefusedError
from logdir.service.result import ItemState
from logdir.text import printable, utf8
from tools import render
from tools.cli import Exit, Streams, envelope, say

NOT_READ_BY_KAFKA = f"No released Kafka ({RELEASES}) reads topic-id directories."
"""Said by every verb (design §8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One line of the listing."""

    what: str
    log_dir: str | None
    """``None``: in all of them."""
    replicas: int | None = None
    done: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What there is to tell of a verb."""

    decision: Decision
    report: Report | None = None
    """``None``: it was only planned."""
    notes: tuple[Problem, ...] = ()
    """Beside what was refused or failed."""
    is_idle: bool = False
    """There is nothing to take back: what is done all the same removes leftovers of what never began."""
    left_out: tuple[str, ...] = ()
    """Log dirs that do not answer: what lies there stays as it is, a start block and a topic-id layout too."""

    @property
    def is_finished(self) -> bool:
        """Whether the verb came to its end in every log dir of the broker."""
        return self.report is not None and self.report.is_finished and not self.left_out

    @property
    def has_work(self) -> bool:
        """Whether anything is left to do."""
        return bool(self.decision.phases) and not self.is_idle

    @property
    def problems(self) -> list[Problem]:
        """Every refusal and failure, by name."""
        refused = self.decision.refused if self.report is None else self.report.refused
        failed = () if self.report is None else tuple(self.report.failed.values())
        left_out = (_left_out(log_dir) for log_dir in self.left_out)
        return [*self.notes, *left_out, *(error.problem() for error in (*failed, *refused))]

    @property
    def status(self) -> Exit:
        """The exit status."""
        if self.problems or (self.report is not None and not self.is_finished):
            return Exit.PROBLEMS
        return Exit.DONE


def _left_out(log_dir: str) -> Problem:
    return Problem(
        "log-dir-offline",
        log_dir,
        "every log dir of the broker, to take all of its replicas back",
        "a log dir that --skip-log-dir leaves out: a topic-id layout and a start block there stay",
        "once it is back: logdirctl layout rollback",
    )


def _moved(action: Action) -> Sequence[ToIds | ToNames]:
    """Return the replicas that an action moves; those that lie where they belong are only looked at."""
    match action:
        case TakeToIds():
            return action.items
        case TakeToNames():
            return [item for item in action.items if item.prefix]
        case _:
            return ()


def _done_in(told: Told) -> Counter[str]:
    if told.report is None:
        return Counter()
    return Counter(log_dir for log_dir, one in told.report.outcomes if one.error is None and "/" in _under_id(one))


def _under_id(outcome: Outcome) -> str:
    """Return where a replica lies or lay in the topic-id layout; without a slash if nowhere."""
    return outcome.path if "/" in outcome.path else outcome.place or ""


def _steps(told: Told) -> Iterator[_Step]:
    done = _done_in(told)
    if told.is_idle:
        return
    for action in told.decision.actions:
        match action:
            case Say():
                yield _Step(what=f"layout.json: {action.state.value}", log_dir=action.log_dir)
            case Bar():
                yield _Step(what="bar: no broker can start", log_dir=None)
            case TakeToIds() | TakeToNames():
                way = "to topic ids" if isinstance(action, TakeToIds) else "to topic names"
                count = done[action.log_dir] if told.report is not None else None
                yield _Step(what=way, log_dir=action.log_dir, replicas=len(_moved(action)), done=count)
            case Unbar():
                yield _Step(what="lift the bar", log_dir=None)
            case Forget():
                yield _Step(what="remove layout.json", log_dir=action.log_dir)


def _items(told: Told) -> Iterator[dict[str, object]]:
    outcomes = {} if told.report is None else {(log_dir, one.path): one for log_dir, one in told.report.outcomes}
    log_dirs = {seen for action in told.decision.actions if (seen := getattr(action, "log_dir", None)) is not None}
    for action in told.decision.actions:
        for item in _moved(action):
            log_dir = getattr(action, "log_dir", "")
            yield _item(log_dir, item.path, item, outcomes.get((log_dir, item.path)), planned=told.report is None)
    for error in told.decision.refused:
        yield _refused(error, log_dirs)


def _item(
    log_dir: str, path: str, item: ToIds | ToNames, outcome: Outcome | None, *, planned: bool
) -> dict[str, object]:
    is_done = outcome is not None and outcome.error is None
    state = ItemState.PLANNED if planned else ItemState.DONE if is_done else ItemState.UNDONE
    if outcome is not None and isinstance(outcome.error, RefusedError):
        state = ItemState.REFUSED
    return {
        "log_dir": utf8(log_dir),
        "path": utf8(path),
        "state": state.value,
        "topic": item.topic,
        "topic_id": None if item.topic_id is None else str(item.topic_id),
        "partition": item.partition,
        "place": item.place if planned or is_done else path,
    }


def _refused(error: RefusedError, log_dirs: set[str]) -> dict[str, object]:
    home = max((one for one in log_dirs if error.path.startswith(f"{one}/")), key=len, default=None)
    path = error.path if home is None else error.path[len(home) + 1 :]
    nothing = dict.fromkeys(("topic", "topic_id", "partition", "place"))
    return {
        "log_dir": None if home is None else utf8(home),
        "path": utf8(path),
        "state": ItemState.REFUSED.value,
        **nothing,
    }


def _result(arguments: argparse.Namespace, told: Told) -> dict[str, object]:
    return {
        "applied": bool(arguments.apply),
        "finished": told.is_finished,
        "plan_sha256": told.decision.plan_sha256 or None,
        "done_before": told.decision.done,
        "steps": [
            {
                "what": step.what,
                "log_dir": None if step.log_dir is None else utf8(step.log_dir),
                "replicas": step.replicas,
                "done": step.done,
            }
            for step in _steps(told)
        ],
        "items": list(_items(told)),
    }


def finish(arguments: argparse.Namespace, streams: Streams, told: Told, next_line: str) -> Exit:
    """Print the steps of a verb or what became of them, and what to type next; return the exit status."""
    problems = told.problems
    say(streams, f"logdirctl {arguments.title}: {NOT_READ_BY_KAFKA}")
    for problem in problems:
        say(streams, f"logdirctl {arguments.title}: {problem.line()}")
    if arguments.json:
        streams.out.write(envelope(arguments.title, told.status, problems, _result(arguments, told)))
        return told.status
    rows = [[step.what, step.log_dir or "all", _number(step.replicas), _number(step.done)] for step in _steps(told)]
    if rows:
        render.table(streams.out, ["step", "log dir", "replicas", "done"], rows, frozenset((2, 3)))
    streams.out.write(_summary(arguments, told) + "\n")
    streams.out.write(printable(f"next: {next_line}") + "\n")
    return told.status


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _summary(arguments: argparse.Namespace, told: Told) -> str:
    refused = len(told.decision.refused if told.report is None else told.report.refused)
    words = []
    if told.decision.done:
        words.append(f"{told.decision.done} done before")
    if refused:
        words.append(f"{refused} refused by name")
    if told.left_out:
        words.append(f"{len(told.left_out)} log dir{'s' if len(told.left_out) > 1 else ''} left out")
    if told.report is None:
        words.insert(0, "planned; nothing was changed" if told.has_work else "nothing to do")
    elif not told.is_finished:
        words.insert(0, "not finished")
    else:
        words.insert(0, "finished" if told.has_work else "nothing to do")
    return f"{arguments.title}: {', '.join(words)}"
