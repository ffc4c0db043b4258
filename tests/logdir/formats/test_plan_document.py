"""A plan document is read whole or not at all, and says in which line it is not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from logdir.errors import LogDirError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own import plan_document
from logdir.formats.own.plan_document import Header, IdFrom, Step
from logdir.ids import TopicId
from tests.builders import CLUSTER, TOPIC_ID
from tests.mutation import mutations

HEADER: dict[str, Any] = {
    "plan": 1,
    "verb": "layout",
    "cluster": "prod",
    "cluster_id": CLUSTER,
    "node_id": 3,
    "inventory_sha256": "ab" * 32,
    "log_dirs": ["/d1", "/d2"],
    "later": "x",
}
STEPS: list[dict[str, Any]] = [
    {
        "step": number,
        "op": "relayout",
        "log_dir": log_dir,
        "from": f"a.b-{partition}",
        "to": f"eX/{TOPIC_ID}_{partition}",
        "topic": "a.b",
        "topic_id": TOPIC_ID,
        "partition": partition,
        "id_from": id_from,
        "log_bytes": log_bytes,
    }
    for number, log_dir, partition, id_from, log_bytes in ((1, "/d1", 0, "own", 7), (2, "/d2", 12, "minted", None))
]


def line(values: object) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def written(header: dict[str, Any] = HEADER, steps: list[dict[str, Any]] = STEPS, **footer: object) -> bytes:
    data = line(header) + b"".join(map(line, steps))
    return data + line({"steps": len(steps), "sha256": hashlib.sha256(data).hexdigest(), **footer})


def refused(data: bytes) -> LogDirError:
    with pytest.raises((MalformedFileError, UnsupportedVersionError)) as raised:
        plan_document.parse(data, "/p/3.jsonl")
    return raised.value


def test_a_whole_document_is_read() -> None:
    found = plan_document.parse(written(), "/p/3.jsonl")
    assert found.header == Header("prod", CLUSTER, 3, "ab" * 32, ("/d1", "/d2"))
    topic_id = TopicId.parse(TOPIC_ID)
    assert found.steps == (
        Step(1, "/d1", "a.b-0", f"eX/{TOPIC_ID}_0", "a.b", topic_id, 0, IdFrom.OWN, 7),
        Step(2, "/d2", "a.b-12", f"eX/{TOPIC_ID}_12", "a.b", topic_id, 12, IdFrom.MINTED, None),
    )
    assert found.sha256 == json.loads(written().splitlines()[-1])["sha256"]


def test_one_without_steps_is_whole() -> None:
    assert plan_document.parse(written(steps=[])).steps == ()


def test_the_planners_own_lines_are_read() -> None:
    # The form of migrate.plan.steps.step_line, key by key.
    text = (
        f'{{"from":"a-0","id_from":"siblings","log_bytes":null,"log_dir":"/d1","op":"relayout","partition":0,"step":1,'
        f'"to":"eX/{TOPIC_ID}_0","topic":"a","topic_id":"{TOPIC_ID}"}}\n'
    )
    data = line(HEADER) + text.encode()
    footer = f'{{"sha256":"{hashlib.sha256(data).hexdigest()}","steps":1}}\n'
    assert plan_document.parse(data + footer.encode()).steps[0].id_from is IdFrom.SIBLINGS


def test_every_cut_is_refused() -> None:
    whole = written()
    for length in range(len(whole)):
        assert refused(whole[:length]).path.startswith("/p/3.jsonl:")


def test_every_line_lost_doubled_or_swapped_is_refused() -> None:
    lines = written().splitlines(keepends=True)
    for number in range(len(lines)):
        refused(b"".join(lines[:number] + lines[number + 1 :]))
        refused(b"".join([*lines[: number + 1], *lines[number:]]))
    refused(b"".join([lines[0], lines[2], lines[1], lines[3]]))


def test_one_changed_byte_is_refused() -> None:
    whole = written()
    assert refused(whole.replace(b"a.b-12", b"a.b-13")).path == "/p/3.jsonl:4"
    for number in range(len(whole)):
        changed = bytearray(whole)
        changed[number] ^= 1
        refused(bytes(changed))


def test_damage_is_refused_with_its_line_and_nothing_else_is_raised() -> None:
    for data in mutations([written()], [b"\n", b"{}", b'"step":', b"null"], 2_000):
        if data != written():
            assert refused(data).path.startswith("/p/3.jsonl:")


def test_a_newer_plan_is_refused_by_name() -> None:
    error = refused(written({**HEADER, "plan": 2}))
    assert isinstance(error, UnsupportedVersionError)
    assert (error.path, error.expected, error.found) == ("/p/3.jsonl:1", "plan version 1", "2")


@pytest.mark.parametrize(
    "changed",
    [
        {"verb": "move"},
        {"node_id": -1},
        {"node_id": None},
        {"log_dirs": "/d1"},
        {"log_dirs": ["/d1", "/d1", "/d2"]},
        {"log_dirs": ["/d1", "d2"]},
        {"log_dirs": ["/d2"]},
        {"cluster_id": 7},
    ],
    ids=str,
)
def test_a_header_that_does_not_say_what_it_must(changed: dict[str, object]) -> None:
    assert refused(written({**HEADER, **changed})).path in ("/p/3.jsonl:1", "/p/3.jsonl:2")


def _step(**changed: object) -> Callable[[], bytes]:
    return lambda: written(steps=[STEPS[0], {**STEPS[1], **changed}])


@pytest.mark.parametrize(
    "data",
    [
        _step(step=3),
        _step(op="delete"),
        _step(log_dir="/d3"),
        _step(**{"from": "a.b-012"}),
        _step(**{"from": "../a-12"}),
        _step(**{"from": "c-12"}),
        _step(to=f"eX/{TOPIC_ID}_11"),
        _step(to=f"{TOPIC_ID}_12"),
        _step(topic="__cluster_metadata", **{"from": "__cluster_metadata-12"}),
        _step(topic_id="AAAAAAAAAAAAAAAAAAAAAA", to="AA/AAAAAAAAAAAAAAAAAAAAAA_12"),
        _step(topic_id="x"),
        _step(partition="12"),
        _step(partition=2**31, **{"from": f"a.b-{2**31}"}),
        _step(id_from="elsewhere"),
        _step(partition=0, to=f"eX/{TOPIC_ID}_0", **{"from": "a.b-0"}),
    ],
)
def test_a_step_that_does_not_say_what_it_must(data: Callable[[], bytes]) -> None:
    assert refused(data()).path == "/p/3.jsonl:3"


def test_a_footer_that_counts_otherwise() -> None:
    assert refused(written(steps=STEPS, sha256="0" * 64)).path == "/p/3.jsonl:4"
    data = line(HEADER)
    assert refused(data + line({"steps": 1, "sha256": hashlib.sha256(data).hexdigest()})).path == "/p/3.jsonl:2"
