"""Fast decoding of the three most frequent metadata records: topics, partitions, partition changes.

Several times as fast as the table-driven ``metadata_records.decode``, with equal results (a test compares them). Every
other record (another type, a newer writer's tag, more than 31 replicas, any damage) is left to ``decode``, which raises
all errors.

Not here: the effect of the records on an image (``logdir.cluster.fold``).

Spec: kafka-formats §9.4; design §10, metadata.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

from logdir.wire.batches import Batch, value_spans
from logdir.wire.metadata_records import MetadataRecord, decode
from logdir.wire.metadata_tables import RecordType

# Plain numbers: a number read from a byte finds those by identity.
_TOPIC: Final = RecordType.TOPIC.value
_PARTITION: Final = RecordType.PARTITION.value
_PARTITION_CHANGE: Final = RecordType.PARTITION_CHANGE.value

_Ints = tuple[int, ...]
_Ids = tuple[bytes, ...]


class TopicRow(NamedTuple):
    """The fields of a TopicRecord."""

    name: str
    topic_id: bytes


class PartitionRow(NamedTuple):
    """The fields of a PartitionRecord of any version; those that its version lacks have their defaults."""

    partition: int
    topic_id: bytes
    replicas: _Ints
    isr: _Ints
    removing_replicas: _Ints
    adding_replicas: _Ints
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: _Ids
    """Directory ids, one per replica, or empty."""
    leader_recovery_state: int = 0
    eligible_leader_replicas: _Ints | None = None
    last_known_elr: _Ints | None = None


class PartitionChangeRow(NamedTuple):
    """The fields of a PartitionChangeRecord of any version: ``None``, leader -2, recovery state -1 mean unchanged."""

    partition: int
    topic_id: bytes
    isr: _Ints | None = None
    leader: int = -2
    replicas: _Ints | None = None
    removing_replicas: _Ints | None = None
    adding_replicas: _Ints | None = None
    leader_recovery_state: int = -1
    eligible_leader_replicas: _Ints | None = None
    last_known_elr: _Ints | None = None
    directories: _Ids | None = None


Row = TopicRow | PartitionRow | PartitionChangeRow | MetadataRecord
"""The decoded form of one record; records of the first three types are never a ``MetadataRecord``."""

_MOST: Final = 32
_NEWEST: Final = 2


class _NotPlainError(Exception):
    """The fast decoder cannot read the record: ``metadata_records.decode`` must."""


def _refuse(data: bytes, position: int) -> Any:
    raise _NotPlainError


_Unpack = Callable[[bytes, int], Any]

# By the byte that holds count + 1: 0 is null, which the tables handle.
_INTS: Final[tuple[_Unpack, ...]] = (_refuse, *(Struct(f">{n}i").unpack_from for n in range(_MOST)))
_IDS: Final[tuple[_Unpack, ...]] = (_refuse, *(Struct(">" + "16s" * n).unpack_from for n in range(_MOST)))

_PLACE: Final = Struct(">i16sB").unpack_from
_TAIL: Final = Struct(">iii").unpack_from
_INT: Final = Struct(">i").unpack_from
_INT_8: Final = Struct(">b").unpack_from
_UNCHANGED: Final = PartitionChangeRow(0, b"")[2:]
_new: Final = tuple.__new__


def _topic(data: bytes, position: int, end: int, version: int) -> TopicRow:
    size = data[position]
    start = position + 1
    stop = start + size - 1
    if version or not 0 < size < 0x80 or stop + 17 != end or data[end - 1]:
        raise _NotPlainError
    return _new(TopicRow, (data[start:stop].decode(), data[stop : stop + 16]))


def _partition(data: bytes, position: int, end: int, version: int) -> PartitionRow:
    if version > _NEWEST:
        raise _NotPlainError
    partition, topic_id, n = _PLACE(data, position)
    position += 21
    replicas = _INTS[n](data, position)
    position += 4 * n - 4
    n = data[position]
    position += 1
    isr = _INTS[n](data, position)
    position += 4 * n - 4
    n = data[position]
    position += 1
    removing = _INTS[n](data, position)
    position += 4 * n - 4
    n = data[position]
    position += 1
    adding = _INTS[n](data, position)
    position += 4 * n - 4
    leader, leader_epoch, partition_epoch = _TAIL(data, position)
    position += 12
    directories: _Ids = ()
    if version:
        n = data[position]
        position += 1
        directories = _IDS[n](data, position)
        position += 16 * n - 16
    row = (
        partition, topic_id, replicas, isr, removing, adding, leader, leader_epoch, partition_epoch, directories,
    )  # fmt: skip
    if not data[position] and position + 1 == end:
        return _new(PartitionRow, (*row, 0, None, None))
    return _new(PartitionRow, (*row, *_partition_tags(data, position, end, version)))


def _partition_tags(data: bytes, position: int, end: int, version: int) -> tuple[int, _Ints | None, _Ints | None]:
    recovery: int = 0
    elr: _Ints | None = None
    last_known: _Ints | None = None
    previous = -1
    for _ in range(data[position]):
        tag, size = data[position + 1], data[position + 2]
        at = position + 3
        position = at + size - 1
        # Every size here is below 128, so its varint has one byte; other values are left to the tables.
        if tag <= previous or size >= 0x80:
            raise _NotPlainError
        previous = tag
        if tag == 0 and size == 1:
            (recovery,) = _INT_8(data, at)
        elif tag == 1 and version == 2 and size == 4 * data[at] - 3:
            elr = _INTS[data[at]](data, at + 1)
        elif tag == 2 and version == 2 and size == 4 * data[at] - 3:
            last_known = _INTS[data[at]](data, at + 1)
        else:
            raise _NotPlainError
    if position + 1 != end:
        raise _NotPlainError
    return recovery, elr, last_known


def _change(data: bytes, position: int, end: int, version: int) -> PartitionChangeRow:
    if version > _NEWEST:
        raise _NotPlainError
    partition, topic_id, count = _PLACE(data, position)
    isr, leader, replicas, removing, adding, recovery, elr, last_known, directories = _UNCHANGED
    position += 21
    previous = -1
    for _ in range(count):
        tag, size = data[position], data[position + 1]
        at = position + 2
        position = at + size
        if tag <= previous or size >= 0x80:
            raise _NotPlainError
        previous = tag
        if tag == 1:
            if size != 4:
                raise _NotPlainError
            (leader,) = _INT(data, at)
            continue
        if tag == 5:
            if size != 1:
                raise _NotPlainError
            (recovery,) = _INT_8(data, at)
            continue
        n = data[at]
        if tag == 8:
            if size != 16 * n - 15 or not version:
                raise _NotPlainError
            directories = _IDS[n](data, at + 1)
            continue
        if size != 4 * n - 3:
            raise _NotPlainError
        numbers = _INTS[n](data, at + 1)
        if tag == 0:
            isr = numbers
        elif tag == 2:
            replicas = numbers
        elif tag == 3:
            removing = numbers
        elif tag == 4:
            adding = numbers
        elif tag == 6 and version == 2:
            elr = numbers
        elif tag == 7 and version == 2:
            last_known = numbers
        else:
            raise _NotPlainError
    if position != end:
        raise _NotPlainError
    return _new(
        PartitionChangeRow,
        (partition, topic_id, isr, leader, replicas, removing, adding, recovery, elr, last_known, directories),
    )


_BY_TYPE: Final[dict[int, Callable[[bytes, int, int, int], Row]]] = {
    _PARTITION: _partition,
    _PARTITION_CHANGE: _change,
    _TOPIC: _topic,
}


def decode_fast(value: bytes | memoryview, path: str = "", position: int = 0) -> Row:
    """Return the row of one record's value in a metadata batch; arguments and errors as ``metadata_records.decode``."""
    data = bytes(value)
    return _decode(data, 0, len(data), path, position)


