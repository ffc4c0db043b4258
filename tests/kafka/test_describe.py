"""``logdirctl describe`` prints what stock tools print of the same broker, beside it, line for line.

One of two brokers is killed, so that partitions have a shrunk ISR, eligible leader replicas, or no leader. Topics have
settings of their own, of the cluster, and of the brokers' own files.

Spec: design §6; kafka-behaviour §5.1; KIP-966.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from logdir.formats.stock_output.java_map import map_order, partition_hash
from tests.kafka.fetch import RELEASES
from tests.kafka.rig import Rig, await_true
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = pytest.mark.kafka

OWN = {"log.segment.bytes": "2097152", "log.retention.hours": "100", "log.index.interval.bytes": " 08192 "}


@pytest.fixture(scope="module")
def rig(make_rig: Callable[[str], Rig]) -> Iterator[Rig]:
    """Two brokers of the newest release, of which the second is killed."""
    with make_rig(RELEASES[-1]) as rig:
        for log_dirs in (3, 1):
            rig.add_broker(log_dirs=log_dirs, properties=OWN).start()
        fill(rig)
        rig.brokers[1].kill()
        await_true("the ISR shrank", lambda: rig.client.in_sync("pair", 0) == [1])
        yield rig


def fill(rig: Rig) -> None:
    client = rig.client
    client.create_on("pair", [[1, 2], [2, 1], [1, 2]], {"min.insync.replicas": "2", "cleanup.policy": "compact,delete"})
    client.create_on("on-two-only", [[2]])
    for name in ("plain", "a.b.c", "x-y-3", "under_score-and.dots-1"):
        client.create_on(name, [[1], [1], [1]])
    client.configure_topic("plain", "retention.ms", "86400000")
    client.configure_topic("plain", "segment.bytes", "1048576")
    client.configure_topic("plain", "unclean.leader.election.enable", "true")
    client.configure_topic("a.b.c", "max.message.bytes", "2000000")
    client.unconfigure_topic("a.b.c", "max.message.bytes")
    # A broker keeps them as they are typed, and tells them as it understood them.
    client.configure_topic("x-y-3", "min.cleanable.dirty.ratio", "0.50")
    client.configure_topic("x-y-3", "cleanup.policy", "compact, delete")
    client.configure_topic("x-y-3", "preallocate", "FALSE")
    client.configure_topic("x-y-3", "retention.ms", "086400000")
    client.configure_broker(1, "log.cleaner.min.cleanable.ratio", "0.250")
    client.configure_broker(2, "log.cleaner.min.cleanable.ratio", "0.250")
    for name in ("pair", "plain", "x-y-3"):
        client.produce(name, 1, records=300, value_bytes=100, keys=9)
    client.create("deleted", 2)
    client.delete("deleted")


def committed(rig: Rig) -> tuple[str, ...]:
    """What the quorum says of how far its log is committed, as an operator would pass it on."""
    broker = rig.brokers[0]
    said = broker.tool(
        "org.apache.kafka.tools.MetadataQuorumCommand", "--bootstrap-server", broker.address, "describe", "--status"
    )
    found = dict(re.findall(r"^(\w+):\s+(\S+)$", said, re.MULTILINE))
    return "--high-watermark", found["HighWatermark"], "--leader-epoch", found["LeaderEpoch"]


def stock(rig: Rig, tool: str, *more: str) -> list[str]:
    broker = rig.brokers[0]
    said = broker.tool(f"org.apache.kafka.tools.{tool}", "--bootstrap-server", broker.address, "--describe", *more)
    return said.splitlines()


def described(rig: Rig, *argv: str) -> list[str]:
    properties = rig.root / "n1.properties"
    said = ctl("describe", *argv, "--server-properties", properties)
    assert said.status == Exit.DONE, said
    return said.out.splitlines()


def test_the_lines_of_topics_are_the_stock_tools(rig: Rig) -> None:
    everything = stock(rig, "TopicCommand")
    position = committed(rig)
    assert described(rig, "--kafka-topics", *position) == everything
    assert any(line.startswith("\tTopic: on-two-only\tPartition: 0\tLeader: none\t") for line in everything)
    assert any("Elr: 2" in line for line in everything)
    assert any("segment.bytes=1048576" in line for line in everything)
    (spelled,) = [line for line in everything if line.startswith("Topic: x-y-3\t")]
    for setting in ("dirty.ratio=0.5", "policy=compact,delete", "preallocate=false", "retention.ms=86400000"):
        assert setting in spelled
    for topic in ("plain", "pair"):
        (at,) = [number for number, line in enumerate(everything) if line.startswith(f"Topic: {topic}\t")]
        lines = everything[at : at + 4]
        assert described(rig, topic, "--kafka-topics", *position) == lines
        topic_id = lines[0].split("\t")[1].removeprefix("TopicId: ")
        assert described(rig, topic_id, "--kafka-topics", *position) == lines


def test_the_json_of_log_dirs_is_the_stock_tools(rig: Rig) -> None:
    wanted = stock(rig, "LogDirsCommand", "--broker-list", "1")[-1]
    (got,) = described(rig, "--kafka-json")
    assert len(got) == len(wanted)
    assert in_bins(got) == in_bins(wanted)
    wanted = stock(rig, "LogDirsCommand", "--broker-list", "1", "--topic-list", "plain")[-1]
    assert [in_bins(line) for line in described(rig, "plain", "--kafka-json")] == [in_bins(wanted)]


def in_bins(line: str) -> str:
    """Return the line with those partitions that share a bin of Java's map in the order of their names."""
    value = json.loads(line)
    for log_dir in value["brokers"][0]["logDirs"]:
        rows = log_dir["partitions"]
        ordered = map_order(rows, lambda row: partition_hash(*_parts(row["partition"])))
        assert ordered == rows  # the bins themselves are in order
        log_dir["partitions"] = map_order(
            sorted(rows, key=lambda row: _parts(row["partition"])),
            lambda row: partition_hash(*_parts(row["partition"])),
        )
    return json.dumps(value, separators=(",", ":"))


def _parts(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)
