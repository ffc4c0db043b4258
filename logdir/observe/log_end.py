"""The end offset of a partition's log, from the record batch headers in its last segment.

Only the 61 bytes of each header are read. The offset index gives the start position, which is used only if a batch
begins there. A torn batch, zeros, or any other bytes end the log, as in a broker's recovery.

Not here: checksums, and records (``wire.batches``).

Spec: kafka-formats §7.3, §7.4, §7.6; kafka-behaviour §5.1.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from struct import Struct
from typing import Final

from logdir.observe import replica as contents
from logdir.observe.walk import opened
from logdir.paths import SEGMENT_SUFFIX
from logdir.worker_call import worker_call

_TOP: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HEADER: Final = Struct(">qiibihi")
"""Fields: base offset, length, leader epoch, magic, checksum, attributes, last offset delta."""
_LEAST: Final = 61
_LENGTH_FROM: Final = 12
_MAGIC: Final = 2
_ENTRY: Final = Struct(">ii")
"""Fields of an offset index entry: offset minus base offset, position in the segment."""


@worker_call
def log_end(log_dir: str, path: str) -> int | None:
    """Return the offset after the last whole record batch of a log; reads the disk.

    Args:
        log_dir: As configured; a link is followed here only.
        path: Path of the partition directory, relative to the log dir.

    Returns:
        ``None`` if it cannot be read, has no segment, or holds message sets from before 0.11.
    """
    try:
        with opened(os.open(log_dir, _TOP)) as top, ExitStack() as stack:
            directory = top
            for name in path.split("/"):
                directory = stack.enter_context(opened(contents.open_directory(name, directory)))
            base = contents.measure(directory, exact=False).last_base_offset
            return None if base is None else _end_of(directory, base)
    except OSError:
        return None


def _end_of(directory: int, base: int) -> int | None:
    hint = _hint(directory, base)
    with opened(os.open(f"{base:020d}{SEGMENT_SUFFIX}", _FILE, dir_fd=directory)) as segment:
        size = os.fstat(segment).st_size
        found = _walk(segment, hint, size, base) if hint else None
        return _walk(segment, 0, size, base) if found is None else found


def _hint(directory: int, base: int) -> int:
    """Return the segment position that the last entry of the offset index names; 0: no entry, or no readable index."""
    try:
        with opened(os.open(f"{base:020d}.index", _FILE, dir_fd=directory)) as index:
            # A preallocated index ends in zeros (kafka-behaviour §10.6): find the last entry by bisection.
            low, high = 0, os.fstat(index).st_size // _ENTRY.size
            place = 0
            while low < high:
                middle = (low + high) // 2
                data = os.pread(index, _ENTRY.size, middle * _ENTRY.size)
                if len(data) < _ENTRY.size:
                    return 0
                found = _ENTRY.unpack(data)[1]
                if found > place:
                    low, place = middle + 1, found
                else:
                    high = middle
            return place
    except OSError:
        return 0


def _walk(segment: int, position: int, size: int, base: int) -> int | None:
    """Return the offset after the last whole record batch from a position on.

    ``None``: no batch begins there, or a message set from before 0.11 follows.
    """
    end = base if position == 0 else None
    while position + _LEAST <= size:
        data = os.pread(segment, _HEADER.size, position)
        if len(data) < _HEADER.size:
            break
        offset, length, _, magic, _, _, delta = _HEADER.unpack(data)
        if 0 <= magic < _MAGIC and length > 0 and offset >= base:
            return None  # The count of an old message set is only in its content.
        if magic != _MAGIC or length < _LEAST - _LENGTH_FROM or delta < 0 or offset < (base if end is None else end):
            break
        if position + _LENGTH_FROM + length > size:
            break
        end = offset + delta + 1
        position += _LENGTH_FROM + length
    return end
