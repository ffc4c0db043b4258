"""The content of one directory in a log dir: segments by name and size, and the topic id.

Read-only; no segment is opened, no link followed, no other mount entered.

Spec: design §7.1; kafka-formats §2, §5.3, §7.
"""

from __future__ import annotations

import errno
import json
import os
from functools import lru_cache
from typing import NamedTuple

from logdir.errors import FormatError
from logdir.formats.kafka import partition_metadata
from logdir.ids import TopicId
from logdir.names import is_legal_topic
from logdir.paths import MARKER_FILE, METADATA_FILE, SEGMENT_SUFFIX

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a fifo of that name must not stop the scan.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_SMALL_FILE = 1 << 20
_MAX_DEPTH = 100  # One descriptor per level.
_SEGMENT = len("00000000000000000000.log")
_FORMAT_BITS, _REGULAR, _IS_DIRECTORY = 0o170000, 0o100000, 0o040000


class Contents(NamedTuple):
    """Counts of one directory; sizes in bytes, instants in epoch milliseconds."""

    log_bytes: int
    """Of its segments."""
    bytes: int
    """As ``log_bytes``; if measured exactly, of every regular file at any depth."""
    files: int
    """Number of names in it, of any type."""
    segments: int
    first_offset: int | None
    """Base offset of the first segment; ``None`` here and below: there is none."""
    last_base_offset: int | None
    oldest_ms: int | None
    """Oldest modification time of a segment."""
    newest_ms: int | None
    has_metadata: bool
    has_marker: bool
    has_vanished: bool
    """Whether a listed entry had vanished when it was read; the directory may have vanished as well."""


class Identity(NamedTuple):
    """The content of ``partition.metadata``."""

    topic_id: TopicId | None
    topic_name: str | None
    problem: str | None
    """Slug of the problem; ``None``: the file is valid."""


def open_directory(name: str, parent: int) -> int:
    """Open a sub-directory of ``parent``, never through a link. Raises ``OSError``."""
    return os.open(name, _DIRECTORY, dir_fd=parent)


def measure(directory: int, *, exact: bool) -> Contents:
    """List a directory and sum up its segments; with ``exact``, every regular file at any depth.

    Args:
        directory: A descriptor; stays open.
        exact: Whether to examine every file, not only segments.

    Raises:
        OSError: the directory or a file in it cannot be read.
    """
    names = os.listdir(directory)
    log_bytes = beside = segments = 0
    low = high = ""
    oldest = newest = 0
    vanished = False
    stat = os.stat
    listed = [
        n for n in names if n[-4:] == SEGMENT_SUFFIX and len(n) == _SEGMENT and n[:20].isdecimal() and n.isascii()
    ]
    for name in listed:
        try:
            seen = stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            vanished = True
            continue
        if seen.st_mode & _FORMAT_BITS != _REGULAR:
            continue
        log_bytes += seen.st_size
        changed = seen.st_mtime_ns
        if not segments:
            low = high = name
            oldest = newest = changed
        else:
            if name < low:
                low = name
            elif name > high:
                high = name
            if changed < oldest:
                oldest = changed
            elif changed > newest:
                newest = changed
        segments += 1
    if exact:
        device = os.fstat(directory).st_dev
        counted = frozenset(listed)
        for name in names:
            if name in counted:
                continue
            try:
                seen = stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                vanished = True
                continue
            form = seen.st_mode & _FORMAT_BITS
            if form == _REGULAR:
                beside += seen.st_size
            elif form == _IS_DIRECTORY and seen.st_dev == device:
                beside += _bytes_below(name, directory, device)
    return Contents(
        log_bytes,
        log_bytes + beside,
        len(names),
        segments,
        int(low[:20]) if segments else None,
        int(high[:20]) if segments else None,
        oldest // 1_000_000 if segments else None,
        newest // 1_000_000 if segments else None,
        METADATA_FILE in names,
        MARKER_FILE in names,
        vanished,
    )


def _bytes_below(name: str, parent: int, device: int, depth: int = 0) -> int:
    """Return the sizes of all regular files below a directory, on its own device only."""
    if depth == _MAX_DEPTH:
        raise OSError(errno.ELOOP, "directories nested too deep", name)
    try:
        directory = open_directory(name, parent)
    except FileNotFoundError:
        return 0
    try:
        total = 0
        for below in os.listdir(directory):
            try:
                seen = os.stat(below, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                continue
            form = seen.st_mode & _FORMAT_BITS
            if form == _REGULAR:
                total += seen.st_size
            elif form == _IS_DIRECTORY and seen.st_dev == device:
                total += _bytes_below(below, directory, device, depth + 1)
        return total
    finally:
        os.close(directory)


def read_small(name: str, directory: int) -> bytes:
    """Return a small file's bytes, never through a link.

    Raises:
        OSError: it cannot be read, or is larger than 1 MiB (``EFBIG``).
    """
    file = os.open(name, _FILE, dir_fd=directory)
    try:
        data = os.read(file, 4096)
        if len(data) == 4096:
            pieces = [data]
            size = len(data)
            while data := os.read(file, 65536):
                pieces.append(data)
                size += len(data)
                if size > _MAX_SMALL_FILE:
                    raise OSError(errno.EFBIG, "file too large", name)
            return b"".join(pieces)
        return data
    finally:
        os.close(file)


def read_identity(directory: int) -> Identity:
    """Read ``partition.metadata`` of an open partition directory; every failure is a problem, not an error."""
    try:
        data = read_small(METADATA_FILE, directory)
    except FileNotFoundError:
        return Identity(None, None, "partition-metadata-missing")
    except PermissionError:
        return Identity(None, None, "unreadable")
    except OSError as error:
        # EIO is the disk's fault; a link, a directory or a huge file of that name is a broken file.
        return Identity(None, None, "unreadable" if error.errno == errno.EIO else "partition-metadata-broken")
    return _said(data)


@lru_cache(maxsize=4096)
def _said(data: bytes) -> Identity:
    """Parse the bytes of ``partition.metadata``; cached, because the partitions of a topic have equal files."""
    try:
        value = partition_metadata.parse(data)
    except FormatError:
        return Identity(None, None, "partition-metadata-broken")
    name = value.topic_name
    return Identity(value.topic_id, name if name is not None and is_legal_topic(name) else None, None)


def read_marker_topic(directory: int) -> str | None:
    """Return the topic in the marker ``replica.json``; ``None`` if it cannot be read."""
    try:
        value = json.loads(read_small(MARKER_FILE, directory))
    except (OSError, ValueError, RecursionError):
        return None
    topic = value.get("topic") if isinstance(value, dict) else None
    return topic if isinstance(topic, str) and is_legal_topic(topic) else None
