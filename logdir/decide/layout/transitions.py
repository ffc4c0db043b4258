"""The next actions of a layout change, from a plan and the views of all log dirs: pure, so a dry run prints the same
actions.

Directory names decide where a replica is; ``layout.json`` can only cause a refusal. Verbs can be repeated: for what is
done already there is no action. A decision is a list of phases; each begins only when all earlier ones succeeded in
every log dir.

Not here: reading and carrying out (``service.batch.layout_phases``), the steps inside one directory
(``disk.replica.relayout``).

Spec: design §3.1, §7.7, §8; attacks A13, A21, A35, A42, A44.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from logdir.decide.layout.action import (
    Action,
    Decision,
    LayoutView,
    LiftStartBlock,
    MoveToTopicIds,
    MoveToTopicNames,
    RemoveLayoutFile,
    Replica,
    SetLayoutState,
    SetStartBlock,
    ToIds,
    ToNames,
)
from logdir.decide.layout.precondition import (
    files_of,
    require_broker_named,
    require_known,
    require_one_broker,
    require_plan,
    require_states,
)
from logdir.errors import RefusedError
from logdir.formats.own.layout_file import LayoutState
from logdir.formats.own.plan_document import IdFrom, PlanDocument, Step
from logdir.ids import TopicId
from logdir.paths import LAYOUT
from logdir.refusal_slug import Why
from logdir.replica_ref import TopicIdPartition

_AGAIN = "take the inventory and plan again: logdirctl inventory, then logdirctl fleet plan; the other steps go on"


def _decision(
    phases: Iterable[Sequence[Action]],
    sha256: str,
    refused: Sequence[RefusedError] = (),
    *,
    done: int = 0,
    is_blocked: bool = False,
    is_plan_stale: bool = False,
) -> Decision:
    return Decision(
        phases=tuple(tuple(phase) for phase in phases if phase),
        plan_sha256=sha256,
        refused=tuple(refused),
        done=done,
        is_blocked=is_blocked or is_plan_stale,
        is_plan_stale=is_plan_stale,
    )


class _Everywhere:
    """Index over all log dirs of a broker: replicas that exist twice, and ``-future`` directories."""

    def __init__(self, broker: Sequence[LayoutView]) -> None:
        self.futures = {future for seen in broker for future in seen.futures}
        every = [replica for seen in broker for replica in seen.replicas]
        self._named = Counter((replica.ref.topic, replica.ref.partition) for replica in every)
        self._with_id = Counter((replica.ref.topic_id, replica.ref.partition) for replica in every)
        self._places: dict[tuple[TopicId | None, int], list[str]] = defaultdict(list)
        for seen in broker:
            for replica in seen.replicas:
                if replica.ref.topic_id:
                    self._places[replica.ref.topic_id, replica.ref.partition].append(f"{seen.log_dir}/{replica.path}")

    def refusal(self, log_dir: str, replica: Replica, topic_id: TopicId | None) -> RefusedError | None:
        """Return why a replica may not be changed; ``None`` if it may."""
        path = f"{log_dir}/{replica.path}"
        if replica.trouble:
            return RefusedError(
                path,
                why=Why.UNEXPECTED_ENTRY,
                expected="a replica that may be changed",
                found=replica.trouble,
                fix="it stays as it is: inspect it",
            )
        if (replica.ref.topic, replica.ref.partition) in self.futures:
            return RefusedError(
                path,
                why=Why.FUTURE_REPLICA_EXISTS,
                expected="no -future of it on any disk",
                found="a -future directory",
                fix="let the broker finish the move, or cancel it with kafka-reassign-partitions, then try again",
            )
        own = 1 if replica.ref.topic_id == topic_id and topic_id is not None else 0
        others = self._with_id[topic_id, replica.ref.partition] - own if topic_id is not None else 0
        if self._named[replica.ref.topic, replica.ref.partition] > 1 or others > 0:
            where = [place for place in self._places[topic_id, replica.ref.partition] if place != path]
            found = f"a second one: {', '.join(where) or 'with the same name'}"
            return RefusedError(
                path,
                why=Why.LIVE_REPLICA_EXISTS,
                expected="one live replica on this broker",
                found=found,
                fix="compare both, and keep the complete one",
            )
        return None


def check(plan: PlanDocument, broker: Sequence[LayoutView], *, confirmed: bool = False) -> Decision:
    """Return the decision of ``apply``, without carrying it out."""
    return apply(plan, broker, confirmed=confirmed)


def apply(plan: PlanDocument, broker: Sequence[LayoutView], *, confirmed: bool = False) -> Decision:
    """Decide the actions that carry out a plan, or continue it.

    Args:
        plan: A plan of this broker.
        broker: All its log dirs.
        confirmed: Whether the operator states that topic-id directories without ``layout.json`` belong to this plan.

    Raises:
        RefusedError: no part of the plan may be done.

    Spec: design §7.7: steps whose directory changed since are refused, the rest goes on.
    """
    require_one_broker(broker)
    require_plan(plan, broker)
    require_known(broker, confirmed=confirmed)
    files = files_of(broker)
    over = {LayoutState.APPLIED, LayoutState.VERIFIED}
    for log_dir, file in files.items():
        if file.state in (LayoutState.FINALIZING, LayoutState.FINAL, LayoutState.ROLLING_BACK):
            raise RefusedError(
                f"{log_dir}/{LAYOUT}",
                why=Why.LAYOUT_STATE_DIFFERS,
                expected="a log dir to apply to",
                found=file.state.words,
                fix="take it back with logdirctl layout rollback first",
            )
        if file.plan_sha256 != plan.sha256 and not all(other.state in over for other in files.values()):
            raise RefusedError(
                f"{log_dir}/{LAYOUT}",
                why=Why.LAYOUT_PLAN_DIFFERS,
                expected=f"plan {plan.sha256}",
                found=file.plan_sha256,
                fix="finish that plan with logdirctl layout apply, or take it back with logdirctl layout rollback",
            )
    items, refused, finished = _steps(plan, broker)
    unnamed = _without_step(plan, broker)
    refused += unnamed
    is_over = all(
        seen.file is not None and seen.file.state in over and seen.file.plan_sha256 == plan.sha256 for seen in broker
    )
    if not any(items.values()) and (is_over or not files):
        return _decision((), plan.sha256, refused, done=finished, is_plan_stale=bool(unnamed))
    begin = [
        SetLayoutState(seen.log_dir, LayoutState.APPLYING)
        for seen in broker
        if seen.file is None or (seen.file.state, seen.file.plan_sha256) != (LayoutState.APPLYING, plan.sha256)
    ]
    work: list[Action] = []
    for seen in broker:
        if items[seen.log_dir]:
            work.append(MoveToTopicIds(seen.log_dir, tuple(items[seen.log_dir])))
        work.append(SetLayoutState(seen.log_dir, LayoutState.APPLIED))
    return _decision((begin, [SetStartBlock()], work), plan.sha256, refused, done=finished, is_plan_stale=bool(unnamed))


def _without_step(plan: PlanDocument, broker: Sequence[LayoutView]) -> list[RefusedError]:
    """Return the refusals of live replicas under topic names that no step of the plan contains."""
    steps = {(step.log_dir, step.name) for step in plan.steps}
    return [
        RefusedError(
            f"{seen.log_dir}/{replica.path}",
            why=Why.NO_PLAN_STEP,
            expected="a step of the plan for this live replica",
            found="no step",
            fix="it stays under its name; plan again: logdirctl inventory, then logdirctl fleet plan",
        )
        for seen in broker
        for replica in seen.replicas
        if not replica.is_under_id and (seen.log_dir, replica.path) not in steps
    ]


def _steps(plan: PlanDocument, broker: Sequence[LayoutView]) -> tuple[dict[str, list[ToIds]], list[RefusedError], int]:
    everywhere = _Everywhere(broker)
    there = {(seen.log_dir, replica.path): replica for seen in broker for replica in seen.replicas}
    items: dict[str, list[ToIds]] = {seen.log_dir: [] for seen in broker}
    refused: list[RefusedError] = []
    finished = 0
    for step in plan.steps:
        replica = there.get((step.log_dir, step.name))
        if replica is None and _is_done(step, there.get((step.log_dir, step.place))):
            finished += 1
            continue
        refusal = _refusal(step, replica, everywhere)
        if refusal is not None:
            refused.append(refusal)
            continue
        items[step.log_dir].append(
            ToIds(
                ref=TopicIdPartition(topic=step.topic, topic_id=step.topic_id, partition=step.partition),
                has_own_id=step.id_from is IdFrom.OWN,
            )
        )
    return items, refused, finished


def _is_done(step: Step, replica: Replica | None) -> bool:
    if replica is None or replica.trouble:
        return False
    return (replica.ref.topic, replica.ref.topic_id) == (step.topic, step.topic_id)


def _refusal(step: Step, replica: Replica | None, everywhere: _Everywhere) -> RefusedError | None:
    path = f"{step.log_dir}/{step.name}"
    if replica is None:
        return RefusedError(
            path, why=Why.CHANGED, expected="the directory that was planned", found="no such directory", fix=_AGAIN
        )
    refusal = everywhere.refusal(step.log_dir, replica, step.topic_id)
    if refusal is not None:
        return refusal
    if replica.ref.topic_id != step.topic_id and (replica.ref.topic_id is not None or step.id_from is IdFrom.OWN):
        return RefusedError(
            path,
            why=Why.CHANGED,
            expected=f"topic id {step.topic_id}",
            found=str(replica.ref.topic_id or "no topic id"),
            fix=_AGAIN,
        )
    return None


def verify(plan: PlanDocument, broker: Sequence[LayoutView]) -> Decision:
    """Decide whether a plan was carried out completely.

    Args:
        plan: A plan of this broker.
        broker: All its log dirs.

    Returns:
        The state to write, if ``refused`` is empty; otherwise the deviations, and nothing to write.

    Raises:
        RefusedError: a log dir is in no state from *applied* to *final*, or bound to another plan.
    """
    require_one_broker(broker)
    require_plan(plan, broker)
    require_states(
        broker,
        {LayoutState.APPLIED, LayoutState.VERIFIED, LayoutState.FINALIZING, LayoutState.FINAL},
        plan.sha256,
        "layout apply",
    )
    everywhere = _Everywhere(broker)
    refused = []
    there = {(seen.log_dir, replica.path): replica for seen in broker for replica in seen.replicas}
    for (log_dir, path), replica in there.items():
        refusal = everywhere.refusal(log_dir, replica, replica.ref.topic_id)
        if refusal is None and not replica.is_under_id:
            refusal = RefusedError(
                f"{log_dir}/{path}",
                why=Why.LAYOUT_NOT_APPLIED,
                expected="every replica under its topic id",
                found="a replica under its name",
                fix=_AGAIN,
            )
        if refusal is not None:
            refused.append(refusal)
    for step in plan.steps:
        if (step.log_dir, step.name) not in there and not _is_done(step, there.get((step.log_dir, step.place))):
            refused.append(
                RefusedError(
                    f"{step.log_dir}/{step.place}",
                    why=Why.LAYOUT_NOT_APPLIED,
                    expected=f"{step.name} under its topic id",
                    found="no directory of that name or id",
                    fix=_AGAIN,
                )
            )
    if refused:
        return _decision((), plan.sha256, refused, is_blocked=True)
    applied = [seen.log_dir for seen in broker if seen.file is not None and seen.file.state is LayoutState.APPLIED]
    return _decision(
        ([SetLayoutState(log_dir, LayoutState.VERIFIED) for log_dir in applied],), plan.sha256, done=len(plan.steps)
    )


def finalize(broker: Sequence[LayoutView], for_broker: str) -> Decision:
    """Decide to lift the start block for a broker that reads topic-id directories.

    Every log dir durably becomes ``finalizing`` before the start block is lifted; only then one becomes ``final``.

    Args:
        broker: All its log dirs.
        for_broker: The broker that reads topic-id directories, as the operator named it.

    Raises:
        RefusedError: the text names no broker.
        RefusedError: a log dir is not verified.

    Spec: design §8; attacks A21, A51.
    """
    require_broker_named(for_broker)
    require_one_broker(broker)
    allowed = {LayoutState.VERIFIED, LayoutState.FINALIZING, LayoutState.FINAL}
    sha256 = require_states(broker, allowed, None, "layout verify")
    files = files_of(broker)
    begin, end = [], []
    for log_dir, file in files.items():
        if file.state is not LayoutState.FINAL and (file.state, file.for_broker) != (
            LayoutState.FINALIZING,
            for_broker,
        ):
            begin.append(SetLayoutState(log_dir, LayoutState.FINALIZING, for_broker))
        if (file.state, file.for_broker) != (LayoutState.FINAL, for_broker):
            end.append(SetLayoutState(log_dir, LayoutState.FINAL, for_broker))
    return _decision((begin, [LiftStartBlock()] if end else [], end), sha256)


def rollback(broker: Sequence[LayoutView], *, confirmed: bool = False) -> Decision:
    """Decide how to move all replicas back to topic names, from any state of a layout change.

    Args:
        broker: All its log dirs.
        confirmed: Whether the operator states that topic-id directories without ``layout.json`` are to be moved back.

    Returns:
        The actions. The start block stays while any replica is refused.

    Raises:
        RefusedError: there are topic-id directories without a ``layout.json``.
        RefusedError: the log dirs belong to two brokers.

    Spec: design §8: from every state, *final* included.
    """
    require_one_broker(broker)
    files = files_of(broker)
    require_known(broker, confirmed=confirmed)
    end: tuple[list[Action], list[Action]] = ([LiftStartBlock()], [RemoveLayoutFile(seen.log_dir) for seen in broker])
    # Only the start block keeps a stock broker from a directory at which it would stop.
    inside = [_inside(seen) for seen in broker if seen.inside]
    if not files and not any(seen.is_under_ids for seen in broker):
        # No replica was moved; remove the leftovers of an interrupted beginning.
        return _decision(() if inside else end, "", inside, is_blocked=bool(inside))
    sha256 = next((file.plan_sha256 for file in files.values()), "")
    begin = [
        SetLayoutState(seen.log_dir, LayoutState.ROLLING_BACK)
        for seen in broker
        if seen.file is None or seen.file.state is not LayoutState.ROLLING_BACK
    ]
    refused: list[RefusedError] = [*inside]
    everywhere = _Everywhere(broker)
    work = [MoveToTopicNames(seen.log_dir, tuple(_items(seen, everywhere, refused))) for seen in broker]
    barring = [SetStartBlock()] if any(seen.is_under_ids for seen in broker) else []
    return _decision((begin, barring, work, *(() if refused else end)), sha256, refused, is_blocked=bool(refused))


def _inside(seen: LayoutView) -> RefusedError:
    return RefusedError(
        f"{seen.log_dir}/{seen.inside[0]}",
        why=Why.WORK_ROOT_INSIDE,
        expected="no part of a work root in a log dir on which a stock broker is to start",
        found="a part of a work root",
        fix="logdirctl uninstall removes it, and lifts the start block after that",
    )


def _items(seen: LayoutView, everywhere: _Everywhere, refused: list[RefusedError]) -> Iterator[ToNames]:
    for replica in seen.replicas:
        if not replica.is_under_id:
            # Leftovers of an interrupted run are removed even if the replica is refused for another reason.
            if not replica.trouble and replica.ref.topic is not None:
                yield ToNames(ref=replica.ref.by_name, path=replica.path)
            continue
        refusal = everywhere.refusal(seen.log_dir, replica, replica.ref.topic_id)
        if refusal is not None or replica.ref.topic is None:
            if refusal is not None:
                refused.append(refusal)
            continue
        yield ToNames(ref=replica.ref, path=replica.path)
