"""Znode documents: names, replicas and ids of ZooKeeper-era clusters, in every schema version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logdir.cluster import znodes
from logdir.cluster.assignment import AssignmentState, assignment_in
from logdir.cluster.image import ZERO_ID, Image
from logdir.errors import MalformedFileError, UnsupportedVersionError
from logdir.evidence import Absent, Present
from logdir.ids import TopicId
from logdir.replica_ref import ReplicaRef
from tests.logdir.formats.contract import only_format_errors
from tests.proof.plugin import Recorder

PATH = "/tmp/znodes.json"
ID = "b8tRS7h4TJ2Vt43Dp85v2A"
OTHER_ID = "eXOy6xj-Q8ivrWAlsZGnkw"
KIP = {"version": 3, "id": ID, "partitions": {"0": [0, 1, 3]}, "adding_replicas": {}, "removing_replicas": {}}
SHIPPED = {
    "version": 3,
    "topic_id": OTHER_ID,
    "partitions": {"0": [1, 2], "1": [2, 3]},
    "adding_replicas": {"1": [1]},
    "removing_replicas": {"1": [2]},
}
STATE = {"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 7, "isr": [2, 1]}
DOCUMENT: dict[str, Any] = {
    "/cluster/id": {"version": "1", "id": "MkU3OEVBNTcwNTJENDM2Qk"},
    "/brokers/topics/kip": KIP,
    "/brokers/topics/shipped": SHIPPED,
    "/brokers/topics/shipped/partitions/0/state": STATE,
    "/brokers/topics/two": {"version": 2, "partitions": {"0": [1]}, "adding_replicas": {"0": [2]}},
    "/brokers/topics/one": {"version": 1, "partitions": {"0": [1]}},
    "/brokers/ids/1": {"anything": True},
}


def parse(document: Any) -> Image:
    return znodes.parse(json.dumps(document).encode(), PATH, node_id=1, as_of_ms=5)


def test_every_schema_version_is_read() -> None:
    image = parse(DOCUMENT)
    assert image.cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
    assert {name: str(image.topic_id(name)) for name in ("kip", "shipped")} == {"kip": ID, "shipped": OTHER_ID}
    assert image.topic_id("one") == image.topic_id("two") == ZERO_ID
    assert set(image.without_id) == {"one", "two"}
    kip, shipped = image.topic("kip"), image.topic("shipped")
    assert kip is not None
    assert shipped is not None
    assert kip.partitions[0].replicas == (0, 1, 3)
    assert (shipped.partitions[1].adding, shipped.partitions[1].removing) == ((1,), (2,))
    first = shipped.partitions[0]
    assert (first.isr, first.leader, first.leader_epoch) == ((2, 1), 2, 7)
    assert image.without_id["two"].partitions[0].adding == (2,)


@pytest.mark.parametrize(
    ("topic", "topic_id", "partition", "says", "proves"),
    [
        ("shipped", OTHER_ID, 0, AssignmentState.WANTED, Present),
        ("shipped", OTHER_ID, 1, AssignmentState.WANTED, Present),
        ("shipped", TopicId(b"0123456789abcdef"), 0, AssignmentState.OTHER_ID, Absent),
        ("shipped", None, 0, AssignmentState.NO_ID, Present),
        ("renamed", OTHER_ID, 0, AssignmentState.OTHER_NAME, Present),
        ("one", ID[::-1].replace("A", "B", 1), 0, AssignmentState.ZERO_ID, Present),
        ("one", None, 0, AssignmentState.ZERO_ID, Present),
        ("gone", None, 0, AssignmentState.UNLISTED, Absent),
        ("gone", TopicId(b"0123456789abcdef"), 0, AssignmentState.UNLISTED, Absent),
        ("one", None, 5, AssignmentState.UNLISTED, Absent),
    ],
    ids=str,
)
def test_what_is_there_is_wanted_and_what_is_missing_proves_nothing(
    topic: str, topic_id: str | TopicId | None, partition: int, says: AssignmentState, proves: type
) -> None:
    known = TopicId.parse(topic_id) if isinstance(topic_id, str) else topic_id
    found = assignment_in(parse(DOCUMENT), ReplicaRef(topic=topic, topic_id=known, partition=partition))
    assert (found.state, type(found.evidence)) == (says, proves)


def _topic(value: Any) -> dict[str, Any]:
    return {"/brokers/topics/t": value}


REFUSED = {
    "a list": [],
    "nothing": {},
    "no topic": {"/cluster/id": {"id": "x"}},
    "a topic that is a text": _topic("x"),
    "no version": _topic({"partitions": {}}),
    "no partitions": _topic({"version": 1}),
    "a partition that is no number": _topic({"version": 1, "partitions": {"01": [1]}}),
    "replicas that are texts": _topic({"version": 1, "partitions": {"0": ["1"]}}),
    "a replica twice": _topic({"version": 1, "partitions": {"0": [1, 1]}}),
    "an id that is none": _topic({**KIP, "id": "x"}),
    "two ids": _topic({**KIP, "topic_id": OTHER_ID}),
    "an illegal name": {"/brokers/topics/a b": KIP},
    "one id twice": {"/brokers/topics/a": KIP, "/brokers/topics/b": KIP},
    "a state of no partition": {"/brokers/topics/a/partitions/x/state": STATE, **_topic(KIP)},
    "a state without isr": {"/brokers/topics/t/partitions/0/state": {"leader": 1, "leader_epoch": 0}, **_topic(KIP)},
    "a cluster without id": {"/cluster/id": {}, **_topic(KIP)},
}


@pytest.mark.parametrize("document", REFUSED.values(), ids=REFUSED.keys())
def test_anything_else_is_refused(document: Any) -> None:
    with pytest.raises(MalformedFileError, match=PATH):
        parse(document)


@pytest.mark.parametrize("version", [0, 4])
def test_another_schema_version_is_refused_by_name(version: int) -> None:
    with pytest.raises((UnsupportedVersionError, MalformedFileError)):
        parse(_topic({**KIP, "version": version}))


def test_the_zero_id_is_none() -> None:
    assert parse(_topic({**KIP, "id": str(ZERO_ID)})).topic_id("t") == ZERO_ID
    assert parse(_topic({**KIP, "id": None})).topic_id("t") == ZERO_ID


def test_damaged_documents_raise_only_format_errors(record_proof: Recorder) -> None:
    pieces = [b'"', b"{}", b"null", b"[]", b"\xff", b"-1", b'"version":4,', b"true", b"1e9"]
    only_format_errors(
        record_proof,
        "znode documents",
        lambda data, path: znodes.parse(data, path, node_id=1, as_of_ms=0),
        [json.dumps(DOCUMENT).encode(), json.dumps(_topic(KIP)).encode()],
        pieces,
    )
