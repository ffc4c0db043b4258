"""Brokers that lie to the daemon about quorum and topics: what they say is not known, and the daemon goes on."""

from __future__ import annotations

import copy
import random
import struct
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from logdir import clock
from logdir.daemon.quorum import Quorum
from logdir.service.batch.reconcile_case import ReconcileRequest
from logdir.service.cluster.source import SourceRequest
from logdir.service.reconcile import Policy
from logdir.service.report.json_form import to_json
from logdir.wire import frames
from logdir.wire.errors import WireError
from tests.builders import CLUSTER, TOPIC_ID
from tests.logdir.daemon.damage import Whole
from tests.logdir.daemon.rig import ask, daemon, unchanged, until
from tests.logdir.daemon.test_control import answer
from tests.logdir.daemon.test_damaged import is_alive
from tests.logdir.daemon.test_inbox import EVERY, broker
from tests.logdir.wire.client.fake_broker import Talk
from tests.logdir.wire.client.fake_cluster import Present, fake_cluster
from tests.mutation import mutations
from tests.proof.claims import DAMAGED_REQUESTS
from tests.proof.plugin import Recorder
from tests.tools.reconcile_rig import GONE
from tools.cli.arguments import Exit

SEED = 516
API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_QUORUM = "ApiVersions", "DescribeCluster", "DescribeQuorum"
METADATA = "Metadata"
ASKED = (API_VERSIONS, DESCRIBE_CLUSTER, DESCRIBE_QUORUM)
ASKED_OF_TOPICS = (API_VERSIONS, DESCRIBE_CLUSTER, METADATA)
KNOWN = SourceRequest(high_watermark=4711, leader_epoch=7)
NOT_KNOWN = SourceRequest()
_PIECES: Final = (b"\xff" * 4, b"\x00", b"\x80" * 5, b"\x7f\xff\xff\xff", b"{}")
_NO_ANSWER: Final = frozenset(
    (
        "malformed-answer", "answer-too-large", "cluster-unreachable", "cluster-answered-error", "api-not-supported",
        "source-foreign",
    )
)  # fmt: skip

Body = dict[str, Any]
Lie = Callable[[random.Random, Body], object]


def _error(draw: random.Random, body: Body) -> None:
    body["errorCode"] = draw.choice((-1, 1, 29, 31, 58, 74, 9999))


def _versions(body: Body, low: int, high: int) -> None:
    for one in body["apiKeys"]:
        one.update(minVersion=low, maxVersion=high)


def _only(body: Body) -> Body:
    one: Body = body["topics"][0]["partitions"][0]
    return one


LIES: dict[str, dict[str, Lie]] = {
    API_VERSIONS: {
        "an error": _error,
        "no versions": lambda draw, body: body.update(apiKeys=()),
        "versions of the future": lambda draw, body: [
            one.update(minVersion=90, maxVersion=99) for one in body["apiKeys"]
        ],
        "versions below none": lambda draw, body: _versions(body, -9, -1),
    },
    DESCRIBE_CLUSTER: {
        "an error": _error,
        "another cluster": lambda draw, body: body.update(clusterId="AAAAAAAAAAAAAAAAAAAAZw"),
        "no cluster": lambda draw, body: body.update(clusterId=""),
        "no brokers": lambda draw, body: body.update(brokers=()),
        "a broker twice": lambda draw, body: body.update(brokers=body["brokers"] * 2),
        "no port": lambda draw, body: body["brokers"][0].update(port=draw.choice((0, -1, 65_536, 2**31 - 1))),
        "no host": lambda draw, body: body["brokers"][0].update(host=""),
    },
    DESCRIBE_QUORUM: {
        "an error": _error,
        "an error of the partition": lambda draw, body: _error(draw, _only(body)),
        "no topic": lambda draw, body: body.update(topics=()),
        "no partition": lambda draw, body: body["topics"][0].update(partitions=()),
        "two": lambda draw, body: body.update(topics=body["topics"] * 2),
        "another topic": lambda draw, body: body["topics"][0].update(topicName="pay"),
        "another partition": lambda draw, body: _only(body).update(partitionIndex=draw.choice((-1, 1, 2**31 - 1))),
        "no leader": lambda draw, body: _only(body).update(leaderId=-1),
        "no epoch": lambda draw, body: _only(body).update(leaderEpoch=draw.choice((-1, -(2**31)))),
        "no watermark": lambda draw, body: _only(body).update(highWatermark=draw.choice((-1, -2, -(2**63)))),
    },
    METADATA: {
        "another cluster": lambda draw, body: body.update(clusterId="AAAAAAAAAAAAAAAAAAAAZw"),
        "no topic": lambda draw, body: body.update(topics=()),
        "a topic less": lambda draw, body: body.update(topics=body["topics"][1:]),
        "a topic twice": lambda draw, body: body.update(topics=body["topics"] + body["topics"][:1]),
        "a topic that was not asked for": lambda draw, body: body["topics"][0].update(topicId=draw.randbytes(16)),
        "no name": lambda draw, body: [one.update(name=None) for one in body["topics"]],
        "no partitions": lambda draw, body: [one.update(partitions=()) for one in body["topics"]],
    },
}
"""What a frame may say that is whole: it is no answer either."""


