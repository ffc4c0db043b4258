"""Capture: hard-link a ``-delete`` or ``-stray`` directory before the running broker removes it, without changing it.

The directory is listed, linked file by file into a directory under ``incoming/`` whose marker is already durable, and
listed again. Both listings and the links must agree in names, sizes and inodes, include ``partition.metadata``, and
lack no part of the log. Only then the capture is synced, gets its deadline, and is renamed to ``deleting/``. Otherwise
it stays under ``incoming/`` with its captured marker: *partial*, kept and never restorable.

The topic id comes from ``partition.metadata``, the topic from the directory name, unless Kafka may have cut it: then
the capture is held if the caller does not know the topic. Files are synced singly, as the broker writes meanwhile.

Repeatable: a second capture of a directory continues the first by its inodes, unless that was claimed for removal.

Not here: the choice of directories (``decide.capture``), which capture is continued (``earlier_capture``), operations
on a capture (``adopt``, ``export``, ``purge``).

Spec: design §2 law 4, §3.3; kafka-behaviour §3.2, §10.5; attacks A17, A23, A33; reliability §4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from logdir.clock import Instant
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import calling, is_sick
from logdir.disk.kernel.fanout import for_each
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.small_file import read_file
from logdir.disk.kernel.unique_name import free_name, is_there
from logdir.disk.record.checkpoints import read_entries
from logdir.disk.replica.captured_files import Files, complaint, is_within, look
from logdir.disk.replica.earlier_capture import EarlierCaptures
from logdir.disk.replica.hardlink_dir import drop, link, make_marked
from logdir.disk.replica.outcome import Outcome, Result, done, undone
from logdir.disk.replica.replica_dir import NEW_MARKER, readable_marker, rename
from logdir.disk.replica.staging import as_error, rewrite_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, LogDirError, RefusedError
from logdir.evidence import Absent, Proof, Removed
from logdir.formats.kafka import partition_metadata
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own.replica_marker import FILE_NAME, Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import DirForm, PartitionDir, WorkDir, parse_partition_dir
from logdir.paths import DELETING, INCOMING, METADATA_FILE, METADATA_TOPIC, SEGMENT_SUFFIX
from logdir.reasons import Reason
from logdir.refusal_slug import Why

_ROUNDS = 4
"""How often a changing directory is listed again before its files are kept as a partial capture."""


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
class _Replica:
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


def capture(
    open_dir: OpenLogDir, items: Sequence[CaptureItem], now: Callable[[], Instant], threads: int = 1
) -> list[Outcome]:
    """Capture directories; the owner lock is held, the broker may run.

    Args:
        open_dir: Their log dir.
        items: Directories to capture, each once; those the broker removes first come first.
        now: The clocks; a deadline counts from the instant at which the capture was durable.
        threads: How many directories are captured at a time.

    Returns:
        One outcome per item, in order. Done: ``place`` is under ``deleting/``; undone: nothing is left, or a *partial*
        capture.

    Raises:
        ReadOnlyDiskError: a sync failed or the disk is sick; a second capture shows the state of each.
        OSError: the work root cannot be listed; nothing was captured.
    """
    outcomes: dict[str, Outcome] = {}
    with calling(open_dir.top):
        earlier = EarlierCaptures.of(open_dir)

    def one(item: CaptureItem) -> None:
        try:
            with calling(open_dir.top):
                outcomes[item.name] = _capture(open_dir, item, earlier, now)
        except (LogDirError, OSError) as error:
            outcomes[item.name] = undone(item.name, _ours(open_dir, item, error))

    for_each(items, one, threads)
    return [outcomes[item.name] for item in items]


def _ours(open_dir: OpenLogDir, item: CaptureItem, error: LogDirError | OSError) -> LogDirError:
    return error if isinstance(error, LogDirError) else as_error(f"{open_dir.log_dir}/{item.name}", error)


def _capture(open_dir: OpenLogDir, item: CaptureItem, earlier: EarlierCaptures, now: Callable[[], Instant]) -> Outcome:
    path = f"{open_dir.log_dir}/{item.name}"
    parts = parse_partition_dir(item.name)
    if parts is None or parts.form not in (DirForm.DELETE, DirForm.STRAY) or parts.topic == METADATA_TOPIC:
        raise RefusedError(
            path,
            why=Why.CHANGED,
            expected="a -delete or -stray directory of a topic",
            found="a directory of another kind",
        )
    if item.topic is not None and not _fits(item.topic, parts):
        raise RefusedError(path, why=Why.CHANGED, expected=f"a directory of topic {item.topic}", found=parts.topic)
    with open_dir.top.open(item.name) as source:
        seen = look(source)
        replica = _Replica(
            item=item,
            parts=parts,
            topic=item.topic or parts.topic,
            topic_id=_read_id(source),
            is_topic_sure=item.topic is not None or not parts.is_truncated,
        )
        found = earlier.find(open_dir, item.name, replica.place, seen)
        if found is not None and found.startswith(f"{DELETING}/"):
            # The process that renamed it may have been killed before the rename was durable.
            with syncing(open_dir.deleting):
                open_dir.deleting.sync()
            with syncing(open_dir.incoming):
                open_dir.incoming.sync()
            return done(item.name, found)
        if not any(name.endswith(SEGMENT_SUFFIX) for name in seen):
            raise RefusedError(
                path,
                why=Why.NO_SEGMENTS,
                expected="segments",
                found="no segment: it is empty, or all but removed by its broker",
                fix="there is nothing to keep",
            )
        name = found or make_marked(open_dir, replica.place, lambda inode: _marker(open_dir, replica, inode, now()))
        with open_dir.incoming.open(name) as target:
            try:
                begun = readable_marker(target)
                problem = _link_all(open_dir, source, seen, target, replica, begun)
                if problem is None:
                    _sync_files(target)
                    place = _commit(open_dir, name, target, replica, begun, now)
                    return done(item.name, f"{DELETING}/{place}")
            except OSError as error:
                if is_sick(error):
                    raise
                return _give_up(open_dir, name, target, item, as_error(path, error))
            why = RefusedError(
                path,
                why=Why.PARTIAL_CAPTURE,
                expected="a complete replica",
                found=problem,
                fix=_PARTIAL.format(name),
            )
            if not any(file.endswith(SEGMENT_SUFFIX) for file in look(target)):
                return _give_up(open_dir, name, target, item, why)
            _sync_files(target)
            with syncing(target):
                target.sync()
        return _partial(item, name, why)


_PARTIAL = "what there was is kept as partial in incoming/{}; it can be exported, not restored"


def _partial(item: CaptureItem, name: str, error: LogDirError) -> Outcome:
    return Outcome(path=item.name, result=Result.UNDONE, place=f"{INCOMING}/{name}", error=error)


def _fits(topic: str, parts: PartitionDir) -> bool:
    return topic.startswith(parts.topic) if parts.is_truncated else topic == parts.topic


def _read_id(source: Directory) -> TopicId | None:
    path = f"{source.path}/{METADATA_FILE}"
    try:
        data = read_file(source, METADATA_FILE)
        return None if data is None else partition_metadata.parse_stock(data, path).topic_id
    except (FormatError, RefusedError):
        return None


def _marker(open_dir: OpenLogDir, replica: _Replica, inode: int, instant: Instant) -> ReplicaMarker:
    """Return the marker of an unfinished capture: always without a deadline."""
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
        checkpoints=_entries(open_dir, replica),
        clean=False,
        tiered=replica.item.tiered,
    )


def _entries(open_dir: OpenLogDir, replica: _Replica) -> Checkpoints:
    partition = TopicPartition(replica.topic, replica.parts.partition)
    points = Checkpoints()
    # Checkpoint entries go by topic name: once the topic is re-created, they belong to the new topic.
    live = f"{replica.topic}-{replica.parts.partition}"
    try:
        # If the name may be cut, the entries could belong to another topic.
        if replica.is_topic_sure and not is_there(open_dir.top, live):
            points = read_entries(open_dir, partition)
    except LogDirError:
        return Checkpoints()
    return Checkpoints() if is_there(open_dir.top, live) else points


def _link_all(
    open_dir: OpenLogDir,
    source: Directory,
    seen: Files,
    target: Directory,
    replica: _Replica,
    begun: ReplicaMarker | None,
) -> str | None:
    """Link files until the directory stops changing; return what a whole replica lacks, ``None`` if nothing.

    Args:
        open_dir: Its log dir.
        source: The directory that is captured.
        seen: The first listing: a file in it that has vanished counts as missing.
        target: The directory for the links.
        replica: The replica that is captured.
        begun: The marker of its capture; ``None``: it has none that can be read.
    """
    seen_start = replica.item.log_start_seen if replica.is_topic_sure else None
    starts = [None if begun is None else begun.checkpoints.log_start, seen_start]
    start = next((one for one in starts if one is not None), None)
    problem = None
    held = look(target)
    for _ in range(_ROUNDS):
        for name, (inode, _) in seen.items():
            _link(open_dir, source, target, name, inode, held.get(name))
        held = look(target)
        after = look(source)
        problem = complaint(target, seen, held, after, log_start=start, is_tiered=replica.item.tiered)
        if problem is None or not after:
            break
        seen = {**seen, **after}
    return problem


def _link(
    open_dir: OpenLogDir, source: Directory, target: Directory, name: str, inode: int, held: tuple[int, int] | None
) -> None:
    if held is not None:
        if held[0] == inode:
            return
        # A broker replaces its small files by new ones of the same name: the later one counts.
        target.unlink(name)
    try:
        link(open_dir, source, name, target)
    except FileNotFoundError:
        return  # The next listing shows what that means.
    except FileExistsError:  # A listing that lagged, as on btrfs, did not show it.
        if target.stat(name).inode != inode:
            raise


def _sync_files(target: Directory) -> None:
    # The broker may not have synced its writes, and may remove its names before a sync.
    for name in target.names():
        if name not in (FILE_NAME, NEW_MARKER):
            with syncing(target):
                target.sync_file(name)


def _commit(
    open_dir: OpenLogDir,
    name: str,
    target: Directory,
    replica: _Replica,
    begun: ReplicaMarker | None,
    now: Callable[[], Instant],
) -> str:
    if begun is None:
        raise RefusedError(
            f"{target.path}/{FILE_NAME}",
            why=Why.MARKER_UNUSABLE,
            expected="the marker of this capture",
            found="no such file",
        )
    instant = now()
    delay = replica.item.delay_ms if replica.is_deleted and replica.is_topic_sure else None
    points = begun.checkpoints
    seen = replica.item.log_start_seen
    if points.log_start is None and seen is not None and replica.is_topic_sure and is_within(target.names(), seen):
        points = replace(points, log_start=seen)
    marker = replace(
        begun,
        topic=replica.topic,
        staged_at_ms=instant.wall_ms,
        delay_ms=delay,
        boot_id=instant.boot_id,
        boottime_ms=instant.boottime_ms,
        checkpoints=points,
        tiered=begun.tiered or replica.item.tiered,
    )
    rewrite_marker(open_dir, target, marker)
    place = free_name(
        open_dir.deleting, replica.place, lambda to: rename(open_dir, open_dir.incoming, name, open_dir.deleting, to)
    )
    with syncing(open_dir.deleting):
        open_dir.deleting.sync()
    with syncing(open_dir.incoming):
        open_dir.incoming.sync()
    return place


def _give_up(open_dir: OpenLogDir, name: str, target: Directory, item: CaptureItem, error: LogDirError) -> Outcome:
    """Remove the links, unless a link has become the last name of its data."""
    try:
        if drop(open_dir, name):
            return undone(item.name, error)
    except (OSError, RefusedError) as failed:
        if isinstance(failed, OSError) and is_sick(failed):
            raise
    with syncing(target):
        target.sync()
    return _partial(item, name, error)
