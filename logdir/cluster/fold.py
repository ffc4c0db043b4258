"""Folding metadata records into an image, batch by batch.

A batch counts whole or not at all, and so do all batches of a transaction. Unchanged parts are shared with the image
before, so a short tail costs little however large the image is.

The fold remembers what later records no longer contain: removed topic ids, and partitions removed from this node, which
prove a removal (attacks A1); and the partitions of a removed topic that had a replica on this node.

Not here: which records count (``metadata_log``), their bytes (``wire``).

Spec: kafka-formats §8.4, §9.4; KIP-631, "Metadata records", "Topic Identifiers"; design §4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

from logdir.cluster.image import Broker, Image, Partition, Topic
from logdir.cluster.metadata_transaction import Transactions
from logdir.errors import MalformedFileError
from logdir.evidence import Proof, Removed
from logdir.ids import TopicId
from logdir.wire.metadata_fast import PartitionChangeRow, PartitionRow, Row, TopicRow
from logdir.wire.metadata_records import MetadataRecord
from logdir.wire.metadata_tables import RecordType

_TOPIC_RESOURCE: Final = 2
_REMOTE_STORAGE: Final = "remote.storage.enable"
_METADATA_VERSION: Final = "metadata.version"
_UNCHANGED: Final = -2
"""A leader that a change leaves as it is."""
_new: Final = tuple.__new__
_Fields = Mapping[str, Any]


class Fold:
    """Folds record batches into an image; ``image`` is called once, at the end."""

    def __init__(self, image: Image) -> None:
        """Start from an image.

        Args:
            image: The image so far; it is not changed.
        """
        self._base = image
        self._node = image.node_id
        self._topics = dict(image.topics)
        self._names = dict(image.names)
        self._brokers = dict(image.brokers)
        self._features = dict(image.features)
        self._tiered = set(image.tiered)
        self._removed = dict(image.removed)
        self._former = dict(image.former)
        self._left = dict(image.left)
        self._own: dict[bytes, dict[int, Partition]] = {}
        """By topic id the partitions that this fold has copied: these mappings may be changed."""
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._epoch, self._offset, self._as_of_ms = image.epoch, image.offset, image.as_of_ms
        self._transactions = Transactions(self._apply, self._refuse)
        self._others: dict[int, Callable[[_Fields, int], None]] = {
            RecordType.REGISTER_BROKER: self._register,
            RecordType.UNREGISTER_BROKER: self._unregister,
            RecordType.CONFIG: self._configure,
            RecordType.FENCE_BROKER: self._fence,
            RecordType.UNFENCE_BROKER: self._unfence,
            RecordType.REMOVE_TOPIC: self._remove_topic,
            RecordType.FEATURE_LEVEL: self._set_feature,
            RecordType.BROKER_REGISTRATION_CHANGE: self._change_broker,
        }

    @property
    def offset(self) -> int:
        """The offset after the last record that counts; during a transaction, the offset of its begin."""
        return max(self._offset, self._transactions.last_begin)

    @property
    def open_since(self) -> int | None:
        """Offset of the record that began a transaction which has not ended; ``None``: none is open."""
        return self._transactions.open_since

    def add(self, rows: Iterable[tuple[int, Row]], *, epoch: int, timestamp_ms: int, end: int) -> None:
        """Fold the rows of a record batch into the image.

        Args:
            rows: Offset and row, by ascending offset.
            epoch: Leader epoch of the batch.
            timestamp_ms: Newest timestamp of the batch.
            end: The offset after its last record.

        Raises:
            MalformedFileError: the rows contradict earlier ones. This fold cannot be used any more: start again without
                the batch.
        """
        self._transactions.add(rows, timestamp_ms)
        if self._transactions.open_since is None:
            self._epoch, self._offset, self._as_of_ms = epoch, end, max(self._as_of_ms, timestamp_ms)

    def image(self) -> Image:
        """Return the current image, without the records of an open transaction."""
        return replace(
            self._base,
            topics=self._topics,
            names=self._names,
            brokers=self._brokers,
            features=self._features,
            tiered=frozenset(self._tiered),
            removed=self._removed,
            former=self._former,
            left=self._left,
            epoch=self._epoch,
            # Whoever reads on later begins here: where a transaction is open what came before it has counted.
            offset=self.offset,
            as_of_ms=self._as_of_ms,
        )

    def _refused(self, expected: str, found: str) -> MalformedFileError:
        return MalformedFileError(
            self._base.origin, expected=expected, found=f"{found} at or after offset {self.offset}"
        )

    def _refuse(self, expected: str, found: str, _: int) -> NoReturn:
        raise self._refused(expected, found)

    def _apply(self, row: Row, timestamp_ms: int) -> None:
        kind = type(row)
        if kind is PartitionChangeRow:
            self._change(row, timestamp_ms)  # type: ignore[arg-type] # compared by identity: this is the hot path
        elif kind is PartitionRow:
            self._put(row, timestamp_ms)  # type: ignore[arg-type] # as above
        elif isinstance(row, TopicRow):
            partitions: dict[int, Partition] = {}
            self._own[row.topic_id] = partitions
            self._topics[row.topic_id] = Topic(row.name, row.topic_id, partitions)
            self._names[row.name] = row.topic_id
            self._removed.pop(row.topic_id, None)
            self._former.pop(row.topic_id, None)
        elif isinstance(row, MetadataRecord) and (apply := self._others.get(row.type)) is not None:
            apply(row.fields, timestamp_ms)

    def _partitions(self, topic_id: bytes) -> dict[int, Partition]:
        known = self._own.get(topic_id)
        if known is None:
            topic = self._topics.get(topic_id)
            if topic is None:
                raise self._refused("a topic for each partition", f"no topic with id {TopicId(topic_id)}")
            known = self._own[topic_id] = dict(topic.partitions)
            self._topics[topic_id] = Topic(topic.name, topic_id, known)
        return known

    def _put(self, row: PartitionRow, timestamp_ms: int) -> None:
        partitions = self._own.get(row.topic_id)
        if partitions is None:
            partitions = self._partitions(row.topic_id)
        share = self._shared.setdefault
        replicas = share(row.replicas, row.replicas)
        isr = replicas if row.isr == replicas else share(row.isr, row.isr)
        before = partitions.get(row.partition)
        one: Partition = _new(
            Partition,
            (
                replicas,
                isr,
                row.adding_replicas,
                row.removing_replicas,
                row.leader,
                row.leader_epoch,
                row.partition_epoch,
                b"".join(row.directories),
                row.eligible_leader_replicas or (),
                row.last_known_elr or (),
            ),
        )
        partitions[row.partition] = one
        if before is not None or self._left:
            self._note(row.topic_id, row.partition, before, one, timestamp_ms)

    def _change(self, row: PartitionChangeRow, timestamp_ms: int) -> None:
        partition, topic_id, isr, leader, replicas, removing, adding, _, elr, last_known, ids = row
        partitions = self._own.get(topic_id)
        if partitions is None:
            partitions = self._partitions(topic_id)
        before = partitions.get(partition)
        if before is None:
            raise self._refused("a partition for each change", f"no partition {TopicId(topic_id)}_{partition}")
        (
            replicas_,
            isr_,
            adding_,
            removing_,
            leader_,
            leader_epoch,
            partition_epoch,
            directories,
            eligible,
            last_known_,
        ) = before
        share = self._shared.setdefault
        if replicas is not None:
            replicas_ = share(replicas, replicas)
            directories = b""  # The log dirs of the new replicas are not known unless the record names them.
        if isr is not None:
            isr_ = replicas_ if isr == replicas_ else share(isr, isr)
        if leader != _UNCHANGED:
            leader_, leader_epoch = leader, leader_epoch + 1
        if ids is not None:
            directories = b"".join(ids)
        one: Partition = _new(
            Partition,
            (
                replicas_,
                isr_,
                adding_ if adding is None else adding,
                removing_ if removing is None else removing,
                leader_,
                leader_epoch,
                partition_epoch + 1,
                directories,
                eligible if elr is None else elr,
                last_known_ if last_known is None else last_known,
            ),
        )
        partitions[partition] = one
        if replicas is not None or adding is not None:
            self._note(topic_id, partition, before, one, timestamp_ms)

    def _note(
        self, topic_id: bytes, partition: int, before: Partition | None, one: Partition, timestamp_ms: int
    ) -> None:
        """Remember that a partition was removed from this node, or forget that."""
        if one.is_wanted(self._node):
            self._left.pop((topic_id, partition), None)
        elif before is not None and before.is_wanted(self._node):
            self._left[topic_id, partition] = Removed(proof=Proof.METADATA_LOG, as_of_ms=timestamp_ms)

    def _remove_topic(self, fields: _Fields, timestamp_ms: int) -> None:
        topic_id = fields["topicId"]
        topic = self._topics.pop(topic_id, None)
        if topic is None:
            raise self._refused("a topic that can be removed", f"no topic with id {TopicId(topic_id)}")
        self._own.pop(topic_id, None)
        if self._names.get(topic.name) == topic_id:
            del self._names[topic.name]
            self._tiered.discard(topic.name)
        self._removed[topic_id] = Removed(proof=Proof.METADATA_LOG, as_of_ms=timestamp_ms)
        if _has_node(topic, self._node):
            self._former[topic_id] = topic

    def _register(self, fields: _Fields, _: int) -> None:
        self._brokers[fields["brokerId"]] = Broker(
            incarnation=fields["incarnationId"],
            epoch=fields["brokerEpoch"],
            is_fenced=fields["fenced"],
            is_shutting_down=fields.get("inControlledShutdown", False),
            rack=fields["rack"],
            endpoints=tuple(
                (one["name"], one["host"], one["port"], one["securityProtocol"]) for one in fields["endPoints"]
            ),
            log_dirs=tuple(fields.get("logDirs", ())),
            cordoned=tuple(fields.get("cordonedLogDirs") or ()),
        )

    def _broker(self, number: int, epoch: int) -> Broker:
        known = self._brokers.get(number)
        if known is None or known.epoch != epoch:
            found = "none" if known is None else f"epoch {known.epoch}"
            raise self._refused(f"a registration of broker {number} at epoch {epoch}", found)
        return known

    def _unregister(self, fields: _Fields, _: int) -> None:
        self._broker(fields["brokerId"], fields["brokerEpoch"])
        del self._brokers[fields["brokerId"]]

    def _fence(self, fields: _Fields, _: int) -> None:
        self._brokers[fields["id"]] = self._broker(fields["id"], fields["epoch"])._replace(is_fenced=True)

    def _unfence(self, fields: _Fields, _: int) -> None:
        self._brokers[fields["id"]] = self._broker(fields["id"], fields["epoch"])._replace(is_fenced=False)

    def _change_broker(self, fields: _Fields, _: int) -> None:
        number = fields["brokerId"]
        known = self._broker(number, fields["brokerEpoch"])
        if fields["fenced"]:
            known = known._replace(is_fenced=fields["fenced"] > 0)  # -1 unfences
        if fields.get("inControlledShutdown", 0) > 0:
            known = known._replace(is_shutting_down=True)
        if fields.get("logDirs"):
            known = known._replace(log_dirs=tuple(fields["logDirs"]))
        if fields.get("cordonedLogDirs") is not None:
            known = known._replace(cordoned=tuple(fields["cordonedLogDirs"]))
        self._brokers[number] = known

    def _configure(self, fields: _Fields, _: int) -> None:
        if fields["resourceType"] == _TOPIC_RESOURCE and fields["name"] == _REMOTE_STORAGE:
            if fields["value"] == "true":
                self._tiered.add(fields["resourceName"])
            else:
                self._tiered.discard(fields["resourceName"])

    def _set_feature(self, fields: _Fields, _: int) -> None:
        name, level = fields["name"], fields["featureLevel"]
        if level or name == _METADATA_VERSION:
            self._features[name] = level
        else:
            self._features.pop(name, None)


def with_removals_seen(before: Image, after: Image) -> Image:
    """Return a newer image that also remembers, as removed, everything that only the older image contains.

    A removal may be compacted away in a snapshot: everything that existed before and is missing now was removed
    (attacks A1).

    Args:
        before: An image of the same log at an earlier position.
        after: An image read from a snapshot.

    Spec: KIP-631, "Topic Identifiers".
    """
    gone = Removed(proof=Proof.METADATA_LOG, as_of_ms=after.as_of_ms)
    removed = {one: seen for one, seen in before.removed.items() if one not in after.topics}
    removed.update((one, gone) for one in before.topics if one not in after.topics)
    node = before.node_id
    former = {one: topic for one, topic in before.former.items() if one not in after.topics}
    former.update(
        (one, topic) for one, topic in before.topics.items() if one not in after.topics and _has_node(topic, node)
    )
    left = {}
    for key, seen in before.left.items():
        if not _is_wanted(after, key[0], key[1], node):
            left[key] = seen
    for topic_id, topic in before.topics.items():
        known = after.topics.get(topic_id)
        if known is None:
            continue
        for partition, one in topic.partitions.items():
            if node not in one.replicas and node not in one.adding:
                continue
            now = known.partitions.get(partition)
            if now is not None and not now.is_wanted(node):
                left[topic_id, partition] = gone
    return replace(after, removed=removed, former=former, left=left)


def _has_node(topic: Topic, node: int) -> bool:
    return any(one.is_wanted(node) for one in topic.partitions.values())


def _is_wanted(image: Image, topic_id: str | bytes, partition: int, node: int) -> bool:
    topic = image.topics.get(topic_id) if isinstance(topic_id, bytes) else None
    one = None if topic is None else topic.partitions.get(partition)
    return one is not None and one.is_wanted(node)
