"""Reading record batches of magic 2: the content of segments, metadata snapshots and ``bootstrap.checkpoint``.

``read_batches`` yields whole batches with a valid checksum, in the order of the file, and stops at a torn tail, as
Kafka's own scan does. ``Batch.records`` reads any batch; ``read_values`` and ``value_spans`` read only metadata
batches, without creating an object per record.

Not here: the meaning of a record (``metadata_records``, ``control``), writing (``batch_writer``), legacy message sets.

Spec: kafka-formats §7.3, §7.4, §7.6; org.apache.kafka.common.record.{DefaultRecordBatch,DefaultRecord,
FileLogInputStream}, org.apache.kafka.raft.internals.RecordsIterator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from logdir.wire.compression import DEFAULT_LIMIT, Codec, decompress
from logdir.wire.crc32c import crc32c
from logdir.wire.errors import CorruptBatchError, WireError
from logdir.wire.primitives import read_varint, too_short
from logdir.wire.records import HEADER, LEAST_RECORD, Record, read_records

MAGIC: Final = 2

CRC_START: Final = 21
"""The checksum covers a record batch from this byte on."""

PRODUCER_START: Final = 43
COUNT_START: Final = 57

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
_CODEC: Final = 0x07

_PREFIX: Final = Struct(">qiib")
"""The first fields of a record batch, up to its magic byte."""
PREFIX_SIZE: Final = _PREFIX.size
"""Size of the first fields. As for Kafka's reader, a rest of a file that is no longer than this holds no batch."""
CRC_AT: Final = 17
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_LENGTH_FROM: Final = 12
_LEAST_LENGTH: Final = 14
_NO_PRODUCER: Final = (-1, -1, -1)


