"""Folding request documents, one after the other, into an image.

A FULL request replaces everything: a replica that it leaves out is removed. An INCREMENTAL request covers only the
partitions that it lists. A request of type 0, of a version without these types, adds assignments and removes
nothing. StopReplica with delete removes this node's replica. A partition with a zero topic id is assigned by its name,
and changes no partition whose id is known. Two instructions for one partition in one request: neither is followed.

Not here: parsing a document (``request_document``), whether it may be applied (``decide.image.admission``).

Spec: design §4, §11; KIP-516, "LeaderAndIsr", "StopReplica", "Migration"; kafka-behaviour §4.2, §4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from logdir.cluster.image import AbsenceMeaning, Image, Partition, Source, Topic
from logdir.cluster.request_document import Api, Item, RequestDocument, RequestType
from logdir.evidence import Proof, Removed
from logdir.ids import TopicId
from logdir.replica_ref import ReplicaKey

_Key = tuple[str | bytes, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """By which node a request document was received, when it was written, and what may follow from it."""

    node_id: int
    cluster_id: str | None
    written_ms: int
    """Wall clock, at the latest when it was received: it says nothing of what was created later (A1)."""
    acts: bool = True
    """Whether actions may follow; otherwise the document only adds knowledge (no ``controller.json``)."""
    is_after_gap: bool = False
    """Whether an earlier document may have been missed, so that earlier knowledge is dropped."""


def contradicting(items: Iterable[Item]) -> frozenset[ReplicaKey]:
    """Return names or ids, with the partition, for which a request has two instructions.

    Two instructions for one partition are an error for both (design §11). A name with two ids, or an id with two
    names, contradicts itself in all its partitions.
    """
    items = tuple(items)
    count: dict[ReplicaKey, int] = {}
    ids: dict[str, set[TopicId | None]] = {}
    names: dict[TopicId | None, set[str]] = {}
    for item in items:
        for key in item.ref.keys:
            count[key] = count.get(key, 0) + 1
        topic, topic_id = item.ref.topic, item.ref.topic_id
        if topic is not None:
            ids.setdefault(topic, set()).add(topic_id)
            if topic_id is not None:
                names.setdefault(topic_id, set()).add(topic)
    found: set[ReplicaKey] = set()
    for item in items:
        keys = item.ref.keys
        topic = item.ref.topic
        is_torn = topic is not None and (len(ids[topic]) > 1 or len(names.get(item.ref.topic_id, ())) > 1)
        if is_torn or any(count[key] > 1 for key in keys):
            found.update(keys)
    return frozenset(found)


def is_fenced(base: Image | None, item: Item) -> bool:
    """Whether the leader epoch of the partition in ``base`` is newer than the item's (kafka-behaviour §4.2, §4.3).

    -2 (the topic is being deleted) and -1 (not given) are never fenced.
    """
    known = None if base is None else _known(base, item)
    return known is not None and 0 <= item.leader_epoch < known.leader_epoch


def _known(base: Image, item: Item) -> Partition | None:
    ref = item.ref
    if ref.topic_id is not None:
        topic = base.topics.get(bytes(ref.topic_id))
    else:
        topic = None if ref.topic is None else base.topic(ref.topic)
    return None if topic is None else topic.partitions.get(ref.partition)


class _Draft:
    """The topics of an image during a fold; unchanged ones stay shared."""

    def __init__(self, base: Image | None) -> None:
        self.topics: dict[bytes, Topic] = {} if base is None else dict(base.topics)
        self.names: dict[str, bytes] = {} if base is None else dict(base.names)
        self.without_id: dict[str, Topic] = {} if base is None else dict(base.without_id)
        self.left: dict[_Key, Removed] = {} if base is None else dict(base.left)
        self._own: dict[str | bytes, dict[int, Partition]] = {}
        self._former: dict[str, set[bytes]] = {}
        for topic_id, topic in self.topics.items():
            if self.names.get(topic.name) != topic_id:
                self._former.setdefault(topic.name, set()).add(topic_id)

    def _partitions(self, key: str | bytes, known: Mapping[int, Partition]) -> dict[int, Partition]:
        if key not in self._own:
            self._own[key] = dict(known)
        return self._own[key]

    def put(self, name: str, topic_id: bytes, partition: int, state: Partition) -> None:
        """Assign a partition of a topic with an id to this node."""
        former = self.names.get(name)
        if former is not None and former != topic_id:
            self._former.setdefault(name, set()).add(former)
        # A name has one id in each partition: earlier ids keep only partitions that this one does not have.
        for other in self._former.get(name, ()):
            if other != topic_id:
                self.drop(other, partition)
        self.without_id.pop(name, None)
        known = self.topics.get(topic_id)
        partitions = self._partitions(topic_id, {} if known is None else known.partitions)
        partitions[partition] = state
        self.topics[topic_id] = Topic(name, topic_id, partitions)
        self.names[name] = topic_id
        self.left.pop((topic_id, partition), None)
        self.left.pop((name, partition), None)

    def put_nameless(self, name: str, partition: int, state: Partition) -> None:
        """Assign a partition of a topic without id to this node; a partition that is known by id is unchanged."""
        if name in self.names:
            return
        known = self.without_id.get(name)
        partitions = self._partitions(name, {} if known is None else known.partitions)
        partitions[partition] = state
        self.without_id[name] = Topic(name, bytes(16), partitions)
        self.left.pop((name, partition), None)

    def drop(self, topic_id: bytes, partition: int) -> None:
        """Remove a partition of a topic with an id, and the topic with its last partition."""
        known = self.topics.get(topic_id)
        if known is None or partition not in known.partitions:
            return
        partitions = self._partitions(topic_id, known.partitions)
        del partitions[partition]
        self.topics[topic_id] = known._replace(partitions=partitions)
        if not partitions:
            del self.topics[topic_id]
            self._own.pop(topic_id)
            if self.names.get(known.name) == topic_id:
                del self.names[known.name]

    def drop_nameless(self, name: str, partition: int) -> None:
        """Remove a partition of a topic without id, and the topic with its last partition."""
        known = self.without_id.get(name)
        if known is None or partition not in known.partitions:
            return
        partitions = self._partitions(name, known.partitions)
        del partitions[partition]
        self.without_id[name] = known._replace(partitions=partitions)
        if not partitions:
            del self.without_id[name]
            self._own.pop(name)


def fold(base: Image | None, document: RequestDocument, receipt: Receipt) -> Image:
    """Return the image after an applied document.

    Args:
        base: The image before, not changed; ``None``: this is the first document after a start.
        document: A document that ``decide.image.admission`` admitted.
        receipt: By which node the document was received, and when it was written.
    """
    is_full = document.type is RequestType.FULL
    measure = None if receipt.is_after_gap else base
    kept = None if is_full else measure
    draft = _Draft(kept)
    conflicting = contradicting(document.items)
    listed = set()
    for item in document.items:
        if not conflicting.isdisjoint(item.ref.keys):
            continue
        if document.api is Api.STOP_REPLICA:
            if item.delete and not is_fenced(kept, item):
                _stop(draft, item, Removed(proof=Proof.STOP_REPLICA, as_of_ms=receipt.written_ms))
            continue
        state, topic, topic_id, partition = item.state, item.ref.topic, item.ref.topic_id, item.ref.partition
        if state is None or topic is None:
            raise ValueError(f"a LeaderAndIsr item without state or topic: {item}")
        if measure is not None and is_fenced(measure, item):
            # An older leader epoch changes nothing; the newer state stays.
            state = _known(measure, item) or state
        listed.add((topic, partition))
        if topic_id is None:
            draft.put_nameless(topic, partition, state)
        else:
            draft.put(topic, bytes(topic_id), partition, state)
    does_list = document.api is Api.LEADER_AND_ISR
    absence_meaning = AbsenceMeaning.NOTHING
    if is_full:
        # A listing that contradicts itself proves nothing about missing entries.
        absence_meaning = AbsenceMeaning.REMOVED if receipt.acts and not conflicting else AbsenceMeaning.ABSENT
    return Image(
        source=Source.REQUESTS,
        origin=document.path,
        node_id=receipt.node_id,
        cluster_id=receipt.cluster_id,
        epoch=document.controller_epoch,
        offset=document.sequence,
        as_of_ms=receipt.written_ms,
        topics=draft.topics,
        names=draft.names,
        without_id=draft.without_id,
        left=draft.left,
        absence_meaning=absence_meaning,
        listed=None if is_full else frozenset(listed),
        conflicting=conflicting,
        stages_mismatch=receipt.acts and document.type is not RequestType.UNKNOWN,
        assigns_ids=receipt.acts and does_list,
    )


def _stop(draft: _Draft, item: Item, seen: Removed) -> None:
    ref = item.ref
    topic_id = None if ref.topic_id is None else bytes(ref.topic_id)
    if topic_id is None and ref.topic is not None:
        # Shipped versions name no id: the current id of the name is meant (kafka-behaviour §4.1).
        topic_id = draft.names.get(ref.topic)
    if topic_id is not None:
        draft.drop(topic_id, ref.partition)
        draft.left[topic_id, ref.partition] = seen
    elif ref.topic is not None:
        draft.drop_nameless(ref.topic, ref.partition)
        draft.left[ref.topic, ref.partition] = seen
