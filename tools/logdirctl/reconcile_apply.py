"""What follows from an image, done: in batches under every lock, each decided again for what was shown.

How far the cluster was followed is made durable before the first action; a request document is marked as followed when
all of it is done. What the brake counts comes before the first staging. After any action the rest may wait for the next
command, which finds it by itself.

Not here: what follows (``logdir.decide``), the operations (``logdir.disk``).

Spec: design §2 laws 1, 3, 4, §4; attacks A3, A22, A38, A43.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from logdir.decide.position import until_done
from logdir.decide.reconcile import ReconcilePlan
from logdir.decide.reconcile_action import Action, GiveId, HoldStaged, StageReplica
from logdir.disk import brake, controller, staging
from logdir.disk.batches import Batches
from logdir.disk.give_id import GiveItem, give_id
from logdir.disk.kernel_clock import read_instant
from logdir.disk.locks import Batch
from logdir.disk.outcome import Outcome, Result
from logdir.disk.site import Site
from logdir.errors import Problem
from tools.cli import Streams, say
from tools.logdirctl.broker import OpenBroker, sick_disks, told
from tools.logdirctl.desired_source import Desired
from tools.logdirctl.reconcile import Decided, Policy, closely, decide
from tools.logdirctl.reconcile_report import Row, place_of, planned_rows, refused_rows
from tools.logdirctl.report import DONE, UNDONE, Progress, utc
from tools.render import printable

_Key = tuple[type, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was done."""

    decided: Decided
    """As it was decided last."""
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    has_changed: bool


@dataclass(slots=True, kw_only=True)
class _Work:
    """Where one command stands."""

    broker: OpenBroker
    streams: Streams
    left: dict[_Key, Action]
    """What was shown and is not done yet, in order."""
    rows: list[Row] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    sick: set[str] = field(default_factory=set)
    batches: Batches = field(default_factory=staging.batches)


def _key(action: Action) -> _Key:
    return type(action), action.log_dir, place_of(action)


def apply(broker: OpenBroker, desired: Desired, policy: Policy, shown: Decided, streams: Streams) -> Applied:
    """Do what follows; the owner locks are held.

    Args:
        broker: Opened for changes, and recovered.
        desired: What its cluster says.
        policy: What the operator said.
        shown: What was decided first; nothing else is done.
        streams: For progress, and to tell of each loss that is scheduled.

    Raises:
        LogDirError: as ``OpenBroker.batch``; what was done by then is done.
    """
    plan = shown.plan
    if plan is None:
        raise ValueError("nothing follows from what was refused")
    paths = {place_of(action) for action in (*plan.actions, *plan.waiting)} | {one.path for one in plan.refusals}
    work = _Work(broker=broker, streams=streams, left={_key(action): action for action in plan.actions})
    if plan.braked is not None and desired.document is not None:
        # A document is followed as a whole, or given again.
        return Applied(decided=shown, rows=planned_rows(plan), problems=(), has_changed=False)
    progress = Progress(streams, "reconciling", len(work.left))
    broker.beat(read_instant())
    decided, is_begun = shown, False
    while work.left:
        with broker.batch() as held:
            facts = broker.look(closely(paths))
            decided = decide(broker, desired, policy, facts, is_counted=is_begun and plan.braked is None)
            now = decided.plan
            if now is None or now.refused is not None or (now.braked is not None and plan.braked is None):
                rows = () if now is None else planned_rows(now)
                return Applied(
                    decided=decided, rows=(*work.rows, *rows), problems=tuple(work.problems), has_changed=is_begun
                )
            if not is_begun:
                _begin(broker, desired, now)
                is_begun = True
            _take_out(work, now)
            before = len(work.left)
            _do(work, now, held)
            progress.add(before - len(work.left))
    progress.done()
    last = decided.plan
    rows = tuple(work.rows)
    if last is not None:
        rows = (*rows, *refused_rows(_not_listed(last, rows)), *planned_rows(replace(last, actions=(), refusals=())))
        is_done = not work.sick and all(row.state == DONE for row in work.rows)
        if last.used is not None and (is_done or last.used == until_done(last.used, desired.used)):
            with told("controller.json of every work root"):
                controller.write_record(broker.changeable, last.used)
    return Applied(decided=decided, rows=rows, problems=tuple(work.problems), has_changed=is_begun)


