"""Carrying out a reconcile plan: in batches under every lock; each batch decides again and does only planned actions.

The last applied position becomes durable before the first action. A request document is recorded as applied only when
all of it is done; after a failed or refused row, or with an unread log dir, the operator has to give it again. The
record of the staging limit becomes durable before the first staging. After any action the remaining ones may wait for
the next command, which plans them again.

Not here: the decision (``logdir.decide``), the operations (``logdir.disk``).

Spec: design §2 laws 1, 3, 4, §4; attacks A3, A22, A38, A43.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

from logdir.decide.image.position import until_done
from logdir.decide.reconcile import ReconcilePlan
from logdir.decide.reconcile_action import Action, GiveId, HoldStaged, StageReplica
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import controller, staging_limit
from logdir.disk.replica import staging
from logdir.disk.replica.batches import Batches
from logdir.disk.replica.give_id import GiveItem, give_id
from logdir.disk.replica.outcome import Outcome, Result
from logdir.errors import Problem
from logdir.observe.facts import LogDirFacts
from logdir.refusal_slug import Why
from logdir.service.cluster.image_source import Desired, in_doubt
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors, sick_disks
from logdir.service.reconcile import Decided, Policy, decide
from logdir.service.report.reconcile_item import ReconcileItem, place_of, planned_rows, refused_rows
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemState
from logdir.text import printable, utc
from logdir.worker.look import Deep
from logdir.worker.port import Port

_Key = tuple[type, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The result of carrying out a plan."""

    decided: Decided
    """The last decision."""
    rows: tuple[ReconcileItem, ...]
    problems: tuple[Problem, ...]
    has_changed: bool


def _key(action: Action) -> _Key:
    return type(action), action.log_dir, place_of(action)


def apply(broker: OpenBroker, desired: Desired, policy: Policy, shown: Decided, reporter: Reporter) -> Applied:
    """Carry out a plan; the owner locks are held.

    Args:
        broker: Opened for changes, and recovered.
        desired: The cluster metadata.
        policy: The operator's options.
        shown: The decision of the plan; no other action is done.
        reporter: Receives progress, and each scheduled loss of data.

    Raises:
        LogDirError: as ``OpenBroker.batch``; changes made by then stay.
    """
    plan = shown.plan
    if plan is None:
        raise ValueError("a refused decision has no actions")
    if plan.over_limit is not None and desired.document is not None:
        # A document is applied as a whole, or the operator gives it again.
        return Applied(decided=shown, rows=planned_rows(plan), problems=(), has_changed=False)
    left = {_key(action): action for action in plan.actions}
    work = _Work(
        broker=broker,
        desired=desired,
        policy=policy,
        reporter=reporter,
        shown=plan,
        left=left,
        paths={place_of(action) for action in (*plan.actions, *plan.waiting)} | {one.path for one in plan.refusals},
        decided=shown,
    )
    reporter.begin("reconciling", len(left))
    broker.beat(read_instant())
    hold = partial(broker.batch_after, work.prepare)
    batch_loop.run(left, hold=hold, decide=work.decide, undecided=work.undecided, report=work.report)
    reporter.end()
    return work.stopped() if work.is_stopped else work.finished()


