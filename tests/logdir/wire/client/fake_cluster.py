"""Fake brokers of one cluster on loopback: each says of topic ids what a test tells it to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from logdir.ids import TopicId
from tests.logdir.wire.client.fake_broker import FakeBroker, Talk

GONE, HIDDEN = 100, 29


class Present(NamedTuple):
    """A topic that a broker knows: replicas and ISR of each partition."""

    name: str
    partitions: Mapping[int, tuple[tuple[int, ...], tuple[int, ...]]]


Said = Present | int
"""A topic, or an error number."""


@dataclass
class FakeCluster:
    """Brokers by node id."""

    properties: Path
    cluster_id: str
    brokers: dict[int, FakeBroker] = field(default_factory=dict)
    said: dict[int, dict[str, Said]] = field(default_factory=dict)
    """By node id and topic id; what is left out is gone."""
    cluster_ids: dict[int, str] = field(default_factory=dict)
    """Of brokers whose answers about topics name another cluster."""
    listed: tuple[int, ...] = ()
    """Node ids that DescribeCluster lists."""
    quorum: tuple[int, int] = (100, 1)
    """High watermark and leader epoch."""

    @property
    def uri(self) -> str:
        return f"cluster:{self.properties}"

    def asked(self, node_id: int) -> int:
        """Return how many questions about topics a broker got."""
        return sum(name == "Metadata" for name, _, _ in self.brokers[node_id].asked)

    def describe(self, talk: Talk) -> None:
        brokers = [
            {"brokerId": one, "host": "127.0.0.1", "port": self.brokers[one].port, "rack": None, "isFenced": False}
            for one in self.listed
        ]
        if talk.version < 2:
            for one in brokers:
                one.pop("isFenced")
        talk.answer({"clusterId": self.cluster_id, "controllerId": self.listed[0], "brokers": tuple(brokers)})

    def describe_quorum(self, talk: Talk) -> None:
        watermark, epoch = self.quorum
        part = {
            "partitionIndex": 0, "errorCode": 0, "leaderId": 1, "leaderEpoch": epoch, "highWatermark": watermark,
            "currentVoters": (), "observers": (),
        }  # fmt: skip
        if talk.version > 1:
            part["errorMessage"] = None
        talk.answer({"topics": ({"topicName": "__cluster_metadata", "partitions": (part,)},)})

    def metadata(self, node_id: int, talk: Talk) -> None:
        said = self.said.get(node_id, {})
        topics = []
        for one in talk.body["topics"]:
            topic_id = str(TopicId(one["topicId"]))
            topics.append(_topic(one["topicId"], said.get(topic_id, GONE)))
        talk.answer(
            {"clusterId": self.cluster_ids.get(node_id, self.cluster_id), "brokers": (), "topics": tuple(topics)}
        )


def _topic(topic_id: bytes, said: Said) -> dict[str, Any]:
    is_there = isinstance(said, Present)
    partitions = said.partitions if isinstance(said, Present) else {}
    return {
        "errorCode": 0 if isinstance(said, Present) else said,
        "name": said.name if isinstance(said, Present) else None,
        "topicId": topic_id, "isInternal": False, "topicAuthorizedOperations": -(2**31) if is_there else 0,
        "partitions": tuple(
            {
                "errorCode": 0, "partitionIndex": number, "leaderId": isr[0] if isr else -1, "leaderEpoch": 7,
                "replicaNodes": replicas, "isrNodes": isr, "offlineReplicas": (),
            }
            for number, (replicas, isr) in partitions.items()
        ),
    }  # fmt: skip


@contextmanager
def fake_cluster(folder: Path, cluster_id: str, nodes: Sequence[int] = (2, 3)) -> Iterator[FakeCluster]:
    """Run fake brokers, and write the client properties file that names the first."""
    made = FakeCluster(properties=folder / "client.properties", cluster_id=cluster_id, listed=tuple(nodes))
    with ExitStack() as stack:
        for node_id in nodes:

            def metadata(talk: Talk, node_id: int = node_id) -> None:
                made.metadata(node_id, talk)

            replies = {
                "DescribeCluster": made.describe, "Metadata": metadata, "DescribeQuorum": made.describe_quorum,
            }  # fmt: skip
            made.brokers[node_id] = stack.enter_context(FakeBroker(replies))
        first = made.brokers[nodes[0]]
        made.properties.write_text(f"bootstrap.servers={first.address}\nrequest.timeout.ms=5000\n")
        yield made
