"""Staging: derive ordered actions or refusals from the replicas on all disks and a request.

Only proof of removal sets a deadline. A topic-id mismatch needs a stronger proof for a deadline; otherwise it is staged
as held. An operator needs an override to stage a replica that the cluster assigns here if no other broker is in its
ISR, or if the assignment is not known; such a replica never gets a deadline. Every action is complete in itself, so
stopping after any of them is safe.

Not here: carrying it out (``disk.replica.staging``), the source of the evidence (``logdir.cluster``), the time of the
purge (``staged.deadline``).

Spec: design §2 law 1, §3.3, §4; attacks A4, A13, A25, A33, A36, A38, A44, A48.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from logdir.clock import Instant
from logdir.decide import staging_limit
from logdir.decide.image.still_assigned import ClusterState, Shared, Sharing, evidence_of, remedy, sharing_of
from logdir.decide.refusal import (
    FINISH_MOVE,
    READ_ONLY,
    Refusal,
    is_protected,
    refuse,
    refuse_protected,
    refuse_quarantined,
    refuse_untouched,
)
from logdir.decide.staged.deadline import DelayPolicy
from logdir.errors import Problem
from logdir.evidence import Evidence, Present, Removed, Unknown
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.formats.own.staging_limit_file import Count
from logdir.names import fits_staged
from logdir.observe.facts import LogDirFacts, Replica, ReplicaIndex
from logdir.paths import METADATA_TOPIC
from logdir.reasons import Reason
from logdir.refusal_slug import Why

LATER = {
    Sharing.LAST: "the next start of its broker serves an empty replica at once, and producers begin at offset 0",
    Sharing.UNKNOWN: (
        "if the cluster assigns it here, the next start of its broker serves an empty replica at once, or replicates "
        "it again from another broker"
    ),
    Sharing.IN_SYNC_ELSEWHERE: "the next start of its broker replicates it again",
}
"""What the next start of a broker does after a live replica was staged."""

_NOT_LIVE = {
    Kind.FUTURE: "a -future directory",
    Kind.DELETE: "a -delete directory",
    Kind.STRAY: "a -stray directory",
}
_NOT_LIVE_FIXES = {Kind.FUTURE: FINISH_MOVE}
"""Fixes for directories that no ``capture`` takes."""
_CHECKPOINT = (
    "the replica was not staged, as its log start offset would be lost: restore the file, or start the broker once, "
    "which writes it again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """A request to stage replicas."""

    selected: tuple[tuple[str, str], ...]
    """Log dir as configured, and path relative to it, of live replicas."""
    reason: Reason
    evidence: Evidence
    now: Instant
    delays: DelayPolicy = field(default_factory=DelayPolicy)
    is_held: bool = False
    """Whether to stage without a deadline."""
    protected: tuple[str, ...] = ()
    """Globs of topics whose replicas are refused."""
    tiered_topics: frozenset[str] = frozenset()
    """Topics with remote storage according to the cluster."""
    record: tuple[Count, ...] | None = None
    """Stagings so far, from ``staging_limit.highest``; ``None``: not known, so that all wait for a confirmation."""
    percent: int = staging_limit.DEFAULT_PERCENT
    is_confirmed: bool = False
    """Whether an operator has confirmed going over the staging limit."""
    cluster: ClusterState = field(default_factory=ClusterState)
    """The cluster state; an operator's staging depends on whether a replica is still assigned here."""
    births: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Creation time (wall clock) of live replicas, by log dir and path."""
    is_even_if_last: bool = False
    """Whether to stage even the only in-sync replica."""
    is_even_if_unknown: bool = False
    """Whether to stage although it is not known whether the replica is assigned here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """An action: stage one live replica; the input of ``disk.replica.staging``."""

    log_dir: str
    path: str
    marker: ReplicaMarker
    loses: str
    """What the broker loses."""

    @property
    def undo_until_ms(self) -> int | None:
        """Until when it can certainly be undone (wall clock, for people); ``None``: until an operator purges it."""
        return None if self.marker.delay_ms is None else self.marker.staged_at_ms + self.marker.delay_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """The plan of a staging."""

    actions: tuple[Stage, ...]
    """In the order of the log dirs, then of paths; empty if ``over_limit``."""
    refusals: tuple[Refusal, ...]
    record: tuple[Count, ...] | None
    """Counts of stagings, to be made durable in every work root before the first one; ``None``: write nothing."""
    over_limit: Problem | None = None
    """The problem if the staging limit is exceeded; an operator may confirm it."""
    waiting: tuple[Stage, ...] = ()
    """The actions that need this confirmation."""
    unseen: tuple[Problem, ...] = ()
    """Unreadable log dirs: replicas on them were not considered."""


