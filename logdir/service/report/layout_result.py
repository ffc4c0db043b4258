"""The result of a layout verb, planned or done: steps, items, problems, and the next command.

Spec: design §5 "A use case", §8; docs/json.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, assert_never

from logdir.decide.layout.action import (
    Action,
    Decision,
    LiftStartBlock,
    MoveToTopicIds,
    MoveToTopicNames,
    RemoveLayoutFile,
    SetLayoutState,
    SetStartBlock,
    ToIds,
    ToNames,
)
from logdir.disk.replica.outcome import Outcome
from logdir.errors import LogDirSuspectError, Problem, RefusedError
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaRef
from logdir.service.batch.layout_phases import LayoutReport
from logdir.service.report.json_form import HIDDEN, KEY
from logdir.service.report.result import ItemState
from logdir.service.report.table import Column


class LayoutVerb(Enum):
    """The verbs of a layout change."""

    CHECK = "check"
    APPLY = "apply"
    VERIFY = "verify"
    ROLLBACK = "rollback"
    FINALIZE = "finalize"

    @property
    def has_plan(self) -> bool:
        """Whether it takes a plan document."""
        return self in (LayoutVerb.CHECK, LayoutVerb.APPLY, LayoutVerb.VERIFY)


class LayoutNext(Enum):
    """The next command after a verb; never *finalize*, because no released Kafka reads its result (design §8)."""

    SAME = "same"
    """The same verb, with ``--apply``; after a check the apply."""
    VERIFY = "verify"
    UNINSTALL = "uninstall"
    """Uninstall: it removes a work root inside a log dir, then lifts the start block."""
    INVENTORY = "inventory"
    """An inventory, to make a new plan."""
    STATUS = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStep:
    """One step of a layout change."""

    what: str = field(metadata={KEY: "detail"})
    """A description for people."""
    log_dir: str | None
    """``None``: every log dir."""
    replicas: int | None = None
    """Number of replicas it moves; ``None`` if it moves none."""
    done: int | None = None
    """Number of replicas moved; ``None`` if nothing was done yet."""


STEP_COLUMNS: Final[tuple[Column[LayoutStep], ...]] = (
    Column("step", "what"),
    Column("log dir", lambda one: one.log_dir or "all"),
    Column("replicas", "replicas", is_number=True),
    Column("done", "done", is_number=True),
)
"""The table of the steps, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutItem:
    """One replica that is moved, or one refusal."""

    log_dir: str | None
    """``None`` where ``path`` is absolute."""
    path: str
    """Its path before the move."""
    state: ItemState
    ref: ReplicaRef | None = None
    """``None``: a step that was refused before it began."""
    new_path: str | None = None
    """Its path afterwards, planned or done; ``None`` for a refusal."""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutResult:
    """The result of a layout verb, planned or done."""

    is_applied: bool = field(metadata={KEY: "applied"})
    """Whether changes were made; otherwise this is a plan."""
    is_finished: bool = field(metadata={KEY: "finished"})
    """Whether the verb is complete in every log dir of the broker."""
    has_work: bool = field(default=False, metadata=HIDDEN)
    """Whether the decision contains any action."""
    plan_sha256: str | None
    """SHA-256 of the plan that the log dirs are bound to; ``None``: none is known."""
    done_before: int
    """Number of steps of the plan that were done before this command."""
    refused: int = field(default=0, metadata=HIDDEN)
    """Number of steps and replicas that were refused."""
    left_out: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    """Log dirs that do not answer: their start block and topic-id layout stay."""
    steps: tuple[LayoutStep, ...]
    items: tuple[LayoutItem, ...]
    """Replicas that are moved, then refusals."""
    problems: tuple[Problem, ...] = field(default=(), metadata=HIDDEN)
    """Every refusal and failure."""
    next: LayoutNext = field(default=LayoutNext.STATUS, metadata=HIDDEN)

    @property
    def is_well(self) -> bool:
        """Whether there is no problem, and the change, if made, is complete."""
        return not self.problems and (self.is_finished or not self.is_applied)

    @property
    def is_waiting(self) -> bool:
        """Whether this is a plan with work to do."""
        return self.has_work and not self.is_applied

    @property
    def summary(self) -> str:
        """How far the layout change is, in a few words for people."""
        words = ["nothing to do"]
        if self.has_work:
            words = ["finished" if self.is_applied else "planned; nothing was changed"]
        if self.is_applied and not self.is_finished:
            words = ["not finished"]
        if self.done_before:
            words.append(f"{self.done_before} done before")
        if self.refused:
            words.append(f"{self.refused} refused by name")
        if count := len(self.left_out):
            words.append(f"{count} log dir{'s' if count > 1 else ''} left out")
        return ", ".join(words)


def result_of(
    verb: LayoutVerb,
    decision: Decision,
    report: LayoutReport | None = None,
    *,
    notes: Sequence[Problem] = (),
    left_out: tuple[str, ...] = (),
    is_idle: bool = False,
) -> LayoutResult:
    """Build the result of a layout verb, planned or done.

    Args:
        verb: The verb.
        decision: The last decision.
        report: The report of carrying it out; ``None``: it was only planned.
        notes: Further problems.
        left_out: Log dirs that do not answer.
        is_idle: Whether it is a rollback without replicas to move, which only removes leftovers of a change that never
            began.
    """
    refused = decision.refused if report is None else report.refused
    failed = () if report is None else tuple(report.failed.values())
    # A log dir that fell silent is noted, and ended the change: it is named once.
    silent = {one.path for one in notes if one.slug == LogDirSuspectError.code}
    skipped = map(_left_out, (log_dir for log_dir in left_out if log_dir not in silent))
    problems = tuple(dict.fromkeys((*notes, *skipped, *(error.problem() for error in (*failed, *refused)))))
    is_finished = report is not None and report.is_finished and not left_out
    has_work = bool(decision.phases) and not is_idle
    return LayoutResult(
        is_applied=report is not None,
        is_finished=is_finished,
        has_work=has_work,
        plan_sha256=decision.plan_sha256 or None,
        done_before=decision.done,
        refused=len(refused),
        left_out=left_out,
        steps=() if is_idle else tuple(_steps(decision, report)),
        items=tuple(_items(decision, report)),
        problems=problems,
        next=_next(
            verb,
            decision,
            is_waiting=has_work and report is None,
            is_cut_off=report is not None and not is_finished,
            has_problems=bool(problems),
        ),
    )


