"""The assignment of one local replica in an image, and the evidence that it yields.

The id is the identity: a replica with an id is never judged by its name alone. A name that now has another id is a
state of its own, because KIP-516 has a rule for it; whether the old id is removed is another question (attacks A4).

Not here: the decision (``decide.reconcile``).

Spec: design §4; KIP-516, "LeaderAndIsr", "Migration"; KIP-631, "Topic Identifiers"; attacks A1, A4, A27, A42, A46.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from logdir.cluster.image import AbsenceMeaning, Image, Partition, Source, Topic
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.replica_ref import ReplicaRef


class AssignmentState(Enum):
    """The state of a replica in an image."""

    WANTED = "wanted"
    """Its id, name and partition are assigned to this node."""
    IN_SYNC = "in-sync"
    """Not assigned to this node, but listed as holding committed records (attacks A46)."""
    OTHER_NAME = "other-name"
    """Its id is assigned here under another name."""
    NO_ID = "no-id"
    """The name is assigned here, and the replica has no id to compare."""
    ZERO_ID = "zero-id"
    """The name is assigned here, and the image has no id for it to compare."""
    OTHER_ID = "other-id"
    """The name has another id now; the replica's own id is not in the image."""
    REMOVED = "removed"
    """The removal of its id, or of this node's replica, was seen in the metadata."""
    ELSEWHERE = "elsewhere"
    """Its partition is assigned to other nodes; its removal from this node was not seen."""
    UNLISTED = "unlisted"
    """The image does not name it."""
    NOT_COVERED = "unspoken"
    """The image contains no information about it."""


class Assignment(NamedTuple):
    """The state of a replica in an image, with its evidence."""

    state: AssignmentState
    evidence: Evidence
    partition: Partition | None = None
    """The partition in the image, found by id or by name."""
    other_id: bytes | None = None
    """The current id of the name, if it differs."""
    has_left: bool = False
    """With ``REMOVED``: the topic still exists, only this node's replica was removed."""


_NOT_COVERED = Assignment(AssignmentState.NOT_COVERED, Unknown())


def assignment_in(image: Image, ref: ReplicaRef) -> Assignment:
    """Return the assignment of a replica of the image's node.

    Args:
        image: An image of any source.
        ref: The replica; the zero id counts as no id.
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
            state = AssignmentState.WANTED if topic is None or topic == found.name else AssignmentState.OTHER_NAME
            return Assignment(state, Present(as_of_ms=image.as_of_ms), one)
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
    """Return the assignment of an id that is not in the image, by the current id of its name."""
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
        return _silent(image, topic, partition, other)  # The partition itself is not in the image.
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
