"""What an image says of one replica of its node, and the evidence that is.

Identity is the id: a replica that has one is never judged by its name alone. A name that has another id now is said as
such, because KIP-516 has a rule for it; whether the old id is gone is another question (attacks A4).

Not here: what follows from it (``decide.reconcile``).

Spec: design §4; KIP-516, "LeaderAndIsr", "Migration"; KIP-631, "Topic Identifiers"; attacks A1, A4, A27, A42, A46.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from logdir.cluster.image import AbsenceMeaning, Image, Partition, Source, Topic
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.replica_ref import ReplicaRef


class AssignmentState(Enum):
    """What an image says of a replica."""

    WANTED = "wanted"
    """Its id, name and partition are given to this node."""
    IN_SYNC = "in-sync"
    """Not given to this node, yet named as one that holds what was committed (attacks A46)."""
    OTHER_NAME = "other-name"
    """Its id is wanted here, under another name."""
    NO_ID = "no-id"
    """The name is wanted here, and the replica has no id to compare."""
    ZERO_ID = "zero-id"
    """The name is wanted here without an id: nothing to compare with."""
    OTHER_ID = "other-id"
    """The name has another id now; nothing was seen of the replica's own."""
    REMOVED = "removed"
    """The removal of its id, or of this node's replica, was seen."""
    ELSEWHERE = "elsewhere"
    """Its partition is given to other nodes; that it left this one was not seen."""
    UNLISTED = "unlisted"
    """It is not named."""
    NOT_COVERED = "unspoken"
    """Of this one nothing is said."""


class Assignment(NamedTuple):
    """What is said, and what that proves."""

    says: AssignmentState
    evidence: Evidence
    partition: Partition | None = None
    """As the image has it, by id or else by name."""
    other_id: bytes | None = None
    """What the name has for an id, if that is another."""
    has_left: bool = False
    """With ``REMOVED``: the topic lives on elsewhere, only this node's replica went."""


_NOT_COVERED = Assignment(AssignmentState.NOT_COVERED, Unknown())


def assignment_in(image: Image, ref: ReplicaRef) -> Assignment:
    """Return what an image says of a replica of its node.

    Args:
        image: Any.
        ref: Which replica; the zero id is none.
    """
    topic, partition = ref.topic, ref.partition
    key = None if ref.topic_id is None else bytes(ref.topic_id)
    if key is not None and not any(key):
        key = None
    if image.conflicting and not image.conflicting.isdisjoint(ref.keys):
        return _NOT_COVERED
    if key is None:
        return _by_name(image, topic, partition)
    found = image.topics.get(key)
    one = None if found is None else found.partitions.get(partition)
    if found is not None and one is not None:
        node = image.node_id
        if node in one.replicas or node in one.adding:
            says = AssignmentState.WANTED if topic is None or topic == found.name else AssignmentState.OTHER_NAME
            return Assignment(says, Present(as_of_ms=image.as_of_ms), one)
        if one.is_in_sync(node):
            return Assignment(AssignmentState.IN_SYNC, Present(as_of_ms=image.as_of_ms), one)
    other = _other_id(image, topic, key)
    seen = image.removed.get(key)
    if seen is not None:
        return Assignment(AssignmentState.REMOVED, seen, None, other)
    seen = image.left.get((key, partition))
    if seen is not None:
        return Assignment(AssignmentState.REMOVED, seen, one, other, has_left=True)
    if one is not None:
        return Assignment(AssignmentState.ELSEWHERE, Absent(as_of_ms=image.as_of_ms), one)
    if found is not None or topic is None:
        return _silent(image, topic, partition, other)
    return _contradicted(image, topic, partition, other)


def _other_id(image: Image, topic: str | None, key: bytes) -> bytes | None:
    known = None if topic is None else image.names.get(topic)
    return None if known == key else known


def _contradicted(image: Image, topic: str, partition: int, other: bytes | None) -> Assignment:
    """Say what becomes of an id that is not known, by what its name is now."""
    if other is None:
        nameless = image.without_id.get(topic)
        one = None if nameless is None else nameless.partitions.get(partition)
        if one is not None:
            return _nameless(image, topic, partition, one)
        # By name alone, from a request that carries no ids (kafka-behaviour §4.1).
        seen = image.left.get((topic, partition))
        if seen is not None:
            return Assignment(AssignmentState.REMOVED, seen, has_left=True)
        return _silent(image, topic, partition, None)
    one = image.topics[other].partitions.get(partition) if other in image.topics else None
    if one is None and image.source is Source.REQUESTS:
        return _silent(image, topic, partition, other)  # the partition itself is not in it
    if not _is_listed(image, topic, partition):
        return _NOT_COVERED
    return Assignment(AssignmentState.OTHER_ID, Absent(as_of_ms=image.as_of_ms), one, other)


def _by_name(image: Image, topic: str | None, partition: int) -> Assignment:
    if topic is None:
        return _NOT_COVERED
    found: Topic | None = image.topic(topic)
    one = None if found is None else found.partitions.get(partition)
    if found is None or one is None:
        seen = image.left.get((topic, partition))
        if seen is not None:
            return Assignment(AssignmentState.REMOVED, seen, has_left=True)
        return _silent(image, topic, partition, None)
    if not any(found.topic_id):
        return _nameless(image, topic, partition, one)
    if one.is_wanted(image.node_id):
        if not _is_listed(image, topic, partition):
            return _NOT_COVERED
        return Assignment(AssignmentState.NO_ID, Present(as_of_ms=image.as_of_ms), one, found.topic_id)
    if one.is_in_sync(image.node_id):
        return Assignment(AssignmentState.IN_SYNC, Present(as_of_ms=image.as_of_ms), one)
    return Assignment(AssignmentState.ELSEWHERE, Absent(as_of_ms=image.as_of_ms), one)


def _nameless(image: Image, topic: str, partition: int, one: Partition) -> Assignment:
    if not _is_listed(image, topic, partition):
        return _NOT_COVERED
    if one.is_wanted(image.node_id) or one.is_in_sync(image.node_id):
        return Assignment(AssignmentState.ZERO_ID, Present(as_of_ms=image.as_of_ms), one)
    return Assignment(AssignmentState.ELSEWHERE, Absent(as_of_ms=image.as_of_ms), one)


def _is_listed(image: Image, topic: str, partition: int) -> bool:
    return image.listed is None or (topic, partition) in image.listed


def _silent(image: Image, topic: str | None, partition: int, other: bytes | None) -> Assignment:
    match image.absence_meaning:
        case AbsenceMeaning.REMOVED:
            evidence: Evidence = Removed(proof=Proof.FULL_REQUEST, as_of_ms=image.as_of_ms)
        case AbsenceMeaning.ABSENT:
            evidence = Absent(as_of_ms=image.as_of_ms)
        case AbsenceMeaning.NOTHING:
            return _NOT_COVERED
    return Assignment(AssignmentState.UNLISTED, evidence, None, other)
