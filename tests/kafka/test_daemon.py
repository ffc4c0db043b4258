"""The daemon beside a running stock broker: each deletion is captured, and what was deleted comes back (A16, A17, A49).

Topics are deleted by the hundred while others are written, under load of processor and disk; meanwhile the hints of the
kernel are lost, a worker stands still, and the daemon is killed where the broker's delete delay allows a restart.

Spec: design §3.3, §5; kafka-behaviour §3.2, §10.5; attacks A16, A17, A36.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.client import Digest
from tests.kafka.daemon_rig import beside, deleted, staged_names
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import await_in_sync, stop
from tests.logdir.daemon.rig import Process
from tests.proof.kafka_claims import DAEMON_DELETIONS
from tests.proof.plugin import Recorder
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

TOPICS: Final = DAEMON_DELETIONS.count("topics")
PARTITIONS: Final = 10
CHOSEN: Final = ("topic-003", "topic-004")
MANY_FILES: Final = "many-files"
FILES: Final = 1000
DOWN_S: Final = 5.0
PROPERTIES: Final = {
    "log.initial.task.delay.ms": "500",
    "log.index.size.max.bytes": "65536",  # a disk of the tests has no room for thousands of indexes of 10 MiB
    "log.retention.check.interval.ms": "1000",
    "num.partitions": "1",
}


class Load:
    """Two threads' worth of work for processor and disk, and a producer that writes on; ends with its block."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self._rig, self._folder = rig, folder
        self._ends = threading.Event()
        self._busy = subprocess.Popen([sys.executable, "-c", _BUSY, str(folder / "load")])
        self.written = 0

    def write(self) -> None:
        """Write to the topic that stays, a little."""
        self.written += 20
        self._rig.client.produce("stays", records=20)

    def end(self) -> None:
        """End the other process."""
        self._busy.kill()
        self._busy.wait()


_BUSY: Final = """
import os, sys
while True:
    with open(sys.argv[1], "wb") as file:
        for _ in range(64):
            sum(range(100_000))
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
"""


def make_topics(rig: Rig) -> dict[str, str]:
    """Create the topics, some with records, one with a thousand files; return the id of each."""
    ids = {f"topic-{n:03}": rig.client.create_on(f"topic-{n:03}", [[1]] * PARTITIONS) for n in range(TOPICS - 1)}
    ids[MANY_FILES] = rig.client.create_on(MANY_FILES, [[1]] * PARTITIONS, {"segment.ms": "1"})
    rig.client.create_on("stays", [[1]])
    return ids


def fill(rig: Rig, broker: Broker) -> dict[tuple[str, int, str], Digest]:
    """Write to the chosen topics, transactions that were aborted among it, and a thousand files."""
    written = {}
    for topic in CHOSEN:
        await_in_sync(rig, topic, [1])
        for partition in range(PARTITIONS):
            rig.client.produce_rich(topic, partition, records=30)
        rig.client.produce_rich(topic, 0, records=10, transactional_id=topic, commit=False)
        for partition in range(PARTITIONS):
            for isolation in ("read_committed", "read_uncommitted"):
                written[topic, partition, isolation] = rig.client.digest(topic, partition, isolation=isolation)
    (place,) = (top / f"{MANY_FILES}-0" for top in broker.log_dirs if (top / f"{MANY_FILES}-0").is_dir())
    while len(os.listdir(place)) < FILES:
        rig.client.produce(MANY_FILES, records=100)
    return written


@pytest.mark.parametrize("delete_delay_ms", [60_000, 5_000])
@pytest.mark.parametrize("version", releases_of("daemon"))
def test_a17_every_deletion_beside_a_running_broker_is_captured_and_comes_back(
    version: str, delete_delay_ms: int, make_rig: Callable[[str], Rig], tmp_path: Path, record_proof: Recorder
) -> None:
    properties = {**PROPERTIES, "log.segment.delete.delay.ms": str(delete_delay_ms)}
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3, properties=properties)
        broker.start()
        with beside(broker, tmp_path / "logdird") as daemon:
            ids = make_topics(rig)
            written = fill(rig, broker)
            expected = {f"{topic_id}_{p}" for topic_id in ids.values() for p in range(PARTITIONS)}
            with loaded(rig, tmp_path) as load:
                hit = delete_all(rig, broker, daemon, list(ids), load, is_restart_allowed=delete_delay_ms >= 20_000)
                await_true("the broker removed all of them", lambda: not deleted(broker), timeout_seconds=180)
            assert broker.is_running
            assert staged_names(broker) == expected
            status = daemon.status()
            assert (status.missed, status.broker_runs) == (0, True)
            if delete_delay_ms >= 20_000:  # At 5 s a look is late after 2.5 s, and a worker stands still for 1.5 s.
                assert status.gaps == 0
            assert all(hit.values()), hit
            assert rig.client.consume("stays").records == load.written

            # Topics are created again, and get their files back by requests to the daemon.
            for topic in CHOSEN:
                rig.client.create_on(topic, [[1]] * PARTITIONS)
                await_in_sync(rig, topic, [1])
            stop(broker)
            for topic in CHOSEN:
                words = ["staged", "adopt", ids[topic], "--as", topic, "--config", daemon.config]
                plan = ctl(*words)
                assert plan.status == Exit.DONE, plan
                done = ctl(*words, "--apply")
                assert done.status == Exit.DONE, done
            broker.start()
            for topic in CHOSEN:
                await_in_sync(rig, topic, [1])
            for (topic, partition, isolation), before in written.items():
                assert rig.client.digest(topic, partition, isolation=isolation) == before, (topic, partition)
            last = written[CHOSEN[0], 1, "read_uncommitted"].end
            assert rig.client.produce_rich(CHOSEN[0], 1, records=5) == last + 4
    record_proof(DAEMON_DELETIONS, {"topics": len(ids), "replicas captured": len(expected), **hit})