def read_fast(batch: Batch) -> Iterator[tuple[int, Row]]:
    """Yield offset and row of each record of a metadata batch, by ascending offset.

    Raises:
        UnknownRecordTypeError: a type or version that this release does not know.
        WireError: the batch or a record in it is malformed.
    """
    data, path, position = batch.data, batch.path, batch.position
    for offset, start, end in value_spans(batch):
        yield offset, _decode(data, start, end, path, position + start)


def _decode(data: bytes, start: int, end: int, path: str, position: int) -> Row:
    try:
        read = _BY_TYPE.get(data[start + 1])
        if read is not None and data[start] == 1:
            return read(data, start + 3, end, data[start + 2])
    except (IndexError, struct.error, UnicodeDecodeError, _NotPlainError):
        pass
    return _row(decode(data[start:end], path, position))


def _row(record: MetadataRecord) -> Row:
    fields = record.fields
    if record.type == _TOPIC:
        return TopicRow(name=fields["name"], topic_id=fields["topicId"])
    if record.type == _PARTITION:
        return PartitionRow(
            partition=fields["partitionId"],
            topic_id=fields["topicId"],
            replicas=fields["replicas"],
            isr=fields["isr"],
            removing_replicas=fields["removingReplicas"],
            adding_replicas=fields["addingReplicas"],
            leader=fields["leader"],
            leader_epoch=fields["leaderEpoch"],
            partition_epoch=fields["partitionEpoch"],
            directories=fields.get("directories", ()),
            leader_recovery_state=fields["leaderRecoveryState"],
            eligible_leader_replicas=fields.get("eligibleLeaderReplicas"),
            last_known_elr=fields.get("lastKnownElr"),
        )
    if record.type == _PARTITION_CHANGE:
        return PartitionChangeRow(
            partition=fields["partitionId"],
            topic_id=fields["topicId"],
            isr=fields["isr"],
            leader=fields["leader"],
            replicas=fields["replicas"],
            removing_replicas=fields["removingReplicas"],
            adding_replicas=fields["addingReplicas"],
            leader_recovery_state=fields["leaderRecoveryState"],
            eligible_leader_replicas=fields.get("eligibleLeaderReplicas"),
            last_known_elr=fields.get("lastKnownElr"),
            directories=fields.get("directories"),
        )
    return record
