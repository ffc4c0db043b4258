"""Reconcile: derive ordered actions from the replicas on all disks and the cluster image, or the reasons for none.

Every live replica is compared with the image. Only a proven removal stages with a deadline; a name that now has another
id stages without one; mere absence stages nothing. A replica that is assigned here, in the ISR, or perhaps the last
copy is never staged. An image counts only for directories that are certainly older than it. A staged replica that is
assigned here again loses its deadline. The staging limit applies to all stagings together.

The order: first ids are written and deadlines removed, then replicas are staged, by log dir and path. Each action is
complete in itself: stopping after any of them leaves no partial state, and deciding again yields the remaining actions.

Not here: whether the image may be used (``image.trust``), carrying it out (``disk``), the recheck before a purge
(``staged.purge_recheck``).

Spec: design §2 law 1, §4, §11; KIP-516, "LeaderAndIsr", "Deletion", "Migration"; KIP-631, "Topic Identifiers";
attacks A1, A2, A4, A25, A27, A38, A42, A43, A46.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from logdir.clock import Instant
from logdir.cluster.assignment import Assignment, AssignmentState, assignment_in
from logdir.cluster.image import Image
from logdir.decide import staging_limit
from logdir.decide.candidate import (
    BROKEN_ID,
    StagingCandidate,
    against_age,
    against_candidate,
    against_claim,
    against_log_dir,
    candidate_for,
)
from logdir.decide.image.position import after_image
from logdir.decide.image.trust import HostContext, check_image
from logdir.decide.reconcile_action import Action, GiveId, StageReplica
from logdir.decide.refusal import Refusal, refuse, refuse_untouched
from logdir.decide.stage import StageRequest, stage_one
from logdir.decide.staged.deadline import DelayPolicy
from logdir.decide.staged.wanted import hold_what_is_wanted
from logdir.errors import Problem
from logdir.evidence import Absent
from logdir.formats.own.controller_file import ControllerFile
from logdir.formats.own.inventory import Kind
from logdir.formats.own.staging_limit_file import Count
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica, ReplicaIndex
from logdir.paths import DELETING, METADATA_TOPIC
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaKey, TopicIdPartition

_QUIET = frozenset((AssignmentState.WANTED, AssignmentState.NOT_COVERED, AssignmentState.ZERO_ID))
"""States without an action; a zero id changes nothing (design §4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileRequest:
    """What a reconcile is decided from, apart from the disks."""

    image: Image
    beyond: tuple[Image, ...] = ()
    """Metadata logs to their ends, where these reach beyond ``image`` and may not be committed: they only keep a
    replica that left this node.
    """
    now: Instant
    host_context: HostContext
    births: Mapping[tuple[str, str], int]
    """Creation time (wall clock) of live replicas, by log dir and path; a replica without one is not changed."""
    delays: DelayPolicy = field(default_factory=DelayPolicy)
    protected: tuple[str, ...] = ()
    """Globs of topics whose replicas are never staged."""
    record: tuple[Count, ...] | None = None
    """Stagings so far, from ``staging_limit.highest``; ``None``: not known, so that all wait for a confirmation."""
    percent: int = staging_limit.DEFAULT_PERCENT
    is_confirmed: bool = False
    """Whether an operator has confirmed going over the staging limit."""
    ahead: frozenset[tuple[str, str]] = frozenset()
    """Replicas whose log end or epoch is known to be ahead of their other replicas, by log dir and path (A4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilePlan:
    """The plan. Each live replica that the image does not simply confirm as assigned is in exactly one part of it."""

    actions: tuple[Action, ...]
    refusals: tuple[Refusal, ...]
    refused: Problem | None = None
    """Why the image was not used at all."""
    holds_purges: bool = False
    """Whether nothing may be purged until an operator has checked."""
    record: tuple[Count, ...] | None = None
    """Counts of stagings, to be made durable in every work root before the first one; ``None``: write nothing."""
    over_limit: Problem | None = None
    """The problem if the staging limit is exceeded; an operator may confirm it."""
    waiting: tuple[StageReplica, ...] = ()
    """Stagings that wait for an operator's confirmation."""
    unseen: tuple[Problem, ...] = ()
    """Unreadable log dirs: replicas on them are neither confirmed nor staged (A27)."""
    last_applied: ControllerFile | None = None
    """The position to make durable once every action is done, of a request if ``is_whole``; ``None``: write nothing."""
    unrecorded: Problem | None = None
    """Why no position is recorded of a request until an operator confirms it."""

    @property
    def is_whole(self) -> bool:
        """Whether its actions are complete: none is refused or waiting, and none may be missing because of an unread
        disk or a lost record.

        A refusal of a staged replica does not count: it has no deadline to lose, or its removal has begun.
        """
        refused = any(not one.path.startswith(f"{DELETING}/") for one in self.refusals)
        return not (refused or self.waiting or self.unseen or self.unrecorded)


_Nameless = tuple[Replica, Assignment]


def plan_reconcile(request: ReconcileRequest, facts: Sequence[LogDirFacts]) -> ReconcilePlan:
    """Decide the actions that follow from an image.

    Args:
        request: The request.
        facts: Facts of every configured log dir, in the configured order.

    Returns:
        Actions in the order to carry them out. Empty if the image was refused.
    """
    image, host_context = request.image, request.host_context
    unseen = tuple(one.problem for one in facts if one.problem is not None)
    rejection = check_image(image, facts, host_context, request.now.wall_ms)
    if rejection is not None:
        return ReconcilePlan(
            actions=(), refusals=(), refused=rejection.problem, holds_purges=rejection.holds_purges, unseen=unseen
        )
    refusals: list[Refusal] = []
    usable = _usable(request, facts, refusals)
    candidates, nameless = _compare(image, usable, refusals)
    known = _known(facts, [(candidate.replica, candidate.assignment) for candidate in candidates] + nameless)
    gives = _give_ids(request, known, nameless, refusals)
    holds = hold_what_is_wanted(image, facts, usable, refusals)
    stages = _stages(request, known, candidates, refusals)
    verdict = staging_limit.judge(
        _what_goes(facts, stages),
        request.record,
        request.now,
        percent=request.percent,
        is_confirmed=request.is_confirmed,
    )
    over_limit = verdict.problem if isinstance(verdict, staging_limit.LimitExceeded) else None
    return ReconcilePlan(
        actions=(*gives, *holds, *(() if over_limit else stages)),
        refusals=tuple(refusals),
        record=verdict.record if stages else None,
        over_limit=over_limit,
        waiting=stages if over_limit else (),
        unseen=unseen,
        last_applied=after_image(
            image,
            host_context.readable or host_context.last_applied,
            is_confirmed=host_context.is_position_confirmed,
            is_broker_running=host_context.is_broker_running,
        ),
    )


def _usable(
    request: ReconcileRequest, facts: Sequence[LogDirFacts], refusals: list[Refusal]
) -> tuple[LogDirFacts, ...]:
    found = []
    for one in facts:
        if one.problem is not None and not one.replicas and not one.staged:
            continue  # It could not be read; the plan lists it as unseen.
        refusal = against_log_dir(request.image, one)
        if refusal is None:
            found.append(one)
        else:
            refusals.append(refusal)
    return tuple(found)


def _compare(
    image: Image, usable: Sequence[LogDirFacts], refusals: list[Refusal]
) -> tuple[list[StagingCandidate], list[_Nameless]]:
    candidates: list[StagingCandidate] = []
    nameless: list[_Nameless] = []
    for one in usable:
        for replica in one.replicas:
            if replica.kind is not Kind.LIVE or replica.ref.topic == METADATA_TOPIC:
                continue
            assignment = assignment_in(image, replica.ref)
            if assignment.state in _QUIET:
                continue
            if assignment.state is AssignmentState.NO_ID:
                nameless.append((replica, assignment))
                continue
            candidate = candidate_for(image, one, replica, assignment)
            if candidate is None:
                refusals.append(against_claim(replica, assignment))
            else:
                candidates.append(candidate)
    return candidates, nameless


def _known(facts: Sequence[LogDirFacts], assignment: Sequence[tuple[Replica, Assignment]]) -> ReplicaIndex:
    """Return an index of the replicas on all disks, limited to the few partitions that matter."""
    keys: set[ReplicaKey] = set()
    for replica, one in assignment:
        keys.update(replica.ref.keys)
        if one.other_id is not None:
            keys.add((TopicId(one.other_id), replica.ref.partition))
    if not keys:
        return ReplicaIndex(())
    return ReplicaIndex(
        replace(
            disk,
            replicas=tuple(replica for replica in disk.replicas if not keys.isdisjoint(replica.ref.keys)),
            staged=tuple(item for item in disk.staged if not keys.isdisjoint(item.ref.keys)),
        )
        for disk in facts
    )


def _give_ids(
    request: ReconcileRequest, known: ReplicaIndex, nameless: Sequence[_Nameless], refusals: list[Refusal]
) -> tuple[GiveId, ...]:
    found = []
    for replica, assignment in nameless:
        refusal = _against_giving(request, known, replica, assignment)
        if refusal is not None:
            refusals.append(refusal)
        elif replica.ref.topic is not None and assignment.other_id is not None:
            action = GiveId(
                log_dir=replica.log_dir,
                path=replica.path,
                ref=TopicIdPartition(
                    topic=replica.ref.topic, topic_id=TopicId(assignment.other_id), partition=replica.ref.partition
                ),
                evidence=assignment.evidence,
            )
            found.append(action)
    return tuple(found)


def _against_giving(
    request: ReconcileRequest, known: ReplicaIndex, replica: Replica, assignment: Assignment
) -> Refusal | None:
    where = replica.log_dir, replica.path
    expected = "a replica without partition.metadata, and a request that gives it an id"
    if not request.image.assigns_ids:
        # Not a stray for that reason alone (design §11).
        return refuse(
            *where,
            Why.ID_CONFLICT,
            "a partition.metadata with its topic id",
            "no topic id, and this source cannot give it: only a LeaderAndIsr request could",
            "nothing is changed: a broker before 3.7 writes the id at its start, a later one calls the replica -stray",
        )
    if BROKEN_ID in replica.problems:
        return refuse(
            *where, Why.PARTITION_METADATA_BROKEN, expected, "a partition.metadata that is broken", "repair it first"
        )
    if (untouched := refuse_untouched(replica)) is not None:
        return untouched
    wanted = replace(replica.ref, topic_id=None if assignment.other_id is None else TopicId(assignment.other_id))
    twins = [one for one in known.replicas(wanted, Kind.LIVE, Kind.FUTURE) if one is not replica]
    if twins:
        found = " and ".join(f"{one.log_dir}/{one.path}" for one in twins)
        return refuse(
            *where, Why.LIVE_REPLICA_EXISTS, "one replica of its name", f"also {found}", "compare both directories"
        )
    staged = [one for one in known.staged(wanted, Kind.STAGED, Kind.PURGING) if one.ref.topic_id == wanted.topic_id]
    if staged:
        found = " and ".join(one.place for one in staged)
        return refuse(
            *where, Why.STALE_TOPIC_ID, "an id that was not staged here before", found, "compare both directories"
        )
    return against_age(request.image, replica, request.births)


def _stages(
    request: ReconcileRequest, known: ReplicaIndex, candidates: Sequence[StagingCandidate], refusals: list[Refusal]
) -> tuple[StageReplica, ...]:
    found = []
    for candidate in candidates:
        replica = candidate.replica
        is_ahead = (replica.log_dir, replica.path) in request.ahead
        decided = (
            against_age(request.image, replica, request.births)
            or against_candidate(request.image, candidate, known, is_ahead=is_ahead, beyond=request.beyond)
            or stage_one(_asked(request, candidate), known, candidate.one, replica)
        )
        if isinstance(decided, Refusal):
            refusals.append(decided)
        else:
            found.append(StageReplica(stage=decided, rule=candidate.rule))
    order = {candidate.one.log_dir: number for number, candidate in enumerate(candidates)}
    return tuple(sorted(found, key=lambda action: (order[action.log_dir], action.path)))


def _asked(request: ReconcileRequest, candidate: StagingCandidate) -> StageRequest:
    # A host clock behind the cluster's must not make the image behind the staging look newer than the staging (A2,
    # A24).
    staged_at_ms = max(request.now.wall_ms, request.image.as_of_ms)
    return StageRequest(
        selected=(),
        reason=candidate.reason,
        # A name with another id is mere absence of the old id, which sets no deadline (A4).
        evidence=candidate.assignment.evidence,
        now=request.now._replace(wall_ms=staged_at_ms),
        delays=request.delays,
        is_held=candidate.is_held,
        protected=request.protected,
        tiered_topics=request.image.tiered,
    )


def _what_goes(facts: Sequence[LogDirFacts], stages: Sequence[StageReplica]) -> staging_limit.StagingVolume:
    """Return all stagings as one volume, so that no part of them evades the staging limit (A38)."""
    going = {(action.log_dir, action.path) for action in stages}
    topics = {action.stage.marker.topic for action in stages}
    weak = {action.stage.marker.topic for action in stages if not staging_limit.is_strong(action.evidence)}
    live = 0
    staying = set()
    for one in facts:
        for replica in one.replicas:
            if replica.kind is Kind.LIVE:
                live += 1
                if replica.ref.topic in weak and (replica.log_dir, replica.path) not in going:
                    staying.add(replica.ref.topic)
    return staging_limit.StagingVolume(
        partitions=len(stages),
        topics=len(topics),
        live=live,
        whole_topics=tuple(sorted(weak - staying)),
        # If all replicas of a topic are staged, the weakest evidence counts.
        evidence=Absent(as_of_ms=0) if weak - staying or not stages else stages[0].evidence,
    )
