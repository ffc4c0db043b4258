"""Writing record batches as Kafka does, uncompressed.

Not here: files, and the meaning of the records.

Spec: kafka-formats §7.3, §7.4, §7.6; org.apache.kafka.common.record.DefaultRecordBatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logdir.wire.batches import CONTROL, CRC_START, MAGIC
from logdir.wire.crc32c import crc32c
from logdir.wire.primitives import varint
from logdir.wire.records import HEADER, Record

_BEFORE_LENGTH_ENDS = 12


def encode_records(records: Iterable[Record], *, base_offset: int, base_timestamp: int) -> bytes:
    """Return the bytes of the records in a record batch, before compression.

    Args:
        records: The records, with ascending offsets from ``base_offset`` on.
        base_offset: Base offset of the batch.
        base_timestamp: Base timestamp of the batch, in epoch milliseconds.
    """
    out = bytearray()
    for record in records:
        body = bytearray(b"\0")
        body += varint(record.timestamp - base_timestamp)
        body += varint(record.offset - base_offset)
        body += _nullable(record.key)
        body += _nullable(record.value)
        body += varint(len(record.headers))
        for name, value in record.headers:
            body += _nullable(name.encode())
            body += _nullable(value)
        out += varint(len(body))
        out += body
    return bytes(out)


def _nullable(data: bytes | None) -> bytes:
    return b"\x01" if data is None else varint(len(data)) + data


def encode_batch(
    body: bytes,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """Return the bytes of a whole record batch: header with checksum, and records.

    Args:
        body: Its records, compressed as ``attributes`` specify.
        base_offset: Offset of the first record.
        leader_epoch: -1 if unknown.
        attributes: Attribute bits of the header.
        last_offset_delta: Offset of the last record minus ``base_offset``.
        base_timestamp: Epoch milliseconds; -1 in an empty batch.
        max_timestamp: Epoch milliseconds.
        count: Number of records.
        producer_id: -1 for none.
        producer_epoch: -1 for none.
        base_sequence: -1 for none.
    """
    length = HEADER.size + len(body) - _BEFORE_LENGTH_ENDS

    def header(crc: int) -> bytes:
        return HEADER.pack(
            base_offset, length, leader_epoch, MAGIC, crc, attributes, last_offset_delta, base_timestamp,
            max_timestamp, producer_id, producer_epoch, base_sequence, count,
        )  # fmt: skip

    crc = crc32c(header(0)[CRC_START:] + body)
    return header(crc) + body


def data_batch(records: Sequence[Record], *, leader_epoch: int = -1, attributes: int = 0) -> bytes:
    """Return the bytes of an uncompressed record batch; ``attributes`` are bits such as ``CONTROL``.

    Raises:
        ValueError: ``records`` is empty, or ``attributes`` name a codec.
    """
    if not records or attributes & 0x07:
        raise ValueError(f"expected records and no codec, found {len(records)}, attributes {attributes:#x}")
    base_offset = records[0].offset
    base_timestamp = records[0].timestamp
    return encode_batch(
        encode_records(records, base_offset=base_offset, base_timestamp=base_timestamp),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=records[-1].offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        count=len(records),
    )


def metadata_batch(values: Sequence[bytes], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    """Return the bytes of a record batch of the metadata log or a snapshot.

    Args:
        values: Values of its records, one or more.
        base_offset: Offset of the first record.
        epoch: Epoch of the quorum, or of the snapshot.
        timestamp_ms: The timestamp of all its records, in epoch milliseconds.

    Raises:
        ValueError: there is no value.
    """
    records = [
        Record(offset=base_offset + index, timestamp=timestamp_ms, key=None, value=value)
        for index, value in enumerate(values)
    ]
    return data_batch(records, leader_epoch=epoch)


def control_batch(records: Sequence[tuple[bytes, bytes]], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    """Return the bytes of a batch of the quorum's control records, given as (key, value); see :func:`metadata_batch`.

    Raises:
        ValueError: there is no record.
    """
    made = [
        Record(offset=base_offset + index, timestamp=timestamp_ms, key=key, value=value)
        for index, (key, value) in enumerate(records)
    ]
    return data_batch(made, leader_epoch=epoch, attributes=CONTROL)
