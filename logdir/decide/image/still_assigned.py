"""Whether the cluster still assigns a replica here, as far as a command can know it.

Two questions. What does the next start of the broker do where a live replica is staged? A log read to its end answers
it, committed or not: whatever assigns the replica here counts. And may a staged replica be renamed back? Only what is
*known* counts: an image that ends where the cluster is now. What it holds of an earlier moment is *not known since*.
A topic id never comes back: its removal is known wherever it was seen, in any log on these disks or by the marker.

Not here: reading the source, what follows for a stage, a restore or a purge (``stage``, ``restore``, ``recheck``).

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
from logdir.decide.image.trust import YOUNGER_BY_MS
from logdir.errors import Problem
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.observe.facts import Replica, StagedReplica
from logdir.reasons import Reason

_ASSIGNED: Final = frozenset((AssignmentState.WANTED, AssignmentState.NO_ID, AssignmentState.ZERO_ID))
_NAME_ALONE: Final = "without an id it may be of an earlier topic of its name, which is assigned here"
_ELSEWHERE: Final = frozenset((Reason.REPLICA_MOVED_AWAY, Reason.STRAY))
"""Its id may live on, but not as a replica of this broker."""
_GONE: Final = frozenset((Proof.METADATA_LOG, Proof.STOP_REPLICA, Proof.LIVE_CLUSTER, Proof.BROKER_DELETED))
"""What showed, when it was staged, that its id was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """What the cluster says, as far as a command could read it."""

    image: Image | None = None
    """What is committed, of a source that may be used; ``None``: there is none."""
    latest: Image | None = None
    """The same log to its end, which may not all be committed; ``None``: it cannot be read."""
    is_current: bool = False
    """``image`` ends where the cluster is now: nothing can have changed since."""
    known_offset: int | None = None
    """Up to which offset of a metadata log something is known; ``None``: there is no log."""
    blind: Problem | None = None
    """Why there is no ``image``."""
    lacks: str = ""
    """What would make it current, in words; empty: nothing that is known of."""
    seen: Image | None = None
    """What was read of this cluster, also where nothing may follow from it: a removal in it was committed."""
    beside: tuple[ClusterState, ...] = ()
    """Of the metadata logs on the broker's own disks that were not asked: what is gone by one of them is gone, and what
    one of them assigns here is not removed for lack of a word."""

    @property
    def images(self) -> tuple[Image, ...]:
        """What may be used of it, the farthest first."""
        return tuple(image for image in (self.latest, self.image) if image is not None)


class Assigned(Enum):
    """Whether a staged replica is still assigned to this node."""

    HERE = "here"
    """Known to be."""
    NOT_HERE = "not-here"
    """Known not to be: its topic lives, and this replica of it belongs to other nodes."""
    GONE = "gone"
    """Known not to be: its topic id was removed."""
    UNKNOWN = "unknown"


_NOT_ASSIGNED: Final = frozenset((Assigned.NOT_HERE, Assigned.GONE))


class StillAssigned(NamedTuple):
    """What is known of a staged replica."""

    state: Assigned
    why: str
    """On what that rests, in words."""


class Sharing(Enum):
    """What the next start of the broker does where a live replica is staged."""

    NOT_HERE = "not-here"
    """Nothing: the replica is not assigned here."""
    IN_SYNC_ELSEWHERE = "in-sync-elsewhere"
    """It replicates the partition again, from another broker of the ISR."""
    LAST = "last"
    """It serves an empty replica: no other broker is in the ISR."""
    UNKNOWN = "unknown"


class Shared(NamedTuple):
    """What is known of a live replica that shall be staged."""

    sharing: Sharing
    found: str
    """In words, for whoever decides."""
    as_of_ms: int = 0
    """Of the image that says so."""


def assignment_of(cluster: ClusterState, item: StagedReplica) -> StillAssigned:
    """Return whether a staged replica is still assigned to this node.

    Args:
        cluster: What is known of it.
        item: With its marker.
    """
    found = _assignment(cluster, item)
    if found.state in _NOT_ASSIGNED:
        return found
    # The marker was weighed against what was asked; an older log beside it is not newer than the marker.
    known = (_assignment(one, item, is_marker_asked=False) for one in cluster.beside)
    return next((one for one in known if one.state in _NOT_ASSIGNED), found)


