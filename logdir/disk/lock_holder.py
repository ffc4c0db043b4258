"""Which process holds a lock of a file, asked of the kernel; takes none.

Not here: taking the locks (``locks``).

Spec: design §2 law 4; attacks A22.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path

from logdir.errors import Problem

KAFKA_LOCK = ".lock"
OUTSIDE = "a process outside this container"
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_FLOCK = struct.Struct("hhqqi4x")


def whole_file(kind: int) -> bytes:
    """Return what ``fcntl`` takes for a lock of a whole file."""
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


def named(pid: int) -> str:
    """Return a process by its number and name, for messages."""
    try:
        return f"pid {pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except (OSError, ValueError):
        return f"pid {pid}"


def _pid_by_descriptor(inode: int) -> int | None:
    """Look for the process that holds an open-file-description lock; the kernel tells no pid of those."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for descriptor in (process / "fdinfo").iterdir():
                text = descriptor.read_text()
                if any(
                    line.startswith("lock:") and "OFDLCK" in line and f":{inode} " in line for line in text.splitlines()
                ):
                    return int(process.name)
    return None


def holder(descriptor: int) -> str | None:
    """Say who holds a lock that keeps us from the whole of an open file.

    Returns:
        ``pid 123 (java)``, or that it is none of this container's processes; ``None`` if nobody does.
    """
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, whole_file(fcntl.F_WRLCK)))
    if kind == fcntl.F_UNLCK:
        return None
    if pid <= 0:
        pid = _pid_by_descriptor(os.fstat(descriptor).st_ino) or 0
    return named(pid) if pid > 0 else OUTSIDE


def is_locked(log_dir: str) -> bool | Problem | None:
    """Whether another process holds Kafka's lock of a log dir; takes none, and makes no file.

    Returns:
        ``None`` where there is no lock file, or the log dir cannot be read; a problem where it may not be read.
    """
    path = f"{log_dir}/{KAFKA_LOCK}"
    try:
        descriptor = os.open(path, _OPEN)
    except PermissionError as error:
        return Problem("no-permission", path, "the right to read it", str(error.strerror))
    except OSError:
        return None
    try:
        return holder(descriptor) is not None
    finally:
        os.close(descriptor)
