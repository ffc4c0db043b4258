"""Frames of stock nodes are read as Kafka reads them and written back byte for byte; headers keep Kafka's rules."""

from __future__ import annotations

import pytest

from logdir.wire.errors import UnknownMessageError, WireError
from logdir.wire.frames import (
    MESSAGES,
    RequestHeader,
    ResponseHeader,
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    from_json,
    message,
    to_json,
)
from logdir.wire.message import Direction, Form
from tests.logdir.wire.golden_frames import GoldenFrame, golden_frames
from tests.proof.metadata_claims import GOLDEN_FRAMES
from tests.proof.plugin import Recorder

REQUESTS = tuple(frame for frame in golden_frames() if frame.direction is Direction.REQUEST)
RESPONSES = tuple(frame for frame in golden_frames() if frame.direction is Direction.RESPONSE)


def test_the_golden_frames_are_there() -> None:
    assert (len(REQUESTS), len(RESPONSES)) == (132, 132)
    assert {frame.api for frame in REQUESTS} == {
        "AlterReplicaLogDirs", "AssignReplicasToDirs", "BrokerHeartbeat", "BrokerRegistration", "ControlledShutdown",
        "DeleteTopics", "DescribeLogDirs", "LeaderAndIsr", "StopReplica",
    }  # fmt: skip


def test_requests_are_read_as_kafka_reads_them_and_written_back(record_proof: Recorder) -> None:
    for frame in REQUESTS:
        header, body = decode_request(frame.data)
        assert header == RequestHeader(
            api_key=frame.key,
            api_version=frame.version,
            correlation_id=frame.correlation_id,
            client_id=frame.client_id,
        )
        assert decode_header(frame.data) == (header, frame.header_bytes)
        _says_what_kafka_says(frame, body)
        assert encode_request(header, body) == frame.data
    record_proof(GOLDEN_FRAMES, {"requests": len(REQUESTS)})


def test_responses_are_read_as_kafka_reads_them_and_written_back(record_proof: Recorder) -> None:
    for frame in RESPONSES:
        header, body = decode_response(frame.key, frame.version, frame.data)
        assert header == ResponseHeader(correlation_id=frame.correlation_id)
        _says_what_kafka_says(frame, body)
        assert encode_response(frame.key, frame.version, header, body) == frame.data
    record_proof(GOLDEN_FRAMES, {"responses": len(RESPONSES)})


def _says_what_kafka_says(frame: GoldenFrame, body: dict[str, object]) -> None:
    document = to_json(frame.message, frame.version, body)
    # repr: the order of keys and the types of numbers are Kafka's too.
    assert repr(document) == repr(frame.body)
    assert from_json(frame.message, frame.version, frame.body) == body


def test_types_of_leader_and_isr_are_those_of_the_spec() -> None:
    seen = set()
    for frame in REQUESTS:
        if frame.api == "LeaderAndIsr":
            body = decode_request(frame.data)[1]
            seen.add((frame.origin, frame.version, body.get("isKRaftController", False), body["type"]))
    assert seen == {
        ("2.8.2-zk", 5, False, 0),
        ("3.6.2-zk", 7, False, 0),
        ("3.9.2-migration", 7, False, 0),  # before the KRaft controller takes over
        ("3.9.2-migration", 7, True, 1),
        ("3.9.2-migration", 7, True, 2),
    }


def test_a_name_may_have_a_capital_letter_as_in_the_tables_of_the_spec() -> None:
    frame = next(frame for frame in REQUESTS if frame.api == "LeaderAndIsr")
    renamed = {name[0].upper() + name[1:]: value for name, value in frame.body.items()}
    assert renamed["Type"] == 0
    assert from_json(frame.message, frame.version, renamed) == from_json(frame.message, frame.version, frame.body)
    with pytest.raises(WireError, match=r"\$\.type: expected one value"):
        from_json(frame.message, frame.version, frame.body | {"Type": 1})


