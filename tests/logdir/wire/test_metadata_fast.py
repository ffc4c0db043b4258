"""The fast reader of metadata records says what the tables say, of good records and of damaged ones."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from logdir.wire.batch_writer import metadata_batch
from logdir.wire.batches import read_batches
from logdir.wire.errors import UnknownRecordTypeError, WireError
from logdir.wire.metadata_fast import PartitionChangeRow, PartitionRow, Row, TopicRow, decode_fast, read_fast
from logdir.wire.metadata_records import TYPES, MetadataRecord, decode, encode
from tests.logdir.wire.random_values import random_struct
from tests.logdir.wire.rows import row_of
from tests.mutation import mutations
from tests.proof.metadata_claims import FAST_RECORDS
from tests.proof.plugin import Recorder

SEED = 1
_HOT = (2, 3, 5)
_PIECES = (b"\0", b"\x01", b"\x7f", b"\x80", b"\xff\xff\xff\xff\x0f", b"\x01\x03\x02", bytes(16))


def _random_record(draw: random.Random) -> MetadataRecord:
    number = draw.choice(_HOT) if draw.random() < 0.95 else draw.choice(list(TYPES))
    kind = TYPES[number]
    version = draw.randint(*kind.versions)
    fields = random_struct(draw, kind.fields, version, flexible=True)
    return MetadataRecord(type=number, version=version, fields=fields)


def test_the_fast_reader_says_what_the_tables_say(record_proof: Recorder) -> None:
    draw = random.Random(SEED)
    count = FAST_RECORDS.count("records")
    records = [_random_record(draw) for _ in range(count)]
    values = [encode(record) for record in records]
    for record, value in zip(records, values, strict=True):
        assert decode_fast(value) == row_of(record)
    refused, damaged = 0, FAST_RECORDS.count("damaged records")
    for value in mutations(values[:1000], _PIECES, damaged):
        refused += _same_answer(value)
    assert 0 < refused < damaged
    record_proof(FAST_RECORDS, {"records": count, "damaged records": damaged}, seeds=SEED)


def _same_answer(value: bytes) -> bool:
    """Tell whether both refuse a value; they must say the same."""
    slow, error = _asked(decode, value)
    fast, again = _asked(decode_fast, value)
    assert str(again) == str(error)
    assert type(again) is type(error)
    if isinstance(slow, MetadataRecord):
        # repr: 0.0 is not -0.0, and a NaN is one.
        assert repr(fast) == repr(row_of(slow))
    return error is not None


def _asked(read: Callable[[bytes, str, int], Row], value: bytes) -> tuple[Row | None, WireError | None]:
    try:
        return read(value, "log", 7), None
    except WireError as error:
        return None, error


_PLACE = bytes(4) + b"T" * 16
_PARTITION_HEAD = _PLACE + bytes.fromhex("02 00000001 02 00000001 01 01 00000001 00000000 00000000")


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("tag", range(10))
def test_every_tag_of_every_size_in_every_version(tag: int, version: int) -> None:
    directories = b"\x02" + b"D" * 16 if version else b""
    heads = {3: _PARTITION_HEAD + directories, 5: _PLACE}
    for number, head in heads.items():
        for payload in (bytes(size) for size in (0, 1, 4, 5, 17)):
            for count in (0, 1, 2, 0x80):
                section = bytes((count,)) + payload[1:] if payload else b""
                for size in (len(section), len(section) + 4):
                    value = bytes((1, number, version)) + head + bytes((1, tag, size)) + section
                    _same_answer(value)
                    _same_answer(value[: 3 + len(head)] + b"\x02" + value[4 + len(head) :] + b"\x09\x01\0")


def test_every_byte_that_is_another() -> None:
    ids = b"D" * 32
    partition = b"\x01\x03\x02" + _PARTITION_HEAD + b"\x03" + ids + bytes.fromhex("02 00 01 01 01 05 02 00000009")
    change = b"\x01\x05\x02" + _PLACE + bytes.fromhex("03 00 05 02 00000001 01 04 00000001 06 05 02 00000001")
    topic = b"\x01\x02\x00\x04foo" + b"T" * 16 + b"\0"
    for value in (partition, change, topic):
        assert not _same_answer(value)
        for at in range(len(value)):
            for byte in {0, 1, 2, 3, value[at] ^ 1, value[at] ^ 0x80, 0x7F, 0xFF}:
                _same_answer(value[:at] + bytes((byte,)) + value[at + 1 :])


def test_a_batch_is_read_with_its_offsets() -> None:
    draw = random.Random(SEED)
    records = [_random_record(draw) for _ in range(300)]
    data = metadata_batch([encode(record) for record in records], base_offset=7, epoch=1, timestamp_ms=1)
    (batch,) = read_batches(data)
    assert list(read_fast(batch)) == [(7 + index, row_of(record)) for index, record in enumerate(records)]


def test_an_error_names_the_byte_of_the_file() -> None:
    bad = metadata_batch([b"\x01\x02\x01\x00"], base_offset=0, epoch=0, timestamp_ms=0)
    good = metadata_batch([b"\x01\x14\x00\x00"], base_offset=0, epoch=0, timestamp_ms=0)
    _, batch = read_batches(good + bad, "log")
    with pytest.raises(UnknownRecordTypeError) as caught:
        list(read_fast(batch))
    assert caught.value.position == len(good) + 61 + 6 + 1


def test_plain_records_never_reach_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = tuple(bytes([n]) * 16 for n in range(3))
    partition = {
        "partitionId": 5, "topicId": ids[0], "replicas": (1, 2, 3), "isr": (3, 1), "removingReplicas": (),
        "addingReplicas": (), "leader": 1, "leaderRecoveryState": 0, "leaderEpoch": 4, "partitionEpoch": 9,
        "directories": ids, "eligibleLeaderReplicas": (1,), "lastKnownElr": None,
    }  # fmt: skip
    values = [
        encode(MetadataRecord(type=2, version=0, fields={"name": "t", "topicId": ids[0]})),
        encode(MetadataRecord(type=3, version=2, fields=partition)),
        encode(
            MetadataRecord(type=5, version=2, fields={"partitionId": 5, "topicId": ids[0], "isr": (1,), "leader": 2})
        ),
    ]

    def refuse(*_: object) -> None:
        raise AssertionError("the tables were asked")

    monkeypatch.setattr("logdir.wire.metadata_fast.decode", refuse)
    assert [decode_fast(value) for value in values] == [
        TopicRow("t", ids[0]),
        PartitionRow(5, ids[0], (1, 2, 3), (3, 1), (), (), 1, 4, 9, ids, 0, (1,), None),
        PartitionChangeRow(5, ids[0], isr=(1,), leader=2),
    ]