def plan_stage(request: StageRequest, facts: Sequence[LogDirFacts]) -> StagePlan:
    """Decide which replicas to stage.

    Args:
        request: The request.
        facts: Facts of every configured log dir, in the configured order.

    Returns:
        Actions and refusals; each selected replica is in exactly one of them.
    """
    known = ReplicaIndex(facts)
    actions: list[Stage] = []
    refusals: list[Refusal] = []
    by_place = {(one.log_dir, replica.path): (one, replica) for one in facts for replica in one.replicas}
    order = {one.log_dir: number for number, one in enumerate(facts)}
    selected = sorted(set(request.selected), key=lambda place: (order.get(place[0], len(order)), place))
    for log_dir, path in selected:
        found = by_place.get((log_dir, path))
        if found is None:
            refusals.append(
                refuse(
                    log_dir,
                    path,
                    Why.NOT_FOUND,
                    "a partition directory",
                    "no such directory",
                    "logdirctl describe lists the replicas on all disks",
                )
            )
            continue
        decided = stage_one(request, known, *found)
        if isinstance(decided, Refusal):
            refusals.append(decided)
        else:
            actions.append(decided)
    unseen = tuple(one.problem for one in facts if one.problem is not None)
    verdict = staging_limit.judge(
        _volume(request, facts, actions),
        request.record,
        request.now,
        percent=request.percent,
        is_confirmed=request.is_confirmed,
    )
    match verdict:
        case staging_limit.WithinLimit():
            return StagePlan(
                actions=tuple(actions),
                refusals=tuple(refusals),
                record=verdict.record if actions else None,
                unseen=unseen,
            )
        case staging_limit.LimitExceeded():
            return StagePlan(
                actions=(),
                refusals=tuple(refusals),
                record=verdict.record,
                over_limit=verdict.problem,
                waiting=tuple(actions),
                unseen=unseen,
            )


def _volume(
    request: StageRequest, facts: Sequence[LogDirFacts], actions: Sequence[Stage]
) -> staging_limit.StagingVolume:
    going = {(action.log_dir, action.path) for action in actions}
    live = [replica for one in facts for replica in one.replicas if replica.kind is Kind.LIVE]
    staying = {replica.ref.topic for replica in live if (replica.log_dir, replica.path) not in going}
    topics = {action.marker.topic for action in actions}
    return staging_limit.StagingVolume(
        partitions=len(actions),
        topics=len(topics),
        live=len(live),
        whole_topics=tuple(sorted(topics - staying)),
        evidence=request.evidence,
    )


def stage_one(request: StageRequest, known: ReplicaIndex, one: LogDirFacts, replica: Replica) -> Stage | Refusal:
    """Decide about one replica, without the staging limit.

    Args:
        request: The request; its selection is ignored.
        known: Index of the replicas on all disks.
        one: The log dir of the replica.
        replica: The replica.
    """
    refusal = (
        refuse_quarantined(replica.log_dir, replica.path, one.quarantined)
        or _against_evidence(request, replica)
        or _against_replica(request, known, one, replica)
    )
    if refusal is not None or request.reason is not Reason.OPERATOR:
        return refusal or _stage(request, one, replica)
    shared = sharing_of(request.cluster, replica, request.births.get((replica.log_dir, replica.path)))
    refusal = _against_assignment(request, replica, shared)
    if refusal is not None:
        return refusal
    evidence = evidence_of(shared, request.evidence)
    return _stage(replace(request, evidence=evidence), one, replica, shared)


