"""Completeness check of captured hard links: by names, sizes and inodes, and by the files every log must have.

A broker removes the first segments of a log first, then the rest. A broker that is stopped meanwhile and started again
leaves a directory that no longer changes but is incomplete. So two equal listings are not enough: an index without its
segment, or a first segment above the log start, shows that files are missing.

Not here: making the links (``capture``).

Spec: kafka-behaviour §3.2 (steps 2 and 4); kafka-formats §5; attacks A17, A33.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    """Whether a file is no part of the log and may vanish at any time: removed by retention, or not yet finished."""
    return name.endswith((".deleted", ".cleaned")) or name in _TEMPORARY


def look(directory: Directory) -> Files:
    """List a partition directory, or the links to one, without our markers; files that vanish meanwhile are left out.

    Raises:
        RefusedError: an entry is no regular file.
        OSError: the directory cannot be listed.
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
    """Return why the links are not a whole replica; ``None`` if they are.

    Args:
        links: The directory with the links.
        seen: All files ever seen in the captured directory.
        held: The files of the links.
        after: The files of the captured directory after linking.
        log_start: First offset of the captured log, or a lower one; it counts where no leader epochs are recorded.
            ``None``: not known.
        is_tiered: Whether the oldest segments of the replica are in remote storage.
    """
    if gone := sorted(set(seen) - set(after)):
        return f"{gone[0]} was removed during the capture"
    if held != after or seen != after:
        differing = sorted(name for name in {*held, *after} if held.get(name) != after.get(name))
        return f"{differing[0]} differs from its link" if differing else "files that changed during the capture"
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


def is_within(names: Iterable[str], offset: int) -> bool:
    """Whether a log of files of these names begins before an offset: else it was cut since, and begins with a file."""
    return any(int(name[:_BASE]) < offset for name in names if _is_segment(name, SEGMENT_SUFFIX))


def _missing_front(links: Directory, first: int, log_start: int | None) -> str | None:
    start = log_start
    try:
        data = read_file(links, LEADER_EPOCHS)
        entries = () if data is None else leader_epoch_checkpoint.parse(data, f"{links.path}/{LEADER_EPOCHS}")
        # Kafka keeps the first of them at the log's start, and writes it at once; the checkpoint file lags.
        start = next((entry.start_offset for entry in entries), log_start)
    except (FormatError, RefusedError):
        pass
    return None if start is None or start >= first else f"a log from {start} on whose first segment is {first}"
