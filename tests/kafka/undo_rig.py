"""What the tests of undoing share: a broker filled and stopped, its replicas staged, what lies staged.

Not here: what should come of it (the tests).

Spec: design §3.3; attacks A47, A48.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.kafka.client import Digest
from tests.kafka.rig import CLEAN_EXIT, Broker, Rig, await_true
from tests.tools.ctl import Said, ctl, tree
from tools.cli.arguments import Exit

RECORDS: Final = 100
QUICK: Final = {
    # What a broker deletes is erased soon, and retention passes come soon after a start.
    "log.segment.delete.delay.ms": "1000",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
}


def knows_strays(version: str) -> bool:
    """Whether a broker keeps what it does not know as ``-stray``; older ones erase it (kafka-behaviour §10.4)."""
    return tuple(map(int, version.split(".")))[:2] >= (3, 7)


def retention_seconds(version: str) -> int:
    """After so long a broker has looked for what is too old: 30 s after its start, up to 3.7 whatever it is told."""
    return 34 if version.startswith(("3.6.", "3.7.")) else 4


def words(broker: Broker) -> tuple[str, str]:
    """Return how a command names this broker."""
    return "--server-properties", str(broker.write_configuration())


def type_(broker: Broker, *argv: object) -> Said:
    """Type a command for this broker."""
    return ctl(*argv, *words(broker))


def filled(rig: Rig, topics: dict[str, list[int]]) -> dict[str, Digest]:
    """Make topics of one partition on the nodes given; return all that was written to each."""
    for topic, nodes in topics.items():
        rig.client.create_on(topic, [nodes])
        rig.client.produce_rich(topic, records=RECORDS)
    for topic, nodes in topics.items():
        await_in_sync(rig, topic, nodes)
    found = {topic: rig.client.digest(topic) for topic in topics}
    assert {one.records for one in found.values()} == {RECORDS}
    return found


def await_in_sync(rig: Rig, topic: str, nodes: list[int]) -> None:
    """Wait until these nodes have all of a topic. Blocks."""
    await_true(f"{topic} in sync on {nodes}", lambda: sorted(rig.client.in_sync(topic, 0)) == sorted(nodes))


def stop(broker: Broker) -> None:
    """Stop a broker in order. Blocks."""
    assert broker.stop() == CLEAN_EXIT


def stage(broker: Broker, topic: str, *more: str) -> None:
    """Stage a topic on a stopped broker, however much of it that is."""
    said = type_(broker, "stage", topic, "--even-over-limit", *more, "--apply")
    assert said.status == Exit.DONE, said


def work_roots(broker: Broker) -> list[Path]:
    """Return the work root of every log dir."""
    return [path for top in broker.log_dirs for path in (Path(f"{top}.logdird"),) if path.is_dir()]


def staged(broker: Broker) -> dict[str, tuple[object, ...]]:
    """Return everything that lies staged: bytes, modes, owners and times of change."""
    return tree(*(root / "deleting" for root in work_roots(broker)))


def everything(broker: Broker) -> dict[str, tuple[object, ...]]:
    """Return everything in the log dirs, and everything staged."""
    return tree(*broker.log_dirs) | staged(broker)


def live(broker: Broker, topic: str) -> list[Path]:
    """Return the directories that begin with the name of the topic's first partition."""
    return [path for top in broker.log_dirs for path in top.glob(f"{topic}-0*")]
