"""What is captured: a directory that a broker is about to remove, and the replica of which it is the rest.

The topic id comes from ``partition.metadata``, the topic from the directory name, unless Kafka may have cut it: then
the capture is held if the caller does not know the topic.

Not here: the capture (``capture``).

Spec: design §3.3; kafka-behaviour §3.2; attacks A17, A23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from logdir.clock import Instant
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.small_file import read_file
from logdir.disk.kernel.unique_name import is_there
from logdir.disk.record.checkpoints import read_all_entries
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, LogDirError, RefusedError
from logdir.evidence import Absent, Proof, Removed
from logdir.formats.kafka import partition_metadata
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own.replica_marker import Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import DirForm, PartitionDir, WorkDir, parse_partition_dir
from logdir.paths import METADATA_FILE, METADATA_TOPIC
from logdir.reasons import Reason
from logdir.refusal_slug import Why

_LOOK_AGAIN = "it was not captured; logdirctl capture shows what can be captured now"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureItem:
    """A directory that a stock broker is about to remove."""

    name: str
    """Its name at the top of the log dir."""
    delay_ms: int | None
    """Minimum time to keep a ``-delete`` directory; ``None``: held. A ``-stray`` directory is always held."""
    topic: str | None = None
    """Its topic, from the cluster or an earlier scan; needed where Kafka may have cut the name."""
    log_start_seen: int | None = None
    """The log start offset that the checkpoint file had before the broker took the entry out; may be a minute old."""
    tiered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedReplica:
    """The replica of which a captured directory is the rest."""

    item: CaptureItem
    parts: PartitionDir
    topic: str
    topic_id: TopicId | None
    is_topic_sure: bool

    @property
    def place(self) -> WorkDir:
        """Return the parts of its name under ``deleting/``, with the counter 1."""
        topic = None if self.topic_id is not None else self.topic
        return WorkDir(self.topic_id, topic, self.parts.partition, 1, "")

    @property
    def is_deleted(self) -> bool:
        """Whether its broker is deleting it (``-delete``)."""
        return self.parts.form is DirForm.DELETE

    @classmethod
    def of(cls, item: CaptureItem, parts: PartitionDir, source: Directory) -> Self:
        """Return the replica of an open directory.

        Args:
            item: The directory.
            parts: The parts of its name.
            source: The open directory, which holds ``partition.metadata``.

        Raises:
            OSError: the file cannot be read.
        """
        return cls(
            item=item,
            parts=parts,
            topic=item.topic or parts.topic,
            topic_id=_read_id(source),
            is_topic_sure=item.topic is not None or not parts.is_truncated,
        )


def parts_of(open_dir: OpenLogDir, item: CaptureItem) -> PartitionDir:
    """Return the parts of the name of a directory that is to be captured.

    Raises:
        RefusedError: no broker removes such a directory, or its topic is not the one of ``item``.
    """
    path = f"{open_dir.log_dir}/{item.name}"
    parts = parse_partition_dir(item.name)
    if parts is None or parts.form not in (DirForm.DELETE, DirForm.STRAY) or parts.topic == METADATA_TOPIC:
        raise RefusedError(
            path,
            why=Why.CHANGED,
            expected="a -delete or -stray directory of a topic",
            found="a directory of another kind",
            fix=_LOOK_AGAIN,
        )
    if item.topic is not None and not _fits(item.topic, parts):
        expected = f"a directory of topic {item.topic}"
        raise RefusedError(path, why=Why.CHANGED, expected=expected, found=parts.topic, fix=_LOOK_AGAIN)
    return parts


def _fits(topic: str, parts: PartitionDir) -> bool:
    return topic.startswith(parts.topic) if parts.is_truncated else topic == parts.topic


def _read_id(source: Directory) -> TopicId | None:
    path = f"{source.path}/{METADATA_FILE}"
    try:
        data = read_file(source, METADATA_FILE)
        return None if data is None else partition_metadata.parse_stock(data, path).topic_id
    except (FormatError, RefusedError):
        return None


class SharedEntries(NamedTuple):
    """Entries of the checkpoint files for several captures: a file has thousands of entries, and is parsed once."""

    found: Mapping[TopicPartition, Checkpoints]
    """Of each partition that had no live replica on the log dir before the files were read."""

    @classmethod
    def read(cls, open_dir: OpenLogDir, items: Iterable[CaptureItem]) -> Self:
        """Read the checkpoint files; those that are malformed have no entries.

        Raises:
            OSError: a file cannot be read.
        """
        wanted = set()
        for item in items:
            parts = parse_partition_dir(item.name)
            # If the name may be cut, the entries could belong to another topic.
            if parts is not None and (item.topic is not None or not parts.is_truncated):
                partition = TopicPartition(item.topic or parts.topic, parts.partition)
                if not _is_live(open_dir, partition):
                    wanted.add(partition)
        try:
            return cls(read_all_entries(open_dir, wanted) if wanted else {})
        except LogDirError:
            return cls({})

    def of(self, open_dir: OpenLogDir, replica: CapturedReplica) -> Checkpoints:
        """Return the entries of a replica, unless they may belong to a topic of the same name that was created since.

        Raises:
            OSError: the log dir cannot be read.
        """
        if not replica.is_topic_sure:
            return Checkpoints()
        partition = TopicPartition(replica.topic, replica.parts.partition)
        points = self.found.get(partition)
        return Checkpoints() if points is None or _is_live(open_dir, partition) else points


def _is_live(open_dir: OpenLogDir, partition: TopicPartition) -> bool:
    # Entries go by topic name: once a topic is created again, they belong to the new one.
    return is_there(open_dir.top, f"{partition.topic}-{partition.partition}")


def first_marker(
    open_dir: OpenLogDir, replica: CapturedReplica, entries: SharedEntries, now: Callable[[], Instant], inode: int
) -> ReplicaMarker:
    """Return the marker of an unfinished capture: always without a deadline. Raises ``OSError``."""
    instant = now()
    return ReplicaMarker(
        intent=Intent.CAPTURED,
        cluster_id=open_dir.cluster_id,
        node_id=open_dir.node_id,
        directory_id=open_dir.directory_id,
        topic=replica.topic,
        topic_id=replica.topic_id,
        partition=replica.parts.partition,
        birth_inode=inode,
        path=replica.item.name,
        reason=Reason.CAPTURED,
        evidence=(
            Removed(proof=Proof.BROKER_DELETED, as_of_ms=instant.wall_ms)
            if replica.is_deleted
            else Absent(as_of_ms=instant.wall_ms)
        ),
        staged_at_ms=instant.wall_ms,
        delay_ms=None,
        boot_id=instant.boot_id,
        boottime_ms=instant.boottime_ms,
        checkpoints=entries.of(open_dir, replica),
        clean=False,
        tiered=replica.item.tiered,
    )
