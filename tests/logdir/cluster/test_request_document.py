"""Request documents: read as the stock controllers wrote them, refused when they are anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logdir.cluster import request_document
from logdir.cluster.request_document import Api, Form, RequestType
from logdir.errors import FormatError, MalformedFileError, UnsupportedVersionError
from logdir.ids import TopicId
from tests.logdir.formats.contract import only_format_errors
from tests.logdir.wire.golden_frames import GoldenFrame, golden_frames
from tests.proof.plugin import Recorder
from tests.reconcile import universe
from tests.reconcile.universe import BOTH, OTHER, RIGHT, listed, stopped

PATH = "/inbox/1.json"
CONTROL = [one for one in golden_frames() if one.key in (4, 5) and one.direction == "request"]
FULL = universe.document(listed(a=(RIGHT["a"], BOTH), b=(OTHER["b"], (1,))), type=2, sequence=3)
STOP = universe.document(stopped(delete=True, a=(None, BOTH)), api="StopReplica", sequence=4)
KIP_STOP = universe.document(
    stopped(delete=False, leader_epoch=6, a=(RIGHT["a"], (1,))), api="StopReplica", form="kip", sequence=5
)


def parse(document: Any) -> request_document.RequestDocument:
    return request_document.parse(json.dumps(document).encode(), PATH)


def test_a_full_request_says_who_asks_what() -> None:
    found = parse(FULL)
    assert (found.api, found.form, found.version, found.sequence) == (Api.LEADER_AND_ISR, Form.SHIPPED, 7, 3)
    assert (found.controller_epoch, found.broker_epoch, found.type) == (5, 40, RequestType.FULL)
    assert [(item.ref.topic, str(item.ref.topic_id), item.ref.partition) for item in found.items] == [
        ("a", RIGHT["a"], 0),
        ("a", RIGHT["a"], 1),
        ("b", OTHER["b"], 1),
    ]
    state = found.items[0].state
    assert state is not None
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((1, 2), (1, 2), 1, 0)


def test_stop_replica_names_topics_or_ids() -> None:
    shipped, kip = parse(STOP), parse(KIP_STOP)
    assert [(item.ref.topic, item.ref.topic_id, item.delete, item.leader_epoch) for item in shipped.items] == [
        ("a", None, True, -2)
    ] * 2
    (item,) = kip.items
    assert (item.ref.topic, item.ref.topic_id, item.delete, item.leader_epoch) == (
        None,
        TopicId.parse(RIGHT["a"]),
        False,
        6,
    )


def test_the_type_may_be_spelled_as_the_kip_does() -> None:
    body = {**FULL["body"], "Type": 1}
    with pytest.raises(MalformedFileError, match="one of type and Type"):
        parse({**FULL, "body": body})
    del body["type"]
    assert parse({**FULL, "body": body}).type is RequestType.INCREMENTAL
    del body["Type"]
    assert parse({**FULL, "body": body}).type is RequestType.UNKNOWN


def test_stock_controllers_sent_many() -> None:
    assert len(CONTROL) == 49


@pytest.mark.parametrize("frame", CONTROL, ids=lambda frame: f"{frame.origin} {frame.api} {frame.correlation_id}")
def test_requests_of_stock_controllers_read_the_same_as_json_and_as_bytes(frame: GoldenFrame) -> None:
    body = frame.body
    envelope = {
        "document": 1,
        "api": frame.api,
        "version": frame.version,
        "form": "shipped",
        "sequence": 1,
        "partitions": sum(len(topic["partitionStates"]) for topic in body["topicStates"]),
    }
    found = parse({**envelope, "body": body})
    assert parse({**envelope, "hex": frame.data.hex()}) == found
    assert found.type == body.get("type", 0)
    for other in (frame.data[:-1], frame.data + b"\0"):
        with pytest.raises(FormatError):
            parse({**envelope, "hex": other.hex()})


def _without(key: str, document: dict[str, Any] = FULL) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


def _part(**changed: Any) -> dict[str, Any]:
    copied = json.loads(json.dumps(FULL))
    copied["body"]["topicStates"][0]["partitionStates"][0].update(changed)
    return dict(copied)


def _topic(**changed: Any) -> dict[str, Any]:
    copied = json.loads(json.dumps(FULL))
    copied["body"]["topicStates"][0].update(changed)
    return dict(copied)


REFUSED = {
    "a list": [FULL],
    "no document": _without("document"),
    "no api": _without("api"),
    "another api": {**FULL, "api": "UpdateMetadata"},
    "no form": _without("form"),
    "no sequence": _without("sequence"),
    "sequence 0": {**FULL, "sequence": 0},
    "no count": _without("partitions"),
    "fewer than it says": {**FULL, "partitions": 4},
    "more than it says": {**FULL, "partitions": 2},
    "no body": _without("body"),
    "body and hex": {**FULL, "hex": "00"},
    "hex that is none": {**_without("body"), "hex": "zz"},
    "hex of nothing": {**_without("body"), "hex": ""},
    "body that is a list": {**FULL, "body": []},
    "no controller epoch": {**FULL, "body": _without("controllerEpoch", FULL["body"])},
    "no topics": {**FULL, "body": _without("topicStates", FULL["body"])},
    "type 3": {**FULL, "body": {**FULL["body"], "type": 3}},
    "an illegal name": _topic(topicName="a/b"),
    "no id": _topic(topicId=None),
    "an id that is none": _topic(topicId="x"),
    "an id with spare bits": _topic(topicId=RIGHT["a"][:-1] + "x"),
    "a negative partition": _part(partitionIndex=-1),
    "a partition that is a text": _part(partitionIndex="0"),
    "a partition that is true": _part(partitionIndex=True),
    "a replica twice": _part(replicas=[1, 1]),
    "a negative replica": _part(replicas=[-1]),
    "no replicas": _part(replicas=None),
    "no leader epoch": _part(leaderEpoch=None),
}


@pytest.mark.parametrize("document", REFUSED.values(), ids=REFUSED.keys())
def test_anything_else_is_refused(document: Any) -> None:
    with pytest.raises(MalformedFileError, match=PATH):
        parse(document)


@pytest.mark.parametrize(
    "document",
    [{**FULL, "document": 2}, {**FULL, "version": 8}, {**STOP, "version": 2}, {**FULL, "form": "kip"}],
    ids=["document", "leader-and-isr", "stop-replica", "kip"],
)
def test_versions_not_known_are_refused_by_name(document: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedVersionError):
        parse(document)


def test_a_key_that_stands_twice_is_refused() -> None:
    text = json.dumps(FULL).replace('"sequence": 3', '"sequence": 3, "sequence": 4')
    with pytest.raises(MalformedFileError, match="twice"):
        request_document.parse(text.encode(), PATH)


def test_damaged_documents_raise_only_format_errors(record_proof: Recorder) -> None:
    envelope = {**_without("body"), "version": CONTROL[0].version, "partitions": 1, "hex": CONTROL[0].data.hex()}
    originals = [universe.text(one) for one in (FULL, STOP, KIP_STOP, envelope)]
    pieces = [b'"', b"{}", b"null", b"[]", b"\xff", b"-1", b'"type":2,', b"true", b"1e9", b"AAAAAAAAAAAAAAAAAAAAAA"]
    only_format_errors(record_proof, "request documents", request_document.parse, originals, pieces)