def _against_assignment(request: StageRequest, replica: Replica, shared: Shared) -> Refusal | None:
    """Refuse a replica that the next start of the broker may serve empty, unless an override allows it."""
    where = replica.log_dir, replica.path
    what = str(replica.ref)
    match shared.sharing:
        case Sharing.LAST if not request.is_even_if_last:
            return refuse(
                *where,
                Why.LAST_IN_SYNC,
                f"another broker in the ISR of {what}",
                shared.found,
                f"{LATER[Sharing.LAST]}; move its leader elsewhere first, or add --even-if-last",
            )
        case Sharing.UNKNOWN if not request.is_even_if_unknown:
            return refuse(
                *where,
                Why.ASSIGNMENT_UNKNOWN,
                f"a source that shows whether {what} is assigned here",
                shared.found,
                f"{LATER[Sharing.UNKNOWN]}; {remedy(request.cluster, 'name a source with --from')}, "
                f"or add --even-if-unknown",
            )
    return None


def _against_evidence(request: StageRequest, replica: Replica) -> Refusal | None:
    where = replica.log_dir, replica.path
    match request.evidence:
        case Present():
            fix = "it stays live: kafka-reassign-partitions takes it from this broker"
            return refuse(
                *where, Why.ASSIGNED_HERE, "a replica that is not assigned here", "the cluster assigns it here", fix
            )
        case Unknown():
            fix = "with --from, name a metadata source that covers its topic"
            return refuse(*where, Why.NO_EVIDENCE, "evidence that it is not assigned here", "no evidence", fix)
        case Removed():
            return None
        case _ if request.is_held:
            return None
        case _:
            return refuse(
                *where,
                Why.REMOVAL_NOT_PROVEN,
                "proof of removal for a deadline",
                "mere absence",
                "stage it without a deadline",
            )


def _against_replica(request: StageRequest, known: ReplicaIndex, one: LogDirFacts, replica: Replica) -> Refusal | None:
    where = replica.log_dir, replica.path
    if replica.kind is Kind.METADATA or replica.ref.topic == METADATA_TOPIC:
        return refuse(*where, Why.METADATA_LOG, "a topic's replica", "the metadata log of the quorum", READ_ONLY)
    if replica.kind is not Kind.LIVE:
        fix = _NOT_LIVE_FIXES.get(replica.kind, "logdirctl capture keeps a -delete or -stray directory")
        return refuse(*where, Why.NOT_LIVE, "a live replica", _NOT_LIVE[replica.kind], fix)
    if (untouched := refuse_untouched(replica)) is not None:
        return untouched
    if replica.inode is None:
        return refuse(
            *where, Why.CHANGED, "a replica that was scanned", "a replica that appeared since", "run the command again"
        )
    if replica.unexpected_entries:
        problem = Problem(
            Why.UNEXPECTED_ENTRY.value,
            f"{replica.log_dir}/{replica.path}/{replica.unexpected_entries[0]}",
            "a regular file, as all in a partition directory",
            "something else",
            "inspect it and move it away; until then the replica is not staged",
        )
        return Refusal(log_dir=replica.log_dir, path=replica.path, why=Why.UNEXPECTED_ENTRY, problem=problem)
    if replica.ref.topic is None:
        return refuse(
            *where,
            Why.TOPIC_NAME_UNKNOWN,
            "a topic name in partition.metadata",
            "no topic name",
            "write the true topic name back first",
        )
    if not fits_staged(replica.ref.topic_id, replica.ref.topic, replica.ref.partition):
        problem = Problem(
            Why.NAME_TOO_LONG.value,
            f"{replica.log_dir}/{replica.path}",
            "a topic id to call it by, or a topic name that fits under deleting/",
            f"no id, and {len(replica.ref.topic)} characters",
            "its broker gives it an id from inter.broker.protocol.version 2.8 on; stage it then",
        )
        return Refusal(log_dir=replica.log_dir, path=replica.path, why=Why.NAME_TOO_LONG, problem=problem)
    if is_protected(replica.ref.topic, request.protected):
        return refuse_protected(*where, replica.ref.topic, request.protected)
    futures = known.replicas(replica.ref, Kind.FUTURE)
    if futures:
        found = " and ".join(f"{future.log_dir}/{future.path}" for future in futures)
        return refuse(*where, Why.FUTURE_REPLICA_EXISTS, "no -future of it on any disk", found, FINISH_MOVE)
    if one.checkpoint_problem is not None:
        problem = one.checkpoint_problem
        return Refusal(
            log_dir=replica.log_dir,
            path=replica.path,
            why=Why.CHECKPOINT_UNREADABLE,
            problem=Problem(
                Why.CHECKPOINT_UNREADABLE.value, problem.path, problem.expected, problem.found, _CHECKPOINT
            ),
        )
    return None


