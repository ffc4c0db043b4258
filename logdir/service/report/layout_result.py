"""What a verb of the layout use case would do, or did: steps, items, problems, and what to do next.

Spec: design §5 "A use case", §8; docs/json.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

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
from logdir.errors import Problem, RefusedError
from logdir.refusal_slug import Why
from logdir.service.batch.layout_phases import LayoutReport
from logdir.service.report.json_form import KEY
from logdir.service.report.result import ItemResult, ItemState


class LayoutVerb(Enum):
    """What is asked of a broker's layout."""

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
    """What follows a verb; never *finalize*: no released Kafka reads what it leaves (design §8)."""

    SAME = "same"
    """The same verb, with ``--apply``; of a check the apply."""
    VERIFY = "verify"
    UNINSTALL = "uninstall"
    """It takes away a work root inside a log dir, and lifts the start block after that."""
    INVENTORY = "inventory"
    """Of which another plan is made."""
    STATUS = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStep:
    """One step of a decision."""

    what: str = field(metadata={KEY: "detail"})
    """For people."""
    log_dir: str | None
    """``None``: every log dir."""
    replicas: int | None = None
    """How many it moves; ``None`` where it moves none."""
    done: int | None = None
    """How many were moved; ``None`` where nothing was done yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutResult:
    """What a verb would do, or did."""

    verb: LayoutVerb
    is_applied: bool
    """Something was done; else this is a plan."""
    is_finished: bool
    """The verb came to its end in every log dir of the broker."""
    has_work: bool
    """The decision holds something to do."""
    plan_sha256: str
    """Of the plan it is bound to; empty where none is known."""
    done_before: int
    """Steps of the plan that were done before."""
    refused: int
    """Steps and replicas refused by name."""
    left_out: tuple[str, ...]
    """Log dirs that do not answer: a start block and a topic-id layout stay there."""
    steps: tuple[LayoutStep, ...]
    items: tuple[ItemResult, ...]
    """Those that are moved, then those refused; ``log_dir`` is empty where ``path`` is absolute."""
    problems: tuple[Problem, ...]
    """Every refusal and failure, by name."""
    next: LayoutNext

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong: no problem, and what was done came to its end."""
        return not self.problems and (self.is_finished or not self.is_applied)

    @property
    def is_waiting(self) -> bool:
        """Whether this is a plan that has something to do."""
        return self.has_work and not self.is_applied


def result_of(
    verb: LayoutVerb,
    decision: Decision,
    report: LayoutReport | None = None,
    *,
    notes: Sequence[Problem] = (),
    left_out: tuple[str, ...] = (),
    is_idle: bool = False,
) -> LayoutResult:
    """Put together what a verb would do, or did.

    Args:
        verb: The verb.
        decision: What was decided last.
        report: What became of it; ``None``: it was only planned.
        notes: What is wrong beside that.
        left_out: Log dirs that do not answer.
        is_idle: A way back that has nothing to take back; what is done removes leftovers of what never began.
    """
    refused = decision.refused if report is None else report.refused
    failed = () if report is None else tuple(report.failed.values())
    problems = (*notes, *map(_left_out, left_out), *(error.problem() for error in (*failed, *refused)))
    is_finished = report is not None and report.is_finished and not left_out
    has_work = bool(decision.phases) and not is_idle
    return LayoutResult(
        verb=verb,
        is_applied=report is not None,
        is_finished=is_finished,
        has_work=has_work,
        plan_sha256=decision.plan_sha256,
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
        "once it is back: logdirctl layout rollback",
    )


def _next(
    verb: LayoutVerb, decision: Decision, *, is_waiting: bool, is_cut_off: bool, has_problems: bool
) -> LayoutNext:
    """Return what follows.

    Args:
        verb: The verb.
        decision: What was decided last.
        is_waiting: It was planned, and there is something to do.
        is_cut_off: It was begun, and did not come to its end.
        has_problems: Something is wrong.
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
    """Return the replicas that an action moves; those that lie where they belong are only looked at."""
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
                yield LayoutStep(what=f"layout.json: {action.state.value}", log_dir=action.log_dir)
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
    """Return how many replicas were moved, by log dir."""
    outcomes = () if report is None else report.outcomes
    return Counter(log_dir for log_dir, one in outcomes if one.error is None and "/" in _under_id(one))


def _under_id(outcome: Outcome) -> str:
    """Return where a replica lies or lay in the topic-id layout; without a slash if nowhere."""
    return outcome.path if "/" in outcome.path else outcome.place or ""


def _items(decision: Decision, report: LayoutReport | None) -> Iterator[ItemResult]:
    outcomes = {} if report is None else {(log_dir, one.path): one for log_dir, one in report.outcomes}
    log_dirs = {action.log_dir for action in decision.actions if not isinstance(action, SetStartBlock | LiftStartBlock)}
    for action in decision.actions:
        if isinstance(action, MoveToTopicIds | MoveToTopicNames):
            for item in _moved(action):
                outcome = outcomes.get((action.log_dir, item.path))
                yield _item(action.log_dir, item, outcome, is_planned=report is None)
    for error in decision.refused:
        yield _refused(error, log_dirs)


def _item(log_dir: str, item: ToIds | ToNames, outcome: Outcome | None, *, is_planned: bool) -> ItemResult:
    state = ItemState.PLANNED if is_planned else ItemState.UNDONE
    error = None if outcome is None else outcome.error
    if outcome is not None:
        is_refused = isinstance(error, RefusedError)
        state = ItemState.DONE if error is None else ItemState.REFUSED if is_refused else ItemState.UNDONE
    return ItemResult(
        log_dir=log_dir,
        path=item.path,
        state=state,
        ref=item.ref,
        new_path=item.place if state in (ItemState.PLANNED, ItemState.DONE) else item.path,
        problem=None if error is None else error.problem(),
    )


def _refused(error: RefusedError, log_dirs: set[str]) -> ItemResult:
    home = max((one for one in log_dirs if error.path.startswith(f"{one}/")), key=len, default="")
    path = error.path.removeprefix(f"{home}/") if home else error.path
    return ItemResult(log_dir=home, path=path, state=ItemState.REFUSED, problem=error.problem())
