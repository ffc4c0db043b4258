"""The daemon beside a running stock broker: each deletion is captured, and what was deleted comes back (A16, A17, A49).

Topics are deleted by the hundred while producers go on, under load of processor and disk; meanwhile the hints of the
kernel are lost, a worker stands still, and the daemon is killed where the broker's delete delay allows a restart. What
each of these hit is counted.

Spec: design §3.3, §5; kafka-behaviour §3.2, §10.5; attacks A16, A17, A36.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from logdir import clock
from tests.kafka.client import Digest
from tests.kafka.daemon_rig import OFTEN, beside, deleted, staged_names
from tests.kafka.deletions import Deletions, most_within, no_hints
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import await_in_sync, stop
from tests.logdir.daemon.rig import Process
from tests.proof.kafka_claims import (
    BY_START,
    DAEMON_DELETIONS,
    DELETE_DELAYS_S,
    LATE,
    OF_MANY_FILES,
    TOO_LONG,
    WITHOUT_HINTS,
    deleted_at,
)
from tests.proof.plugin import Recorder
from tests.proof.sizes import SIZE, Size, count
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1500)]

LOG_DIRS: Final = 3
PARTITIONS: Final = 11
TOPICS: Final = tuple(f"topic-{number:03}" for number in range(count(full=200, ci=20)))
BY_TOOL: Final = TOPICS[-(len(TOPICS) // 20) :]
"""So few that enough are deleted in time by the others, however long the tool takes to start."""
EARLY: Final = tuple(f"early-{number:02}" for number in range(count(full=20, ci=2)))
"""Deleted while no hint can reach the daemon."""
CHOSEN: Final = TOPICS[3:5]
"""These come back."""
MANY_FILES: Final = "many-files"
FULL_DIRECTORIES: Final = 5
"""How many partition directories have so many files."""
FILES: Final = 1000
WRITERS: Final = 2
LEAST_DELETED: Final = 2000
"""Partition directories that are to be deleted within ten seconds, in a run of full size."""
WINDOW_S: Final = 10.0
DOWN_S: Final = 40.0
"""How long no daemon runs, where the broker keeps what it deletes for 60 s: 50 s are allowed, the start among it."""
PROPERTIES: Final = {
    "log.initial.task.delay.ms": "500",
    "log.index.size.max.bytes": "65536",  # a disk of the tests has no room for thousands of indexes of 10 MiB
    "log.retention.check.interval.ms": "1000",
    "num.partitions": "1",
}

_BUSY: Final = """
import os, sys
while True:
    with open(sys.argv[1], "wb") as file:
        for _ in range(64):
            sum(range(100_000))
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
"""


@contextmanager
def loaded(folder: Path) -> Iterator[None]:
    """Keep a processor and the disk busy."""
    busy = subprocess.Popen([sys.executable, "-c", _BUSY, str(folder / "load")])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def make(rig: Rig, *topics: str, **configs: str) -> dict[str, str]:
    """Create topics, with records in every partition; return the id of each."""
    named = {key.replace("_", "."): value for key, value in configs.items()}
    ids = {topic: rig.client.create_on(topic, [[1]] * PARTITIONS, named) for topic in topics}
    assert rig.client.spread(topics, PARTITIONS, records=3) == 3 * PARTITIONS * len(topics)
    return ids


def fill(rig: Rig, broker: Broker) -> dict[tuple[str, int, str], Digest]:
    """Write more to the chosen topics, transactions that were aborted among it, and thousands of files."""
    written = {}
    for topic in CHOSEN:
        await_in_sync(rig, topic, [1])
        for partition in range(PARTITIONS):
            rig.client.produce_rich(topic, partition, records=30)
        rig.client.produce_rich(topic, 0, records=10, transactional_id=topic, commit=False)
        for partition in range(PARTITIONS):
            for isolation in ("read_committed", "read_uncommitted"):
                written[topic, partition, isolation] = rig.client.digest(topic, partition, isolation=isolation)
    while len(with_many_files(broker)) < FULL_DIRECTORIES:
        rig.client.spread([MANY_FILES], FULL_DIRECTORIES, records=50)
    return written


def with_many_files(broker: Broker) -> list[Path]:
    """Return the directories that have a thousand files."""
    found = [path for top in broker.log_dirs for path in top.glob(f"{MANY_FILES}-*")]
    return [path for path in found if len(os.listdir(path)) >= FILES]


def keys(ids: dict[str, str]) -> set[str]:
    """Return the replicas of these topics, as names below ``deleting/``."""
    return {f"{topic_id}_{partition}" for topic_id in ids.values() for partition in range(PARTITIONS)}


@pytest.mark.parametrize("delete_delay_s", DELETE_DELAYS_S)
@pytest.mark.parametrize("version", releases_of("daemon"))
def test_a17_every_deletion_beside_a_running_broker_is_captured_and_comes_back(
    version: str, delete_delay_s: int, make_rig: Callable[[str], Rig], tmp_path: Path, record_proof: Recorder
) -> None:
    properties = {**PROPERTIES, "log.segment.delete.delay.ms": str(delete_delay_s * 1000)}
    is_restarted = delete_delay_s >= 60
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=LOG_DIRS, properties=properties)
        broker.start()
        with beside(broker, tmp_path / "logdird") as daemon:
            early = make(rig, *EARLY)
            rig.client.create_on("stays", [[1]] * WRITERS)
            with no_hints(daemon, LOG_DIRS):
                rig.client.delete(*early)
                # This takes longer than it takes a sweep to come.
                ids = make(rig, *TOPICS) | make(rig, MANY_FILES, segment_ms="1")
                written = fill(rig, broker)
                await_true("a sweep finds what gave no hint", lambda: keys(early) <= staged_names(broker))
                without_hint = keys(early) & staged_names(broker)
            full_directories = len(with_many_files(broker))
            await_true("the watches are back", lambda: len(daemon.watches()) == LOG_DIRS, timeout_seconds=60)

            with loaded(tmp_path):
                rig.client.begin_writing("stays", WRITERS)
                await_true("the producers write", lambda: rig.client.acknowledged() > 0)
                before = rig.client.acknowledged()
                by_client = [topic for topic in ids if topic not in BY_TOOL]
                deletions = Deletions(rig, broker, daemon, ids | early)
                gone = deletions.run(by_client, BY_TOOL, PARTITIONS, down_s=DOWN_S if is_restarted else None)
                meanwhile = rig.client.acknowledged() - before
                await_true("the broker removed all of them", lambda: not deleted(broker), timeout_seconds=180)
                acknowledged = rig.client.end_writing()
            assert broker.is_running
            expected = keys(ids | early)
            # What is linked the broker cannot take away: it is made durable when the worst is over.
            await_true("all of them are captured", lambda: staged_names(broker) == expected, timeout_seconds=60)
            status = daemon.status()
            assert (status.missed, status.broker_runs) == (0, True)
            if is_restarted:  # At 5 s a look is late after 2.5 s, and a worker stands still for 1.5 s.
                assert status.gaps == 0
            assert sum(call.directories for call in gone.calls) == len(keys(ids))
            within = most_within(gone.calls, WINDOW_S)
            if SIZE is Size.FULL:
                assert within >= LEAST_DELETED, f"the rig is too slow: {within} directories deleted within {WINDOW_S} s"
            hit = {WITHOUT_HINTS: len(without_hint), LATE: len(gone.late & staged_names(broker))}
            if is_restarted:
                hit[BY_START] = len(gone.by_start & staged_names(broker))
            assert all(hit.values()), hit
            assert meanwhile > 0
            for partition, one in enumerate(acknowledged):
                found = rig.client.consume("stays", partition)
                assert (found.records, found.crc32) == (one.records, one.crc32), partition

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
            for (topic, partition, isolation), was in written.items():
                assert rig.client.digest(topic, partition, isolation=isolation) == was, (topic, partition)
            last = written[CHOSEN[0], 1, "read_uncommitted"].end
            assert rig.client.produce_rich(CHOSEN[0], 1, records=5) == last + 4
    counts = deleted_at(delete_delay_s, topics=len(ids) + len(early), directories=len(expected))
    counts |= {"records acknowledged meanwhile": meanwhile, OF_MANY_FILES: full_directories, **hit}
    record_proof(
        DAEMON_DELETIONS, counts, least={f"partition directories deleted within {WINDOW_S:.0f} s": float(within)}
    )


@pytest.mark.parametrize("version", releases_of("daemon"))
def test_a_time_without_a_daemon_that_is_too_long_is_counted_and_named(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path, record_proof: Recorder
) -> None:
    """Counted is a time that leaves less than 10 s of the broker's delete delay of 20 s, and no shorter one."""
    allowed_ms = 10_000
    properties = {**PROPERTIES, "log.segment.delete.delay.ms": "20000"}
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=2, properties=properties)
        broker.start()
        with beside(broker, tmp_path / "logdird", more=OFTEN) as daemon:
            topic_id = rig.client.create_on("lost", [[1]])
            await_in_sync(rig, "lost", [1])
            state = tmp_path / "logdird" / "state"
            await_true("the daemon looks", (state / "last-look").exists)

            too_slow = 0  # On a busy machine a restart may itself take too long.
            while (took_ms := restarted(daemon, state)) > allowed_ms:
                too_slow += 1
                assert (daemon.status().gaps, too_slow < 4) == (too_slow, True), took_ms
            said = ctl("status", "--config", daemon.config)
            assert (daemon.status().gaps, "look-too-late" in said.err) == (too_slow, False), said

            before = killed(daemon, state)
            rig.client.delete("lost")
            if SIZE is Size.FULL:
                await_true(
                    "the broker removed it",
                    lambda: not deleted(broker) and not live(broker, "lost"),
                    timeout_seconds=60,
                )
            else:  # Then it is captured after all: this is as much a gap, and takes half as long.
                await_true("no look came in time", lambda: clock.boottime_ms() - before > allowed_ms)
            daemon.start()
            assert next_look(state, before) - before > allowed_ms
            said = ctl("status", "--config", daemon.config)
            assert daemon.status().gaps == too_slow + 1
            assert f"\n{gaps(too_slow + 1)} without a look for deletions since " in said.out
            assert "expected a look for deletions every 10 s: the broker keeps them 20 s, found none from " in said.err
            if SIZE is Size.FULL:
                assert f"{topic_id}_0" not in staged_names(broker)

            # A restart after it does not forget it.
            counted = too_slow + 1 + (restarted(daemon, state) > allowed_ms)
            said = ctl("status", "--config", daemon.config)
            assert f"\n{gaps(counted)} without a look for deletions since " in said.out
    record_proof(DAEMON_DELETIONS, {TOO_LONG: 1})


def gaps(number: int) -> str:
    return "1 gap" if number == 1 else f"{number} gaps"


def look_of(state: Path) -> int:
    """Return when the daemon last looked, by the boot-time clock."""
    return int((state / "last-look").read_text().split()[1])


def next_look(state: Path, before: int) -> int:
    """Return when the daemon first looks after an instant. Blocks."""
    await_true("the daemon looks again", lambda: look_of(state) > before)
    return look_of(state)


def restarted(daemon: Process, state: Path) -> int:
    """Kill a daemon and start it again; return the time between its two looks, in milliseconds."""
    before = killed(daemon, state)
    daemon.start()
    return next_look(state, before) - before


def killed(daemon: Process, state: Path) -> int:
    """Kill a daemon right after a look; return when that was."""
    next_look(state, look_of(state))
    daemon.stop(signal.SIGKILL)
    return look_of(state)


def live(broker: Broker, topic: str) -> list[Path]:
    return [path for top in broker.log_dirs for path in top.glob(f"{topic}-*")]
