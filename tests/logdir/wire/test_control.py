"""Control records: the batches of the spec, markers of transactions, and what cannot be one."""

from __future__ import annotations

import pytest

from logdir.wire.batch_writer import control_batch, metadata_batch
from logdir.wire.batches import Batch, read_batches
from logdir.wire.control import TYPES, ControlRecord, decode_control, encode_control, to_json
from logdir.wire.errors import UnknownRecordTypeError, WireError
from logdir.wire.metadata_records import MetadataRecord, encode
from logdir.wire.records import Record
from tests.logdir.wire.golden_metadata import METADATA

# kafka-formats §7.5, identical to what Kafka's own builder makes.
LEADER_CHANGE = bytes.fromhex(
    "000000000000002a 00000054 00000005 02 725319f0 0020 00000000 0000018bcfe56800 0000018bcfe56800"
    "ffffffffffffffff ffff ffffffff 00000001"
    "44 00 00 00 08 00000002 30  0000 00000001 03 00000001 00 00000002 00  02 00000001 00  00  00"
)
COMMIT = bytes.fromhex(
    "0000000000000064 00000042 00000003 02 5a54b771 0030 00000000 0000018bcfe56800 0000018bcfe56800"
    "0000000000000009 0002 ffffffff 00000001   20 00 00 00 08 00000001 0c 0000 00000011 00"
)


def _one(data: bytes) -> tuple[Batch, Record]:
    (batch,) = read_batches(data)
    (record,) = batch.records()
    return batch, record


def test_the_leader_change_of_the_spec() -> None:
    batch, record = _one(LEADER_CHANGE)
    assert (batch.is_control, batch.is_transactional, batch.leader_epoch, record.offset) == (True, False, 5, 42)
    change = decode_control(record)
    assert (change.type, change.name, change.version) == (2, "LEADER_CHANGE", 0)
    assert to_json(change) == {
        "version": 0, "leaderId": 1, "voters": [{"voterId": 1}, {"voterId": 2}], "grantingVoters": [{"voterId": 1}],
    }  # fmt: skip
    assert encode_control(change) == (record.key, record.value)


def test_the_commit_marker_of_the_spec() -> None:
    batch, record = _one(COMMIT)
    assert (batch.is_control, batch.is_transactional) == (True, True)
    assert (batch.producer_id, batch.producer_epoch) == (9, 2)
    marker = decode_control(record)
    assert marker == ControlRecord(type=1, name="COMMIT", version=0, fields={"version": 0, "coordinatorEpoch": 17})
    assert encode_control(marker) == (record.key, record.value)


def test_the_voters_of_a_formatted_quorum() -> None:
    path = METADATA / "4.3.1-dynamic" / "00000000000000000000-0000000000.checkpoint"
    first, last = read_batches(path.read_bytes(), str(path))
    records = [decode_control(record) for record in first.records()]
    assert [record.name for record in records] == ["SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS"]
    assert records[1].fields == {"version": 0, "kRaftVersion": 1}
    (voter,) = records[2].fields["voters"]
    assert (voter["voterId"], len(voter["voterDirectoryId"])) == (1, 16)
    assert voter["endpoints"] == ({"name": "CONTROLLER", "host": "127.0.0.1", "port": 31093},)
    assert voter["kRaftVersionFeature"] == {"minSupportedVersion": 0, "maxSupportedVersion": 1}
    assert [decode_control(record).name for record in last.records()] == ["SNAPSHOT_FOOTER"]


def _record(key: str, value: str) -> Record:
    return Record(offset=0, timestamp=0, key=bytes.fromhex(key), value=bytes.fromhex(value))


# §10.1: bootstrap.checkpoint for metadata.version 21, complete.
BOOTSTRAP = bytes.fromhex(
    """
    00 00 00 00 00 00 00 00 00 00 00 47 00 00 00 00 02 69 5d 78 60 00 20 00 00 00 00 00 00 01 8b cf
    e5 68 00 00 00 01 8b cf e5 68 00 ff ff ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 01 2a 00 00
    00 08 00 00 00 03 16 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 4f 00
    00 00 00 02 dd c1 9b 9f 00 00 00 00 00 00 00 00 01 8b cf e5 68 00 00 00 01 8b cf e5 68 00 ff ff
    ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 01 3a 00 00 00 01 2e 01 0c 00 11 6d 65 74 61 64 61
    74 61 2e 76 65 72 73 69 6f 6e 00 15 00 00 00 00 00 00 00 00 00 02 00 00 00 3f 00 00 00 00 02 8f
    66 08 e6 00 20 00 00 00 00 00 00 01 8b cf e5 68 00 00 00 01 8b cf e5 68 00 ff ff ff ff ff ff ff
    ff ff ff ff ff ff ff 00 00 00 01 1a 00 00 00 08 00 00 00 04 06 00 00 00 00
    """
)


def _control(number: int, **fields: object) -> tuple[bytes, bytes]:
    return encode_control(ControlRecord(type=number, name="", version=0, fields={"version": 0, **fields}))


def test_the_bootstrap_checkpoint_of_the_spec_is_written_byte_for_byte() -> None:
    level = MetadataRecord(type=12, version=0, fields={"name": "metadata.version", "featureLevel": 21})
    time = 1700000000000
    written = (
        control_batch([_control(3, lastContainedLogTimestamp=0)], base_offset=0, epoch=0, timestamp_ms=time)
        + metadata_batch([encode(level)], base_offset=1, epoch=0, timestamp_ms=time)
        + control_batch([_control(4)], base_offset=2, epoch=0, timestamp_ms=time)
    )
    assert len(written) == 249
    assert written == BOOTSTRAP


def test_a_newer_key_is_read_by_its_first_four_bytes() -> None:
    assert decode_control(_record("0001 0004 ffff", "0000 00")).name == "SNAPSHOT_FOOTER"


REFUSED = {
    "no key": ("", "0000", WireError, "the key of a control record"),
    "a key cut off": ("0000 00", "0000", WireError, "the key of a control record, found only 3"),
    "a negative version of the key": ("ffff 0004", "0000 00", WireError, "a key version of 0 or above, found -1"),
    "a type of tomorrow": ("0000 0007", "0000 00", UnknownRecordTypeError, "type 7, version 0"),
    "a negative type": ("0000 ffff", "0000 00", UnknownRecordTypeError, "type -1, version 0"),
    "a version of tomorrow": ("0000 0004", "0001 00", UnknownRecordTypeError, "type 4, version 1"),
    "a negative version": ("0000 0004", "ffff 00", UnknownRecordTypeError, "type 4, version -1"),
    "no value": ("0000 0004", "", WireError, "the value of a control record"),
    "a value cut off": ("0000 0003", "0000 00000000", WireError, "lastContainedLogTimestamp"),
    "a value that goes on": ("0000 0004", "0000 00 00", WireError, "the end of the bytes, found 1 more bytes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_control_record(case: str) -> None:
    key, value, error, message = REFUSED[case]
    with pytest.raises(error, match=f"^[a-z-]+: log at byte .*{message}"):
        decode_control(_record(key, value), "log")


def test_an_unknown_one_is_not_written() -> None:
    for number, version in ((7, 0), (4, 1)):
        with pytest.raises(UnknownRecordTypeError):
            encode_control(ControlRecord(type=number, name="", version=version, fields={"version": version}))


def test_every_type_of_the_spec_is_known() -> None:
    assert [kind.name for _, kind in sorted(TYPES.items())] == [
        "ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS",
    ]  # fmt: skip
