"""Reading the records in a decompressed record batch of any topic.

Not here: their batch (``batches``); metadata batches, which have stricter rules and a faster reader in ``batches``.

Spec: kafka-formats §7.3, §7.4; org.apache.kafka.common.record.{DefaultRecordBatch,DefaultRecord}.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from logdir.wire.errors import WireError
from logdir.wire.primitives import read_varint, read_varlong, too_short

HEADER: Final = Struct(">qiibIhiqqqhii")
"""Header of a record batch: base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and
maximum timestamp, producer id and epoch, base sequence, count.
"""
LOG_APPEND_TIME: Final = 0x08
"""Attribute of a batch in which all records have its maximum timestamp."""

LEAST_RECORD: Final = 7
"""Size of the smallest possible record in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a record batch."""

    offset: int
    timestamp: int
    """Epoch milliseconds; -1: none."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read_records(header: tuple[int, ...], data: bytes, position: int) -> Iterator[Record]:
    """Yield the records of a record batch, by ascending offset.

    Args:
        header: The batch's header, as unpacked by :data:`HEADER`.
        data: The decompressed bytes that contain the records.
        position: Start of the records in ``data``; they end where it ends.

    Raises:
        WireError: the records are malformed, or differ in number from the header; positions are in ``data``.
    """
    base, last, count = header[0], header[6], header[12]
    log_append_time = header[5] & LOG_APPEND_TIME
    if not 0 <= count * LEAST_RECORD <= len(data) - position:
        raise WireError(expected=f"{count} records", found=f"{len(data) - position} bytes of them", position=position)
    previous = -1
    for _ in range(count):
        length, start = read_varint(data, position)
        end = start + length
        if length < LEAST_RECORD - 1 or end > len(data):
            raise WireError(expected="the length of a record", found=length, position=position)
        position = start + 1  # Attributes: unused, ignored as in Kafka.
        timestamp, position = read_varlong(data, position)
        delta, position = read_varint(data, position)
        if not previous < delta <= last:
            expected = f"an offset delta of {previous + 1} to {last}"
            raise WireError(expected=expected, found=delta, position=start)
        key, position = _nullable(data, position, "a key")
        value, position = _nullable(data, position, "a value")
        headers, position = _headers(data, position)
        if position != end:
            raise WireError(expected=f"a record of {length} bytes", found=f"{position - start} bytes", position=start)
        yield Record(
            offset=base + delta,
            timestamp=header[8] if log_append_time else header[7] + timestamp,
            key=key,
            value=value,
            headers=headers,
        )
        previous = delta
    if position != len(data):
        raise WireError(expected="the end of the batch", found=f"{len(data) - position} more bytes", position=position)


def _nullable(data: bytes, position: int, what: str) -> tuple[bytes | None, int]:
    length, start = read_varint(data, position)
    if length < 0:
        if length < -1:
            raise WireError(expected=f"the length of {what}", found=length, position=position)
        return None, start
    end = start + length
    if end > len(data):
        raise too_short(data, start, f"{length} bytes of {what}")
    return data[start:end], end


def _headers(data: bytes, position: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, start = read_varint(data, position)
    if not 0 <= 2 * count <= len(data) - start:
        raise WireError(expected="a number of headers", found=count, position=position)
    headers = []
    for _ in range(count):
        at = start
        key, start = _nullable(data, start, "a header's key")
        value, start = _nullable(data, start, "a header's value")
        try:
            headers.append(((key or b"").decode(), value))
        except UnicodeDecodeError:
            raise WireError(expected="a header's key in UTF-8", found=key, position=at) from None
        if key is None:
            raise WireError(expected="a header's key", found="null", position=at)
    return tuple(headers), start
