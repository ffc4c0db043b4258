"""A metadata log on disk, written record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from logdir.ids import TopicId
from logdir.wire.batch_writer import control_batch, metadata_batch
from logdir.wire.control import ControlRecord, encode_control
from logdir.wire.metadata_records import MetadataRecord, encode

START_MS = 1_799_990_000_000
A = bytes(TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw"))
B = bytes(TopicId.parse("b8tRS7h4TJ2Vt43Dp85v2A"))
OLD = bytes(TopicId.parse("MkU3OEVBNTcwNTJENDM2Qg"))
DIR = bytes(range(16))
INCARNATION = b"incarnation-no-1"


def record(kind: int, version: int = 0, **fields: Any) -> MetadataRecord:
    return MetadataRecord(type=kind, version=version, fields=fields)


def topic(name: str, topic_id: bytes) -> MetadataRecord:
    return record(2, name=name, topicId=topic_id)


def partition(topic_id: bytes, number: int, replicas: tuple[int, ...], **changed: Any) -> MetadataRecord:
    fields: dict[str, Any] = {
        "partitionId": number,
        "topicId": topic_id,
        "replicas": replicas,
        "isr": replicas,
        "removingReplicas": (),
        "addingReplicas": (),
        "leader": replicas[0] if replicas else -1,
        "leaderRecoveryState": 0,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": (DIR,) * len(replicas),
    }
    return record(3, 1, **fields | changed)


def change(topic_id: bytes, number: int, **changed: Any) -> MetadataRecord:
    fields: dict[str, Any] = {
        "partitionId": number,
        "topicId": topic_id,
        "isr": None,
        "leader": -2,
        "replicas": None,
        "removingReplicas": None,
        "addingReplicas": None,
        "leaderRecoveryState": -1,
        "directories": None,
    }
    return record(5, 1, **fields | changed)


def remove(topic_id: bytes) -> MetadataRecord:
    return record(9, topicId=topic_id)


def register(node: int, *, epoch: int = 0, fenced: bool = False, incarnation: bytes = INCARNATION) -> MetadataRecord:
    return record(
        0,
        3,
        brokerId=node,
        isMigratingZkBroker=False,
        incarnationId=incarnation,
        brokerEpoch=epoch,
        endPoints=({"name": "PLAINTEXT", "host": f"h{node}", "port": 9092, "securityProtocol": 0},),
        features=({"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": 21},),
        rack=None,
        fenced=fenced,
        inControlledShutdown=False,
        logDirs=(DIR,),
    )


def begin() -> MetadataRecord:
    return record(23, name=None)


def end() -> MetadataRecord:
    return record(24)


def abort() -> MetadataRecord:
    return record(25, reason=None)


def noop() -> MetadataRecord:
    return record(20)


class LogDir:
    """Appends batches; every batch is a second after the one before."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.epoch = directory, 1
        self.offset, self.time_ms = 0, START_MS
        self.segment = self._path(0)
        self.segment.touch()

    def _path(self, base: int) -> Path:
        return self.directory / f"{base:020d}.log"

    def raw(self, *values: bytes) -> None:
        """Append one batch of record values."""
        self.time_ms += 1000
        batch = metadata_batch(values, base_offset=self.offset, epoch=self.epoch, timestamp_ms=self.time_ms)
        with self.segment.open("ab") as file:
            file.write(batch)
        self.offset += len(values)

    def append(self, *records: MetadataRecord) -> int:
        """Append one batch; return the offset behind it."""
        self.raw(*map(encode, records))
        return self.offset

    def lead(self, epoch: int) -> None:
        """Append the leader change that begins an epoch."""
        self.epoch = epoch
        self.time_ms += 1000
        fields = {"version": 0, "leaderId": 1, "voters": (), "grantingVoters": ()}
        one = encode_control(ControlRecord(type=2, name="LEADER_CHANGE", version=0, fields=fields))
        batch = control_batch([one], base_offset=self.offset, epoch=epoch, timestamp_ms=self.time_ms)
        with self.segment.open("ab") as file:
            file.write(batch)
        self.offset += 1

    def roll(self) -> None:
        """Begin a new segment."""
        self.segment = self._path(self.offset)
        self.segment.touch()

    def snapshot(self, *records: MetadataRecord, offset: int | None = None, epoch: int | None = None) -> Path:
        """Write a snapshot of what these records say; at the end of the log, if nothing else is said."""
        offset = self.offset if offset is None else offset
        epoch = self.epoch if epoch is None else epoch
        path = self.directory / f"{offset:020d}-{epoch:010d}.checkpoint"
        self._write_snapshot(path, records, epoch)
        return path

    def snapshot_at(self, path: Path, *records: MetadataRecord) -> Path:
        """Write a snapshot at the end of the log under another name; return the one it shall have."""
        self._write_snapshot(path, records, self.epoch)
        return self.directory / f"{self.offset:020d}-{self.epoch:010d}.checkpoint"

    def _write_snapshot(self, path: Path, records: tuple[MetadataRecord, ...], epoch: int) -> None:
        header = ControlRecord(
            type=3, name="SNAPSHOT_HEADER", version=0, fields={"version": 0, "lastContainedLogTimestamp": self.time_ms}
        )
        footer = ControlRecord(type=4, name="SNAPSHOT_FOOTER", version=0, fields={"version": 0})
        data = control_batch([encode_control(header)], base_offset=0, epoch=epoch, timestamp_ms=self.time_ms)
        if records:
            data += metadata_batch(
                [encode(one) for one in records], base_offset=1, epoch=epoch, timestamp_ms=self.time_ms
            )
        data += control_batch(
            [encode_control(footer)], base_offset=1 + len(records), epoch=epoch, timestamp_ms=self.time_ms
        )
        path.write_bytes(data)
