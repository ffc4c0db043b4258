"""What a start of a broker lost of the checkpoint files of a log dir, by the copies of earlier handovers; and which
copies are kept.

A start whose registration at the controllers times out empties ``recovery-point-offset-checkpoint`` and
``log-start-offset-checkpoint``, and leaves the clean marker: the next start serves records again that DeleteRecords had
removed. A broker of a ZooKeeper cluster that ends while it loads writes the entries of the logs loaded by then.

An entry is lost only if its log is still there: its directory has the inode that it had when the copy was made and, for
a log start, the same topic id. A log start may also go for good reason: retention has removed the segments below it, or
a leader with fewer records had the log cut below it. So it is lost only if the log begins before it now, and no epoch
of its leaders does. Of high watermarks and cleaner offsets single entries may go: only a file without any counts.

Not here: reading the files (``disk.record.handover``), the words for people (``service.batch.checkpoint_losses``).

Spec: design §8; kafka-behaviour §2.9, §2.12, §10.3; attacks A30.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from logdir.errors import FormatError
from logdir.formats.kafka import offset_checkpoint
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition
from logdir.formats.own.handover_file import MOST_COPIES, CheckpointCopy
from logdir.paths import LOG_STARTS, RECOVERY_POINTS

Offsets: TypeAlias = Mapping[TopicPartition, int]
Files: TypeAlias = Mapping[str, Offsets | None]
"""The entries of each checkpoint file, by its name; ``None``: the file is malformed."""

_WHOLE: Final = frozenset(NAMES) - {RECOVERY_POINTS, LOG_STARTS}
"""Files of which only the loss of all entries counts."""


class ParsedCopy(NamedTuple):
    """A copy with the entries of its files."""

    copy: CheckpointCopy
    offsets: Mapping[str, Offsets]
    """By name of the file; a malformed file has no entries."""


class LogFacts(NamedTuple):
    """A live partition directory."""

    inode: int
    first_offset: int | None
    """Base offset of its first segment; ``None``: it has no segment, or that was not asked for."""
    topic_id: str | None = None
    """Of its ``partition.metadata``; ``None``: it has none, or that was not asked for."""
    epochs_from: int | None = None
    """Where its first leader epoch begins, which a broker moves to each log start; ``None``: none is recorded, or that
    was not asked for.
    """


class LostLogStart(NamedTuple):
    """A log start that a start of the broker lost."""

    partition: TopicPartition
    offset: int
    """As it was copied."""
    found: int | None
    """The lower one that is there now; ``None``: there is no entry."""
    copied_ms: int
    """Wall clock of the copy."""


class LostEntries(NamedTuple):
    """The entries that one checkpoint file lost, of logs that are still there."""

    name: str
    partitions: tuple[TopicPartition, ...]
    """At least one, in the order of the copy."""
    copied_ms: int
    """Wall clock of the copy."""


class Losses(NamedTuple):
    """What the checkpoint files of a log dir lost."""

    log_starts: tuple[LostLogStart, ...] = ()
    """By partition; each once, the highest: a log start of one log only rises, but for a cut."""
    entries: tuple[LostEntries, ...] = ()
    """Of the other files; each file once, by the newest copy that has more."""
    malformed: tuple[str, ...] = ()
    """Names of files that no broker can read."""


def directory_of(partition: TopicPartition) -> str:
    """Return the name of the live directory of a partition, in the topic-name layout.

    >>> directory_of(TopicPartition("pay", 0))
    'pay-0'
    """
    return f"{partition.topic}-{partition.partition}"


def parsed(copy: CheckpointCopy) -> ParsedCopy:
    """Return a copy with the entries of its files."""
    found: dict[str, Offsets] = {}
    for name, data in copy.checkpoints.items():
        try:
            found[name] = {} if data is None else offset_checkpoint.parse(data, name)
        except FormatError:
            found[name] = {}
    return ParsedCopy(copy, found)


def suspected(copies: Sequence[ParsedCopy], now: Files, there: Collection[str]) -> Mapping[TopicPartition, bool]:
    """Return the partitions that may have lost an entry; only they have to be looked at.

    Args:
        copies: Newest first.
        now: The checkpoint files as they are.
        there: Names of the directories at the top of the log dir.

    Returns:
        By partition, whether the first offset, the topic id and the leader epochs of its log are needed, too.
    """
    found: dict[TopicPartition, bool] = {}
    for one in copies:
        for name, offsets in one.offsets.items():
            for partition, offset in offsets.items():
                directory = directory_of(partition)
                is_known = directory in one.copy.inodes and directory in there
                if is_known and _is_missing(name, partition, offset, now[name]):
                    found[partition] = found.get(partition, False) or name == LOG_STARTS
    return found


def _is_missing(name: str, partition: TopicPartition, offset: int, now: Offsets | None) -> bool:
    # Of a malformed file nothing is called lost, but the copies may have all that is left of it (``kept``).
    entry = None if now is None else now.get(partition)
    return entry is None or (name == LOG_STARTS and entry < offset)


def lost(copies: Sequence[ParsedCopy], now: Files, logs: Mapping[TopicPartition, LogFacts]) -> Losses:
    """Return what was lost.

    Args:
        copies: Newest first.
        now: The checkpoint files as they are.
        logs: The partitions that ``suspected`` names, as far as their directories can be read.
    """
    log_starts: dict[TopicPartition, LostLogStart] = {}
    entries: dict[str, LostEntries] = {}
    for copy in copies:
        for start in _log_starts(copy, now, logs):
            known = log_starts.setdefault(start.partition, start)
            if known.offset < start.offset:
                log_starts[start.partition] = start
        for some in _entries(copy, now, logs):
            entries.setdefault(some.name, some)
    return Losses(
        log_starts=tuple(log_starts[partition] for partition in sorted(log_starts)),
        entries=tuple(entries[name] for name in NAMES if name in entries),
        malformed=tuple(name for name in NAMES if now[name] is None),
    )


def _log_starts(one: ParsedCopy, now: Files, logs: Mapping[TopicPartition, LogFacts]) -> Iterator[LostLogStart]:
    there = now[LOG_STARTS]
    if there is None:
        return
    for partition, offset in one.offsets[LOG_STARTS].items():
        log, found = logs.get(partition), there.get(partition)
        if log is None or not _is_same(one.copy, partition, log) or (found is not None and found >= offset):
            continue
        if one.copy.topic_ids.get(directory_of(partition)) == log.topic_id and _has_lost(log, offset):
            yield LostLogStart(partition, offset, found, one.copy.wall_ms)


def _has_lost(log: LogFacts, offset: int) -> bool:
    """Return whether a log that had a log start, and has a lower one, has it without good reason."""
    if log.first_offset is None or log.first_offset >= offset:
        return False  # Retention removed the segments below it.
    # A broker moves the first epoch to each log start that it raises. It begins before one only if the log was cut
    # and written on: other records are there now, and a log start behind them would hide them.
    return log.epochs_from is None or log.epochs_from >= offset


def _entries(one: ParsedCopy, now: Files, logs: Mapping[TopicPartition, LogFacts]) -> Iterator[LostEntries]:
    for name, offsets in one.offsets.items():
        there = now[name]
        if name == LOG_STARTS or there is None or (name in _WHOLE and there):
            continue
        gone = tuple(
            partition
            for partition in offsets
            if partition not in there
            and (log := logs.get(partition)) is not None
            and _is_same(one.copy, partition, log)
        )
        if gone:
            yield LostEntries(name, gone, one.copy.wall_ms)


def _is_same(copy: CheckpointCopy, partition: TopicPartition, log: LogFacts) -> bool:
    return copy.inodes.get(directory_of(partition)) == log.inode


def kept(
    copies: Sequence[ParsedCopy], new: CheckpointCopy, now: Files, logs: Mapping[TopicPartition, LogFacts]
) -> tuple[CheckpointCopy, ...]:
    """Return the copies that are kept with a new one, newest first: those that have what was lost since, else the last.

    Args:
        copies: Those that there are, newest first.
        new: The copy of now.
        now: The checkpoint files as they are, which ``new`` holds.
        logs: As of ``lost``.

    Returns:
        The new copy, and at most ``MOST_COPIES`` - 1 others. One that equals the new one but for its instant is not
        kept twice.
    """
    # Of a malformed file nothing is called lost, but no copy may go that has what was in it.
    there = {name: offsets or {} for name, offsets in now.items()}
    others = [one for one in copies if one.copy._replace(wall_ms=new.wall_ms) != new]
    needed: list[ParsedCopy] = []
    starts: dict[TopicPartition, int] = {}
    names: set[str] = set()
    for one in others:
        found = lost((one,), there, logs)
        log_starts = {start.partition: start.offset for start in found.log_starts}
        higher = {key: offset for key, offset in log_starts.items() if offset > starts.get(key, 0)}
        more = {some.name for some in found.entries} - names
        if higher or more:  # Else newer copies have all of it.
            starts |= higher
            names |= more
            needed.append(one)
    return (new, *(one.copy for one in (needed or others[:1])[: MOST_COPIES - 1]))
