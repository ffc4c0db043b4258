"""Where a KIP and the releases part, both layouts are read: bytes worked out by hand from the KIP's own lists."""

from __future__ import annotations

from typing import Any

import pytest

from logdir.wire.errors import UnknownMessageError, WireError
from logdir.wire.frames import (
    MESSAGES,
    RequestHeader,
    ResponseHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    from_json,
    message,
    to_json,
)
from logdir.wire.message import Direction, Form

ID = "7973b2eb18fe43c8afad6025b191a793"
TEXT = "eXOy6xj-Q8ivrWAlsZGnkw"

_STATE = {
    "partitionIndex": 3, "controllerEpoch": 7, "leader": 1, "leaderEpoch": 5, "isr": [1, 2], "partitionEpoch": 9,
    "replicas": [1, 2], "isNew": True,
}  # fmt: skip
_LIVE_LEADERS = [{"brokerId": 1, "hostName": "h", "port": 9092}]

_Case = tuple[str, str, int, dict[str, Any], str]

# API, direction, version, Kafka's JSON, body in hex. Flexible like the shipped version of that number: compact lengths
# (one more than the count), an empty tag section (00) behind every struct.
CASES: dict[str, _Case] = {
    "LeaderAndIsrRequest v5": (
        "LeaderAndIsr", "request", 5,
        {
            "controllerId": 2, "controllerEpoch": 7, "brokerEpoch": 20, "type": 2,
            "topicStates": [{"topicName": "t", "topicId": TEXT, "partitionStates": [_STATE]}],
            "liveLeaders": _LIVE_LEADERS,
        },
        (
            f"00000002 00000007 0000000000000014 02 02 0274 {ID} 02 00000003 00000007 00000001 00000005"
            " 03 00000001 00000002 00000009 03 00000001 00000002 01 00 00 02 00000001 0268 00002384 00 00"
        ),
    ),
    "StopReplicaRequest v4": (
        "StopReplica", "request", 4,
        {
            "controllerId": 2, "controllerEpoch": 7, "brokerEpoch": 20, "deletePartitions": True,
            "topicStates": [
                {
                    "topicId": TEXT,
                    "partitionStates": [{"partitionIndex": 3, "leaderEpoch": -2, "deletePartition": True}],
                }
            ],
        },
        f"00000002 00000007 0000000000000014 01 02 {ID} 02 00000003 fffffffe 01 00 00 00",
    ),
    "StopReplicaResponse v4": (
        "StopReplica", "response", 4,
        {"errorCode": 0, "topics": [{"topicId": TEXT, "partitionErrors": [{"partitionIndex": 3, "errorCode": 103}]}]},
        f"0000 02 {ID} 02 00000003 0067 00 00 00",
    ),
    "UpdateMetadataRequest v7": (
        "UpdateMetadata", "request", 7,
        {
            "controllerId": 2, "controllerEpoch": 7, "brokerEpoch": 20, "ungroupedPartitionStates": [],
            "topicStates": [{"topicName": "t", "topicId": TEXT, "partitionStates": []}],
            "liveBrokers": [
                {
                    "id": 1, "v0Host": "h", "v0Port": 9092,
                    "endpoints": [{"port": 9092, "host": "h", "listener": "L", "securityProtocol": 0}], "rack": None,
                }
            ],
        },
        (
            f"00000002 00000007 0000000000000014 01 02 0274 {ID} 01 00 02 00000001 0268 00002384"
            " 02 00002384 0268 024c 0000 00 00 00 00"
        ),
    ),
    "ListOffsetsRequest v6": (
        "ListOffsets", "request", 6,
        {
            "replicaId": -1, "isolationLevel": 0,
            "topics": [
                {"topicId": TEXT, "partitions": [{"partitionIndex": 3, "currentLeaderEpoch": 5, "timestamp": -2}]}
            ],
        },
        f"ffffffff 00 02 {ID} 02 00000003 00000005 fffffffffffffffe 00 00 00",
    ),
    "OffsetForLeaderEpochResponse v4": (
        "OffsetForLeaderEpoch", "response", 4,
        {
            "throttleTimeMs": 0,
            "topics": [
                {"topicId": TEXT, "partitions": [{"errorCode": 0, "partition": 3, "leaderEpoch": 5, "endOffset": 9}]}
            ],
        },
        f"00000000 02 {ID} 02 0000 00000003 00000005 0000000000000009 00 00 00",
    ),
    "MetadataRequest v10": (
        "Metadata", "request", 10,
        {
            "topics": [{"name": None, "topicId": TEXT}], "allowAutoTopicCreation": True,
            "includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False,
        },
        f"02 00 {ID} 00 01 00 00 00",
    ),
    "VoteRequest v0": (
        "Vote", "request", 0,
        {
            "clusterId": "c",
            "topics": [
                {
                    "topicId": TEXT,
                    "partitions": [
                        {"partitionIndex": 0, "replicaEpoch": 5, "replicaId": 1, "lastOffsetEpoch": 4, "lastOffset": 99}
                    ],
                }
            ],
        },
        f"0263 02 {ID} 02 00000000 00000005 00000001 00000004 0000000000000063 00 00 00",
    ),
    "BeginQuorumEpochRequest v0, not flexible": (
        "BeginQuorumEpoch", "request", 0,
        {
            "clusterId": "c",
            "topics": [{"topicId": TEXT, "partitions": [{"partitionIndex": 0, "leaderId": 1, "leaderEpoch": 5}]}],
        },
        f"000163 00000001 {ID} 00000001 00000000 00000001 00000005",
    ),
    "EndQuorumEpochRequest v0, not flexible": (
        "EndQuorumEpoch", "request", 0,
        {
            "clusterId": None,
            "topics": [
                {
                    "topicId": TEXT,
                    "partitions": [
                        {
                            "partitionIndex": 0, "replicaId": 3, "leaderId": 1, "leaderEpoch": 5,
                            "preferredSuccessors": [2],
                        }
                    ],
                }
            ],
        },
        f"ffff 00000001 {ID} 00000001 00000000 00000003 00000001 00000005 00000001 00000002",
    ),
    "BrokerRegistrationRequest v0": (
        "BrokerRegistration", "request", 0,
        {
            "brokerId": 1, "clusterId": "c", "incarnationId": TEXT, "currentMetadataOffset": 8, "listeners": [],
            "features": [], "rack": "r",
        },
        f"00000001 0263 {ID} 0000000000000008 01 01 0272 00",
    ),
    "UnregisterBrokerResponse v0": (
        "UnregisterBroker", "response", 0, {"throttleTimeMs": 1, "errorCode": 41}, "00000001 0029 00",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_layout_of_the_kip(case: str) -> None:
    name, direction, version, document, text = CASES[case]
    one = message(name, Direction(direction), version, Form.KIP)
    body = from_json(one, version, document)
    if one.direction is Direction.REQUEST:
        header = RequestHeader(api_key=one.key, api_version=version, correlation_id=7, client_id="c")
        frame = encode_request(header, body, Form.KIP)
        assert decode_request(frame, Form.KIP) == (header, body)
        start = 2 + 2 + 4 + 3 + (version in one.flexible)
    else:
        answer = ResponseHeader(correlation_id=7)
        frame = encode_response(one.key, version, answer, body, Form.KIP)
        assert decode_response(one.key, version, frame, Form.KIP) == (answer, body)
        start = 4 + (version in one.flexible)
    assert frame[start:].hex() == text.replace(" ", "")
    assert to_json(one, version, body) == document


def test_every_form_of_a_kip_is_one_version_and_parts_from_what_was_shipped() -> None:
    kips = [one for one in MESSAGES.values() if one.form is Form.KIP]
    assert len(kips) == 24
    for one in kips:
        (version,) = one.versions.all()
        shipped = MESSAGES.get((one.key, one.direction, Form.SHIPPED))
        if one.direction is Direction.REQUEST and shipped is not None:
            ours = [field.name for field in one.fields if version in field.versions]
            theirs = [field.name for field in shipped.fields if version in field.versions]
            assert ours != theirs or repr(one.fields) != repr(shipped.fields)
            assert (version in one.flexible) == (version in shipped.flexible)


def test_the_forms_do_not_read_each_other() -> None:
    name, _, version, document, _ = CASES["LeaderAndIsrRequest v5"]
    one = message(name, Direction.REQUEST, version, Form.KIP)
    header = RequestHeader(api_key=4, api_version=5, correlation_id=1, client_id=None)
    frame = encode_request(header, from_json(one, version, document), Form.KIP)
    with pytest.raises(WireError):
        decode_request(frame)
    with pytest.raises(WireError, match=r"\$\.topicStates\[0\]\.partitionStates\[0\]\.addingReplicas: expected"):
        from_json(message(name, Direction.REQUEST, version), version, document)


def test_a_kip_has_its_form_in_one_version_only() -> None:
    with pytest.raises(UnknownMessageError, match="expected a version from 5 to 5, found 4"):
        message("LeaderAndIsr", Direction.REQUEST, 4, Form.KIP)
