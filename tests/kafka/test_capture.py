"""A topic deleted on stock brokers: captured in the window, adopted after they had removed it (A16, A17, A36)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from logdir.clock import Instant
from logdir.disk.kernel.host import HostDisk
from logdir.disk.replica.adopt import AdoptItem, adopt
from logdir.disk.replica.capture import capture
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.evidence import Proof, Removed
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.reasons import Reason
from tests.kafka.client import Digest
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import retention_seconds
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = pytest.mark.kafka

DELAY_MS = 4 * 60 * 60 * 1000
TRIMMED = 10
PROPERTIES = {
    # The window in which a deletion can be captured, and retention passes that come soon after a start.
    "log.segment.delete.delay.ms": "6000",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "offsets.topic.replication.factor": "1",
}


def instant() -> Instant:
    return Instant(boot_id="b", boottime_ms=5_000, wall_ms=1_700_000_000_000, is_synchronised=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A topic that was deleted, and where its files are now."""

    topic: str
    log_start: int
    uncommitted: Digest
    committed: Digest
    places: dict[tuple[int, Path], str]
    """By broker and log dir, the name under ``deleting/``."""


def digests(rig: Rig, topic: str) -> tuple[Digest, Digest]:
    return rig.client.digest(topic), rig.client.digest(topic, isolation="read_committed")


def fill(rig: Rig, topic: str, replicas: list[int]) -> tuple[Digest, Digest]:
    """Make a topic of few records: all within one segment whose indexes hold nothing yet (kafka-behaviour §10.6)."""
    rig.client.create_on(topic, [replicas])
    rig.client.produce_rich(topic, records=100)
    rig.client.produce_rich(topic, records=20, transactional_id=f"{topic}-yes")
    rig.client.produce_rich(topic, records=20, transactional_id=f"{topic}-no", commit=False)
    assert rig.client.trim(topic, 0, TRIMMED) == TRIMMED
    await_true("all are in sync", lambda: sorted(rig.client.in_sync(topic, 0)) == sorted(replicas))
    uncommitted, committed = digests(rig, topic)
    assert (uncommitted.begin, uncommitted.records, committed.records) == (TRIMMED, 130, 110)
    return uncommitted, committed


def deleted_in(log_dir: Path, topic: str) -> list[str]:
    return [p.name for p in log_dir.glob(f"{topic}-0.*-delete")]


def lose(rig: Rig, topic: str, replicas: list[int]) -> Lost:
    """Delete a topic, capture it while its brokers wait, and wait until they have removed it."""
    uncommitted, committed = fill(rig, topic, replicas)
    rig.client.delete(topic)
    brokers = [broker for broker in rig.brokers if broker.node_id in replicas]

    def where() -> list[tuple[Broker, Path, str]]:
        return [(b, d, name) for b in brokers for d in b.log_dirs for name in deleted_in(d, topic)]

    await_true("every replica is renamed", lambda: len(where()) == len(replicas), timeout_seconds=10)
    places = {}
    for broker, log_dir, name in where():
        with open_root(HostDisk(), str(log_dir)) as root:
            item = CaptureItem(name=name, delay_ms=DELAY_MS, log_start_seen=TRIMMED)
            (outcome,) = capture(root.open_dir, [item], instant)
            (again,) = capture(root.open_dir, [item], instant)
        assert (outcome.result, outcome.place) == (Result.DONE, again.place), outcome.error
        assert outcome.place is not None
        places[broker.node_id, log_dir] = outcome.place.removeprefix("deleting/")
    await_true("their brokers removed them", lambda: not where(), timeout_seconds=90)
    assert all(broker.is_running for broker in brokers)
    return Lost(topic=topic, log_start=TRIMMED, uncommitted=uncommitted, committed=committed, places=places)


def adopt_on(broker: Broker, lost: Lost, topic_id: TopicId, *, keep: bool = False) -> None:
    """Adopt what was captured on a stopped broker."""
    assert not broker.is_running
    with ExitStack() as stack:
        open_dirs = {d: stack.enter_context(open_root(HostDisk(), str(d))).open_dir for d in broker.log_dirs}
        (present,) = (d for d in broker.log_dirs if (d / f"{lost.topic}-0").exists())
        ((log_dir, name),) = ((d, name) for (node_id, d), name in lost.places.items() if node_id == broker.node_id)
        open_dir = open_dirs[log_dir]
        with open_dir.deleting.open(name) as directory:
            marker = read_marker(directory)
        assert marker is not None
        item = AdoptItem(
            name=name,
            marker=marker,
            topic=lost.topic,
            topic_id=topic_id,
            present=open_dirs[present],
            present_marker=marker_of(
                open_dirs[present], lost.topic, topic_id, (present / f"{lost.topic}-0").stat().st_ino
            ),
            keep=keep,
        )
        outcome = adopt(open_dir, item, list(open_dirs.values()))
        assert outcome.result is Result.DONE, outcome.error


def marker_of(open_dir: OpenLogDir, topic: str, topic_id: TopicId, inode: int) -> ReplicaMarker:
    now = instant()
    return ReplicaMarker(
        intent=Intent.STAGED,
        cluster_id=open_dir.cluster_id,
        node_id=open_dir.node_id,
        directory_id=open_dir.directory_id,
        topic=topic,
        topic_id=topic_id,
        partition=0,
        birth_inode=inode,
        path=f"{topic}-0",
        reason=Reason.DUPLICATE,
        evidence=Removed(proof=Proof.OPERATOR, as_of_ms=now.wall_ms),
        staged_at_ms=now.wall_ms,
        delay_ms=DELAY_MS,
        boot_id=now.boot_id,
        boottime_ms=now.boottime_ms,
        clean=True,
    )