def _length(draw: random.Random, frame: bytes) -> bytes:
    size = draw.choice((-1, -(2**31), 0, 3, 2**26 + 1, 2**31 - 1, len(frame) + 1, draw.randrange(4, len(frame))))
    return struct.pack(">i", size) + frame


def _cut(draw: random.Random, frame: bytes) -> bytes:
    return (struct.pack(">i", len(frame)) + frame)[: draw.randrange(4 + len(frame))]


def _more(draw: random.Random, frame: bytes) -> bytes:
    frame += draw.randbytes(draw.randint(1, 40))
    return struct.pack(">i", len(frame)) + frame


def _of_another(draw: random.Random, frame: bytes) -> bytes:
    number = int.from_bytes(frame[:4], "big", signed=True)
    other = draw.choice((number - 1, number + 1, -number, 0, 2**31 - 1))
    return struct.pack(">ii", len(frame), other) + frame[4:]


class Liar:
    """Damages one answer of a broker each time it is asked."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.target = ""
        """Which answer is damaged; empty: none."""
        self.said: Counter[str] = Counter()
        """How it was damaged."""
        self.last = ""
        """How, the last time."""

    def damage(self, talk: Talk, data: bytes) -> bytes:
        """Return what is sent in place of an answer, which can be read as none."""
        if talk.name != self.target:
            return data
        frame = data[4:]
        kind, change = self.draw.choice(_DAMAGES)
        if change is not None:
            self._note(kind)
            return change(self.draw, frame)
        if kind == "random":
            self._note(kind)
            return self._unreadable(talk, frame)
        header, body = frames.decode_response(talk.key, talk.version, frame)
        name, lie = self.draw.choice(tuple(LIES[talk.name].items()))
        changed = copy.deepcopy(dict(body))
        lie(self.draw, changed)
        self._note(f"{talk.name}: {name}")
        told = frames.encode_response(talk.key, talk.version, header, changed)
        return struct.pack(">i", len(told)) + told

    def _note(self, how: str) -> None:
        self.last = how
        self.said[how] += 1

    def _unreadable(self, talk: Talk, frame: bytes) -> bytes:
        """Return a frame changed at random that cannot be read: what can be read would be an answer, if a wrong one."""
        while True:
            (damaged,) = mutations([frame[4:]], _PIECES, 1, self.draw.randrange(1 << 30))
            try:
                frames.decode_response(talk.key, talk.version, frame[:4] + damaged)
            except WireError:
                return struct.pack(">i", 4 + len(damaged)) + frame[:4] + damaged


_DAMAGES: Final[tuple[tuple[str, Callable[[random.Random, bytes], bytes] | None], ...]] = (
    ("length", _length), ("cut", _cut), ("more", _more), ("of another", _of_another),
    ("random", None), ("random", None), ("lie", None), ("lie", None),
)  # fmt: skip


def no_thread() -> None:
    """Return when no thread asks any more."""
    for thread in threading.enumerate():
        if thread.name == "quorum":
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.timeout(3600)
def test_damaged_frames_of_brokers_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_proof: Recorder
) -> None:
    now_ms = 1_000_000
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms)
    count = DAMAGED_REQUESTS.count("frames")
    answered = threading.Event()
    quorum, liar = Quorum(answered.set), Liar(SEED)
    with fake_cluster(tmp_path, CLUSTER, (1,)) as cluster:
        cluster.quorum = (4711, 7)
        cluster.brokers[1].damage = liar.damage
        path = str(cluster.properties)

        def ask(target: str) -> tuple[SourceRequest, str]:
            """Ask as the daemon does; return what is known then, and the slug of why it is not."""
            nonlocal now_ms
            liar.target = target
            answered.clear()
            now_ms += 60_001
            assert not quorum.is_known(path, CLUSTER)
            assert answered.wait(30), target
            no_thread()
            assert quorum.is_known(path, CLUSTER)  # Nothing more is waited for.
            return quorum.source(path), next((problem.slug for problem in quorum.problem(path)), "")

        for number in range(count):
            if number % 100 == 0:
                assert ask("") == (KNOWN, "")  # The truth amid the lies is believed.
            source, slug = ask(ASKED[number % len(ASKED)])
            how = liar.last  # An answer that was cut off is asked for once more.
            assert source == NOT_KNOWN, how
            # A new leader of the quorum does not know it yet: that is no fault.
            is_unsaid = how == f"{DESCRIBE_QUORUM}: no watermark"
            assert slug == "" if is_unsaid else slug in _NO_ANSWER, (how, slug)
        assert ask("") == (KNOWN, "")
    assert sum(liar.said.values()) >= count
    # Each way to lie, where there are enough of them.
    assert count < 1000 or liar.said.keys() == ways(ASKED)
    record_proof(DAMAGED_REQUESTS, {"frames": count}, seeds=SEED)


def ways(asked: tuple[str, ...]) -> set[str]:
    """Return each way to damage the answers to these requests."""
    return {kind for kind, _ in _DAMAGES} - {"lie"} | {f"{name}: {lie}" for name in asked for lie in LIES[name]}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_damaged_frames_change_nothing_of_a_running_daemon(tmp_path: Path, record_proof: Recorder) -> None:
    """Its process asks the brokers what to do with two topics, and lives on whatever they answer."""
    count = DAMAGED_REQUESTS.count("frames to a running daemon")
    liar = Liar(SEED)
    with (
        fake_cluster(tmp_path, CLUSTER) as cluster,
        daemon(tmp_path, more="client.properties: client.properties\n") as one,
    ):
        broker(one)
        pay = Present("pay", dict.fromkeys(EVERY, ((1, 2), (1, 2))))
        for node_id, fake in cluster.brokers.items():
            cluster.said[node_id] = {TOPIC_ID: pay}
            fake.damage = liar.damage
        request: Any = to_json(ReconcileRequest(source=SourceRequest(cluster.uri), policy=Policy(is_confirmed=True)))
        whole = Whole("reconcile", request, None, ())

        def asked(target: str, *, is_applied: bool) -> tuple[int, set[str], set[str]]:
            """Return the exit status of the answer, its slugs, and what is to be staged or was."""
            liar.target = target
            status, value = answer(ask(one.socket, whole.http(is_applied=is_applied)))
            found: Any = value
            assert status == 200, (liar.last, found)
            items = {f"{item['action']} {item['topic']}" for item in found["result"].get("items", ())}
            return found["exit"], {problem["slug"] for problem in found["problems"]}, items

        truth = Exit.DONE, set[str](), {"stage gone"}
        before, pid = unchanged(one), one.status().pid
        for number in range(count):
            if number % 50 == 0:
                # The truth amid the lies is believed: were it sent with apply, it would be followed.
                assert asked("", is_applied=False) == truth
            status, slugs, items = asked(ASKED_OF_TOPICS[number % len(ASKED_OF_TOPICS)], is_applied=True)
            assert (status != Exit.DONE, len(slugs), slugs <= _NO_ANSWER, items) == (True, 1, True, set()), liar.last
            assert one.status().pid == pid
        assert unchanged(one) == before
        assert is_alive(one, pid)
        assert "Traceback" not in one.log
        assert asked("", is_applied=True) == truth
        assert one.staged(1) == [f"{GONE}_{number}" for number in range(3)]
    assert sum(liar.said.values()) >= count
    assert count < 1000 or liar.said.keys() == ways(ASKED_OF_TOPICS)
    record_proof(DAMAGED_REQUESTS, {"frames to a running daemon": count}, seeds=SEED)


@pytest.mark.slow
@pytest.mark.parametrize("target", ASKED)
def test_a_broker_that_lies_stops_no_daemon(tmp_path: Path, target: str) -> None:
    """What is due is purged by what the daemon knows by itself, and the status says why it knows no more."""
    more = "client.properties: client.properties\ntopics: {'pay*': {delete.topic.delay.ms: 3s}}\n"
    more += "delete.topic.delay.ms: 0s\n"
    liar = Liar(SEED)
    with fake_cluster(tmp_path, CLUSTER, (1,)) as cluster:
        cluster.brokers[1].damage = liar.damage
        liar.target = target
        with daemon(tmp_path, more=more) as one:
            one.delete(one.make())
            until("it is captured", lambda: bool(one.staged()))
            until("it is purged", lambda: not one.staged())
            until("the line", lambda: any(found.slug in _NO_ANSWER for found in one.status().waiting))
            assert sum(liar.said.values()) >= 1
            assert one.status().state == "RUNNING"