@dataclass(slots=True, kw_only=True)
class _Work:
    """The state of carrying out one reconcile plan."""

    broker: OpenBroker
    desired: Desired
    policy: Policy
    reporter: Reporter
    shown: ReconcilePlan
    left: Mapping[_Key, Action]
    """The planned actions that are left, in order."""
    paths: set[str]
    """Live names of the replicas whose directories are read."""
    decided: Decided
    """The last decision."""
    rows: list[ReconcileItem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    sick: set[str] = field(default_factory=set)
    batches: Batches = field(default_factory=staging.batches)
    is_begun: bool = False
    is_stopped: bool = False
    """Whether the last decision forbids all remaining actions."""

    def look(self, left: Collection[_Key]) -> tuple[LogDirFacts, ...]:
        """Scan the remaining replicas again."""
        actions = [self.left[key] for key in left]
        return self.broker.look_again(
            Deep(paths=frozenset(self.paths)),
            [(action.log_dir, place_of(action)) for action in actions],
            partitions={action.ref.partition for action in actions if isinstance(action, GiveId)},
        )

    def prepare(self) -> None:
        """Scan all planned replicas again, and read their creation times: the scan under the locks then has little to
        read.
        """
        self.broker.births_of(in_doubt(self.desired.image, self.look(tuple(self.left))))

    def decide(self, left: Collection[_Key]) -> Turn[_Key, ReconcileItem]:
        """Scan and decide again about the remaining actions; first write the records that must be durable."""
        facts = self.look(left)
        is_counted = self.is_begun and self.shown.over_limit is None
        self.decided = decide(self.broker, self.desired, self.policy, facts, is_counted=is_counted)
        now = self.decided.plan
        if now is None or now.refused is not None or (now.over_limit is not None and self.shown.over_limit is None):
            self.is_stopped = True
            return Turn(is_over=True)
        if not self.is_begun:
            _begin(self.broker, self.desired, now)
            self.is_begun = True
        follows = {_key(action) for action in now.actions}
        settled = {key: _changed(self.left[key], now) for key in left if key not in follows}
        todo = [action for action in now.actions if _key(action) in left]
        return Turn(settled=settled, steps=partial(self._steps, todo))

    def _steps(self, todo: Sequence[Action]) -> Iterator[Callable[[], Mapping[_Key, ReconcileItem]]]:
        for part in _parts(todo, self.batches):
            yield partial(self._do, part)

    def _do(self, part: Sequence[Action]) -> Mapping[_Key, ReconcileItem]:
        log_dir = part[0].log_dir
        outcomes: tuple[Outcome, ...] = ()
        if log_dir not in self.sick:
            with sick_disks(self.problems, self.sick, log_dir):
                outcomes = _carry_out(self.broker.ports.port(log_dir), part)
        # The disk failed mid-batch, so its outcome is unknown; the next scan shows it.
        known = outcomes or (None,) * len(part)
        for action, outcome in zip(part, known, strict=True):
            _warn(self.reporter, action, outcome)
        return {_key(action): _row(action, outcome) for action, outcome in zip(part, known, strict=True)}

    def undecided(self, key: _Key) -> ReconcileItem:
        """Return the row of an action that no batch decided."""
        action = self.left[key]
        return ReconcileItem.of(
            action, ItemState.UNDONE, problem=nothing_decided(self.broker.path_of(action.log_dir, place_of(action)))
        )

    def report(self, rows: Sequence[ReconcileItem]) -> None:
        """Record the results of some items."""
        self.rows += rows
        self.reporter.advance(len(rows))

    def stopped(self) -> Applied:
        """Return the result when the last decision forbids all remaining actions: what was done, and that decision."""
        plan = self.decided.plan
        rows = () if plan is None else planned_rows(plan)
        return self._applied((*self.rows, *rows))

    def finished(self) -> Applied:
        """Record the last applied position, of a request document only if all of it is done; return the result."""
        last = self.decided.plan
        rows = tuple(self.rows)
        if last is not None:
            rows = (
                *rows,
                *refused_rows(_not_listed(last, rows)),
                *planned_rows(replace(last, actions=(), refusals=())),
            )
            is_done = not self.sick and all(row.state == ItemState.DONE for row in self.rows)
            is_done = is_done and last.is_whole and self.left.keys() >= {_key(action) for action in last.actions}
            if last.last_applied is not None and (
                is_done or last.last_applied == until_done(last.last_applied, self.desired.readable)
            ):
                with map_os_errors("controller.json of every work root"):
                    self.broker.write_all(partial(controller.write_record, record=last.last_applied))
        return self._applied(rows)

    def _applied(self, rows: tuple[ReconcileItem, ...]) -> Applied:
        return Applied(decided=self.decided, rows=rows, problems=tuple(self.problems), has_changed=self.is_begun)


def _changed(action: Action, now: ReconcilePlan) -> ReconcileItem:
    """Return the row of an action that the last decision no longer contains."""
    place = place_of(action)
    for refusal in now.refusals:
        if refusal.log_dir == action.log_dir and refusal.path in (place, ""):
            (row,) = refused_rows(replace(now, refusals=(refusal,)))
            return replace(row, path=place)
    problem = Problem(
        Why.CHANGED.value,
        f"{action.log_dir}/{place}",
        "the replica as it was planned",
        "a replica that changed",
        "plan again: logdirctl reconcile",
    )
    return ReconcileItem.of(action, ItemState.UNDONE, problem=problem)


def _not_listed(plan: ReconcilePlan, rows: Sequence[ReconcileItem]) -> ReconcilePlan:
    seen = {(row.log_dir, row.path) for row in rows}
    return replace(plan, refusals=tuple(one for one in plan.refusals if (one.log_dir, one.path) not in seen))


def _begin(broker: OpenBroker, desired: Desired, plan: ReconcilePlan) -> None:
    """Write the records that must be durable before the first action."""
    if plan.last_applied is not None:
        with map_os_errors("controller.json of every work root"):
            broker.write_all(partial(controller.write_record, record=until_done(plan.last_applied, desired.readable)))
    if plan.record is not None:
        with map_os_errors("staging-limit.json of every work root"):
            broker.write_all(partial(staging_limit.write_record, record=plan.record))


def _parts(actions: Sequence[Action], batches: Batches) -> Iterator[Sequence[Action]]:
    """Yield groups of actions: stagings of one log dir share a sync, each other action is a group of its own."""
    for (kind, _), group in groupby(actions, key=lambda action: (type(action), action.log_dir)):
        listed = list(group)
        yield from batches.of(listed) if kind is StageReplica else ([action] for action in listed)


def _carry_out(port: Port, part: Sequence[Action]) -> tuple[Outcome, ...]:
    stages = [action.stage for action in part if isinstance(action, StageReplica)]
    if stages:
        return port.run_at(staging.stage, [staging.StageItem(path=one.path, marker=one.marker) for one in stages])
    found = []
    for action in part:
        match action:
            case GiveId():
                found.append(port.run_at(give_id, GiveItem(path=action.path, topic_id=action.ref.topic_id)))
            case HoldStaged():
                found.append(port.run_at(staging.hold, action.name))
            case StageReplica():
                raise ValueError("actions of two kinds are not done together")
    return tuple(found)


def _row(action: Action, outcome: Outcome | None) -> ReconcileItem:
    if outcome is None:
        return ReconcileItem.of(action, ItemState.UNDONE)
    problem = None if outcome.error is None else outcome.error.problem()
    state = ItemState.DONE if outcome.result is Result.DONE else ItemState.UNDONE
    return ReconcileItem.of(action, state, new_path=outcome.place, problem=problem)


def _warn(reporter: Reporter, action: Action, outcome: Outcome | None) -> None:
    """Report a scheduled loss of data (KIP-516, "Deletion", step 1)."""
    if not isinstance(action, StageReplica) or outcome is None or outcome.result is not Result.DONE:
        return
    marker = action.stage.marker
    until = "until an operator purges it" if action.undo_until_ms is None else f"until {utc(action.undo_until_ms)}"
    line = f"{action.log_dir}/{action.path} ({marker.topic_id or 'no id'}) is staged, and can be restored {until}"
    reporter.warn(printable(line))
