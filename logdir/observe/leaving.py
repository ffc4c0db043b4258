"""The ``-delete`` and ``-stray`` directories at the top of a log dir, by their names alone.

The daemon asks this every few seconds, so a log dir whose modification time is unchanged is not listed again.

Not here: what is in them (``replicas``), what is captured (``decide.capture``).

Spec: kafka-behaviour §3.2, §3.3; design §3.3.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from logdir import clock
from logdir.names import DirForm, parse_partition_dir
from logdir.paths import DELETE_SUFFIX, STRAY_SUFFIX
from logdir.worker_call import worker_call

_SETTLED_MS = 2000
"""A modification time younger than this may hide a later change: file systems have coarse clocks."""


class Leaving(NamedTuple):
    """What a log dir holds of them."""

    mtime_ns: int | None
    """Modification time of the log dir, to be passed to the next call; ``None``: too young to be trusted."""
    names: tuple[str, ...] | None
    """Sorted; ``None``: nothing was added or removed since the call that returned ``since_ns``, or not known."""
    is_read: bool = True
    """Whether the log dir could be read: an empty answer would be none."""


@worker_call
def leaving(log_dir: str, since_ns: int | None) -> Leaving:
    """Return the names of ``-delete`` and ``-stray`` directories. Only reads.

    Args:
        log_dir: Path as configured.
        since_ns: From the last call; ``None``: list in any case.

    """
    try:
        mtime_ns = Path(log_dir).stat().st_mtime_ns
        if since_ns == mtime_ns:
            return Leaving(mtime_ns, None)
        with os.scandir(log_dir) as entries:
            found = [
                entry.name
                for entry in entries
                if entry.name.endswith((DELETE_SUFFIX, STRAY_SUFFIX)) and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return Leaving(None, None, is_read=False)
    is_settled = mtime_ns // 1_000_000 < clock.now_ms() - _SETTLED_MS
    return Leaving(mtime_ns if is_settled else None, tuple(sorted(filter(_is_leaving, found))))


def _is_leaving(name: str) -> bool:
    parts = parse_partition_dir(name)
    return parts is not None and parts.form in (DirForm.DELETE, DirForm.STRAY)
