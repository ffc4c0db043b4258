"""What ``kafka-dump-log --cluster-metadata-decoder`` prints of a segment or snapshot, line for line, without a JVM.

Where ``kafka-dump-log`` ends with an exception, a problem is recorded, and what lies behind is still shown as far as
record batches are framed. One batch at a time is in memory.

Not here: which files (``service.metadata_dump``), walking them (``metadata_file``), what the records do to an image
(``fold``, ``contents``).

Spec: KIP-631, "kafka-dump-log.sh"; kafka-formats §7-§9; org.apache.kafka.tools.DumpLogSegments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

from logdir.cluster.metadata_file import MetadataFile, Walked
from logdir.cluster.metadata_names import snapshot_of
from logdir.errors import LogDirError, Problem
from logdir.metadata.dump_item import DumpedBatch, DumpedRecord
from logdir.paths import BOOTSTRAP_CHECKPOINT
from logdir.wire import control, metadata_records
from logdir.wire.batches import Batch
from logdir.wire.errors import UnknownRecordTypeError
from logdir.wire.json_text import text
from logdir.wire.records import LOG_APPEND_TIME, Record

_SEGMENT: Final = re.compile(r"(\d+)\.log", re.ASCII)
_RELEASE: Final = re.compile(r"(\d\.\d)(?:\.\d+)?", re.ASCII)
_DELETE_HORIZON: Final = 0x40
_MOST_SEQUENCE: Final = (1 << 31) - 1
_MOST_GAPS: Final = 100
_LABELS: Final = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
_UNKNOWN_WORDS: Final = "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id"
_LABELS_SINCE_3_8: Final = frozenset((_LABELS["KRAFT_VERSION"], _LABELS["KRAFT_VOTERS"]))
_SINCE_3_8: Final = frozenset(
    number for number, kind in control.TYPES.items() if _LABELS.get(kind.name) in _LABELS_SINCE_3_8
)
"""Numbers of the control records that ``kafka-dump-log`` knows since 3.8."""
_OF_3_7: Final = {"lastKnownElr": "lastKnownELR"}
_MARKERS: Final = frozenset(("ABORT", "COMMIT"))


class StockForm(Enum):
    """The form of the lines of ``kafka-dump-log``, named by the newest release that prints it."""

    OF_3_6 = "3.6"
    """A leader change is printed by its name alone, a control record of a dynamic quorum by its number."""
    OF_3_7 = "3.7"
    """As 3.6, but ``lastKnownElr`` of a partition is printed as ``lastKnownELR``."""
    OF_3_9 = "3.9"
    """Of these only a leader change is printed by its name alone."""
    OF_4_1 = "4.1"
    """Every control record is printed with its fields."""
    OF_4_3 = "4.3"
    """As 4.1, but ``|`` stands before a payload even where the metadata of the record is left out."""


_BEFORE_3_8: Final = frozenset((StockForm.OF_3_6, StockForm.OF_3_7))
_WITHOUT_LEADER: Final = _BEFORE_3_8 | {StockForm.OF_3_9}
_FORMS: Final = {
    **dict.fromkeys(("3.3", "3.4", "3.5", "3.6"), StockForm.OF_3_6),
    "3.7": StockForm.OF_3_7,
    **dict.fromkeys(("3.8", "3.9", "4.0"), StockForm.OF_3_9),
    **dict.fromkeys(("4.1", "4.2"), StockForm.OF_4_1),
    "4.3": StockForm.OF_4_3,
}
RELEASES: Final = tuple(_FORMS)
"""Kafka releases whose form of lines is known, the newest last."""


def form_of(release: str) -> StockForm | None:
    """Return the form of the lines that a Kafka release prints; ``None``: not known.

    >>> form_of("3.7.2"), form_of("4.0"), form_of("2.8")
    (<StockForm.OF_3_7: '3.7'>, <StockForm.OF_3_9: '3.9'>, None)
    """
    parsed = _RELEASE.fullmatch(release)
    return None if parsed is None else _FORMS.get(parsed[1])


class ShownRecord(NamedTuple):
    """One record as it is printed, or why it cannot be decoded."""

    record: Record
    label: str | None
    """What ``kafka-dump-log`` prints before a control record; ``None``: it is a metadata record."""
    value: dict[str, Any] | None
    """Its content in Kafka's own JSON; ``None``: it cannot be decoded, or is the marker of a transaction."""
    text: str
    """What is printed where there is no value; of a control record its type."""


