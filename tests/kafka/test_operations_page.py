"""docs/operations.md, typed as it stands beside a stock broker: a deleted topic, a full disk, an upgrade of Kafka.

Spec: design §3.3, §8; kafka-behaviour §10.5; attacks A16.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.free_space import LOW_FLOOR, on_any_disk
from tests.kafka.client import Digest
from tests.kafka.daemon_rig import OFTEN, Side, await_captured, beside, staged_names
from tests.kafka.fetch import RELEASES
from tests.kafka.jvm import java_command
from tests.kafka.rig import TOOL_HEAP_MIB, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.undo_rig import await_in_sync, stop
from tests.operations_page import VALUES, section
from tests.tools.ctl import ctl
from tests.typed_page import Host
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

WANTED: Final = "payments"
UNWANTED: Final = "spare"
NEWEST: Final = RELEASES[-1]
PROPERTIES: Final = {
    # No shorter one: the status would name it.
    "log.segment.delete.delay.ms": "20000",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
}
TOOLS: Final = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
}


class Scene(NamedTuple):
    """A broker, and its daemon; the page is typed beside them."""

    rig: Rig
    side: Side
    libs: Path
    """The jars of the tools that are typed."""
    folder: Path

    def make(self, topic: str) -> tuple[str, Digest]:
        """Make a topic and write to it; return its id and what it holds."""
        topic_id = self.rig.client.create_on(topic, [[1]])
        self.rig.client.produce_rich(topic, records=100)
        await_in_sync(self.rig, topic, [1])
        return topic_id, self.rig.client.digest(topic)

    def lose(self, topic: str, topic_id: str) -> None:
        """Delete a topic, and wait until its broker has removed it."""
        self.rig.client.delete(topic)
        await_captured(self.side, topic_id, [[1]])

    def configure(self, more: str) -> None:
        """Add to the configuration of the daemon, and let it read that."""
        daemon = self.side.daemon
        daemon.config.write_text(daemon.config.read_text().replace(LOW_FLOOR, "") + on_any_disk(more))
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)

    def start(self, topic: str) -> None:
        """Start the broker as its unit does with our drop-in: its log dirs are handed over first."""
        said = ctl("handover", "--config", self.side.daemon.config, "--quiet")
        assert said.status == Exit.DONE, said
        self.side.broker.start()
        if topic in self.rig.client.topics():
            await_in_sync(self.rig, topic, [1])

    def host(self, topic: str) -> Host:
        """Return where the page is typed for a topic."""
        broker, daemon = self.side
        values = {
            "CONFIG": daemon.config,
            "SOCKET": daemon.socket,
            "STATE": daemon.folder / "state",
            "PROPERTIES": broker.write_configuration(),
            "SERVER": broker.address,
            "TOPIC": topic,
            "DISK": broker.log_dirs[1],
        }
        actions: dict[str, Callable[[], object]] = {
            "systemctl stop kafka": lambda: stop(broker),
            "systemctl start kafka": lambda: self.start(topic),
        }
        host = Host(self.folder / f"host-{topic}", VALUES, values, actions)
        for name, main_class in TOOLS.items():
            java = java_command(libs=self.libs, root=self.rig.root, heap_mib=TOOL_HEAP_MIB, level="OFF")
            host.add_program(name, *java, main_class)
        return host


@contextmanager
def running(rig: Rig, libs: Path, folder: Path) -> Iterator[Scene]:
    """Start a broker and its daemon; nothing of the daemon is left at the end."""
    broker = rig.add_broker(log_dirs=2, properties=PROPERTIES)
    broker.start()
    with beside(broker, folder / "logdird", more=OFTEN) as daemon:
        yield Scene(rig, Side(broker, daemon), libs, folder)


@pytest.mark.parametrize("version", releases_of("operations"))
def test_a16_a_deleted_topic_comes_back_and_one_that_is_not_wanted_frees_its_space(
    version: str, make_rig: Callable[[str], Rig], jars: Callable[[str], Path], tmp_path: Path
) -> None:
    with make_rig(version) as rig, running(rig, jars(version), tmp_path) as one:
        topic_id, written = one.make(WANTED)
        unwanted_id, _ = one.make(UNWANTED)
        one.lose(WANTED, topic_id)
        one.host(WANTED).type_section(section("A topic was deleted"))
        assert rig.client.digest(WANTED) == written
        assert rig.client.produce_rich(WANTED, records=5) == written.end + 4

        one.lose(UNWANTED, unwanted_id)
        one.configure("staged.min.free: 99\npressure: hold\n")
        broker = one.side.broker
        assert f"{unwanted_id}_0" in staged_names(broker)
        one.host(UNWANTED).type_section(section("A disk is full"))
        await_true("its files are gone", lambda: f"{unwanted_id}_0" not in staged_names(broker))
        assert broker.is_running


@pytest.mark.parametrize("version", releases_of("operations"))
def test_kafka_is_upgraded_beside_the_daemon_and_what_is_staged_comes_back_on_the_new_release(
    version: str, make_rig: Callable[[str], Rig], jars: Callable[[str], Path], tmp_path: Path
) -> None:
    """From the release to the newest; where it is the newest, the broker is started once more."""
    with make_rig(version) as rig, running(rig, jars(version), tmp_path) as one:
        topic_id, written = one.make(WANTED)
        _, stays = one.make("stays")
        one.lose(WANTED, topic_id)
        one.side.broker.install(NEWEST, jars(NEWEST))
        host = one.host(WANTED)
        host.type_section(section("Upgrade Kafka"))
        await_in_sync(rig, "stays", [1])
        assert (one.side.broker.version, rig.client.digest("stays")) == (NEWEST, stays)
        assert staged_names(one.side.broker) == {f"{topic_id}_0"}
        host.type_section(section("A topic was deleted"))
        assert rig.client.digest(WANTED) == written
