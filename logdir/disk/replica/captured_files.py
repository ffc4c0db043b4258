"""Whether hard links of a partition directory are all of it: by names, sizes, inodes, and by what a log must have.

A broker removes a log's segments from the first on, then the rest; ended in the middle and started again, it leaves a
directory that holds still and is not whole. So two listings that agree are not enough: an index without its segment,
or a first segment above the log's start, tells of what is gone.

Not here: making the links (``capture``).

Spec: kafka-behaviour §3.2 (steps 2 and 4); kafka-formats §5; attacks A17, A33.
"""

from __future__ import annotations

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.small_file import read_file
from logdir.disk.replica.replica_dir import NEW_MARKER, require_file
from logdir.errors import FormatError, RefusedError
from logdir.formats.kafka import leader_epoch_checkpoint
from logdir.formats.own.replica_marker import FILE_NAME
from logdir.paths import LEADER_EPOCHS, METADATA_FILE, SEGMENT_SUFFIX, TEMPORARY

Files = dict[str, tuple[int, int]]
"""Inode and size in bytes of each file, by name."""

_BASE = 20
_INDEXES = (".index", ".timeindex", ".txnindex")


_TEMPORARY = frozenset((METADATA_FILE + TEMPORARY, LEADER_EPOCHS + TEMPORARY))


def is_kept_out(name: str) -> bool:
    """Whether a file is no part of the log and may go at any time: let go by retention, or not yet finished."""
    return name.endswith((".deleted", ".cleaned")) or name in _TEMPORARY


def look(directory: Directory) -> Files:
    """List a partition directory, or links of one, without our markers; a file that vanishes meanwhile is not there.

    Raises:
        RefusedError: something in it is no regular file.
        OSError: it cannot be listed.
    """
    files: Files = {}
    for name in directory.names():
        if is_kept_out(name) or name in (FILE_NAME, NEW_MARKER):
            continue
        try:
            found = directory.stat(name)
        except FileNotFoundError:
            continue
        require_file(directory, name, found.type)
        files[name] = (found.inode, found.size_bytes)
    return files


def complaint(
    links: Directory, seen: Files, held: Files, after: Files, *, log_start: int | None, is_tiered: bool
) -> str | None:
    """Return what speaks against calling links whole, ``None`` if nothing does.

    Args:
        links: Where they are.
        seen: All that was ever seen in the directory they were made from.
        held: The links.
        after: That directory after they were made.
        log_start: Its first offset, if known.
        is_tiered: Its first segments lie in remote storage.
    """
    if gone := sorted(set(seen) - set(after)):
        return f"{gone[0]} was removed meanwhile"
    if held != after or seen != after:
        differing = sorted(name for name in {*held, *after} if held.get(name) != after.get(name))
        return f"{differing[0]} is not the same in both" if differing else "files that change"
    if METADATA_FILE not in held:
        return f"no {METADATA_FILE}"
    segments = {name[:_BASE] for name in held if name.endswith(SEGMENT_SUFFIX) and _is_segment(name, SEGMENT_SUFFIX)}
    if not segments:
        return "no segment"
    for name in sorted(held):
        if any(_is_segment(name, ending) for ending in _INDEXES) and name[:_BASE] not in segments:
            return f"{name} without its segment"
    return None if is_tiered else _missing_front(links, int(min(segments)), log_start)


def _is_segment(name: str, ending: str) -> bool:
    return len(name) == _BASE + len(ending) and name.endswith(ending) and name[:_BASE].isdecimal() and name.isascii()


def _missing_front(links: Directory, first: int, log_start: int | None) -> str | None:
    starts = [] if log_start is None else [log_start]
    try:
        data = read_file(links, LEADER_EPOCHS)
        entries = () if data is None else leader_epoch_checkpoint.parse(data, f"{links.path}/{LEADER_EPOCHS}")
        # Kafka keeps the first of them at the log's start.
        starts += [entry.start_offset for entry in entries[:1]]
    except (FormatError, RefusedError):
        pass
    return f"a log from {min(starts)} on whose first segment is {first}" if starts and min(starts) < first else None
