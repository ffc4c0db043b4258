"""Metadata records: the worked examples of the spec, unknown types, and tags of newer writers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.wire.errors import UnknownRecordTypeError, WireError
from logdir.wire.metadata_records import TYPES, MetadataRecord, decode, encode, from_json, to_json

PATH = "/d1/__cluster_metadata-0/00000000000000000000.log"
TOPIC = "7973b2eb18fe43c8afad6025b191a793"
D1, D2 = "2445d8e9aab3418fb7d8fe534adcda16", "32f0f1cd599c46c693cf7ddb52e454e8"
T, DIRECTORY_1, DIRECTORY_2 = "eXOy6xj-Q8ivrWAlsZGnkw", "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"

_PARTITION = {
    "partitionId": 0, "topicId": T, "replicas": [1, 2], "isr": [1, 2], "removingReplicas": [], "addingReplicas": [],
    "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0,
}  # fmt: skip
_BROKER = {
    "brokerId": 1, "isMigratingZkBroker": False, "incarnationId": DIRECTORY_2, "brokerEpoch": 7,
    "endPoints": [{"name": "PLAINTEXT", "host": "h1", "port": 9092, "securityProtocol": 0}],
    "features": [{"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": 21}],
    "rack": None, "fenced": True, "inControlledShutdown": False, "logDirs": [DIRECTORY_1],
}  # fmt: skip

# kafka-formats §9.5: bytes that Kafka's serde makes.
EXAMPLES = {
    "topic": (f"01 02 00 04666f6f {TOPIC} 00", "TOPIC", 0, {"name": "foo", "topicId": T}),
    "partition v0": (
        f"01 03 00 00000000 {TOPIC} 03 00000001 00000002 03 00000001 00000002 01 01 00000001 00000000 00000000 00",
        "PARTITION", 0, _PARTITION,
    ),
    "partition v1": (
        (
            f"01 03 01 00000000 {TOPIC} 03 00000001 00000002 03 00000001 00000002 01 01 00000001 00000000 00000000"
            f"03 {D1} {D2} 00"
        ),
        "PARTITION", 1, {**_PARTITION, "directories": [DIRECTORY_1, DIRECTORY_2]},
    ),
    "change v1": (
        f"01 05 01 00000000 {TOPIC} 03  00 05 02 00000001  01 04 00000001  08 21 03 {D1} {'0' * 31}1",
        "PARTITION_CHANGE", 1,
        {
            "partitionId": 0, "topicId": T, "isr": [1], "leader": 1,
            "directories": [DIRECTORY_1, "AAAAAAAAAAAAAAAAAAAAAQ"],
        },
    ),
    "change v2": (
        f"01 05 02 00000000 {TOPIC} 04  00 01 01  01 04 ffffffff  05 01 00  06 05 02 00000001",
        "PARTITION_CHANGE", 2,
        {
            "partitionId": 0, "topicId": T, "isr": [], "leader": -1, "leaderRecoveryState": 0,
            "eligibleLeaderReplicas": [1],
        },
    ),
    "broker v3": (
        (
            f"01 00 03 00000001 00 {D2} 0000000000000007 02 0a504c41494e54455854 036831 2384 0000 00"
            f"02 116d657461646174612e76657273696f6e 0001 0015 00 00 01 00 01 00 11 02 {D1}"
        ),
        "REGISTER_BROKER", 3, _BROKER,
    ),
    "registration change v0": (
        "01 11 00 00000001 0000000000000007 01 00 01 ff",
        "BROKER_REGISTRATION_CHANGE", 0, {"brokerId": 1, "brokerEpoch": 7, "fenced": -1},
    ),
    "registration change v2": (
        f"01 11 02 00000001 0000000000000007 01 02 11 02 {D1}",
        "BROKER_REGISTRATION_CHANGE", 2, {"brokerId": 1, "brokerEpoch": 7, "logDirs": [DIRECTORY_1]},
    ),
    "config": (
        "01 04 00 02 04666f6f 0d726574656e74696f6e2e6d73 0531303030 00",
        "CONFIG", 0, {"resourceType": 2, "resourceName": "foo", "name": "retention.ms", "value": "1000"},
    ),
    "config deleted": (
        "01 04 00 02 04666f6f 0d726574656e74696f6e2e6d73 00 00",
        "CONFIG", 0, {"resourceType": 2, "resourceName": "foo", "name": "retention.ms", "value": None},
    ),
    "remove topic": (f"01 09 00 {TOPIC} 00", "REMOVE_TOPIC", 0, {"topicId": T}),
    "feature": (
        "01 0c 00 116d657461646174612e76657273696f6e 0015 00",
        "FEATURE_LEVEL", 0, {"name": "metadata.version", "featureLevel": 21},
    ),
    "controller": (
        f"01 1b 00 00000003 {D2} 00 02 0b434f4e54524f4c4c4552 036831 2385 0000 00 01 00",
        "REGISTER_CONTROLLER", 0,
        {
            "controllerId": 3, "incarnationId": DIRECTORY_2, "zkMigrationReady": False,
            "endPoints": [{"name": "CONTROLLER", "host": "h1", "port": 9093, "securityProtocol": 0}], "features": [],
        },
    ),
    "no-op": ("01 14 00 00", "NO_OP", 0, {}),
    "end": ("01 18 00 00", "END_TRANSACTION", 0, {}),
    "begin without a name": ("01 17 00 00", "BEGIN_TRANSACTION", 0, {}),
    "begin": (
        "01 17 00 01 00 12 12 426f6f747374726170207265636f726473",
        "BEGIN_TRANSACTION", 0, {"name": "Bootstrap records"},
    ),
    "abort": (
        "01 19 00 01 00 14 14 436f6e74726f6c6c6572206661696c6f766572",
        "ABORT_TRANSACTION", 0, {"reason": "Controller failover"},
    ),
    "migration state": ("01 15 00 00 00", "ZK_MIGRATION_STATE", 0, {"zkMigrationState": 0}),
    "scram (10.1)": (
        (
            "01 0b 00 06616c696365 01 03 3771 21 e8ed7e79a880316a18a5a18f63a109902c2dfd958a29a66e7bb487eb5fd3455a"
            "21 cdef114d813edc6a3d8e4f842a7383f87f017eb06e8af3c0e5a3981bcb1d5c60 00001000 00"
        ),
        "USER_SCRAM_CREDENTIAL", 0,
        {
            "name": "alice", "mechanism": 1, "salt": "N3E=", "iterations": 4096,
            "storedKey": "6O1+eaiAMWoYpaGPY6EJkCwt/ZWKKaZue7SH61/TRVo=",
            "serverKey": "ze8RTYE+3Go9jk+EKnOD+H8BfrBuivPA5aOYG8sdXGA=",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EXAMPLES)
def test_the_examples_of_the_spec(case: str) -> None:
    text, name, version, data = EXAMPLES[case]
    value = bytes.fromhex(text)
    record = decode(memoryview(value))
    assert record.name == f"{name}_RECORD"
    assert to_json(record) == {"type": f"{name}_RECORD", "version": version, "data": data}
    assert encode(record) == value
    assert from_json(to_json(record)) == record


def test_every_type_of_the_spec_is_known() -> None:
    assert sorted(TYPES) == [*range(6), *range(7, 13), 14, 15, *range(17, 29)]
    assert {number: kind.versions.high for number, kind in TYPES.items() if kind.versions.high} == {
        0: 4,
        3: 2,
        5: 2,
        17: 3,
    }
    assert all(kind.versions.low == 0 for kind in TYPES.values())


def test_tagged_fields_that_are_absent_have_their_defaults() -> None:
    fields = decode(bytes.fromhex(f"01 05 02 00000000 {TOPIC} 00")).fields
    assert fields == {
        "partitionId": 0, "topicId": bytes.fromhex(TOPIC), "isr": None, "leader": -2, "replicas": None,
        "removingReplicas": None, "addingReplicas": None, "leaderRecoveryState": -1, "eligibleLeaderReplicas": None,
        "lastKnownElr": None, "directories": None,
    }  # fmt: skip


def test_tags_of_a_newer_writer_are_kept_byte_for_byte() -> None:
    value = bytes.fromhex(f"01 02 00 04666f6f {TOPIC} 02 03 02 abcd 8001 00")
    record = decode(value)
    assert record.fields["_tags"] == ((3, b"\xab\xcd"), (128, b""))
    assert encode(record) == value
    assert to_json(record)["data"] == {"name": "foo", "topicId": T}


UNKNOWN = {
    "a type between": ("01 06 00 00", 6, 0),
    "a newer type": ("01 1d 00 00", 29, 0),
    "a type of two bytes": ("01 ac02 00 00", 300, 0),
    "a newer version": ("01 02 01 00", 2, 1),
    "a newer version of a hot type": ("01 03 03 00", 3, 3),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_unknown_types_and_versions_are_named(case: str) -> None:
    text, number, version = UNKNOWN[case]
    with pytest.raises(UnknownRecordTypeError, match=f"found type {number}, version {version}") as caught:
        decode(bytes.fromhex(text), PATH, 1000)
    assert (caught.value.type, caught.value.version, caught.value.position) == (number, version, 1001)
    assert caught.value.path == f"{PATH} at byte 1001"
    with pytest.raises(UnknownRecordTypeError):
        encode(MetadataRecord(type=number, version=version, fields={}))


BROKEN = {
    "nothing": ("", "a variable-length number", 0),
    "the frame of 2.8": ("00 02 00", "frame version 1, found 0", 0),
    "a frame of tomorrow": ("02 02 00", "frame version 1, found 2", 0),
    "no version": ("01 02", "a variable-length number", 2),
    "an id cut off": ("01 02 00 04666f6f 7973", "16 bytes of topicId, found only 2 more bytes", 7),
    "garbage behind it": (f"01 02 00 04666f6f {TOPIC} 00 00", "the end of the bytes, found 1 more bytes", 24),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_values_name_the_byte(case: str) -> None:
    text, message, position = BROKEN[case]
    with pytest.raises(WireError, match=message) as caught:
        decode(bytes.fromhex(text), PATH, 500)
    assert caught.value.position == 500 + position


def test_a_field_that_its_version_lacks_is_not_dropped() -> None:
    record = decode(bytes.fromhex(EXAMPLES["partition v1"][0]))
    with pytest.raises(WireError, match="PARTITION_RECORD: expected no field directories in version 0"):
        encode(replace(record, version=0))
    without = MetadataRecord(type=3, version=0, fields={**record.fields, "directories": ()})
    assert encode(without) == bytes.fromhex(EXAMPLES["partition v0"][0])


DOCUMENTS: dict[str, tuple[object, str]] = {
    "no object": ("TOPIC_RECORD", "an object with type, version and data"),
    "no data": ({"type": "TOPIC_RECORD", "version": 0}, "an object with type, version and data"),
    "a type that is none": ({"type": "TOPIC", "version": 0, "data": {}}, "a known record type and version"),
    "a version that is none": (
        {"type": "TOPIC_RECORD", "version": True, "data": {}},
        "a known record type and version",
    ),
    "a newer version": ({"type": "TOPIC_RECORD", "version": 1, "data": {}}, "found type 2, version 1"),
    "a field left out": ({"type": "TOPIC_RECORD", "version": 0, "data": {"name": "a"}}, r"\$\.topicId: expected"),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_documents_that_are_no_record(case: str) -> None:
    document, message = DOCUMENTS[case]
    with pytest.raises(WireError, match=message):
        from_json(document, "r.json")