@dataclass(frozen=True, slots=True)
class Batch:
    """One whole record batch with a valid checksum."""

    path: str
    """The file it was read from."""
    position: int
    """Byte position of its start in that file."""
    data: bytes = field(repr=False)
    """All its bytes, including the header."""
    header: tuple[int, ...] = field(repr=False)
    """The header fields, as unpacked by :data:`HEADER`."""

    @property
    def size(self) -> int:
        """Its size in bytes, including the header."""
        return len(self.data)

    @property
    def base_offset(self) -> int:
        """The offset that its records count from."""
        return self.header[0]

    @property
    def leader_epoch(self) -> int:
        """Epoch of the partition's leader, -1 if unknown; in the metadata log the epoch of the quorum."""
        return self.header[2]

    @property
    def magic(self) -> int:
        """Always 2."""
        return self.header[3]

    @property
    def crc(self) -> int:
        """The checksum, which is valid."""
        return self.header[4]

    @property
    def attributes(self) -> int:
        """The attribute bits of the header."""
        return self.header[5]

    @property
    def last_offset_delta(self) -> int:
        """Its last offset minus its base offset; compaction does not change it."""
        return self.header[6]

    @property
    def base_timestamp(self) -> int:
        """Epoch milliseconds that its records count from."""
        return self.header[7]

    @property
    def max_timestamp(self) -> int:
        """Maximum timestamp of its records, in epoch milliseconds."""
        return self.header[8]

    @property
    def producer_id(self) -> int:
        """-1 if there is none."""
        return self.header[9]

    @property
    def producer_epoch(self) -> int:
        """-1 if there is none."""
        return self.header[10]

    @property
    def base_sequence(self) -> int:
        """-1 if there is none."""
        return self.header[11]

    @property
    def count(self) -> int:
        """Number of records in it; 0 is possible after compaction."""
        return self.header[12]

    @property
    def last_offset(self) -> int:
        """Offset of the last record that was originally written to it."""
        return self.header[0] + self.header[6]

    @property
    def is_control(self) -> bool:
        """Return whether it holds control records."""
        return bool(self.header[5] & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Return whether it is part of a producer's transaction."""
        return bool(self.header[5] & TRANSACTIONAL)

    @property
    def codec(self) -> Codec:
        """The compression of its records.

        Raises:
            CorruptBatchError: the codec number is unknown.
        """
        number = self.header[5] & _CODEC
        try:
            return Codec(number)
        except ValueError:
            raise self.corrupt("a codec from 0 to 4", number, CRC_START) from None

    def records(self, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
        """Yield its records, by ascending offset.

        Args:
            limit: Maximum decompressed size in bytes.

        Raises:
            WireError: the records cannot be decompressed, are malformed, or differ in number from the header; for a
                compressed batch the position is the start of its records.
            CodecMissingError: a library for its codec is not installed.
        """
        try:
            codec = self.codec
            compressed = codec is not Codec.NONE
            data = decompress(codec, self.data[HEADER.size :], limit) if compressed else self.data
            base = 0 if compressed else HEADER.size
            yield from read_records(self.header, data, base)
        except CorruptBatchError:
            raise
        except WireError as error:
            if self.header[5] & _CODEC:
                raise WireError(
                    self.path, expected=error.expected, found=error.found, position=self.position + HEADER.size
                ) from None
            raise error.within(self.path, self.position) from None

    def corrupt(self, expected: str, found: object, position: int) -> CorruptBatchError:
        """Return, for the caller to raise, the error about a byte of this batch; ``position`` counts from its start."""
        return CorruptBatchError(self.path, expected=expected, found=found, position=self.position + position)


def read_batches(data: bytes | memoryview, path: str = "", *, start: int = 0) -> Iterator[Batch]:
    """Yield the whole record batches of a file, in its order.

    Stops silently at an incomplete batch: position and size of the last batch show where.

    Args:
        data: The bytes of the file; for a mapped file a memoryview.
        path: Path of the file, for the errors.
        start: Byte position to start at; a batch must begin there.

    Raises:
        CorruptBatchError: a length below the minimum (such as zeros after the end of a preallocated file), a magic
            other than 2, or a wrong checksum.
    """
    end = len(data)
    position = start
    while (room := end - position) > PREFIX_SIZE:
        size = framed_size(data, position, room, path)
        if size is None:
            return
        batch = bytes(data[position : position + size])
        header = HEADER.unpack_from(batch)
        crc = crc32c(batch[CRC_START:])
        if crc != header[4]:
            raise CorruptBatchError(
                path, expected=f"checksum {header[4]:08x}", found=f"{crc:08x}", position=position + CRC_AT
            )
        yield Batch(path, position, batch, header)
        position += size


def framed_size(data: bytes | memoryview, at: int, room: int, path: str, position: int | None = None) -> int | None:
    """Return the size of the record batch that begins at ``at``, from its first fields; the rest is not read.

    Args:
        data: Bytes of the file; more than ``PREFIX_SIZE`` of them are of this batch.
        at: Where in ``data`` the batch begins.
        room: Number of bytes from there to the end of the file.
        path: Path of the file, for the errors.
        position: Where in the file the batch begins; ``None``: ``data`` is the file, so it is ``at``.

    Returns:
        The size in bytes, including the header; ``None``: more than ``room``, so the file ends in the batch.

    Raises:
        CorruptBatchError: a length or a magic byte that cannot be true.
    """
    position = at if position is None else position
    _, length, _, magic = _PREFIX.unpack_from(data, at)
    if length < _LEAST_LENGTH:
        raise CorruptBatchError(
            path, expected=f"a batch length of at least {_LEAST_LENGTH}", found=length, position=position + _LENGTH_AT
        )
    size: int = _LENGTH_FROM + length
    if size > room:
        return None
    if magic != MAGIC:
        raise CorruptBatchError(path, expected=f"a batch of magic {MAGIC}", found=magic, position=position + _MAGIC_AT)
    if size < HEADER.size:
        expected = f"a batch of at least {HEADER.size} bytes"
        raise CorruptBatchError(path, expected=expected, found=size, position=position + _LENGTH_AT)
    return size


def read_values(batch: Batch) -> Iterator[tuple[int, memoryview]]:
    """Yield offset and value of each record of a metadata batch.

    Raises:
        WireError: ``batch`` is no metadata batch; see :func:`value_spans`.
    """
    view = memoryview(batch.data)
    for offset, start, end in value_spans(batch):
        yield offset, view[start:end]


def value_spans(batch: Batch) -> Iterator[tuple[int, int, int]]:
    """Yield offset, and start and end in ``batch.data``, of each value of a metadata batch, by ascending offset.

    Raises:
        WireError: the batch breaks a rule of metadata batches: it is a control batch, compressed, of a producer, or has
            keys, headers, empty values or different timestamps.
    """
    header, data = batch.header, batch.data
    base, last, count = header[0], header[6], header[12]
    if header[5]:
        raise batch.corrupt("a metadata batch, without attributes", header[5], CRC_START)
    if header[9:12] != _NO_PRODUCER:
        raise batch.corrupt("a metadata batch, without a producer", header[9:12], PRODUCER_START)
    if not 0 <= count * LEAST_RECORD <= len(data) - HEADER.size:
        raise batch.corrupt("a record count that fits in the batch", count, COUNT_START)
    position, previous = HEADER.size, -1
    try:
        for _ in range(count):
            first = position
            # A varint nearly always has one byte: read it here, and longer ones by the general reader.
            raw = data[position]
            if raw < 0x80:
                size, start = (raw >> 1) ^ -(raw & 1), position + 1
            else:
                size, start = read_varint(data, position)
            if data[start] or data[start + 1]:
                found = data[start : start + 2].hex()
                raise WireError(
                    expected="a record with its batch's timestamp and no attributes", found=found, position=start
                )
            raw = data[start + 2]
            if raw < 0x80:
                delta, position = (raw >> 1) ^ -(raw & 1), start + 3
            else:
                delta, position = read_varint(data, start + 2)
            if not previous < delta <= last:
                raise WireError(expected=f"an offset delta of {previous + 1} to {last}", found=delta, position=start)
            if data[position] != 1:
                raise WireError(expected="no key", found=f"{data[position]:02x}", position=position)
            raw = data[position + 1]
            if raw < 0x80:
                length, value = (raw >> 1) ^ -(raw & 1), position + 2
            else:
                length, value = read_varint(data, position + 1)
            end = value + length
            position = end + 1
            if length < 1 or position != start + size or data[end]:
                found = f"{length} bytes in a record of {size}"
                raise WireError(expected="a value, and nothing behind it", found=found, position=first)
            previous = delta
            yield base + delta, value, end
        if position != len(data):
            found = f"{len(data) - position} more bytes"
            raise WireError(expected="the end of the batch", found=found, position=position)
    except IndexError:
        raise too_short(data, first, "a record").within(batch.path, batch.position) from None
    except WireError as error:
        raise error.within(batch.path, batch.position) from None
