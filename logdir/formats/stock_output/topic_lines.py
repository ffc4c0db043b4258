r"""Output of ``kafka-topics --describe``: one line per topic and one per partition, tab-separated, as 4.x prints it.

Not here: reading the cluster metadata (``logdir.cluster``).

Spec: org.apache.kafka.tools.TopicCommand; KIP-516, "Public Interfaces" (``TopicId``); KIP-966 (``Elr``).

>>> part = PartitionText(0, 1, (1, 2), (1,), None, (2,), ())
>>> for line in render(TopicText("plain", None, (("cleanup.policy", "compact"),), (part,))): print(repr(line))
'Topic: plain\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: cleanup.policy=compact'
'\tTopic: plain\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\tElr: 2\tLastKnownElr: '
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from logdir.formats.stock_output.java_map import map_order, text_hash
from logdir.ids import TopicId

_CONFIG_BINS: Final = 64
"""A topic has between 25 and 48 settings; all are in the map, including those that are not printed."""

_FIRST_OF_ITS_BIN: Final = "segment.bytes"
"""Printed before retention.ms, which has the same bin (measured). Other pairs in one bin are sorted by name."""


class Reassignment(NamedTuple):
    """A reassignment in progress: the node ids of the replicas that it adds and removes."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionText(NamedTuple):
    """What one partition's line shows; node ids are in the order in which the cluster lists them."""

    partition: int
    leader: int | None
    """``None``: no leader."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    reassignment: Reassignment | None
    elr: tuple[int, ...] | None
    """Eligible leader replicas; ``None``: not known, printed as ``N/A``."""
    last_known_elr: tuple[int, ...] | None


class TopicText(NamedTuple):
    """What the lines of one topic show."""

    name: str
    topic_id: TopicId | None
    configs: tuple[tuple[str, str], ...]
    """Settings that differ from the default, each once."""
    partitions: tuple[PartitionText, ...]
    """All partitions, by number; at least one."""


def render(topic: TopicText, only: frozenset[int] | None = None) -> Iterator[str]:
    """Yield the lines of a topic, without LF.

    Args:
        topic: The topic with all its partitions.
        only: Numbers of the partitions to list; ``None``: all, as the stock tool does.
    """
    first = topic.partitions[0]
    named = sorted(topic.configs, key=lambda pair: (pair[0] != _FIRST_OF_ITS_BIN, pair[0]))
    configs = map_order(named, lambda pair: text_hash(pair[0]), bins=_CONFIG_BINS)
    fields = [f"Topic: {topic.name}"]
    if topic.topic_id is not None and not topic.topic_id.is_zero:
        fields.append(f"TopicId: {topic.topic_id}")
    fields.append(f"PartitionCount: {len(topic.partitions)}")
    fields.append(f"ReplicationFactor: {_replication_factor(first)}")
    fields.append(f"Configs: {','.join(f'{name}={value}' for name, value in configs)}")
    yield "\t".join(fields)
    for one in topic.partitions:
        if only is None or one.partition in only:
            yield _partition(topic.name, one)


def order(topics: Iterable[TopicText]) -> Sequence[TopicText]:
    """Return topics in the order in which the stock tool lists several requested topics."""

    def hash_of(topic: TopicText) -> int:
        return text_hash(topic.name)

    # The stock client copies a map of the default size to one created with one bin per topic.
    return map_order(map_order(sorted(topics, key=lambda topic: topic.name), hash_of), hash_of, bins=1)


def _replication_factor(one: PartitionText) -> int:
    change = one.reassignment
    # While added or removed replicas are still in the list, added ones do not count.
    if change is not None and not {*change.adding, *change.removing}.isdisjoint(one.replicas):
        return len(one.replicas) - len(change.adding)
    return len(one.replicas)


def _partition(topic: str, one: PartitionText) -> str:
    fields = [
        f"\tTopic: {topic}",
        f"Partition: {one.partition}",
        f"Leader: {'none' if one.leader is None else one.leader}",
        f"Replicas: {_nodes(one.replicas)}",
        f"Isr: {_nodes(one.isr)}",
    ]
    if one.reassignment is not None:
        fields.append(f"Adding Replicas: {_nodes(one.reassignment.adding)}")
        fields.append(f"Removing Replicas: {_nodes(one.reassignment.removing)}")
    fields.append(f"Elr: {_nodes(one.elr)}")
    fields.append(f"LastKnownElr: {_nodes(one.last_known_elr)}")
    return "\t".join(fields)


def _nodes(nodes: tuple[int, ...] | None) -> str:
    return "N/A" if nodes is None else ",".join(map(str, nodes))