def with_roots(rig: Rig, brokers: int) -> Rig:
    for _ in range(brokers):
        broker = rig.add_broker(log_dirs=2, properties=PROPERTIES)
        broker.start()
        for log_dir in broker.log_dirs:
            init(HostDisk(), plan_init(HostDisk(), str(log_dir), fs_type="ext4"), made_at_ms=5, reserve_bytes=4096)
    return rig


@pytest.fixture(params=releases_of("capture"))
def rig(request: pytest.FixtureRequest, make_rig: Callable[[str], Rig]) -> Iterator[Rig]:
    with make_rig(request.param) as made:
        yield with_roots(made, 1)


def test_a16_a17_a36_a_captured_deletion_comes_back_after_its_broker_removed_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (broker,) = rig.brokers
    lost, trapped = lose(rig, "lost", [1]), lose(rig, "trapped", [1])
    new = {topic: TopicId.parse(rig.client.create(topic)) for topic in ("lost", "trapped")}
    rig.client.produce("lost", records=3)  # what was written meanwhile is replaced
    broker.stop()
    adopt_on(broker, lost, new["lost"])
    # The same without the one step that matters, to see that it does: its broker trusts the zeros.
    with monkeypatch.context() as patched:
        patched.setattr("logdir.disk.replica.adopt.last_indexes", lambda names: ())
        adopt_on(broker, trapped, new["trapped"])
    broker.start()
    assert digests(rig, "lost") == (lost.uncommitted, lost.committed)
    await_true(
        "a retention pass wiped the log with the zeros",
        lambda: rig.client.digest("trapped").records == 0,
        timeout_seconds=60,
    )
    time.sleep(retention_seconds(rig.version))
    for _ in range(2):
        assert digests(rig, "lost") == (lost.uncommitted, lost.committed)
        broker.stop()
        broker.start()
        time.sleep(retention_seconds(rig.version))
    assert digests(rig, "lost") == (lost.uncommitted, lost.committed)
    assert rig.client.produce_rich("lost", records=5, transactional_id="lost-yes") == lost.uncommitted.end + 4
    assert rig.client.digest("lost").records == lost.uncommitted.records + 5


@pytest.mark.parametrize("version", releases_of("both captured"))
def test_a16_both_replicas_are_adopted_and_stay_in_sync(version: str, make_rig: Callable[[str], Rig]) -> None:
    with make_rig(version) as made:
        rig = with_roots(made, 2)
        lost = lose(rig, "lost", [1, 2])
        topic_id = TopicId.parse(rig.client.create_on("lost", [[1, 2]]))
        await_true("all are in sync", lambda: sorted(rig.client.in_sync("lost", 0)) == [1, 2])
        for broker in reversed(rig.brokers):
            broker.stop()
        for broker in rig.brokers:
            adopt_on(broker, lost, topic_id, keep=True)
        for _ in range(2):
            for broker in rig.brokers:
                broker.start()
            await_true("all are in sync", lambda: sorted(rig.client.in_sync("lost", 0)) == [1, 2])
            assert digests(rig, "lost") == (lost.uncommitted, lost.committed)
            time.sleep(retention_seconds(version))
            for broker in reversed(rig.brokers):
                broker.stop()
        for broker in rig.brokers:
            broker.start()
        await_true("all are in sync", lambda: sorted(rig.client.in_sync("lost", 0)) == [1, 2])
        assert digests(rig, "lost") == (lost.uncommitted, lost.committed)
        segments = {b.node_id: next(p for d in b.log_dirs for p in d.glob("lost-0/*.log")) for b in rig.brokers}
        assert segments[1].read_bytes() == segments[2].read_bytes()


def test_a17_a_command_keeps_a_deleted_topic_beside_its_running_broker(rig: Rig, tmp_path: Path) -> None:
    (broker,) = rig.brokers
    fill(rig, "lost", [1])
    named = ("--log-dirs", ",".join(map(str, broker.log_dirs)))
    assert ctl("init", *named, "--apply").status == Exit.DONE
    rig.client.delete("lost")
    await_true("it is renamed", lambda: any(deleted_in(d, "lost") for d in broker.log_dirs), timeout_seconds=10)
    ((log_dir, name),) = ((d, name) for d in broker.log_dirs for name in deleted_in(d, "lost"))
    segments = {path.name: path.read_bytes() for path in (log_dir / name).glob("*.log")}
    said = ctl("capture", "lost", *named, "--apply")
    assert (said.status, said.err) == (Exit.DONE, ""), said
    await_true("its broker removed it", lambda: not deleted_in(log_dir, "lost"), timeout_seconds=90)
    assert broker.is_running
    (tmp_path / "out").mkdir()
    assert ctl("staged", "export", "lost", *named, "-o", tmp_path / "out", "--apply").status == Exit.DONE
    assert {path.name: path.read_bytes() for path in (tmp_path / "out/lost-0").glob("*.log")} == segments
    assert sum(map(len, segments.values())) > 0
    # A broker that starts beside what was captured is none the wiser.
    broker.stop()
    broker.start()
    rig.client.create("lost")
    assert rig.client.digest("lost").records == 0
