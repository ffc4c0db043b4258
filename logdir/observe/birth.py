"""Creation times of partition directories, derived from their files.

The creation time is the oldest modification time of the files in a directory, because Kafka writes
``partition.metadata`` and the first segment when it creates one. The standard library cannot read the kernel's birth
time; a directory without files has its own last change.

Not here: decisions based on an age (``decide.candidate``).

Spec: attacks A1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack

from logdir.observe import replica as contents
from logdir.observe.walk import opened
from logdir.worker_call import worker_call

_TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MILLION = 1_000_000


@worker_call
def births(log_dir: str, paths: Iterable[str]) -> dict[tuple[str, str], int]:
    """Return the creation times of partition directories.

    Args:
        log_dir: As configured; a link is followed here only.
        paths: Paths of live replicas, relative to the log dir.

    Returns:
        Wall-clock milliseconds by log dir and path; unreadable directories are left out.
    """
    found = {}
    try:
        with opened(os.open(log_dir, _TOP)) as top:
            for path in paths:
                birth_ms = _birth_ms(top, path)
                if birth_ms is not None:
                    found[log_dir, path] = birth_ms
    except OSError:
        return found
    return found


def _birth_ms(top: int, path: str) -> int | None:
    try:
        with ExitStack() as stack:
            directory = top
            for name in path.split("/"):
                directory = stack.enter_context(opened(contents.open_directory(name, directory)))
            with os.scandir(directory) as entries:
                times = [one.stat(follow_symlinks=False).st_mtime_ns for one in entries]
            return min(times, default=os.fstat(directory).st_mtime_ns) // _MILLION
    except OSError:
        return None
