"""What a controller is answered, in Kafka's error codes, and of two instructions for one replica, by socket and inbox.

A document of the inbox has no client: its answers stand in the history.

Not here: what a request stages, and when that is purged (``test_kip516``).

Spec: design §4, §11; KIP-516, "LeaderAndIsrResponse v5", "StopReplicaResponse v4"; kafka-behaviour §4.2, §4.3, §7.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.builders import TOPIC_ID
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.logdir.daemon.test_inbox import EVERY, FULL, INCREMENTAL, SWEEP, broker, error_of, lie, position, put
from tests.logdir.daemon.test_kip516 import WAYS, marker
from tests.reconcile.universe import document, listed, stopped
from tests.tools.ctl import ctl
from tests.tools.reconcile_rig import GONE, OTHER

ALL = listed(pay=(TOPIC_ID, EVERY), gone=(GONE, (0, 1, 2)))
STOP: dict[str, Any] = {"api": "StopReplica", "form": "kip"}


class Answer(NamedTuple):
    """What is answered to one document."""

    code: int | None
    """For the whole of it."""
    codes: dict[int, int]
    """Of how many partitions each."""
    slug: str
    """Why it was refused; empty: it was followed."""


def answers(one: Daemon, way: str, documents: Sequence[dict[str, Any]]) -> list[Answer]:
    """Give documents one after the other, those of the inbox all at once; return what is answered to each."""
    if way == "socket":
        return [_by_socket(one, number, value) for number, value in enumerate(documents)]
    names = [f"{number:02}.json" for number in range(len(documents))]
    for name, value in zip(names, documents, strict=True):
        put(one, name, value)
    if one.process is None:
        one.start()

    def outcomes() -> dict[str, dict[str, Any]]:
        return {event["name"]: event for event in one.events() if event["event"] == "document"}

    until("all are handled", lambda: outcomes().keys() == set(names))
    found = []
    for name in names:
        event = outcomes()[name]
        pairs = [part.split(": ") for part in event["answers"].split(", ") if part]
        slug = "" if event["outcome"] == "done" else error_of(one, name).partition(":")[0]
        assert name in lie(one)[event["outcome"]]
        found.append(Answer(event["code"], {int(code): int(count) for code, count in pairs}, slug))
    return found


def _by_socket(one: Daemon, number: int, request: dict[str, Any]) -> Answer:
    file = one.folder / f"{number}.json"
    file.write_text(json.dumps(request))
    said = ctl("reconcile", "--from", f"request:{file}", "--config", one.config, "--apply", "--json")
    value = json.loads(said.out)
    slug = next((str(problem["slug"]) for problem in value["problems"]), "")
    return Answer(value["result"]["code"], dict(Counter(one["code"] for one in value["result"]["answers"])), slug)


def on_another_node() -> list[Any]:
    states = listed(pay=(TOPIC_ID, EVERY))
    states[0]["partitionStates"][7]["replicas"] = [2, 3]
    return states


def named(topic_id: str, *numbers: int) -> list[Any]:
    return listed(gone=(topic_id, numbers))


def stop(*numbers: int, delete: bool = True) -> list[Any]:
    return stopped(delete=delete, gone=(GONE, numbers))


CASES: tuple[tuple[str, dict[str, Any], Answer], ...] = (
    ("all of it", document(ALL, type=FULL, sequence=7), Answer(0, {0: 25}, "")),
    ("the same again", document(ALL, type=FULL, sequence=7), Answer(0, {0: 25}, "")),
    (
        "a lower sequence",
        document(named(GONE, 0), type=FULL, sequence=6),
        Answer(11, {11: 1}, "request-overtaken"),
    ),
    (
        "an older controller",
        document(named(GONE, 0, 1), type=FULL, sequence=9, epoch=4),
        Answer(11, {11: 2}, "request-overtaken"),
    ),
    (
        "an older controller that stops",
        document(stop(0), sequence=9, epoch=4, **STOP),
        Answer(11, {11: 1}, "request-overtaken"),
    ),
    (
        "an earlier start of the broker",
        document(named(GONE, 0), type=FULL, sequence=8, broker_epoch=39),
        Answer(77, {77: 1}, "broker-epoch-differs"),
    ),
    (
        "a stop at an earlier start",
        document(stop(0, 1), sequence=8, broker_epoch=39, **STOP),
        Answer(77, {77: 2}, "broker-epoch-differs"),
    ),
    (
        "a stop at a later start",
        document(stop(0), sequence=8, broker_epoch=41, **STOP),
        Answer(77, {77: 1}, "broker-epoch-differs"),
    ),
    (
        "a stop that names no start",
        document(stop(0), sequence=8, broker_epoch=-1, **STOP),
        Answer(77, {77: 1}, "broker-epoch-differs"),
    ),
    (
        "an earlier start and an older controller",
        document(named(GONE, 0), type=FULL, sequence=8, epoch=4, broker_epoch=39),
        Answer(77, {77: 1}, "broker-epoch-differs"),
    ),
    (
        "another broker",
        document(on_another_node(), type=FULL, sequence=8),
        Answer(42, {42: 22}, "request-for-another-broker"),
    ),
    ("no partition", document([], type=FULL, sequence=8), Answer(42, {}, "request-empty")),
    (
        "a replica of another id",
        document([*named(OTHER, 0), *listed(pay=(TOPIC_ID, (0,)))], type=INCREMENTAL, sequence=8),
        Answer(0, {0: 1, 103: 1}, ""),
    ),
    (
        "an id that was staged as gone",
        document(named(GONE, 0), type=INCREMENTAL, sequence=9),
        Answer(11, {11: 1}, "stale-topic-id"),
    ),
    (
        "a stop of two replicas, one of which is refused here",
        document(stop(1, 2), sequence=9, **STOP),
        Answer(0, {0: 1, 56: 1}, "unexpected-entry"),
    ),
)
"""One after the other: the last three alone change anything."""


@pytest.mark.slow
@WAYS
def test_kip516_each_request_is_answered_with_its_code(tmp_path: Path, way: str) -> None:
    with daemon(tmp_path, is_started=way == "socket", more=SWEEP) as one:
        broker(one)
        (one.log_dirs[1] / "gone-1" / "of somebody else").mkdir()
        found = answers(one, way, [value for _, value, _ in CASES])
        assert [(name, answer) for (name, _, _), answer in zip(CASES, found, strict=True)] == [
            (name, answer) for name, _, answer in CASES
        ]
        assert (position(one), one.staged(), one.staged(1)) == ((5, 8), [], [f"{GONE}_0", f"{GONE}_2"])
        # Another id alone proves no removal: it is held. StopReplica does.
        assert [(marker(one, number)["reason"], marker(one, number)["delay_ms"]) for number in (0, 2)] == [
            ("topic-id-mismatch", None),
            ("stop-replica", 4 * 60 * 60 * 1000),
        ]


@pytest.mark.slow
@WAYS
def test_two_instructions_for_one_partition_in_a_request_are_an_error_for_both(tmp_path: Path, way: str) -> None:
    documents = [
        document(ALL, type=FULL, sequence=1),
        document([*named(OTHER, 0), *named(GONE, 0)], type=INCREMENTAL, sequence=2),
        document([*stop(0), *stop(0, delete=False), *stop(1)], sequence=3, **STOP),
        # What it leaves out is not proven to be gone: it contradicts itself, and is not followed at all.
        document([*listed(pay=(TOPIC_ID, EVERY)), *named(GONE, 0), *named(GONE, 0)], type=FULL, sequence=4),
    ]
    with daemon(tmp_path, is_started=way == "socket", more=SWEEP) as one:
        broker(one)
        found = answers(one, way, documents)
        assert found == [
            Answer(0, {0: 25}, ""),
            Answer(0, {42: 2}, ""),
            Answer(0, {0: 1, 42: 2}, ""),
            Answer(0, {0: 22, 42: 2}, "removal-not-proven"),
        ]
        assert (position(one), one.staged(), one.staged(1)) == ((5, 3), [], [f"{GONE}_1"])
        # The next FULL request says which of the two counts.
        until("it is asked for", lambda: "full-request-needed" in {problem.slug for problem in one.status().waiting})


@pytest.mark.slow
def test_of_two_documents_for_one_replica_in_one_batch_each_counts_in_its_order(tmp_path: Path) -> None:
    """The inbox holds all of them before the daemon looks: it follows them one after the other, by name."""
    documents = [
        document(ALL, type=FULL, sequence=1),
        document(stop(0), sequence=2, **STOP),
        document(named(GONE, 0, 1), type=INCREMENTAL, sequence=3),
        document(stop(1), sequence=4, **STOP),
    ]
    with daemon(tmp_path, is_started=False, more=SWEEP) as one:
        broker(one)
        found = answers(one, "inbox", documents)
        assert [(answer.code, answer.codes, answer.slug) for answer in found] == [
            (0, {0: 25}, ""),
            (0, {0: 1}, ""),
            (0, {0: 2}, ""),
            (0, {0: 1}, ""),
        ]
        assert (position(one), one.staged(1)) == ((5, 4), [f"{GONE}_0", f"{GONE}_1"])
        markers = [marker(one, number) for number in range(2)]
        # What was stopped and is wanted again is held; what was wanted and is stopped then has its deadline.
        assert [(found["reason"], found["delay_ms"]) for found in markers] == [
            ("stop-replica", None),
            ("stop-replica", 4 * 60 * 60 * 1000),
        ]
