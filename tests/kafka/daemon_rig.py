"""A daemon beside a stock broker: a topic is filled, deleted, captured, and adopted once it was created again.

Not here: brokers (``rig``), a daemon without one (``tests.logdir.daemon.rig``).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.free_space import on_any_disk
from tests.kafka.client import Digest
from tests.kafka.no_rights import require_no_rights_in_proof
from tests.kafka.rig import Broker, Rig, await_true
from tests.logdir.daemon.rig import Process
from tests.tools.ctl import Said, ctl
from tools.cli.arguments import Exit

TRIMMED: Final = 10
"""Where the log of each partition starts that ``fill`` has written to."""
PROPERTIES: Final = {
    "log.segment.delete.delay.ms": "10000",
    "log.initial.task.delay.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
}
OFTEN: Final = "sweep.interval.ms: 500\n"
Told = Mapping[tuple[int, str], Digest]


@contextmanager
def beside(broker: Broker, folder: Path, *, init: tuple[str, ...] = (), more: str = "") -> Iterator[Process]:
    """Run a daemon beside a broker; nothing of it is left at the end.

    Args:
        broker: The broker, which runs; its work roots are made here.
        folder: Made here, for what the daemon writes.
        init: More words of ``logdirctl init``.
        more: More lines of its configuration.
    """
    configuration = broker.write_configuration()
    said = ctl("init", *init, "--server-properties", configuration, "--apply")
    assert said.status == Exit.DONE, said
    folder.mkdir()
    config = folder / "b1.yaml"
    config.write_text(f"server.properties: {configuration}\nstate.dir: state\nsocket: s.sock\n{on_any_disk(more)}")
    with Process(config).running() as daemon:
        assert daemon.process is not None
        require_no_rights_in_proof(broker.pid, daemon.process.pid)
        yield daemon


def deleted(broker: Broker) -> list[Path]:
    """Return the directories that a broker has renamed and will remove."""
    return [path for top in broker.log_dirs for path in top.glob("*-delete")]


def work_root(log_dir: Path) -> Path:
    """Return the work root of a log dir of a stock broker."""
    beside = Path(f"{log_dir}.logdird")
    return beside if beside.is_dir() else log_dir / "__cluster_metadata-2147483647"


def staged_names(broker: Broker) -> set[str]:
    """Return the names under ``deleting/`` in all log dirs of a broker."""
    return {name for top in broker.log_dirs for name in os.listdir(work_root(top) / "deleting")}


class Side(NamedTuple):
    """A broker, and the daemon beside it."""

    broker: Broker
    daemon: Process


def told(rig: Rig, topic: str, partitions: int) -> Told:
    """Return what every partition holds, read committed and uncommitted."""
    return {
        (partition, isolation): rig.client.digest(topic, partition, isolation=isolation)
        for partition in range(partitions)
        for isolation in ("read_uncommitted", "read_committed")
    }


def await_all_in_sync(rig: Rig, topic: str, replicas: Sequence[Sequence[int]]) -> None:
    """Wait until every partition is in sync on its brokers. Blocks."""

    def waiting() -> list[int]:
        return [p for p, nodes in enumerate(replicas) if sorted(rig.client.in_sync(topic, p)) != sorted(nodes)]

    await_true(f"{topic} in sync on {replicas}", lambda: not waiting(), timeout_seconds=60)


def fill(rig: Rig, topic: str, replicas: list[list[int]]) -> tuple[str, Told]:
    """Make a topic, write to each partition, and delete its first records; return its id and what it holds."""
    topic_id = rig.client.create_on(topic, replicas)
    await_all_in_sync(rig, topic, replicas)
    for partition in range(len(replicas)):
        rig.client.produce_rich(topic, partition, records=100)
        rig.client.produce_rich(topic, partition, records=20, transactional_id=f"{topic}-yes")
        rig.client.produce_rich(topic, partition, records=20, transactional_id=f"{topic}-no", commit=False)
        assert rig.client.trim(topic, partition, TRIMMED) == TRIMMED
    await_all_in_sync(rig, topic, replicas)
    return topic_id, told(rig, topic, len(replicas))


def await_log_starts(side: Side, topic: str, replicas: Sequence[Sequence[int]]) -> None:
    """Wait until a broker has written its log starts, and its daemon has looked since. Blocks."""
    broker, daemon = side
    wanted = {f"{topic} {p} {TRIMMED}" for p, nodes in enumerate(replicas) if broker.node_id in nodes}

    def written() -> set[str]:
        files = [top / "log-start-offset-checkpoint" for top in broker.log_dirs]
        return {line for file in files if file.exists() for line in file.read_text().splitlines()}

    await_true("the log starts are written", lambda: wanted <= written())
    before = daemon.status().looked_at_ms
    await_true("the daemon looks again", lambda: daemon.status().looked_at_ms != before)


def await_captured(side: Side, topic_id: str, replicas: Sequence[Sequence[int]]) -> None:
    """Wait until a daemon has every replica of its broker, and the broker has removed them. Blocks."""
    broker, daemon = side
    wanted = {f"{topic_id}_{p}" for p, nodes in enumerate(replicas) if broker.node_id in nodes}
    await_true("all are captured", lambda: wanted <= staged_names(broker))
    await_true("the broker removes them", lambda: not deleted(broker), timeout_seconds=90)
    assert broker.is_running
    assert daemon.status().missed == 0


def typed(daemon: Process, *words: str) -> Said:
    """Type a command that the daemon carries out."""
    said = ctl(*words, "--config", daemon.config)
    assert said.status == Exit.DONE, said
    return said


def adopt(daemon: Process, topic_id: str, topic: str, *more: str) -> Said:
    """Plan an adoption, then carry it out; return the plan."""
    plan = typed(daemon, "staged", "adopt", topic_id, "--as", topic, *more)
    typed(daemon, "staged", "adopt", topic_id, "--as", topic, *more, "--apply")
    return plan


def copied_quorum(rig: Rig, folder: Path) -> str:
    """Copy the controller's log as the page says; return the words that name it and how far it is committed."""
    _, stopped_at = rig.client.quorum()
    # A watermark at the end of the stopped broker's own log may be of before its stop.
    await_true("the quorum wrote on", lambda: rig.client.quorum()[1] > stopped_at)
    epoch, watermark = rig.client.quorum()
    top = rig.brokers[0].log_dirs[0]
    folder.mkdir()
    shutil.copy(top / "meta.properties", folder)
    shutil.copytree(top / "__cluster_metadata-0", folder / "__cluster_metadata-0")
    return f"--from metadata:{folder} --high-watermark {watermark} --leader-epoch {epoch}"