def _left_out(log_dir: str) -> Problem:
    return Problem(
        "log-dir-offline",
        log_dir,
        "every log dir of the broker, to take all of its replicas back",
        "a log dir that --skip-log-dir leaves out: a topic-id layout and a start block there stay",
        "once that log dir is back: logdirctl layout rollback",
    )


def _next(
    verb: LayoutVerb, decision: Decision, *, is_waiting: bool, is_cut_off: bool, has_problems: bool
) -> LayoutNext:
    """Return the next command.

    Args:
        verb: The verb.
        decision: The last decision.
        is_waiting: Whether it was planned and has work to do.
        is_cut_off: Whether it was begun and is not complete.
        has_problems: Whether there is any problem.
    """
    match verb:
        case LayoutVerb.ROLLBACK:
            if is_waiting:
                return LayoutNext.SAME
            is_inside = any(error.slug == Why.WORK_ROOT_INSIDE.value for error in decision.refused)
            return LayoutNext.UNINSTALL if is_inside else LayoutNext.STATUS
        case LayoutVerb.CHECK | LayoutVerb.APPLY:
            if is_waiting or (is_cut_off and not decision.is_plan_stale):
                return LayoutNext.SAME
            return LayoutNext.INVENTORY if decision.is_plan_stale or has_problems else LayoutNext.VERIFY
        case LayoutVerb.VERIFY:
            if is_waiting:
                return LayoutNext.SAME
            return LayoutNext.INVENTORY if has_problems else LayoutNext.STATUS
        case LayoutVerb.FINALIZE:
            return LayoutNext.STATUS
        case never:
            assert_never(never)


def _moved(action: Action) -> Sequence[ToIds | ToNames]:
    """Return the replicas that an action moves, without those already in place."""
    match action:
        case MoveToTopicIds():
            return action.items
        case MoveToTopicNames():
            return [item for item in action.items if item.prefix]
        case _:
            return ()


def _steps(decision: Decision, report: LayoutReport | None) -> Iterator[LayoutStep]:
    done = _done_in(report)
    for action in decision.actions:
        match action:
            case SetLayoutState():
                yield LayoutStep(what=f"layout.json: {action.state.words}", log_dir=action.log_dir)
            case SetStartBlock():
                yield LayoutStep(what="start block: no broker can start", log_dir=None)
            case MoveToTopicIds() | MoveToTopicNames():
                way = "to topic ids" if isinstance(action, MoveToTopicIds) else "to topic names"
                count = None if report is None else done[action.log_dir]
                yield LayoutStep(what=way, log_dir=action.log_dir, replicas=len(_moved(action)), done=count)
            case LiftStartBlock():
                yield LayoutStep(what="lift the start block", log_dir=None)
            case RemoveLayoutFile():
                yield LayoutStep(what="remove layout.json", log_dir=action.log_dir)
            case never:
                assert_never(never)


def _done_in(report: LayoutReport | None) -> Counter[str]:
    """Return the number of moved replicas by log dir."""
    outcomes = () if report is None else report.outcomes
    return Counter(log_dir for log_dir, one in outcomes if one.error is None and "/" in _under_id(one))


def _under_id(outcome: Outcome) -> str:
    """Return the place of a replica in the topic-id layout, now or before; a text without a slash if there is none."""
    return outcome.path if "/" in outcome.path else outcome.place or ""


def _items(decision: Decision, report: LayoutReport | None) -> Iterator[LayoutItem]:
    outcomes = {} if report is None else {(log_dir, one.path): one for log_dir, one in report.outcomes}
    log_dirs = {action.log_dir for action in decision.actions if not isinstance(action, SetStartBlock | LiftStartBlock)}
    for action in decision.actions:
        if isinstance(action, MoveToTopicIds | MoveToTopicNames):
            for item in _moved(action):
                outcome = outcomes.get((action.log_dir, item.path))
                yield _item(action.log_dir, item, outcome, is_planned=report is None)
    for error in decision.refused:
        yield _refused(error, log_dirs)


def _item(log_dir: str, item: ToIds | ToNames, outcome: Outcome | None, *, is_planned: bool) -> LayoutItem:
    state = ItemState.PLANNED if is_planned else ItemState.UNDONE
    error = None if outcome is None else outcome.error
    if outcome is not None:
        is_refused = isinstance(error, RefusedError)
        state = ItemState.DONE if error is None else ItemState.REFUSED if is_refused else ItemState.UNDONE
    return LayoutItem(
        log_dir=log_dir,
        path=item.path,
        state=state,
        ref=item.ref,
        new_path=item.place if state in (ItemState.PLANNED, ItemState.DONE) else item.path,
        problem=None if error is None else error.problem(),
    )


def _refused(error: RefusedError, log_dirs: set[str]) -> LayoutItem:
    home = max((one for one in log_dirs if error.path.startswith(f"{one}/")), key=len, default=None)
    path = error.path if home is None else error.path.removeprefix(f"{home}/")
    return LayoutItem(log_dir=home, path=path, state=ItemState.REFUSED, problem=error.problem())