def _not_listed(plan: ReconcilePlan, rows: Sequence[Row]) -> ReconcilePlan:
    seen = {(row.log_dir, row.path) for row in rows}
    return replace(plan, refusals=tuple(one for one in plan.refusals if (one.log_dir, one.path) not in seen))


def _begin(broker: OpenBroker, desired: Desired, plan: ReconcilePlan) -> None:
    """Make durable what must be before the first action."""
    if plan.used is not None:
        with told("controller.json of every work root"):
            controller.write_record(broker.changeable, until_done(plan.used, desired.used))
    if plan.record is not None:
        with told("brake.json of every work root"):
            brake.write_record(broker.changeable, plan.record)


def _take_out(work: _Work, now: ReconcilePlan) -> None:
    """Take out what does not follow any more."""
    refusals = {(one.log_dir, one.path): one for one in now.refusals}
    follows = {_key(action) for action in now.actions}
    for key, action in list(work.left.items()):
        if key in follows:
            continue
        del work.left[key]
        refusal = refusals.get((action.log_dir, place_of(action)))
        if refusal is not None:
            work.rows += refused_rows(replace(now, refusals=(refusal,)))
        else:
            problem = Problem(
                "refused", f"{action.log_dir}/{place_of(action)}", "what was shown", "it changed", "look again"
            )
            work.rows.append(Row.of(action, UNDONE, problem=problem))


def _do(work: _Work, now: ReconcilePlan, held: Batch) -> None:
    """Do actions in their order until the batch is over."""
    todo = [action for action in now.actions if _key(action) in work.left]
    for part in _parts(todo, work.batches):
        site = work.broker.site_of(part[0].log_dir)
        outcomes: tuple[Outcome, ...] = ()
        if site.log_dir not in work.sick:
            held.require_held()
            with sick_disks(work.problems, work.sick, site):
                outcomes = _carry_out(site, part)
        for number, action in enumerate(part):
            # Of a disk that gave up in the middle nobody knows what was done: the next look tells.
            outcome = outcomes[number] if outcomes else None
            work.rows.append(_row(action, outcome))
            _warn(work.streams, action, outcome)
            del work.left[_key(action)]
        if held.expired(read_instant().boottime_ms):
            return


def _parts(actions: Sequence[Action], batches: Batches) -> Iterator[Sequence[Action]]:
    """Yield what is done together: stagings of one log dir share a sync, the others stand alone."""
    for (kind, _), group in groupby(actions, key=lambda action: (type(action), action.log_dir)):
        listed = list(group)
        yield from batches.of(listed) if kind is StageReplica else ([action] for action in listed)


def _carry_out(site: Site, part: Sequence[Action]) -> tuple[Outcome, ...]:
    stages = [action.stage for action in part if isinstance(action, StageReplica)]
    if stages:
        return staging.stage(site, [staging.StageItem(path=one.path, marker=one.marker) for one in stages])
    found = []
    for action in part:
        match action:
            case GiveId():
                found.append(give_id(site, GiveItem(path=action.path, topic_id=action.topic_id)))
            case HoldStaged():
                found.append(staging.hold(site, action.name))
            case StageReplica():
                raise ValueError("actions of two kinds are not done together")
    return tuple(found)


def _row(action: Action, outcome: Outcome | None) -> Row:
    if outcome is None:
        return Row.of(action, UNDONE)
    problem = None if outcome.error is None else outcome.error.problem()
    state = DONE if outcome.result is Result.DONE else UNDONE
    return Row.of(action, state, place=outcome.place, problem=problem)


def _warn(streams: Streams, action: Action, outcome: Outcome | None) -> None:
    """Tell of a loss that is scheduled (KIP-516, "Deletion", step 1)."""
    if not isinstance(action, StageReplica) or outcome is None or outcome.result is not Result.DONE:
        return
    marker = action.stage.marker
    until = "until an operator purges it" if action.undo_until_ms is None else f"until {utc(action.undo_until_ms)}"
    line = f"{action.log_dir}/{action.path} ({marker.topic_id or 'no id'}) is set aside, and can be taken back {until}"
    say(streams, f"logdirctl reconcile: {printable(line)}")
