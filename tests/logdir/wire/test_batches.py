"""Batches: the bytes of the spec, torn tails, damage, and what a metadata batch must keep."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir.wire.batch_writer import control_batch, data_batch, encode_batch, encode_records, metadata_batch
from logdir.wire.batches import Batch, read_batches, read_values
from logdir.wire.compression import Codec
from logdir.wire.crc32c import _find, crc32c, crc32c_by_table
from logdir.wire.errors import CorruptBatchError, WireError
from logdir.wire.primitives import read_unsigned_varint, read_varint, read_varlong, unsigned_varint, varint
from logdir.wire.records import Record
from tests.logdir.wire.golden_metadata import FILES

PATH = "/d1/__cluster_metadata-0/00000000000000000000.log"

# kafka-formats §7.4, identical to what Kafka's own builder makes.
DATA = bytes.fromhex(
    "00000000000003e8 00000048 ffffffff 02 fde86579 0000 00000001 0000018bcfe56800 0000018bcfe56805"
    "ffffffffffffffff ffff ffffffff 00000002"
    "12 00 00 00 02 6b 04 7631 00"
    "18 00 0a 02 01 04 7632 02 02 68 02 78"
)
# §9.5: a TopicRecord and a PartitionRecord.
TOPIC_ID = "7973b2eb18fe43c8afad6025b191a793"
VALUES = (
    bytes.fromhex(f"01 02 00 04666f6f {TOPIC_ID} 00"),
    bytes.fromhex(
        f"01 03 01 00000000 {TOPIC_ID} 03 00000001 00000002 03 00000001 00000002 01 01 00000001 00000000 00000000"
        "03 2445d8e9aab3418fb7d8fe534adcda16 32f0f1cd599c46c693cf7ddb52e454e8 00"
    ),
)
METADATA = bytes.fromhex(
    "000000000000002b 000000b2 00000005 02 25b81d13 0000 00000001 0000018bcfe56801 0000018bcfe56801"
    "ffffffffffffffff ffff ffffffff 00000002"
    f"3c    00 00 00 01 30 {VALUES[0].hex()} 00"
    f"c001  00 00 02 01 b201 {VALUES[1].hex()} 00"
)


def _one(data: bytes) -> Batch:
    (batch,) = read_batches(data, PATH)
    return batch


def test_the_data_batch_of_the_spec() -> None:
    batch = _one(DATA)
    assert (batch.position, batch.size, batch.base_offset, batch.last_offset) == (0, 84, 1000, 1001)
    assert (batch.leader_epoch, batch.magic, batch.attributes, batch.crc) == (-1, 2, 0, 0xFDE86579)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.count) == (-1, -1, -1, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (1700000000000, 1700000000005)
    assert (batch.codec, batch.is_control, batch.is_transactional) == (Codec.NONE, False, False)
    assert list(batch.records()) == [
        Record(offset=1000, timestamp=1700000000000, key=b"k", value=b"v1"),
        Record(offset=1001, timestamp=1700000000005, key=None, value=b"v2", headers=(("h", b"x"),)),
    ]
    assert data_batch(list(batch.records())) == DATA


def test_the_metadata_batch_of_the_spec() -> None:
    batch = _one(METADATA)
    assert [(offset, bytes(value)) for offset, value in read_values(batch)] == [(43, VALUES[0]), (44, VALUES[1])]
    assert metadata_batch(VALUES, base_offset=43, epoch=5, timestamp_ms=1700000000001) == METADATA


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_any_buffer_is_read(kind: Callable[[bytes], bytes | memoryview]) -> None:
    assert [batch.data for batch in read_batches(kind(DATA + METADATA), PATH)] == [DATA, METADATA]


def test_a_mapped_file_is_read_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(DATA + METADATA)
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as view,
    ):
        assert [batch.position for batch in read_batches(view, str(path))] == [0, 84]
        half_read = read_batches(view, str(path))
        first = next(half_read)
    assert next(first.records()).key == b"k"


def test_reading_starts_where_it_is_told() -> None:
    assert [batch.position for batch in read_batches(DATA + METADATA, PATH, start=84)] == [84]
    assert list(read_batches(DATA, PATH, start=84)) == []


def test_a_tail_is_torn_wherever_it_is_cut() -> None:
    for end in range(len(METADATA)):
        assert [batch.data for batch in read_batches(DATA + METADATA[:end], PATH)] == [DATA]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_real_file_cut_anywhere_gives_its_whole_batches(path: Path) -> None:
    data = path.read_bytes()
    ends = [batch.position + batch.size for batch in read_batches(data)]
    for end in range(0, len(data), 7):
        assert len(list(read_batches(data[:end]))) == sum(1 for whole in ends if whole <= end)


@pytest.mark.parametrize("position", range(len(METADATA)))
def test_every_flipped_bit_behind_the_checksum_is_seen(position: int) -> None:
    for bit in range(8):
        data = bytearray(METADATA)
        data[position] ^= 1 << bit
        if position < 8 or 12 <= position < 16:  # base offset and epoch are outside the checksum
            assert _one(bytes(data)).crc == _one(METADATA).crc
            continue
        batches = read_batches(bytes(data), PATH)
        if 8 <= position < 12 and int.from_bytes(data[8:12], "big", signed=True) > len(data) - 12:
            assert list(batches) == []  # a torn tail
        else:
            with pytest.raises(CorruptBatchError, match=f"{PATH} at byte "):
                next(batches)


CORRUPT = {
    "zeros of a preallocated file": (bytes(100), "a batch length of at least 14, found 0", 84 + 8),
    "a length below the least": (b"\0" * 11 + b"\x0d" + bytes(50), "at least 14, found 13", 84 + 8),
    "a negative length": (b"\0" * 8 + b"\xff\xff\xff\xff" + bytes(50), "found -1", 84 + 8),
    "a message set of magic 1": (b"\0" * 11 + b"\x20" + bytes(4) + b"\x01" + bytes(50), "magic 2, found 1", 84 + 16),
    "less than a header": (
        b"\0" * 11 + b"\x20" + bytes(4) + b"\x02" + bytes(50),
        "at least 61 bytes, found 44",
        84 + 8,
    ),
    "a checksum that does not hold": (
        METADATA[:-1] + b"\x01",
        f"checksum 25b81d13, found {crc32c(METADATA[21:-1] + bytes((1,))):08x}",
        84 + 17,
    ),
}


@pytest.mark.parametrize(("zeros", "is_batch"), [(16, False), (17, False), (18, True)])
def test_what_ends_before_a_magic_byte_is_no_batch_yet(zeros: int, is_batch: bool) -> None:
    """As in the stock reader: whatever these bytes hold, they are a torn tail (kafka-formats §7.3)."""
    batches = read_batches(DATA + bytes(zeros), PATH)
    assert next(batches).data == DATA
    if is_batch:
        with pytest.raises(CorruptBatchError, match="at least 14"):
            next(batches)
    else:
        assert list(batches) == []


@pytest.mark.parametrize("case", CORRUPT)
def test_corruption_is_named_with_its_byte(case: str) -> None:
    data, message, position = CORRUPT[case]
    batches = read_batches(DATA + data, PATH)
    assert next(batches).data == DATA
    with pytest.raises(CorruptBatchError, match=message) as caught:
        next(batches)
    assert caught.value.position == position
    assert caught.value.path == f"{PATH} at byte {position}"


def _sealed(
    body: bytes, *, attributes: int = 0, count: int = 1, last_offset_delta: int = 0, producer_id: int = -1
) -> Batch:
    return _one(
        encode_batch(
            body,
            base_offset=10,
            leader_epoch=1,
            attributes=attributes,
            last_offset_delta=last_offset_delta,
            base_timestamp=1000,
            max_timestamp=2000,
            count=count,
            producer_id=producer_id,
        )
    )


PLAIN = bytes.fromhex("0e 00 00 00 01 02 61 00")

NO_METADATA = {
    "a control batch": (PLAIN, {"attributes": 0x20}, "without attributes", 21),
    "a compressed one": (PLAIN, {"attributes": 1}, "without attributes, found 1", 21),
    "one of log-append time": (PLAIN, {"attributes": 8}, "without attributes, found 8", 21),
    "a producer's": (PLAIN, {"producer_id": 7}, "without a producer", 43),
    "attributes of a record": (b"\x0e\1\0\0\1\2a\0", {}, "no attributes, found 0100", 62),
    "a timestamp of its own": (b"\x0e\0\2\0\1\2a\0", {}, "no attributes, found 0002", 62),
    "a key": (b"\x10\0\0\0\2k\2a\0", {}, "no key, found 02", 65),
    "an empty key": (b"\x0e\0\0\0\0\2a\0", {}, "no key, found 00", 65),
    "an empty value": (b"\x0c\0\0\0\1\0\0", {}, "a value, and nothing behind it", 61),
    "no value": (b"\x0c\0\0\0\1\1\0", {}, "a value, and nothing behind it", 61),
    "a header": (b"\x12\0\0\0\1\2a\2\0\1", {}, "a value, and nothing behind it", 61),
    "a length that is too short": (b"\x0c\0\0\0\1\2a\0", {}, "2 bytes in a record of 6|1 bytes in a record of 6", 61),
    "a length that is negative": (b"\x01\0\0\0\1\2a\0", {}, "in a record of -1", 61),
    "an offset delta below 0": (b"\x0e\0\0\1\1\2a\0", {}, "an offset delta of 0 to 0, found -1", 62),
    "an offset delta above the last": (b"\x0e\0\0\2\1\2a\0", {}, "an offset delta of 0 to 0, found 1", 62),
    "an offset delta twice": (
        PLAIN * 2,
        {"count": 2, "last_offset_delta": 1},
        "an offset delta of 1 to 1, found 0",
        70,
    ),
    "one record too few": (PLAIN, {"count": 2}, "a record count that fits in the batch, found 2", 57),
    "a record cut off": (
        PLAIN + b"\x0e\0\0\2\1\2a",
        {"count": 2, "last_offset_delta": 1},
        "expected a record, found only 7",
        69,
    ),
    "one record too many": (PLAIN * 2, {"count": 1}, "the end of the batch, found 8 more bytes", 69),
    "a negative count": (PLAIN, {"count": -1}, "a record count that fits in the batch, found -1", 57),
}


@pytest.mark.parametrize("case", NO_METADATA)
def test_what_no_metadata_batch_may_be(case: str) -> None:
    body, changes, message, position = NO_METADATA[case]
    batch = _sealed(body, **changes)
    with pytest.raises(WireError, match=message) as caught:
        list(read_values(batch))
    assert caught.value.position == position


def test_the_plain_record_is_a_metadata_record() -> None:
    assert [bytes(value) for _, value in read_values(_sealed(PLAIN))] == [b"a"]


NO_RECORDS = {
    "a negative count": (PLAIN, {"count": -1}, "-1 records", 61),
    "a count without room": (PLAIN, {"count": 3}, "3 records", 61),
    "a codec that is none": (PLAIN, {"attributes": 6}, "a codec from 0 to 4, found 6", 21),
    "bytes behind the last": (PLAIN * 2, {}, "8 more bytes", 69),
    "a length beyond the end": (b"\x7e" + PLAIN[1:], {}, "the length of a record, found 63", 61),
    "a length that is too short": (b"\x0c" + PLAIN[1:], {}, "a record of 6 bytes, found 7", 62),
    "a length of nothing": (b"\0" * 8, {}, "the length of a record, found 0", 61),
    "a key below null": (b"\x0e\0\0\0\3\2a\0", {}, "the length of a key, found -2", 65),
    "a value beyond the end": (b"\x0e\0\0\0\1\x7ea\0", {}, "63 bytes of a value", 67),
    "headers without end": (b"\x0e\0\0\0\1\2a\x7e", {}, "a number of headers, found 63", 68),
    "a negative number of headers": (b"\x0e\0\0\0\1\2a\1", {}, "a number of headers, found -1", 68),
    "a header without key": (b"\x12\0\0\0\1\2a\2\1\1", {}, "a header's key, found null", 69),
    "a header's key in no UTF-8": (b"\x14\0\0\0\1\2a\2\2\xff\1", {}, "a header's key in UTF-8", 69),
    "a timestamp without end": (b"\x1a\0" + b"\xff" * 12, {}, "a number of 64 bits", 63),
}


@pytest.mark.parametrize("case", NO_RECORDS)
def test_what_no_records_are(case: str) -> None:
    body, changes, message, position = NO_RECORDS[case]
    batch = _sealed(body, **changes)
    with pytest.raises(WireError, match=message) as caught:
        list(batch.records())
    assert caught.value.position == position


def test_log_append_time_is_that_of_the_batch() -> None:
    batch = _sealed(
        encode_records([Record(offset=10, timestamp=1500, key=None, value=None)], base_offset=10, base_timestamp=1000),
        attributes=8,
    )
    assert [record.timestamp for record in batch.records()] == [2000]


def test_a_compacted_batch_may_be_empty_and_have_gaps() -> None:
    assert list(_sealed(b"", count=0, last_offset_delta=9).records()) == []
    assert _sealed(b"", count=0, last_offset_delta=9).last_offset == 19
    records = [Record(offset=offset, timestamp=1000, key=b"k", value=b"") for offset in (12, 19)]
    batch = _sealed(encode_records(records, base_offset=10, base_timestamp=1000), count=2, last_offset_delta=9)
    assert list(batch.records()) == records


def test_control_batches() -> None:
    data = control_batch([(b"\0\0\0\3", b"\0\0" + bytes(8) + b"\0")], base_offset=0, epoch=1, timestamp_ms=5)
    batch = _one(data)
    assert batch.is_control
    assert (batch.leader_epoch, batch.max_timestamp) == (1, 5)


@pytest.mark.parametrize("attributes", [1, 0])
def test_a_batch_of_nothing_is_not_written(attributes: int) -> None:
    with pytest.raises(ValueError):
        data_batch([], attributes=attributes)


VARINTS = {0: "00", -1: "01", 1: "02", -2: "03", 63: "7e", 64: "8001", -64: "7f", -65: "8101"} | {
    2**31 - 1: "feffffff0f",
    -(2**31): "ffffffff0f",
}
UNSIGNED = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8001",
    300: "ac02",
    16383: "ff7f",
    16384: "808001",
    2**31 - 1: "ffffffff07",
}


def test_varints_of_the_spec() -> None:
    for number, text in VARINTS.items():
        assert varint(number).hex() == text
        assert read_varint(bytes.fromhex(text), 0) == (number, len(text) // 2)
    for number, text in UNSIGNED.items():
        assert unsigned_varint(number).hex() == text
        assert read_unsigned_varint(bytes.fromhex(text), 0) == (number, len(text) // 2)
    for number in (2**63 - 1, -(2**63), 2**40):
        assert read_varlong(varint(number), 0)[0] == number
    for number in (-1, 2**64):
        with pytest.raises(ValueError):
            unsigned_varint(number)


def test_both_checksums_agree() -> None:
    assert crc32c(b"123456789") == crc32c_by_table(b"123456789") == 0xE3069283
    assert crc32c(b"") == crc32c_by_table(b"") == 0
    data = FILES[0].read_bytes()
    assert crc32c(data) == crc32c_by_table(data)


def test_without_the_library_or_its_c_part_the_table_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("google_crc32c.implementation", "python")
    assert _find() is crc32c_by_table
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    assert _find() is crc32c_by_table