def _assignment(cluster: ClusterState, item: StagedReplica, *, is_marker_asked: bool = True) -> StillAssigned:
    """Return what one source says, and what the marker does."""
    topic_id = item.ref.topic_id if item.marker is None else item.ref.topic_id or item.marker.topic_id
    ref = replace(item.ref, topic_id=topic_id)
    for seen in (cluster.image, cluster.seen):
        if seen is not None and _is_removed(assignment_in(seen, ref)):
            return StillAssigned(Assigned.GONE, f"the removal of its topic id is committed in {seen.origin}")
    image = cluster.image
    by_marker = None if item.marker is None or not is_marker_asked else _by_marker(item.marker)
    if image is not None:
        said = assignment_in(image, ref)
        if isinstance(said.evidence, Present) and said.says in _ASSIGNED:
            if by_marker is not None and not _is_newer(image, item.marker):
                return by_marker
            if said.says is not AssignmentState.WANTED:
                return StillAssigned(Assigned.UNKNOWN, f"{_NAME_ALONE} {_as_of(image)}")
            if cluster.is_current:
                return StillAssigned(Assigned.HERE, f"it is assigned here {_as_of(image)}, and nothing came after that")
            return StillAssigned(Assigned.UNKNOWN, f"it was assigned here {_as_of(image)}, {_since(cluster)}")
        is_log = image.source is Source.METADATA_LOG
        # A name has one id at a time, and an id never comes back.
        is_replaced = is_log and said.says is AssignmentState.OTHER_ID and _is_newer(image, item.marker)
        if is_replaced or (cluster.is_current and is_log and said.says is not AssignmentState.NOT_COVERED):
            return _not_assigned(image, item, said)
    return by_marker or StillAssigned(Assigned.UNKNOWN, _hint(cluster, item))


def _is_removed(said: Assignment) -> bool:
    """Whether a topic id is gone for good; a replica that only left this node may be assigned here again."""
    return said.says is AssignmentState.REMOVED and not said.has_left


def _not_assigned(image: Image, item: StagedReplica, said: Assignment) -> StillAssigned:
    topic_id = item.ref.topic_id
    is_there = said.partition is not None or (topic_id is not None and bytes(topic_id) in image.topics)
    if is_there and said.says is not AssignmentState.OTHER_ID:
        return StillAssigned(Assigned.NOT_HERE, f"its partition is assigned to other nodes {_as_of(image)}")
    if said.other_id is not None:
        other = TopicId(said.other_id)
        return StillAssigned(Assigned.GONE, f"its name has another topic id, {other}, {_as_of(image)}")
    return StillAssigned(Assigned.GONE, f"the cluster has no such topic {_as_of(image)}")


def _by_marker(marker: ReplicaMarker) -> StillAssigned | None:
    """Return what was known when it was staged, where that cannot have changed."""
    evidence = marker.evidence
    if marker.reason in _ELSEWHERE:
        return StillAssigned(Assigned.NOT_HERE, f"it was staged as {marker.reason.value}")
    if isinstance(evidence, Removed) and evidence.proof in _GONE:
        return StillAssigned(Assigned.GONE, f"its removal was known when it was staged ({evidence.proof.value})")
    if marker.intent is Intent.CAPTURED:
        return StillAssigned(Assigned.GONE, "its broker had deleted it when it was captured")
    return None


def _is_newer(image: Image, marker: ReplicaMarker | None) -> bool:
    """Whether an image is surely of a later moment than what a marker says of a removal.

    A log of before the removal ends before its timestamp. When a dump was taken, nothing says.
    """
    if marker is None or not image.is_dated:
        return marker is None
    known_ms = marker.staged_at_ms if isinstance(marker.evidence, Unknown) else marker.evidence.as_of_ms
    return image.as_of_ms > known_ms


def _hint(cluster: ClusterState, item: StagedReplica) -> str:
    found = _since(cluster)
    latest = cluster.latest
    if latest is None:
        return found
    said = assignment_in(latest, item.ref)
    if said.says is AssignmentState.REMOVED:
        return f"{found}; its removal stands in the local log, not known to be committed"
    if isinstance(said.evidence, Present) and said.says in _ASSIGNED:
        return f"{found}; the local log, which ends at offset {latest.offset}, assigns it here"
    return found


def _since(cluster: ClusterState) -> str:
    why = "" if cluster.blind is None else f": {cluster.blind.path}: {cluster.blind.mismatch()}"
    if cluster.known_offset is not None:
        return f"not known since offset {cluster.known_offset}{why}"
    if cluster.image is not None and not cluster.image.is_dated:
        return f"nothing says when {cluster.image.origin} was taken{why}"
    if cluster.image is not None:
        return f"not known since {cluster.image.as_of_ms} (epoch milliseconds){why}"
    return f"not known{why}"


def remedy(cluster: ClusterState, otherwise: str) -> str:
    """Return what to do where something is not known: what the source asks for, else ``otherwise``."""
    asked_for = cluster.lacks if cluster.blind is None else cluster.blind.fix
    return asked_for or otherwise