class Dump:
    """The dump of one file; ``problems`` and ``gaps`` are complete once all lines or batches were yielded."""

    def __init__(self, file: MetadataFile, *, form: StockForm = StockForm.OF_4_3) -> None:
        """Prepare the dump; nothing is read yet.

        Args:
            file: The open file; it is walked once.
            form: The form of the lines.
        """
        self._file, self._form = file, form
        self._name = os.path.basename(file.path)
        self._last_offset = -1
        self._is_corrupt = False
        self.problems: list[Problem] = []
        """The first problem of each slug; ``unreadable`` counts all."""
        self.unreadable = 0
        """Number of records, batches and rests of batches that have a problem."""
        self.gaps: list[tuple[int, int]] = []
        """Pairs of offsets that follow each other although others lie between them; the first hundred."""

    def lines(self, *, skip_record_metadata: bool = False) -> Iterator[str]:
        """Yield the lines that ``kafka-dump-log`` prints after ``Dumping FILE``, without line ends.

        Raises:
            OSError: the file cannot be read.
        """
        bare = "|" if self._form is StockForm.OF_4_3 else ""
        yield from self._title()
        for walked in self._batches():
            batch = walked.batch
            yield _batch_line(batch, is_valid=walked.is_valid)
            for shown in self._records(batch):
                head = bare if skip_record_metadata else _record_line(batch, shown.record)
                if shown.label is None:
                    yield f"{head} payload: {shown.text if shown.value is None else text(shown.value)}"
                elif skip_record_metadata:
                    yield ""
                else:
                    yield f"{head} {self._control_words(shown)}"
        if self.trailing_bytes:
            yield f"Found {self.trailing_bytes} invalid bytes at the end of {self._name}"

    def batches(self) -> Iterator[DumpedBatch]:
        """Yield every record batch with its records.

        Raises:
            OSError: the file cannot be read.
        """
        for walked in self._batches():
            batch = walked.batch
            records = tuple(_record_item(batch, shown) for shown in self._records(batch))
            yield _batch_item(batch, records, is_valid=walked.is_valid)

    @property
    def trailing_bytes(self) -> int:
        """Number of bytes after the last batch that was yielded; 0 if damage ended the reading."""
        return 0 if self._is_corrupt else self._file.size - self._file.end

    def _title(self) -> Iterator[str]:
        if (segment := _SEGMENT.fullmatch(self._name)) is not None:
            yield f"Log starting offset: {int(segment[1])}"
        elif self._name == BOOTSTRAP_CHECKPOINT:
            yield "KRaft bootstrap snapshot"
        elif (snapshot := snapshot_of(self._name)) is not None:
            yield f"Snapshot end offset: {snapshot.offset}, epoch: {snapshot.epoch}"

    def _batches(self) -> Iterator[Walked]:
        try:
            for walked in self._file.walk():
                if not walked.is_valid:
                    self._note(
                        Problem(
                            "corrupt-batch",
                            f"{self._file.path} at byte {walked.batch.position + 17}",
                            "a checksum that fits the bytes",
                            f"{walked.batch.crc:08x}, which does not fit",
                        )
                    )
                yield walked
        except LogDirError as error:
            self._is_corrupt = True
            self._note(error.problem())
        if self.trailing_bytes:
            left = self.trailing_bytes
            fix = (
                "if a broker runs, it may be writing: run logdirctl metadata dump again; else a crash cut the file off"
            )
            self._note(
                Problem(
                    "malformed-file",
                    self._file.path,
                    "whole batches to its end",
                    f"{left} bytes behind the last whole one",
                    fix,
                )
            )

    def _records(self, batch: Batch) -> Iterator[ShownRecord]:
        try:
            for record in batch.records():
                if self._last_offset not in (-1, record.offset - 1) and len(self.gaps) < _MOST_GAPS:
                    self.gaps.append((self._last_offset, record.offset))
                self._last_offset = record.offset
                yield self._control(batch, record) if batch.is_control else self._payload(batch, record)
        except LogDirError as error:
            self._note(error.problem())

    def _payload(self, batch: Batch, record: Record) -> ShownRecord:
        try:
            value = metadata_records.to_json(metadata_records.decode(record.value or b"", batch.path, batch.position))
        except LogDirError as error:
            self._note(_within(error, record.offset))
            return ShownRecord(record, None, None, f"Error at {record.offset}, skipping. {_words(error)}")
        if self._form is StockForm.OF_3_7:
            value["data"] = {_OF_3_7.get(name, name): one for name, one in value["data"].items()}
        return ShownRecord(record, None, value, "")

    def _control(self, batch: Batch, record: Record) -> ShownRecord:
        try:
            found = control.decode_control(record, batch.path)
        except LogDirError as error:
            self._note(_within(error, record.offset))
            number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
            return ShownRecord(record, "controlType:", None, f"{self._control_name(number)}({number})")
        if found.name in _MARKERS:
            marker = f"{found.name} coordinatorEpoch: {found.fields['coordinatorEpoch']}"
            return ShownRecord(record, "endTxnMarker:", None, marker)
        return ShownRecord(record, _LABELS[found.name], control.to_json(found), f"{found.name}({found.type})")

    def _control_name(self, number: int) -> str:
        is_known = number in control.TYPES and not (number in _SINCE_3_8 and self._form in _BEFORE_3_8)
        return control.TYPES[number].name if is_known else "UNKNOWN"

    def _control_words(self, shown: ShownRecord) -> str:
        if shown.value is None or (self._form in _WITHOUT_LEADER and shown.label == "LeaderChange:"):
            return f"{shown.label if shown.value is None else 'controlType:'} {shown.text}"
        if self._form in _BEFORE_3_8 and shown.label in _LABELS_SINCE_3_8:
            return f"controlType: UNKNOWN{shown.text[shown.text.index('(') :]}"
        return f"{shown.label} {text(shown.value)}"

    def _note(self, problem: Problem) -> None:
        self.unreadable += 1
        if all(one.slug != problem.slug for one in self.problems):
            self.problems.append(problem)


