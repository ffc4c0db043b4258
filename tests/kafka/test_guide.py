"""The guide of ``staged restore``, typed as it stands beside a stock broker: a deleted topic comes back whole (A16).

Spec: design §3.3; kafka-behaviour §10.5, §10.6; attacks A16, A36.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kafka.client import Digest
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import retention_seconds, stop, type_, words
from tests.tools.ctl import ctl, ctl_json
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

TOPIC: Final = "lost"
PARTITIONS: Final = 3
RECORDS: Final = 100
PROPERTIES: Final = {
    "log.segment.delete.delay.ms": "10000",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
}
OLD_MS: Final = "5000"
"""Older records are deleted by the defaults of the broker, once it has stopped."""
TOOLS: Final[Mapping[str, tuple[str, str]]] = {
    "kafka-topics.sh": ("kafka.admin.TopicCommand", "org.apache.kafka.tools.TopicCommand"),
    "kafka-get-offsets.sh": ("kafka.tools.GetOffsetShell", "org.apache.kafka.tools.GetOffsetShell"),
}
"""The classes behind the stock scripts: of 3.6, and of later releases."""


def run(broker: Broker, command: str) -> str:
    """Do what a command of the guide says; return what it prints."""
    name, *argv = shlex.split(command)
    if (name, *argv) == ("systemctl", "stop", "kafka"):
        stop(broker)
        broker.properties["log.retention.ms"] = OLD_MS
        return ""
    if (name, *argv) == ("systemctl", "start", "kafka"):
        broker.start()
        return ""
    if name == "logdirctl":
        said = ctl(*argv)
        assert said.status == Exit.DONE, (command, said)
        return said.out
    old, new = TOOLS[name]
    return broker.tool(old if broker.version.startswith("3.6.") else new, *argv)


def digests(rig: Rig) -> list[Digest]:
    return [rig.client.digest(TOPIC, number) for number in range(PARTITIONS)]


def live(broker: Broker) -> int:
    return sum(1 for d in broker.log_dirs for _ in d.glob(f"{TOPIC}-?"))


def lose(rig: Rig, broker: Broker) -> None:
    """Delete the topic, capture it by command beside the running broker, and await its removal."""

    def deleted() -> list[Path]:
        return [path for d in broker.log_dirs for path in d.glob(f"{TOPIC}-?.*-delete")]

    assert type_(broker, "init", "--apply").status == Exit.DONE
    rig.client.delete(TOPIC)
    await_true("every replica is renamed", lambda: len(deleted()) == PARTITIONS, timeout_seconds=10)
    assert type_(broker, "capture", TOPIC, "--apply").status == Exit.DONE
    await_true("its broker removed them", lambda: not deleted(), timeout_seconds=90)


def guide_of(broker: Broker) -> dict[str, Any]:
    """Ask for the guide, all of whose commands can be typed as they stand."""
    status, plan = ctl_json("staged", "restore", TOPIC, *words(broker))
    assert status == Exit.REFUSED
    assert not any("$QUORUM" in (line["command"] or "") for line in plan["guide"]), plan
    return plan


@pytest.mark.parametrize("version", releases_of("guided"))
def test_a16_a36_a_deleted_topic_comes_back_by_the_commands_of_the_guide(
    version: str, make_rig: Callable[[str], Rig]
) -> None:
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=2, properties=PROPERTIES)
        broker.start()
        rig.client.create_on(TOPIC, [[1]] * PARTITIONS)
        await_true("each has its replica", lambda: live(broker) == PARTITIONS)
        for number in range(PARTITIONS):
            rig.client.produce_rich(TOPIC, number, records=RECORDS + number)
        written = digests(rig)
        assert [one.records for one in written] == [100, 101, 102]
        lose(rig, broker)

        plan = guide_of(broker)
        printed: dict[str, str] = {}
        for line in plan["guide"]:
            if line["command"] is None:
                continue
            printed[line["text"]] = run(broker, line["command"])
            if " --create " in line["command"]:
                await_true("the broker made its replicas", lambda: live(broker) == PARTITIONS)
        offsets = [(text, said) for text, said in printed.items() if text.startswith("This must print")]
        assert len(offsets) == 2
        for text, said in offsets:
            assert set(re.findall(rf"{TOPIC}:\d+:\d+", text)) == set(said.split()), (text, said)
        assert digests(rig) == written
        time.sleep(retention_seconds(version))
        assert digests(rig) == written
        assert rig.client.produce_rich(TOPIC, records=5) == written[0].end + 4
