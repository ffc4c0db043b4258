"""A segment with everything the lines of a dump can show, and nothing a stock node would write all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from logdir.wire.batch_writer import control_batch, data_batch, encode_batch, encode_records, metadata_batch
from logdir.wire.control import ControlRecord, encode_control
from logdir.wire.metadata_records import MetadataRecord, encode
from logdir.wire.records import Record

START_MS = 1_700_000_000_000
DOUBLES = (1.0, 1e7, 9999999.0, 0.001, 9.99e-4, 1e22, -2.5, 1024.0, 123456789.125, 1.7976931348623157e308, 1e100, 0.0)
TEXTS = (
    "plain",
    'quote " and \\ and /',
    "line\nend\ttab\r\b\f",
    "\x00\x1b[31m\x1f\x7f",
    "Grüße \u2028 \U0001f600 \x85",
)
TOPIC_ID = bytes(range(16, 32))


def _records() -> list[MetadataRecord]:
    def record(kind: int, **fields: Any) -> MetadataRecord:
        return MetadataRecord(type=kind, version=0, fields=fields)

    entity = ({"entityType": "user", "entityName": "a/b"}, {"entityType": "client-id", "entityName": None})
    quotas = [record(14, entity=entity, key="producer_byte_rate", value=double, remove=False) for double in DOUBLES]
    configs = [record(4, resourceType=2, resourceName=one, name=one, value=one) for one in TEXTS]
    scram = record(11, name="alice", mechanism=1, salt=b"\xff\xfe", storedKey=b"", serverKey=b"k" * 5, iterations=4096)
    return [*quotas, *configs, scram, record(4, resourceType=4, resourceName="", name="x", value=None)]


def batches() -> list[bytes]:
    """Return the batches, offsets without a gap."""
    told: list[bytes] = []
    offset = 0

    def add(batch: bytes, count: int) -> None:
        nonlocal offset
        told.append(batch)
        offset += count

    values = [encode(one) for one in _records()]
    add(metadata_batch(values, base_offset=offset, epoch=3, timestamp_ms=START_MS), len(values))
    unknown = [b"\x01\x63\x00\x00", values[0]]  # a record of type 99
    add(metadata_batch(unknown, base_offset=offset, epoch=3, timestamp_ms=START_MS + 1), 2)
    kept = [
        Record(offset=offset, timestamp=START_MS, key=b"k", value=values[1], headers=(("h", b"1"), ("i", None))),
        Record(offset=offset + 1, timestamp=START_MS + 7, key=None, value=values[2]),
    ]
    add(data_batch(kept, leader_epoch=4, attributes=0x08), 2)
    body = encode_records(
        [Record(offset=offset + 2, timestamp=START_MS, key=None, value=values[3])],
        base_offset=offset,
        base_timestamp=START_MS,
    )
    more = {"base_timestamp": START_MS, "max_timestamp": START_MS + 9, "count": 1, "last_offset_delta": 4}
    # In a producer's transaction, whose numbers start again; records before and behind it were compacted away.
    add(
        encode_batch(
            body, base_offset=offset, leader_epoch=-1, attributes=0x50, producer_id=9, producer_epoch=2,
            base_sequence=(1 << 31) - 2, **more,
        ),
        5,
    )  # fmt: skip
    marker = (b"\0\0\0\1", b"\0\0\0\0\0\x11")
    add(control_batch([marker], base_offset=offset, epoch=3, timestamp_ms=START_MS), 1)
    controls: list[tuple[int, str, dict[str, Any]]] = [
        (2, "LEADER_CHANGE", {"leaderId": 1, "voters": ({"voterId": 1},), "grantingVoters": ()}),
        (3, "SNAPSHOT_HEADER", {"lastContainedLogTimestamp": 5}),
        (4, "SNAPSHOT_FOOTER", {}),
        (5, "KRAFT_VERSION", {"kRaftVersion": 1}),
    ]
    pairs = [
        encode_control(ControlRecord(type=number, name=name, version=0, fields={"version": 0, **fields}))
        for number, name, fields in controls
    ]
    add(control_batch(pairs, base_offset=offset, epoch=5, timestamp_ms=START_MS), len(pairs))
    return told


def write(directory: Path, *, cut: int = 0, flip: bool = False) -> Path:
    """Write the segment.

    Args:
        directory: Where to; it must be there.
        cut: Bytes taken from the end.
        flip: Whether the leader epoch's neighbour, the checksum, of the third batch is made wrong.
    """
    made = batches()
    if flip:
        third = bytearray(made[2])
        third[17] ^= 0xFF
        made[2] = bytes(third)
    data = b"".join(made)
    path = directory / "00000000000000000000.log"
    path.write_bytes(data[: len(data) - cut])
    return path


def write_elr(directory: Path) -> Path:
    """Write a segment with eligible leader replicas; ``directory`` must be there."""
    common = {"topicId": TOPIC_ID, "removingReplicas": (), "addingReplicas": (), "leaderRecoveryState": 0}
    of = {**common, "replicas": (1, 2), "isr": (1,), "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    newer = {"directories": (bytes(15) + b"\1",) * 2, "eligibleLeaderReplicas": (2,), "lastKnownElr": (1,)}
    change = {
        "topicId": TOPIC_ID, "isr": (1, 2), "leader": -2, "replicas": None, "removingReplicas": None,
        "addingReplicas": None, "leaderRecoveryState": -1, "directories": None,
        "eligibleLeaderReplicas": (), "lastKnownElr": (7,),
    }  # fmt: skip
    records = [
        MetadataRecord(type=2, version=0, fields={"name": "t", "topicId": TOPIC_ID}),
        MetadataRecord(type=3, version=0, fields={"partitionId": 0, **of}),
        MetadataRecord(type=3, version=2, fields={"partitionId": 1, **of, **newer}),
        MetadataRecord(type=5, version=2, fields={"partitionId": 1, **change}),
    ]
    path = directory / "00000000000000000000.log"
    path.write_bytes(metadata_batch([encode(one) for one in records], base_offset=0, epoch=1, timestamp_ms=START_MS))
    return path
