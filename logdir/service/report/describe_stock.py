"""Describe partitions in the output format of stock tools: ``kafka-log-dirs --describe``, ``kafka-topics --describe``.

The lines are those of the stock tool, so programs that read its output can read ours. The two introductory lines of
``kafka-log-dirs`` are left out.

Not here: the formats (``formats.stock_output.log_dirs_json``, ``formats.stock_output.topic_lines``).

Spec: design §6; kafka-behaviour §5.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from logdir.cluster.image import NO_LEADER, Image, Partition, Source, Topic
from logdir.decide.describe import Listed, choose, one_broker, partitions
from logdir.decide.selector import Selector
from logdir.formats.kafka import java_properties
from logdir.formats.own.inventory import Kind
from logdir.formats.stock_output import log_dirs_json, topic_lines
from logdir.formats.stock_output.log_dirs_json import LogDirLine, PartitionLine
from logdir.formats.stock_output.topic_lines import PartitionText, Reassignment, TopicText
from logdir.ids import TopicId
from logdir.metadata.topic_detail import Details, configs_of
from logdir.observe.facts import LogDirFacts, Replica
from logdir.service.cluster.image_source import Desired
from logdir.service.cluster.read_whole import read_whole
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.text import utf8

_UNUSABLE = frozenset(("symlink", "mount-point", "unreadable"))
_MAX_PROPERTIES = 1 << 20
# Java's String.trim() removes every character up to the blank, including control characters.
_TRIMMED = "".join(map(chr, range(0x21)))


class Lines(NamedTuple):
    """The lines of a stock tool's output."""

    lines: tuple[str, ...]
    found: bool
    """Whether the selector matched anything."""


def log_dirs(
    ports: BrokerPorts, facts: Sequence[LogDirFacts], selector: Selector | None, disks: frozenset[str] | None = None
) -> Lines:
    """Return the line of ``kafka-log-dirs --describe``; reads the ends of future logs.

    Args:
        ports: Ports of the broker.
        facts: Facts of every log dir.
        selector: The partitions; ``None``: all. It leaves out no log dir.
        disks: The log dirs to list; ``None``: all.

    Raises:
        ConfigError: the node id is not known, or log dirs differ in it.
    """
    broker = one_broker(facts, ports.named.node_id)
    served = [
        replica
        for one in facts
        if not one.is_offline
        for replica in one.replicas
        if replica.kind in (Kind.LIVE, Kind.FUTURE) and _UNUSABLE.isdisjoint(replica.problems)
    ]
    chosen = served if selector is None else list(choose(selector, served))
    chosen = [replica for replica in chosen if disks is None or replica.log_dir in disks]
    current = {(replica.ref.topic, replica.ref.partition): replica for replica in served if replica.kind is Kind.LIVE}
    by_dir: dict[str, list[PartitionLine]] = {one.log_dir: [] for one in facts if disks is None or one.log_dir in disks}
    for replica in chosen:
        by_dir[replica.log_dir].append(_line(ports, replica, current))
    # A log dir that is only partly unreadable still answers.
    offline = {one.log_dir for one in facts if one.is_offline}
    lines = [
        LogDirLine(utf8(path), log_dirs_json.OFFLINE if path in offline else None, tuple(listed))
        for path, listed in by_dir.items()
    ]
    return Lines((log_dirs_json.render(broker, lines),), bool(chosen))


def _line(ports: BrokerPorts, replica: Replica, current: Mapping[tuple[str | None, int], Replica]) -> PartitionLine:
    is_future = replica.kind is Kind.FUTURE
    lag = 0  # A high watermark is never beyond the end of its own log.
    if is_future:
        other = current.get((replica.ref.topic, replica.ref.partition))
        ends = None if other is None else (_end_of(ports, other), _end_of(ports, replica))
        lag = log_dirs_json.UNKNOWN_LAG
        if ends is not None and ends[0] is not None and ends[1] is not None:
            lag = ends[0] - ends[1]
    # In the topic-id layout a topic name may be lost; no broker serves that replica, so its id is printed.
    ref = replica.ref
    name = ref.topic if ref.topic is not None else str(ref.topic_id)
    return PartitionLine(name, ref.partition, replica.log_bytes or 0, lag, is_future)


def _end_of(ports: BrokerPorts, replica: Replica) -> int | None:
    return ports.log_end(replica.log_dir, replica.log_dir, replica.path)


def topics(server_properties: str | None, desired: Desired | None, selector: Selector | None) -> Lines:
    """Return the lines of ``kafka-topics --describe``.

    Args:
        server_properties: Path of the broker's configuration, for its own settings; ``None`` if it is not known.
        desired: The cluster metadata, read with topic details; ``None``: there is none, and no line.
        selector: The topics; of a partly selected topic only the selected partitions are listed.

    Raises:
        ConfigError: the broker's configuration cannot be read.
    """
    if desired is None:
        return Lines((), found=False)
    image = desired.image
    every = partitions(image)
    chosen: dict[tuple[str, bytes], list[Listed]] = {}
    for one in every if selector is None else choose(selector, every):
        chosen.setdefault((one.of.name, one.of.topic_id), []).append(one)
    own = _own(server_properties)
    texts = {key: _topic(image, listed[0].of, desired.details, own) for key, listed in chosen.items()}
    only = {texts[key]: frozenset(one.ref.partition for one in listed) for key, listed in chosen.items()}
    ordered = topic_lines.order(texts.values())
    return Lines(tuple(line for text in ordered for line in topic_lines.render(text, only[text])), bool(chosen))


def _own(path: str | None) -> Mapping[str, str]:
    """Return the settings in the broker's configuration file; none if its path is not known."""
    if path is None:
        return {}
    values = java_properties.parse(read_whole(path, _MAX_PROPERTIES), path)
    return {key: text.strip(_TRIMMED) for key, text in values.items()}


def _topic(image: Image, topic: Topic, details: Details | None, own: Mapping[str, str]) -> TopicText:
    settings = Details(topics={}, brokers={}) if details is None else details
    known = settings.topics.get(topic.topic_id)
    return TopicText(
        name=topic.name,
        topic_id=TopicId(topic.topic_id) if any(topic.topic_id) else None,
        configs=configs_of(settings, topic.topic_id, image.node_id, own),
        partitions=tuple(
            _partition(
                image,
                number,
                topic.partitions[number],
                None if known is None else known.elr.get(number, ()),
                None if known is None else known.last_known_elr.get(number, ()),
            )
            for number in sorted(topic.partitions)
        ),
    )


def _partition(
    image: Image, number: int, one: Partition, elr: tuple[int, ...] | None, last_known: tuple[int, ...] | None
) -> PartitionText:
    # A broker does not know the address of an unregistered leader, and prints no leader.
    is_known = one.leader > NO_LEADER and (image.source is not Source.METADATA_LOG or one.leader in image.brokers)
    return PartitionText(
        partition=number,
        leader=one.leader if is_known else None,
        replicas=one.replicas,
        isr=one.isr,
        reassignment=Reassignment(one.adding, one.removing) if one.adding or one.removing else None,
        elr=elr,
        last_known_elr=last_known,
    )