@contextmanager
def loaded(rig: Rig, folder: Path) -> Iterator[Load]:
    load = Load(rig, folder)
    try:
        yield load
    finally:
        load.end()


def delete_all(
    rig: Rig, broker: Broker, daemon: Process, topics: list[str], load: Load, *, is_restart_allowed: bool
) -> dict[str, int]:
    """Delete the topics, the last by the stock tool, while the daemon is held up; return how often that hit a capture.

    Args:
        rig: Its client deletes.
        broker: The broker.
        daemon: The daemon beside it.
        topics: What is deleted.
        load: Writes on.
        is_restart_allowed: Whether the broker's delete delay allows a restart of the daemon.
    """
    hit = {"dropped events": 0, "late workers": 0}
    took = 0.0
    for number, topic in enumerate(topics[:-1]):
        if number == len(topics) // 4:
            for pid in daemon.watches():
                os.kill(pid, signal.SIGKILL)  # Of what is renamed until the next sweep nobody hears.
            hit["dropped events"] = 1
        if number == len(topics) // 2:
            worker = next(pid for pid in daemon.children() if pid not in daemon.watches())
            os.kill(worker, signal.SIGSTOP)
            threading.Timer(1.5, resume, (worker,)).start()
            hit["late workers"] = 1
        if number == 3 * len(topics) // 4 and is_restart_allowed:
            daemon.stop(signal.SIGKILL)
            threading.Timer(DOWN_S, daemon.start, kwargs={"is_awaited": False}).start()
        began = time.monotonic()
        rig.client.delete(topic)
        took += time.monotonic() - began
        if number % 10 == 0:
            load.write()
    bootstrap = ("--bootstrap-server", broker.address)
    broker.tool("org.apache.kafka.tools.TopicCommand", *bootstrap, "--delete", "--topic", topics[-1])
    hit["ms to delete them"] = round(took * 1000)
    if is_restart_allowed:
        await_true("the daemon runs again", lambda: daemon.state() == "RUNNING", timeout_seconds=60)
        await_true("it captures what it finds", lambda: daemon.status().captured > 0)
        hit["captures after a start"] = daemon.status().captured
    return hit


def test_a_time_without_a_daemon_that_is_too_long_is_counted_and_named(
    make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    properties = {**PROPERTIES, "log.segment.delete.delay.ms": "5000"}
    with make_rig(releases_of("daemon")[0]) as rig:
        broker = rig.add_broker(log_dirs=2, properties=properties)
        broker.start()
        with beside(broker, tmp_path / "logdird") as daemon:
            topic_id = rig.client.create_on("lost", [[1]])
            await_in_sync(rig, "lost", [1])
            await_true("the daemon looks", (tmp_path / "logdird" / "state" / "last-look").exists)
            daemon.stop(signal.SIGKILL)
            rig.client.delete("lost")
            await_true(
                "the broker removed it", lambda: not deleted(broker) and not live(broker, "lost"), timeout_seconds=60
            )
            daemon.start()
            await_true("it is counted", lambda: daemon.status().gaps == 1)
            assert "look-too-late" in {problem.slug for problem in daemon.status().waiting}
            assert f"{topic_id}_0" not in staged_names(broker)


def resume(pid: int) -> None:
    with suppress(ProcessLookupError):  # The daemon was killed meanwhile, and the worker with it.
        os.kill(pid, signal.SIGCONT)


def live(broker: Broker, topic: str) -> list[Path]:
    return [path for top in broker.log_dirs for path in top.glob(f"{topic}-*")]
