"""What a metadata log has of a few topics beyond an image: settings, eligible leader replicas, the last known ones.

An image of hundreds of thousands of partitions leaves these out; a command that describes a topic reads the log again
for them, up to the offset at which the image ends. Records of a transaction that is open or aborted do not count.

Not here: which records count (``metadata_log``), how a value is written (``topic_config``), how they are printed
(``formats.stock_output.topic_lines``).

Spec: kafka-formats §8, §9.4 (records 3, 4, 5, 9, 28); KIP-966;
org.apache.kafka.server.config.ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from logdir.cluster.image import Image, Source
from logdir.cluster.metadata_files import MetadataFiles, read_again, reading
from logdir.cluster.metadata_names import newest
from logdir.cluster.metadata_transaction import Transactions
from logdir.errors import FormatError, MalformedFileError, StateError
from logdir.metadata.topic_config import shown
from logdir.wire.metadata_fast import PartitionChangeRow, PartitionRow, Row, TopicRow, read_fast
from logdir.wire.metadata_tables import RecordType

_OF_TOPIC, _OF_BROKER = 2, 4
EVERY_BROKER: Final = ""
"""In place of a node id: settings that hold for all brokers."""
_Nodes = tuple[int, ...]

BROKER_NAMES: Final[Mapping[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""By name of a topic's setting the name under which a broker sets it for its topics. A broker's setting in hours or
minutes (``log.retention.hours``) is not here: Kafka's own tools take it for a default and do not list it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What an image leaves out of one topic. The mappings are not changed any more."""

    configs: Mapping[str, str] = field(default_factory=dict)
    elr: Mapping[int, _Nodes] = field(default_factory=dict)
    """Eligible leader replicas by partition; a partition that is missing has none."""
    last_known_elr: Mapping[int, _Nodes] = field(default_factory=dict)
    """The last known ones by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """Details of the topics that were asked for, and the settings of brokers."""

    topics: Mapping[bytes, Detail]
    """Details by topic id."""
    brokers: Mapping[str, Mapping[str, str]]
    """Settings by node id as text; under ``EVERY_BROKER`` those of all brokers."""


def read_details(image: Image, topic_ids: Collection[bytes]) -> Details | None:
    """Read what an image leaves out of some topics from the metadata log that the image was read from.

    Args:
        image: An image of any source.
        topic_ids: Ids of the topics.

    Returns:
        ``None`` if the image is of another source, or the log cannot be read up to its offset any more.
    """
    if image.source is not Source.METADATA_LOG:
        return None
    with reading(image.origin) as files:
        try:
            return read_again(files, lambda one: _read(one, image, topic_ids))
        except (OSError, FormatError, StateError):
            return None


def configs_of(details: Details, topic_id: bytes, node_id: int, own: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the settings of a topic that are not defaults, as a broker reports them to Kafka's own tools.

    Args:
        details: What ``read_details`` returned for the topic.
        topic_id: Id of the topic.
        node_id: Node id of the broker.
        own: Settings of the broker's own configuration file.
    """
    known = details.topics.get(topic_id)
    found = {} if known is None else dict(known.configs)
    sources = (details.brokers.get(str(node_id), {}), details.brokers.get(EVERY_BROKER, {}), own)
    for name, broker_name in BROKER_NAMES.items():
        for source in sources:
            if broker_name in source:
                found.setdefault(name, source[broker_name].strip())
                break
    return tuple(sorted((name, shown(name, value)) for name, value in found.items()))


def _read(files: MetadataFiles, image: Image, topic_ids: Collection[bytes]) -> Details | None:
    bases = files.bases
    if not bases:
        return None
    snapshot = newest(files.names, bases[0], at_most=image.offset)
    if snapshot is None and bases[0] > 0:
        return None
    gather = _Gather(image.origin, topic_ids)
    start = 0
    if snapshot is not None:
        start = snapshot.offset
        for _, batch in files.snapshot(snapshot.name):
            if not batch.is_control:
                gather.add(read_fast(batch))
    if start < image.offset:
        for batch in files.batches(start):
            if not batch.is_control:
                gather.add((offset, row) for offset, row in read_fast(batch) if start <= offset < image.offset)
            if batch.last_offset + 1 >= image.offset:
                break  # what lies behind it may be damaged
        if files.gap is not None:
            return None
    return gather.details()


class _Gather:
    """Collects the details of a few topics from the rows of a log."""

    def __init__(self, origin: str, topic_ids: Collection[bytes]) -> None:
        self._origin = origin
        self._elr: dict[bytes, dict[int, _Nodes]] = {topic_id: {} for topic_id in topic_ids}
        self._last_known: dict[bytes, dict[int, _Nodes]] = {topic_id: {} for topic_id in topic_ids}
        self._names: dict[bytes, str] = {}
        """Names of all topics by id: settings are recorded by name, and vanish with the topic."""
        self._configs: dict[str, dict[str, str]] = {}
        self._brokers: dict[str, dict[str, str]] = {}
        self._transactions = Transactions(self._apply, self._refuse)

    def details(self) -> Details:
        """Return the details collected so far, without what is in an open transaction."""
        return Details(
            topics={
                topic_id: Detail(
                    configs=self._configs.get(self._names.get(topic_id, ""), {}),
                    elr=self._elr[topic_id],
                    last_known_elr=self._last_known[topic_id],
                )
                for topic_id in self._elr
            },
            brokers=self._brokers,
        )

    def add(self, rows: Iterable[tuple[int, Row]]) -> None:
        """Take in the rows of a record batch; those of an aborted transaction do not count.

        Raises:
            MalformedFileError: a transaction begins in another one, or ends without a begin.
        """
        self._transactions.add(rows, 0)

    def _refuse(self, expected: str, found: str, offset: int) -> NoReturn:
        raise MalformedFileError(self._origin, expected=expected, found=f"{found} at offset {offset}")

    def _apply(self, row: Row, _: int) -> None:
        if isinstance(row, PartitionRow | PartitionChangeRow):
            if row.topic_id not in self._elr:
                return
            if row.eligible_leader_replicas is not None:
                self._elr[row.topic_id][row.partition] = row.eligible_leader_replicas
            if row.last_known_elr is not None:
                self._last_known[row.topic_id][row.partition] = row.last_known_elr
        elif isinstance(row, TopicRow):
            self._names[row.topic_id] = row.name
        elif row.type == RecordType.CONFIG:
            self._configure(row.fields)
        elif row.type == RecordType.REMOVE_TOPIC:
            self._configs.pop(self._names.pop(row.fields["topicId"], ""), None)
        elif row.type == RecordType.CLEAR_ELR:
            self._clear(row.fields["topicName"])

    def _configure(self, fields: Mapping[str, Any]) -> None:
        by_name = {_OF_TOPIC: self._configs, _OF_BROKER: self._brokers}.get(fields["resourceType"])
        if by_name is None:
            return
        known = by_name.setdefault(fields["resourceName"], {})
        if fields["value"] is None:
            known.pop(fields["name"], None)
        else:
            known[fields["name"]] = fields["value"]

    def _clear(self, name: str) -> None:
        for topic_id, elr in self._elr.items():
            if not name or self._names.get(topic_id) == name:
                elr.clear()
                self._last_known[topic_id].clear()