def _stage(request: StageRequest, one: LogDirFacts, replica: Replica, shared: Shared | None = None) -> Stage:
    if replica.ref.topic is None or replica.inode is None:
        raise ValueError(f"refused before: {replica}")
    is_tiered = replica.ref.topic in request.tiered_topics or _starts_elsewhere(replica)
    marker = ReplicaMarker(
        intent=Intent.STAGED,
        cluster_id=one.cluster_id,
        node_id=one.node_id,
        directory_id=one.directory_id,
        topic=replica.ref.topic,
        topic_id=replica.ref.topic_id,
        partition=replica.ref.partition,
        birth_inode=replica.inode,
        path=replica.path,
        reason=request.reason,
        evidence=request.evidence,
        staged_at_ms=max(0, request.now.wall_ms),
        delay_ms=_delay_ms(request, replica.ref.topic),
        boot_id=request.now.boot_id,
        boottime_ms=request.now.boottime_ms,
        checkpoints=replica.checkpoints,
        clean=one.has_clean_marker,
        tiered=is_tiered,
    )
    loses = _loses(replica, is_tiered=is_tiered)
    if shared is not None and shared.sharing in LATER:
        loses += f"; {shared.found}: {LATER[shared.sharing]}"
    return Stage(log_dir=replica.log_dir, path=replica.path, marker=marker, loses=loses)


def _starts_elsewhere(replica: Replica) -> bool:
    """Whether its log starts below its first local segment: the rest lies in remote storage (attacks A33)."""
    start, first = replica.checkpoints.log_start, replica.first_offset
    return start is not None and first is not None and start < first


def _delay_ms(request: StageRequest, topic: str) -> int | None:
    if request.is_held or not isinstance(request.evidence, Removed):
        return None
    if request.reason is Reason.TOPIC_ID_MISMATCH and not staging_limit.is_strong(request.evidence):
        return None  # Old tools give a live topic a new id: another id is no proof that the old one is removed (A4).
    return request.delays.delay_ms(topic)


def _loses(replica: Replica, *, is_tiered: bool) -> str:
    what = str(replica.ref)
    if replica.log_bytes is None:
        size = "of unknown size"
    else:
        size = f"{replica.log_bytes} bytes in {replica.segments} segments"
    if replica.segments:
        size += f" from offset {max(replica.first_offset or 0, replica.checkpoints.log_start or 0)}"
    part = "; the local part only, the rest lies in remote storage" if is_tiered else ""
    return f"{what}: {size}{part}"
