"""``handover.json`` in a work root: written when the log dirs are handed over to a broker, read, and compared.

The file holds copies of Kafka's checkpoint files. Each handover compares them with the files as they are, before it
adds another copy; so does a daemon after each start of its broker.

Not here: what is done before (``service.batch.handover``), the file format (``formats.own.handover_file``), what counts
as lost and which copies are kept (``decide.checkpoint_copies``), putting log starts back (``checkpoints``).

Spec: design §6 ``handover``, §8; attacks A22, A30.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from logdir.clock import Instant
from logdir.decide.checkpoint_copies import (
    Files,
    LogFacts,
    Losses,
    ParsedCopy,
    directory_of,
    kept,
    lost,
    parsed,
    suspected,
)
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.failure import recording
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError, MalformedFileError, RefusedError
from logdir.formats.kafka import leader_epoch_checkpoint, offset_checkpoint, partition_metadata
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition
from logdir.formats.own import handover_file
from logdir.formats.own.handover_file import FILE_NAME, CheckpointCopy, HandoverFile
from logdir.observe.classify import Type
from logdir.paths import LEADER_EPOCHS, LOG_STARTS, METADATA_FILE, SEGMENT_SUFFIX
from logdir.refusal_slug import Why
from logdir.worker_call import worker_call

_DIGITS: Final = 20
"""Of the base offset in the name of a segment."""
_NO_FILE: Final = frozenset((errno.ENOENT, errno.ELOOP, errno.EINVAL))
"""With which the name of a small file leads to none."""
_CLOSED: Final = frozenset((errno.EACCES, errno.EPERM, errno.EXDEV, errno.EIO))
"""With which one partition cannot be read; it keeps the others from no copy."""


@worker_call
def keep(open_dir: OpenLogDir, now: Instant, *, is_accepted: bool = False) -> Losses:
    """Write when the log dir is handed over, with its checkpoint files as they are; every lock of the broker is held.

    Args:
        open_dir: The log dir.
        now: The current instant.
        is_accepted: Whether an operator accepts what was lost: then no older copy is kept.

    Returns:
        What the files lost since the copies were made, before this one; nothing if it was accepted.

    Raises:
        UnsupportedVersionError: a newer release wrote the file.
        RefusedError: a file is too large or no regular file, the copies are too large together, or the new file did not
            read back; an older ``handover.json`` is unchanged.
        ReadOnlyDiskError: a sync failed, or the disk is sick.
        OSError: any other error; an older ``handover.json`` is unchanged.
    """
    with recording(open_dir.work, FILE_NAME):
        before = read_file(open_dir.work, FILE_NAME)
        older = _copies(before, f"{open_dir.work.path}/{FILE_NAME}")  # One of a newer release is never replaced.
        copies = () if is_accepted else older
        found = {name: read_file(open_dir.top, name) for name in NAMES}
        files, there = _entries(found), open_dir.top.types()
        logs = _logs(open_dir.top, suspected(copies, files, _directories(there)))
        inodes = _inodes(open_dir.top, files, there)
        ids = _topic_ids(open_dir.top, {directory_of(one) for one in files[LOG_STARTS] or ()} & inodes.keys())
        new = CheckpointCopy(now.wall_ms, found, inodes, ids)
        file = HandoverFile(now.boot_id, now.boottime_ms, now.wall_ms, kept(copies, new, files, logs))
        losses = lost(copies, files, logs)
        replace_file(
            open_dir.work,
            FILE_NAME,
            _rendered(file, losses, f"{open_dir.work.path}/{FILE_NAME}"),
            before=before,
            owner=open_dir.owner.for_file(),
            work=open_dir.work,
            keep=False,
        )
    return losses


def _rendered(file: HandoverFile, losses: Losses, path: str) -> bytes:
    """Return the bytes of the file; without the older copies if they have no room, and nothing was lost.

    Raises:
        RefusedError: the copies have no room.
    """
    is_needed, found = losses != Losses(), ""
    for some in (file,) if is_needed else (file, file._replace(copies=file.copies[:1])):
        try:
            return handover_file.render(some)
        except ValueError as error:
            found = str(error)
    raise RefusedError(
        path,
        why=Why.FILE_TOO_LARGE,
        expected="copies of the checkpoint files that have room in it",
        found=found,
        fix="the older copies stay; logdirctl handover --log-starts accept forgets them",
    )


class Compared(NamedTuple):
    """The checkpoint files of a log dir beside their copies."""

    stamp: str
    """Of all files that were read, to be passed to the next call."""
    losses: Losses | None
    """What the files lost; ``None``: as at the call that returned the stamp."""


@worker_call
def compare(open_dir: OpenLogDir, stamp: str = "") -> Compared:
    """Return what the checkpoint files of a log dir lost since they were copied; nothing without a copy. Only reads.

    Args:
        open_dir: The log dir.
        stamp: From the last call; empty: compare in any case.

    Raises:
        FormatError: ``handover.json`` is malformed, or of a newer release; or a file of a log that may have lost its
            log start is malformed.
        RefusedError: a file is too large.
        OSError: a file or the log dir cannot be read.
    """
    now = _stamp(open_dir)
    if now == stamp:
        return Compared(now, None)
    file = read(open_dir)
    if file is None:
        return Compared(now, Losses())
    copies = tuple(map(parsed, file.copies))
    files = _entries({name: read_file(open_dir.top, name) for name in NAMES})
    there = _directories(open_dir.top.types())
    return Compared(now, lost(copies, files, _logs(open_dir.top, suspected(copies, files, there))))


def _stamp(open_dir: OpenLogDir) -> str:
    parts = []
    for directory, name in ((open_dir.work, FILE_NAME), *((open_dir.top, name) for name in NAMES)):
        try:
            found = directory.stat(name)
            parts.append(f"{found.inode}.{found.mtime_ns}.{found.size_bytes}")
        except FileNotFoundError:
            parts.append("none")
    return " ".join(parts)


def read(open_dir: OpenLogDir) -> HandoverFile | None:
    """Return what was kept at the last handover of a log dir; ``None``: there was none.

    Raises:
        FormatError: the file is malformed, or of a newer release.
        RefusedError: it is too large.
        OSError: it cannot be read.
    """
    data = read_file(open_dir.work, FILE_NAME)
    return None if data is None else handover_file.parse(data, f"{open_dir.work.path}/{FILE_NAME}")


def _copies(data: bytes | None, path: str) -> Sequence[ParsedCopy]:
    """Return the copies in a file; none if it is malformed, because then it is written anew.

    Raises:
        UnsupportedVersionError: a newer release wrote it.
    """
    try:
        return () if data is None else tuple(map(parsed, handover_file.parse(data, path).copies))
    except MalformedFileError:
        return ()


def _entries(found: Mapping[str, bytes | None]) -> Files:
    files: dict[str, Mapping[TopicPartition, int] | None] = {}
    for name, data in found.items():
        try:
            files[name] = {} if data is None else offset_checkpoint.parse(data, name)
        except FormatError:
            files[name] = None
    return files


def _directories(types: Mapping[str, Type]) -> frozenset[str]:
    return frozenset(name for name, kind in types.items() if kind is Type.DIRECTORY)


def _inodes(top: Directory, files: Files, types: Mapping[str, Type]) -> Mapping[str, int]:
    """Return the inode of each live directory that has an entry in a checkpoint file, by name."""
    partitions = {partition for offsets in files.values() for partition in offsets or ()}
    names = sorted({directory_of(partition) for partition in partitions})
    # A broker's names are ASCII; another name could not be written down.
    found = [name for name in names if types.get(name) is Type.DIRECTORY and name.isascii()]
    return {name: top.stat(name).inode for name in found}


def _topic_ids(top: Directory, names: Collection[str]) -> Mapping[str, str]:
    """Return the topic id of each of these directories, by name; without those that have none."""
    found = {}
    for name in sorted(names):
        try:
            with top.open(name) as directory:
                topic_id = _topic_id(directory)
        except (FormatError, RefusedError):
            continue
        except OSError as error:
            if error.errno not in _CLOSED:
                raise
            continue
        if topic_id is not None:
            found[name] = topic_id
    return found


def _logs(top: Directory, asked: Mapping[TopicPartition, bool]) -> Mapping[TopicPartition, LogFacts]:
    """Return what is needed to know of live directories; one that is gone meanwhile is left out."""
    found = {}
    for partition, is_more_needed in asked.items():
        name = directory_of(partition)
        try:
            found[partition] = _facts(top, name) if is_more_needed else LogFacts(top.stat(name).inode, None)
        except (FileNotFoundError, NotADirectoryError):
            continue  # Any other error is the caller's: a copy that may be needed is not given up for it.
    return found


def _facts(top: Directory, name: str) -> LogFacts:
    with top.open(name) as directory:
        inode = directory.own_stat().inode
        return LogFacts(inode, _first_offset(directory), _topic_id(directory), _epochs_from(directory))


def _first_offset(directory: Directory) -> int | None:
    bases = [one[:_DIGITS] for one in directory.names() if one[_DIGITS:] == SEGMENT_SUFFIX]
    return min((int(base) for base in bases if base.isascii() and base.isdigit()), default=None)


def _topic_id(directory: Directory) -> str | None:
    data = _content(directory, METADATA_FILE)
    return None if data is None else str(partition_metadata.parse(data, f"{directory.path}/{METADATA_FILE}").topic_id)


def _epochs_from(directory: Directory) -> int | None:
    data = _content(directory, LEADER_EPOCHS)
    entries = () if data is None else leader_epoch_checkpoint.parse(data, f"{directory.path}/{LEADER_EPOCHS}")
    return min((entry.start_offset for entry in entries), default=None)


def _content(directory: Directory, name: str) -> bytes | None:
    """Return the content of a small file of a partition; ``None``: there is no such file."""
    try:
        return read_file(directory, name)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        return None
