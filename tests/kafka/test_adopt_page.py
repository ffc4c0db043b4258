"""docs/undo.md, "Back by adoption", typed on stock brokers: a deleted topic comes back byte for byte (A16, A36).

Spec: design §3.3; kafka-behaviour §10.5, §10.6; attacks A16, A17, A36.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.client import Digest
from tests.kafka.daemon_rig import copied_quorum
from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import await_in_sync, retention_seconds, staged, stop, type_
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "undo.md").read_text("utf-8")
TOPIC: Final = "lost"
TRIMMED: Final = 10
PROPERTIES: Final = {
    # The window in which a deletion can be captured, and retention passes that come soon after a start.
    "log.segment.delete.delay.ms": "10000",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
}
_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def typed(heading: str) -> str:
    """Return all that a part of the section says to type."""
    section = PAGE.partition("\n## Back by adoption\n")[2].partition("\n## ")[0]
    return "".join(_BLOCK.findall(section.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]))


def run(script: str, broker: Broker, **values: str) -> str:
    """Type what a part of the section says; its broker is stopped and started where it says so. Returns the output."""
    settings = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    settings += f"CONFIG={shlex.quote(str(broker.write_configuration()))}\n"
    environ = {**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}
    printed = ""
    for part in filter(None, re.split(r"^(systemctl \w+ kafka)\n", script, flags=re.MULTILINE)):
        if part == "systemctl stop kafka":
            stop(broker)
        elif part == "systemctl start kafka":
            broker.start()
        else:
            command = ["sh", "-euc", settings + part]
            said = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120)
            assert said.returncode == 0, (part, said.stdout, said.stderr)
            printed += said.stdout + said.stderr
    return printed


def digests(rig: Rig) -> tuple[Digest, Digest]:
    return rig.client.digest(TOPIC), rig.client.digest(TOPIC, isolation="read_committed")


def fill(rig: Rig, nodes: list[int]) -> tuple[Digest, Digest]:
    """Make a topic with transactions and a log start; few records, so that its indexes hold nothing (A36)."""
    rig.client.create_on(TOPIC, [nodes])
    rig.client.produce_rich(TOPIC, records=100)
    rig.client.produce_rich(TOPIC, records=20, transactional_id=f"{TOPIC}-yes")
    rig.client.produce_rich(TOPIC, records=20, transactional_id=f"{TOPIC}-no", commit=False)
    assert rig.client.trim(TOPIC, 0, TRIMMED) == TRIMMED
    await_in_sync(rig, TOPIC, nodes)
    written = digests(rig)
    assert (written[0].begin, written[0].records, written[1].records) == (TRIMMED, 130, 110)
    return written


def replicas(rig: Rig, nodes: list[int]) -> list[Path]:
    """Return the live directories of the topic."""
    found = [d / f"{TOPIC}-0" for b in rig.brokers if b.node_id in nodes for d in b.log_dirs]
    return [path for path in found if path.is_dir()]


def segments(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.log")}


def lose(rig: Rig, nodes: list[int]) -> dict[str, bytes]:
    """Delete the topic, capture it by command on its running brokers, await their removal; return its segments."""
    brokers = [broker for broker in rig.brokers if broker.node_id in nodes]
    for broker in brokers:
        assert type_(broker, "init", "--apply").status == Exit.DONE
    rig.client.delete(TOPIC)

    def deleted() -> list[Path]:
        return [path for b in brokers for d in b.log_dirs for path in d.glob(f"{TOPIC}-0.*-delete")]

    await_true("every replica is renamed", lambda: len(deleted()) == len(nodes), timeout_seconds=10)
    files = segments(deleted()[0])
    for broker in brokers:
        said = type_(broker, "capture", TOPIC, "--apply")
        assert said.status == Exit.DONE, said
    await_true("their brokers removed them", lambda: not deleted(), timeout_seconds=90)
    assert all(broker.is_running for broker in brokers)
    assert sum(map(len, files.values())) > 0
    return files


def old_id(broker: Broker) -> str:
    """Return the id of what was captured, as ``staged ls`` prints it."""
    (name,) = {path.rpartition("/deleting/")[2].partition("/")[0] for path in staged(broker) if "/deleting/" in path}
    return name.rpartition("_")[0]


def again(rig: Rig, nodes: list[int]) -> None:
    """Create the topic again, and write what will be replaced."""
    rig.client.create_on(TOPIC, [nodes])
    await_in_sync(rig, TOPIC, nodes)
    rig.client.produce(TOPIC, records=3)


def trim_again(rig: Rig, said: str, written: tuple[Digest, Digest]) -> None:
    """Delete again what came back with the log start that its broker had forgotten, as the page says."""
    assert f"the log start offset is not known for {TOPIC}-0" in said
    found = digests(rig)
    assert (found[0].begin, found[0].end, found[0].records) == (0, written[0].end, written[0].records + TRIMMED)
    assert rig.client.trim(TOPIC, 0, TRIMMED) == TRIMMED
    assert digests(rig) == written


@pytest.mark.parametrize("version", releases_of("adopted"))
def test_a16_a36_a_deleted_topic_of_one_replica_comes_back_by_the_page(
    version: str, make_rig: Callable[[str], Rig]
) -> None:
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3, properties=PROPERTIES)
        broker.start()
        written = fill(rig, [1])
        files = lose(rig, [1])
        again(rig, [1])
        said = run(typed("Replication factor 1"), broker, TOPIC=TOPIC, OLD=old_id(broker), QUORUM="")
        assert "its records up to offset 3 are replaced" in said
        trim_again(rig, said, written)
        (live,) = replicas(rig, [1])
        assert segments(live) == files
        for _ in range(2):
            time.sleep(retention_seconds(version))
            assert digests(rig) == written
            stop(broker)
            broker.start()
        assert digests(rig) == written
        assert rig.client.produce_rich(TOPIC, records=5) == written[0].end + 4


@pytest.mark.parametrize("version", releases_of("both adopted"))
def test_a16_a_deleted_topic_of_two_replicas_comes_back_by_the_page(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    with make_rig(version) as rig:
        for _ in range(2):
            rig.add_broker(log_dirs=2, properties=PROPERTIES).start()
        one, two = rig.brokers
        written = fill(rig, [1, 2])
        files = lose(rig, [1, 2])
        again(rig, [1, 2])
        old = old_id(one)
        stop(two)
        quorum = copied_quorum(rig, tmp_path / "quorum")  # broker 1 is the only controller
        stop(one)
        listings = {one: tmp_path / "one.json", two: tmp_path / "two.json"}
        quorums = {one: "", two: quorum}
        for broker, listing in listings.items():
            script = typed("Above 1: on each broker, once it is stopped")
            run(script, broker, OLD=old, QUORUM=quorums[broker], LISTING=str(listing))
        for broker, other in ((one, two), (two, one)):
            script = typed("Above 1: on each broker, once the listings are copied")
            said = run(script, broker, TOPIC=TOPIC, OLD=old, QUORUM=quorums[broker], OTHER=str(listings[other]))
            assert "stop brokers 2, 1 in this order" in said
            assert "start them as 1, 2" in said
        assert [segments(path) for path in replicas(rig, [1, 2])] == [files, files]
        for number in range(2):
            one.start()
            two.start()
            await_in_sync(rig, TOPIC, [1, 2])
            if number == 0:
                trim_again(rig, said, written)
            assert digests(rig) == written
            time.sleep(retention_seconds(version))
            stop(two)
            stop(one)
        one.start()
        two.start()
        await_in_sync(rig, TOPIC, [1, 2])
        assert digests(rig) == written
        assert rig.client.produce_rich(TOPIC, records=5) == written[0].end + 4


def test_the_section_sets_what_its_commands_use() -> None:
    section = PAGE.partition("\n## Back by adoption\n")[2].partition("\n## ")[0]
    settings, *rest = _BLOCK.findall(section)
    names = set(re.findall(r"^([A-Z]+)=", settings, re.MULTILINE))
    assert set(re.findall(r"\$\{?([A-Z]+)", "".join(rest))) == names
    assert len(rest) == 3
