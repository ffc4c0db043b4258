"""The daemon beside a running stock broker: each deletion is captured, and what was deleted comes back (A16, A17, A49).

Spec: design §3.3, §5; kafka-behaviour §3.2, §10.5; attacks A16, A17, A36.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.client import Digest
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import await_in_sync, stop
from tests.logdir.daemon.rig import Process
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

TOPICS: Final = 30
PARTITIONS: Final = 4
CHOSEN: Final = "topic-07"
PROPERTIES: Final = {
    # Short enough that a directory which is not seen at once is lost, and deletions are done soon.
    "log.segment.delete.delay.ms": "5000",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "num.partitions": "1",
}


@contextmanager
def beside(broker: Broker, folder: Path) -> Iterator[Process]:
    """Run a daemon beside a broker; nothing of it is left at the end."""
    configuration = broker.write_configuration()
    assert ctl("init", "--server-properties", configuration, "--apply").status == Exit.DONE
    folder.mkdir()
    config = folder / "b1.yaml"
    config.write_text(f"server.properties: {configuration}\nstate.dir: state\nsocket: s.sock\n")
    with Process(config).running() as daemon:
        yield daemon


def deleted(broker: Broker) -> list[Path]:
    return [path for top in broker.log_dirs for path in top.glob("*-delete")]


def staged_names(broker: Broker) -> set[str]:
    return {name for top in broker.log_dirs for name in os.listdir(f"{top}.logdird/deleting")}


@pytest.mark.parametrize("version", releases_of("daemon"))
def test_a17_every_deletion_beside_a_running_broker_is_captured_and_comes_back(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3, properties=PROPERTIES)
        broker.start()
        with beside(broker, tmp_path / "logdird") as daemon:
            ids = {f"topic-{n:02}": rig.client.create_on(f"topic-{n:02}", [[1]] * PARTITIONS) for n in range(TOPICS)}
            written: dict[str, Digest] = {}
            for topic in (CHOSEN, "topic-08"):
                await_in_sync(rig, topic, [1])
                rig.client.produce_rich(topic, records=100)
                written[topic] = rig.client.digest(topic)
            for topic in list(ids)[:-1]:
                rig.client.delete(topic)
            expected = {f"{ids[topic]}_{p}" for topic in list(ids)[:-1] for p in range(PARTITIONS)}
            await_true("the broker removed all of them", lambda: not deleted(broker), timeout_seconds=120)
            assert broker.is_running
            assert staged_names(broker) == expected
            status = daemon.status()
            assert (status.captured, status.missed) == (len(expected), 0)
            assert status.broker_runs is True

            # The last one without any watch: the sweep comes several times within the broker's delay.
            for pid in daemon.watches():
                os.kill(pid, signal.SIGKILL)
            (last,) = set(ids) - {topic for topic in ids if topic != list(ids)[-1]}
            rig.client.delete(last)
            await_true("the broker renamed it", lambda: bool(deleted(broker)))
            await_true("the broker removed it", lambda: not deleted(broker), timeout_seconds=60)
            assert {f"{ids[last]}_{p}" for p in range(PARTITIONS)} <= staged_names(broker)
            assert daemon.status().missed == 0

            # The topic is created again, and gets its files back by a request to the daemon.
            rig.client.create_on(CHOSEN, [[1]] * PARTITIONS)
            await_in_sync(rig, CHOSEN, [1])
            stop(broker)
            words = ["staged", "adopt", ids[CHOSEN], "--as", CHOSEN, "--config", daemon.config]
            plan = ctl(*words)
            assert plan.status == Exit.DONE, plan
            done = ctl(*words, "--apply")
            assert done.status == Exit.DONE, done
            broker.start()
            await_in_sync(rig, CHOSEN, [1])
            assert rig.client.digest(CHOSEN) == written[CHOSEN]
            assert rig.client.produce_rich(CHOSEN, records=5) == written[CHOSEN].end + 4
            assert len(re.findall("replica.captured", daemon.log)) == len(expected) + PARTITIONS