HEADERS = {
    "v0: ControlledShutdown v0 has no client id": (7, 0, b""),
    "v1: a text that is not compact": (7, 1, b"\0\x02me"),
    "v2: still not compact, then tags": (7, 3, b"\0\x02me\0"),
    "v1: LeaderAndIsr v3": (4, 3, b"\0\x02me"),
    "v2: LeaderAndIsr v4": (4, 4, b"\0\x02me\0"),
    "v2: ApiVersions v3": (18, 3, b"\0\x02me\0"),
    "v2: an ApiVersions that nobody knows": (18, 99, b"\0\x02me\0"),
    "v2: an API that nobody knows": (999, 0, b"\0\x02me\0"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_request_headers(case: str) -> None:
    key, version, rest = HEADERS[case]
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\x07" + rest
    header, position = decode_header(frame + b"body")
    assert (header.api_key, header.api_version, header.correlation_id) == (key, version, 7)
    assert header.client_id == ("me" if rest else None)
    assert position == len(frame)


def test_an_absent_client_id_is_null() -> None:
    header, _ = decode_header(b"\0\x04\0\x03\0\0\0\x07\xff\xff")
    assert header.client_id is None


def test_tags_of_a_header_are_kept() -> None:
    header = RequestHeader(api_key=64, api_version=0, correlation_id=1, client_id="c", tags=((0, b"x"), (9, b"")))
    frame = encode_request(header, {"brokerId": 3})
    assert decode_request(frame) == (header, {"brokerId": 3})
    answer = ResponseHeader(correlation_id=1, tags=((3, b"yz"),))
    body = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None}
    assert decode_response(64, 0, encode_response(64, 0, answer, body)) == (answer, body)


def test_the_header_of_an_api_versions_response_is_never_flexible() -> None:
    body = {
        "errorCode": 0, "apiKeys": (), "throttleTimeMs": 0, "supportedFeatures": (), "finalizedFeaturesEpoch": -1,
        "finalizedFeatures": (), "zkMigrationReady": False,
    }  # fmt: skip
    frame = encode_response(18, 3, ResponseHeader(correlation_id=258), body)
    assert frame == bytes.fromhex("000001020000010000000000")
    assert decode_response(18, 3, frame) == (ResponseHeader(correlation_id=258), body)


def test_what_is_not_known_is_refused_by_name() -> None:
    frame = REQUESTS[0].data
    with pytest.raises(UnknownMessageError, match="API 999 request: expected a message"):
        decode_request(b"\x03\xe7" + frame[2:])
    with pytest.raises(UnknownMessageError, match="LeaderAndIsr request: expected a version from 0 to 7, found 8"):
        message("LeaderAndIsr", Direction.REQUEST, 8)
    with pytest.raises(UnknownMessageError, match="of a KIP's text"):
        message("Fetch", Direction.REQUEST, 13, Form.KIP)
    with pytest.raises(UnknownMessageError):
        from_json(message("Vote", Direction.REQUEST, 0), 3, {})


def test_every_api_of_the_design_is_there_in_all_its_versions() -> None:
    shipped = {
        one.name: f"{one.versions.low}-{one.versions.high}"
        for (_, direction, form), one in MESSAGES.items()
        if form is Form.SHIPPED and direction is Direction.REQUEST
    }
    assert shipped == {
        "Fetch": "0-18", "ListOffsets": "0-11", "Metadata": "0-13", "LeaderAndIsr": "0-7", "StopReplica": "0-4",
        "UpdateMetadata": "0-8", "ControlledShutdown": "0-3", "ApiVersions": "0-4", "CreateTopics": "0-7",
        "DeleteTopics": "0-6", "OffsetForLeaderEpoch": "0-4", "AlterReplicaLogDirs": "0-2", "DescribeLogDirs": "0-5",
        "Vote": "0-2", "BeginQuorumEpoch": "0-1", "EndQuorumEpoch": "0-1", "BrokerRegistration": "0-4",
        "BrokerHeartbeat": "0-2", "UnregisterBroker": "0-0", "AssignReplicasToDirs": "0-0",
        "SaslHandshake": "0-1", "SaslAuthenticate": "0-2", "DescribeCluster": "0-2", "DescribeQuorum": "0-2",
    }  # fmt: skip
