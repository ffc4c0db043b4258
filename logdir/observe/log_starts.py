"""The entries of ``log-start-offset-checkpoint``, read again only where the file changed.

A broker takes the entry of a replica out of the file as soon as the replica is deleted: it has to be read before.

Not here: the entries of one replica in all files (``disk.record.checkpoints``), whose entry is whose
(``service.batch.seen_starts``).

Spec: kafka-behaviour §10.5; kafka-formats §4.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from logdir.errors import FormatError
from logdir.formats.kafka import offset_checkpoint
from logdir.paths import LOG_STARTS

_TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_BYTES = 16 << 20


class LogStarts(NamedTuple):
    """The content of the file."""

    stamp: str
    """Of the file, to be passed to the next call; empty: there is none that can be read."""
    offsets: Mapping[str, int] | None
    """The log start offset by the name of the live directory; ``None``: as at the call that returned the stamp."""


def log_starts(log_dir: str, stamp: str) -> LogStarts:
    """Return the entries of the file. Only reads; a file that is malformed or cannot be read has none.

    Args:
        log_dir: Path as configured.
        stamp: From the last call; empty: read in any case.
    """
    try:
        top = os.open(log_dir, _TOP)
        try:
            file = os.open(LOG_STARTS, _FILE, dir_fd=top)
        finally:
            os.close(top)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                return LogStarts("", {})
            now = f"{found.st_mtime_ns} {found.st_ino} {found.st_size}"
            if now == stamp:
                return LogStarts(stamp, None)
            data = os.read(file, _MAX_BYTES)
        finally:
            os.close(file)
        offsets = offset_checkpoint.parse(data, f"{log_dir}/{LOG_STARTS}")
    except (OSError, FormatError):
        return LogStarts("", {})
    return LogStarts(now, {f"{topic}-{partition}": offset for (topic, partition), offset in offsets.items()})