def _as_of(image: Image) -> str:
    if image.source is Source.METADATA_LOG:
        return f"at offset {image.offset}"
    return f"in {image.origin}"


def sharing_of(cluster: ClusterState, replica: Replica, birth_ms: int | None) -> Shared:
    """Return what the next start of the broker does once a live replica is staged.

    Its own logs are asked beside an older source, or one of which nothing says when it was taken: the newest counts,
    and the only replica in sync is that by any of them.

    Args:
        cluster: What is known of it.
        replica: Live.
        birth_ms: When its directory came to be (wall clock); ``None``: not known.
    """
    found = _sharing(cluster, replica, birth_ms)
    unread = next((one.blind for one in cluster.beside if one.blind is not None and not one.images), None)
    if unread is not None and found.sharing is Sharing.IN_SYNC_ELSEWHERE:
        found = Shared(Sharing.UNKNOWN, f"{found.found}, but {unread.path} is not known to say so: {unread.mismatch()}")
    newer = [one for one in cluster.beside if _end_of(one) >= _end_of(cluster)]
    for one in sorted(newer, key=_end_of):
        beside = _sharing(one, replica, birth_ms)
        # Behind its damage a newer own log may say anything.
        is_damaged = any(image.ended is not None for image in one.images)
        if found.sharing is not Sharing.LAST and (is_damaged or beside.sharing is not Sharing.UNKNOWN):
            found = beside
    return found


def _end_of(cluster: ClusterState) -> int:
    """Return how far a metadata log is known; of anything else nothing says when it was taken."""
    return max((image.offset for image in cluster.images if image.source is Source.METADATA_LOG), default=-1)


def _sharing(cluster: ClusterState, replica: Replica, birth_ms: int | None) -> Shared:
    images = cluster.images
    for image in images:
        said = assignment_in(image, replica.ref)
        if isinstance(said.evidence, Present) and said.partition is not None:
            shared = _assigned(image, said.partition)
            if shared.sharing is Sharing.IN_SYNC_ELSEWHERE and image.ended is not None:
                # Behind the damage its ISR may have shrunk to this replica.
                return Shared(Sharing.UNKNOWN, f"{shared.found}, but {image.ended.path} cannot be read to its end")
            return shared
    if not images:
        return Shared(Sharing.UNKNOWN, _since(cluster))
    newest = images[0]
    said = assignment_in(newest, replica.ref)
    match said.evidence:
        case Removed() if not said.has_left:
            return Shared(Sharing.NOT_HERE, "its removal was seen", newest.as_of_ms)
        case Removed() if birth_ms is not None and newest.as_of_ms - birth_ms > YOUNGER_BY_MS:
            return Shared(Sharing.NOT_HERE, f"it had left this node {_as_of(newest)}", newest.as_of_ms)
        case Removed():
            # It may have come back behind a tail that was lost (A1): its directory is younger than its leaving.
            found = f"it had left this node {_as_of(newest)}, which is not surely younger than the directory"
            return Shared(Sharing.UNKNOWN, found)
        case Absent() if newest.is_dated and birth_ms is not None and newest.as_of_ms - birth_ms > YOUNGER_BY_MS:
            return Shared(Sharing.NOT_HERE, f"not assigned here {_as_of(newest)}", newest.as_of_ms)
        case Absent():
            # A log that lost its tail knows nothing of what came to be behind it (A1), nor does a dump of any time.
            found = f"not named {_as_of(newest)}, which is not surely younger than the directory"
            return Shared(Sharing.UNKNOWN, found)
        case _:
            return Shared(Sharing.UNKNOWN, f"the source says nothing of it ({_as_of(newest)})")


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
    """Return the other nodes in the ISR; a metadata log says, too, which of them answer, and have the log dir."""
    if image.source is Source.METADATA_LOG:
        return holders_elsewhere(image, one)
    return tuple(
        node
        for node in one.isr
        if node != image.node_id and not ((broker := image.brokers.get(node)) is not None and broker.is_fenced)
    )


def is_kept_for_last(marker: ReplicaMarker) -> bool:
    """Whether a replica was staged as the only in-sync one, or with nothing known: it never gets a deadline.

    Its marker says so by its evidence: *present* (``--even-if-last``) or *unknown* (``--even-if-unknown``).
    """
    return marker.reason is Reason.OPERATOR and isinstance(marker.evidence, Present | Unknown)


def evidence_of(shared: Shared, otherwise: Evidence) -> Evidence:
    """Return what the marker of a staged replica says of it.

    Args:
        shared: What was known of it when it was staged.
        otherwise: Where it is not assigned here.
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
