"""Whether the cluster still assigns a replica to this broker, as far as a command can know it.

This answers two questions. First: what does the next start of the broker do after a live replica is staged? For this
every assignment in the log counts, committed or not. Second: may a staged replica be renamed back? For this only
*known* facts count: an image of the current state of the cluster. An older image means *not known since*. A topic id is
never reused: its removal is known wherever it was seen, in any log on these disks or in the marker.

Not here: reading the source, the decision to stage, restore or purge (``stage``, ``staged.restore``,
``staged.purge_recheck``).

Spec: design §3.3 "Staging what the cluster still assigns here", "Restore"; kafka-behaviour §10.4; attacks A1, A2, A47,
A48.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from logdir.cluster.assignment import Assignment, AssignmentState, assignment_in
from logdir.cluster.image import Image, Partition, Source
from logdir.decide.image.holders import holders_elsewhere
from logdir.decide.image.trust import YOUNGER_BY_MS, is_proof_of_removal
from logdir.errors import Problem
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.observe.facts import Replica, StagedReplica
from logdir.reasons import Reason

_ASSIGNED: Final = frozenset((AssignmentState.WANTED, AssignmentState.NO_ID, AssignmentState.ZERO_ID))
_NAME_ALONE: Final = "without an id it may be of an earlier topic of its name, which is assigned here"
_SHOW_HOLDERS: Final = frozenset((Source.METADATA_LOG, Source.LIVE_CLUSTER))
"""Sources that show which brokers are online, and of which a current image is complete for the replicas it covers."""
_ELSEWHERE: Final = {
    Reason.REPLICA_MOVED_AWAY: "it was staged because it had moved away",
    Reason.STRAY: "it was staged as a stray",
}
"""Reasons of a staging that mean: the id may still exist, but not on this broker."""
_GONE: Final = {
    Proof.METADATA_LOG: "by the metadata log",
    Proof.STOP_REPLICA: "by a StopReplica request",
    Proof.LIVE_CLUSTER: "by the live cluster",
    Proof.BROKER_DELETED: "by what its broker did",
}
"""Evidence at the time of staging that its id was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The state of the cluster, as far as a command could read it."""

    image: Image | None = None
    """The committed part of a usable source; ``None``: there is none."""
    latest: Image | None = None
    """The same log to its end, which may not all be committed; ``None``: it cannot be read."""
    is_current: bool = False
    """Whether ``image`` describes the current state, so that nothing can have changed since."""
    known_offset: int | None = None
    """The offset up to which a metadata log is known; ``None``: there is no log."""
    blind: Problem | None = None
    """Why there is no ``image``."""
    lacks: str = ""
    """What would make the image current; empty if that is not known."""
    seen: Image | None = None
    """The image as read, even if it may not be applied: a removal in it was committed."""
    beside: tuple[ClusterState, ...] = ()
    """Images of the other metadata logs on the broker's disks: their removals count as removed, and their assignments
    prevent a removal.
    """

    @property
    def images(self) -> tuple[Image, ...]:
        """The usable images, the furthest first."""
        return tuple(image for image in (self.latest, self.image) if image is not None)


class Assigned(Enum):
    """Whether a staged replica is still assigned to this node."""

    HERE = "here"
    """Known to be assigned here."""
    NOT_HERE = "not-here"
    """Known not to be assigned here: its topic exists, and this replica of it belongs to other nodes."""
    GONE = "gone"
    """Known to be removed, with its topic id."""
    UNKNOWN = "unknown"


_NOT_ASSIGNED: Final = frozenset((Assigned.NOT_HERE, Assigned.GONE))


class StillAssigned(NamedTuple):
    """What is known about the assignment of a staged replica."""

    state: Assigned
    why: str
    """How that is known, or why nothing is known."""


class Sharing(Enum):
    """What the next start of the broker does after a live replica is staged."""

    NOT_HERE = "not-here"
    """Nothing: the replica is not assigned here."""
    IN_SYNC_ELSEWHERE = "in-sync-elsewhere"
    """The broker replicates the partition again, from another broker of the ISR."""
    LAST = "last"
    """The broker serves an empty replica: no other broker is in the ISR."""
    UNKNOWN = "unknown"


class Shared(NamedTuple):
    """Who has a live replica that is to be staged: this broker alone, others in the ISR as well, or it is not known."""

    sharing: Sharing
    found: str
    """The facts, for the operator."""
    as_of_ms: int = 0
    """Time of the image with these facts."""


def assignment_of(cluster: ClusterState, item: StagedReplica) -> StillAssigned:
    """Return whether a staged replica is still assigned to this node.

    Args:
        cluster: The state of the cluster.
        item: The replica with its marker.
    """
    found = _assignment(cluster, item)
    if found.state in _NOT_ASSIGNED:
        return found
    # The marker was compared with the requested source; another log on these disks is not newer than the marker.
    known = (_assignment(one, item, is_marker_asked=False) for one in cluster.beside)
    return next((one for one in known if one.state in _NOT_ASSIGNED), found)


def _assignment(cluster: ClusterState, item: StagedReplica, *, is_marker_asked: bool = True) -> StillAssigned:
    """Return the assignment by one source and the marker."""
    topic_id = item.ref.topic_id if item.marker is None else item.ref.topic_id or item.marker.topic_id
    ref = replace(item.ref, topic_id=topic_id)
    began_ms = None if item.marker is None else item.marker.staged_at_ms
    for seen in (cluster.image, cluster.seen):
        if seen is not None and _is_removed(assignment_in(seen, ref)) and is_proof_of_removal(seen, began_ms):
            return StillAssigned(Assigned.GONE, _how_gone(seen))
    image = cluster.image
    by_marker = None if item.marker is None or not is_marker_asked else _by_marker(item.marker)
    if image is not None:
        assignment = assignment_in(image, ref)
        if isinstance(assignment.evidence, Present) and assignment.state in _ASSIGNED:
            if by_marker is not None and not _is_newer(image, item.marker):
                return by_marker
            if assignment.state is not AssignmentState.WANTED:
                return StillAssigned(Assigned.UNKNOWN, f"{_NAME_ALONE} {_as_of(image)}")
            if cluster.is_current:
                return StillAssigned(Assigned.HERE, f"it is assigned here {_as_of(image)}{_is_last(image)}")
            return StillAssigned(Assigned.UNKNOWN, f"it was assigned here {_as_of(image)}, {_since(cluster)}")
        is_log = image.source in _SHOW_HOLDERS
        # A name has one id at a time, and an id is never reused.
        is_replaced = is_log and assignment.state is AssignmentState.OTHER_ID and _is_newer(image, item.marker)
        # A removal that the live cluster does not prove yet is no removal.
        is_known = assignment.state not in (AssignmentState.NOT_COVERED, AssignmentState.REMOVED)
        if image.source is Source.METADATA_LOG:
            is_known = assignment.state is not AssignmentState.NOT_COVERED
        if is_replaced or (cluster.is_current and is_log and is_known):
            return _not_assigned(image, item, assignment)
    return by_marker or StillAssigned(Assigned.UNKNOWN, _hint(cluster, item))


def _how_gone(image: Image) -> str:
    if image.source is Source.LIVE_CLUSTER:
        return f"two brokers of {image.origin} know no such topic id"
    return f"the removal of its topic id is committed in {image.origin}"


def _is_last(image: Image) -> str:
    return "" if image.source is Source.LIVE_CLUSTER else ", and nothing came after that"


def _is_removed(assignment: Assignment) -> bool:
    """Whether a topic id is removed for good; a replica that only left this node may be assigned here again."""
    return assignment.state is AssignmentState.REMOVED and not assignment.has_left


def _not_assigned(image: Image, item: StagedReplica, assignment: Assignment) -> StillAssigned:
    topic_id = item.ref.topic_id
    is_there = assignment.partition is not None or (topic_id is not None and bytes(topic_id) in image.topics)
    if is_there and assignment.state is not AssignmentState.OTHER_ID:
        return StillAssigned(Assigned.NOT_HERE, f"its partition is assigned to other nodes {_as_of(image)}")
    if assignment.other_id is not None:
        other = TopicId(assignment.other_id)
        return StillAssigned(Assigned.GONE, f"its name has another topic id, {other}, {_as_of(image)}")
    return StillAssigned(Assigned.GONE, f"the cluster has no such topic {_as_of(image)}")


def _by_marker(marker: ReplicaMarker) -> StillAssigned | None:
    """Return the assignment known at the time of staging, if it cannot have changed since."""
    evidence = marker.evidence
    if marker.reason in _ELSEWHERE:
        return StillAssigned(Assigned.NOT_HERE, _ELSEWHERE[marker.reason])
    if isinstance(evidence, Removed) and evidence.proof in _GONE:
        return StillAssigned(Assigned.GONE, f"its removal was known when it was staged, {_GONE[evidence.proof]}")
    if marker.intent is Intent.CAPTURED:
        return StillAssigned(Assigned.GONE, "its broker had deleted it when it was captured")
    return None


def _is_newer(image: Image, marker: ReplicaMarker | None) -> bool:
    """Whether an image is certainly newer than the removal in a marker.

    A log from before the removal ends before its timestamp. A dump has no time.
    """
    if marker is None or not image.is_dated:
        return marker is None
    known_ms = marker.staged_at_ms if isinstance(marker.evidence, Unknown) else marker.evidence.as_of_ms
    return image.as_of_ms > known_ms


def _hint(cluster: ClusterState, item: StagedReplica) -> str:
    found = _since(cluster)
    latest = cluster.latest
    if latest is None or latest.source is not Source.METADATA_LOG:
        return found
    assignment = assignment_in(latest, item.ref)
    if assignment.state is AssignmentState.REMOVED:
        return f"{found}; its removal stands in the local log, not known to be committed"
    if isinstance(assignment.evidence, Present) and assignment.state in _ASSIGNED:
        return f"{found}; the local log, which ends at offset {latest.offset}, assigns it here"
    return found


def _since(cluster: ClusterState) -> str:
    why = "" if cluster.blind is None else f": {cluster.blind.path}: {cluster.blind.mismatch()}"
    if cluster.known_offset is not None:
        return f"not known since offset {cluster.known_offset}{why}"
    if cluster.image is not None and cluster.image.source is Source.LIVE_CLUSTER:
        return f"no two brokers of {cluster.image.origin} say the same of it, or it was staged too recently{why}"
    if cluster.image is not None and not cluster.image.is_dated:
        return f"it is not known when {cluster.image.origin} was taken{why}"
    if cluster.image is not None:
        return f"not known since {cluster.image.as_of_ms} (epoch milliseconds){why}"
    return f"not known{why}"


def remedy(cluster: ClusterState, otherwise: str) -> str:
    """Return the fix for an unknown assignment: that of ``blind``, or else what ``lacks`` names, or ``otherwise``."""
    asked_for = cluster.lacks if cluster.blind is None else cluster.blind.fix
    return asked_for or otherwise


def _as_of(image: Image) -> str:
    if image.source is Source.METADATA_LOG:
        return f"at offset {image.offset}"
    if image.source is Source.LIVE_CLUSTER:
        return f"by the brokers of {image.origin}"
    return f"in {image.origin}"


def sharing_of(cluster: ClusterState, replica: Replica, birth_ms: int | None) -> Shared:
    """Return what the next start of the broker does after a live replica is staged.

    The broker's own logs are read as well if the source is older or has no time: the newest counts, and the replica
    counts as the only one in sync if any of them shows that.

    Args:
        cluster: The state of the cluster.
        replica: A live replica.
        birth_ms: Creation time of its directory (wall clock); ``None``: not known.
    """
    found = _sharing(cluster, replica, birth_ms)
    unread = next((one.blind for one in cluster.beside if one.blind is not None and not one.images), None)
    if unread is not None and found.sharing is Sharing.IN_SYNC_ELSEWHERE:
        found = Shared(Sharing.UNKNOWN, f"{found.found}, but {unread.path} may show otherwise: {unread.mismatch()}")
    # An own log is not newer than the answer of the live cluster.
    is_live = cluster.image is not None and cluster.image.source is Source.LIVE_CLUSTER
    newer = [one for one in cluster.beside if _end_of(one) >= _end_of(cluster)]
    for one in sorted(newer, key=_end_of):
        beside = _sharing(one, replica, birth_ms)
        # After its damaged part a newer own log may contain anything.
        is_damaged = any(image.ended is not None for image in one.images)
        if is_live and found.sharing is not Sharing.UNKNOWN and beside.sharing is not Sharing.LAST:
            continue
        if found.sharing is not Sharing.LAST and (is_damaged or beside.sharing is not Sharing.UNKNOWN):
            found = beside
    return found


def _end_of(cluster: ClusterState) -> int:
    """Return the offset up to which a metadata log is known; lower than any offset for other sources, which have no
    time.
    """
    return max((image.offset for image in cluster.images if image.source is Source.METADATA_LOG), default=-1)


def _sharing(cluster: ClusterState, replica: Replica, birth_ms: int | None) -> Shared:
    images = cluster.images
    for image in images:
        assignment = assignment_in(image, replica.ref)
        if isinstance(assignment.evidence, Present) and assignment.partition is not None:
            shared = _assigned(image, assignment.partition)
            if shared.sharing is Sharing.IN_SYNC_ELSEWHERE and image.ended is not None:
                # After the damaged part its ISR may have shrunk to this replica.
                return Shared(Sharing.UNKNOWN, f"{shared.found}, but {image.ended.path} cannot be read to its end")
            return shared
    if not images:
        return Shared(Sharing.UNKNOWN, _since(cluster))
    newest = images[0]
    assignment = assignment_in(newest, replica.ref)
    match assignment.evidence:
        case Removed() if not assignment.has_left and is_proof_of_removal(newest, birth_ms):
            return Shared(Sharing.NOT_HERE, "its removal was seen", newest.as_of_ms)
        case Removed() if birth_ms is not None and newest.as_of_ms - birth_ms > YOUNGER_BY_MS:
            return Shared(Sharing.NOT_HERE, f"it had left this node {_as_of(newest)}", newest.as_of_ms)
        case Removed() if not assignment.has_left:
            return Shared(Sharing.UNKNOWN, "no broker knows its topic id, and its directory may be too young")
        case Removed():
            # It may have been assigned again in a lost tail (A1): its directory is younger than its removal from this
            # node.
            found = f"it had left this node {_as_of(newest)}, which is not surely younger than the directory"
            return Shared(Sharing.UNKNOWN, found)
        case Absent() if newest.is_dated and birth_ms is not None and newest.as_of_ms - birth_ms > YOUNGER_BY_MS:
            return Shared(Sharing.NOT_HERE, f"not assigned here {_as_of(newest)}", newest.as_of_ms)
        case Absent():
            # A log that lost its tail does not contain later topics (A1); a dump has no time at all.
            found = f"not named {_as_of(newest)}, which is not surely younger than the directory"
            return Shared(Sharing.UNKNOWN, found)
        case _:
            return Shared(Sharing.UNKNOWN, f"the source does not cover it ({_as_of(newest)})")


def _assigned(image: Image, one: Partition) -> Shared:
    others = other_in_sync(image, one)
    if others:
        nodes = ", ".join(map(str, others))
        return Shared(Sharing.IN_SYNC_ELSEWHERE, f"assigned here, and in the ISR of node {nodes}", image.as_of_ms)
    is_alone = not {*one.replicas, *one.adding} - {image.node_id}
    if image.source is not Source.METADATA_LOG and not one.isr and not is_alone:
        return Shared(Sharing.UNKNOWN, f"assigned here, and the ISR is not known ({_as_of(image)})")
    return Shared(Sharing.LAST, f"assigned here, and no other broker is in its ISR {_as_of(image)}", image.as_of_ms)


def other_in_sync(image: Image, one: Partition) -> tuple[int, ...]:
    """Return the other nodes in the ISR, without those that are known to be offline.

    Only a metadata log shows whether their log dirs are online, too.
    """
    if image.source in _SHOW_HOLDERS:
        return holders_elsewhere(image, one)
    return tuple(
        node
        for node in one.isr
        if node != image.node_id and not ((broker := image.brokers.get(node)) is not None and broker.is_fenced)
    )


def is_kept_for_last(marker: ReplicaMarker) -> bool:
    """Whether a replica was staged as the only in-sync one, or without any knowledge: it never gets a deadline.

    The evidence in its marker shows that: *present* (``--even-if-last``) or *unknown* (``--even-if-unknown``).
    """
    return marker.reason is Reason.OPERATOR and isinstance(marker.evidence, Present | Unknown)


def evidence_of(shared: Shared, otherwise: Evidence) -> Evidence:
    """Return the evidence for the marker of a replica that is staged.

    Args:
        shared: The facts at the time of staging.
        otherwise: The evidence if the replica is not assigned here.
    """
    match shared.sharing:
        case Sharing.LAST:
            return Present(as_of_ms=shared.as_of_ms)
        case Sharing.UNKNOWN:
            return Unknown()
        case Sharing.IN_SYNC_ELSEWHERE:
            return Removed(proof=Proof.IN_SYNC_ELSEWHERE, as_of_ms=shared.as_of_ms)
        case Sharing.NOT_HERE:
            return otherwise