def _within(error: LogDirError, offset: int) -> Problem:
    problem = error.problem()
    return problem._replace(path=f"{problem.path.partition(' at byte ')[0]} at offset {offset}")


def _words(error: LogDirError) -> str:
    if isinstance(error, UnknownRecordTypeError) and error.type not in metadata_records.TYPES:
        return f"{_UNKNOWN_WORDS} {error.type}"
    return f"expected {error.expected}, found {error.found}"


def _timestamp_type(batch: Batch) -> str:
    return "LogAppendTime" if batch.attributes & LOG_APPEND_TIME else "CreateTime"


def _sequence(batch: Batch, delta: int) -> int:
    if batch.base_sequence < 0:
        return -1
    # It starts again at 0 behind the greatest.
    left = _MOST_SEQUENCE - delta
    return batch.base_sequence + delta if batch.base_sequence <= left else batch.base_sequence - left - 1


def _codec_name(batch: Batch) -> str:
    try:
        return batch.codec.name.lower()
    except LogDirError:
        return f"unknown({batch.attributes & 7})"


def _batch_item(batch: Batch, records: tuple[DumpedRecord, ...], *, is_valid: bool) -> DumpedBatch:
    return DumpedBatch(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        count=batch.count,
        base_sequence=batch.base_sequence,
        last_sequence=_sequence(batch, batch.last_offset_delta),
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        leader_epoch=batch.leader_epoch,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        delete_horizon_ms=batch.base_timestamp if batch.attributes & _DELETE_HORIZON else None,
        position=batch.position,
        timestamp=batch.max_timestamp,
        size=batch.size,
        magic=batch.magic,
        codec=_codec_name(batch),
        crc=batch.crc,
        is_valid=is_valid,
        timestamp_type=_timestamp_type(batch),
        records=records,
    )


def _batch_line(batch: Batch, *, is_valid: bool) -> str:
    horizon = f"OptionalLong[{batch.base_timestamp}]" if batch.attributes & _DELETE_HORIZON else "OptionalLong.empty"
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {_sequence(batch, batch.last_offset_delta)} "
        f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
        f"partitionLeaderEpoch: {batch.leader_epoch} isTransactional: {_flag(is_set=batch.is_transactional)} "
        f"isControl: {_flag(is_set=batch.is_control)} deleteHorizonMs: {horizon} position: {batch.position} "
        f"{_timestamp_type(batch)}: {batch.max_timestamp} size: {batch.size} magic: {batch.magic} "
        f"compresscodec: {_codec_name(batch)} crc: {batch.crc} isvalid: {_flag(is_set=is_valid)}"
    )


def _flag(*, is_set: bool) -> str:
    return "true" if is_set else "false"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _record_line(batch: Batch, record: Record) -> str:
    headers = ",".join(name for name, _ in record.headers)
    return (
        f"| offset: {record.offset} {_timestamp_type(batch)}: {record.timestamp} keySize: {_size(record.key)} "
        f"valueSize: {_size(record.value)} sequence: {_sequence(batch, record.offset - batch.base_offset)} "
        f"headerKeys: [{headers}]"
    )


def _record_item(batch: Batch, shown: ShownRecord) -> DumpedRecord:
    record, is_control = shown.record, shown.label is not None
    return DumpedRecord(
        offset=record.offset,
        timestamp=record.timestamp,
        key_size=_size(record.key),
        value_size=_size(record.value),
        sequence=_sequence(batch, record.offset - batch.base_offset),
        header_keys=tuple([name for name, _ in record.headers]),
        payload=None if is_control else shown.value,
        error=None if is_control else shown.text or None,
        control=shown.text if is_control else None,
        value=shown.value if is_control else None,
    )
