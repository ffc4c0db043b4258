"""Which process holds a lock of a file, according to the kernel; takes no lock.

Not here: taking the locks (``locks``).

Spec: design §2 law 4; attacks A22; proc_pid_fdinfo(5), proc_pid_mountinfo(5).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import time

from logdir import clock
from logdir.errors import LogDirSuspectError, Problem
from logdir.observe.mounts import read_mounts
from logdir.paths import KAFKA_LOCK
from logdir.worker_call import worker_call

OUTSIDE = "a process outside this container"
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_EXITING = 0x4
"""The flag ``PF_EXITING`` in ``/proc/PID/stat``."""
_CLOSING_MS = 100
ENDING_MS, PAUSE_S = 1000, 0.002
"""How long a killed process may keep its lock, for example during a sync; and the pause between two checks."""
_FLOCK = struct.Struct("hhqqi4x")


def whole_file(kind: int) -> bytes:
    """Return the ``struct flock`` that ``fcntl`` takes for a lock of a whole file; ``kind``: ``F_WRLCK``."""
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


def _read(path: str) -> str:
    """Return the text of a file of ``/proc``; not by ``pathlib``, whose import every command would wait for."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def named(pid: int) -> str:
    """Return a process as ``pid 123 (java)``, for messages; without the name if it cannot be read."""
    try:
        return f"pid {pid} ({_read(f'/proc/{pid}/comm').strip()})"
    except (OSError, ValueError):
        return f"pid {pid}"


def _pid_by_descriptor(file: int) -> int | None:
    """Return the pid of the process that holds an open-file-description lock of a file, for which the kernel reports no
    pid; ``None`` if ``/proc`` shows none.
    """
    shown = f"{_device_shown(file)}:{os.fstat(file).st_ino} "
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fdinfo"):
                text = _read(f"/proc/{pid}/fdinfo/{descriptor}")
                if any(line.startswith("lock:") and "OFDLCK" in line and shown in line for line in text.splitlines()):
                    return int(pid)
    return None


def _device_shown(file: int) -> str:
    """Return the device of an open file as ``/proc`` shows it beside a lock, empty if it cannot be found.

    The inode alone is not enough: disks that were formatted alike have equal inode numbers. ``fstat`` does not help
    either: on btrfs it returns the number of a subvolume.
    """
    with contextlib.suppress(OSError, StopIteration):
        lines = _read(f"/proc/self/fdinfo/{file}").splitlines()
        mount_id = next(line.split()[1] for line in lines if line.startswith("mnt_id:"))
        device = next(mount.device for mount in read_mounts() if mount.mount_id == mount_id)
        major, minor = map(int, device.split(":"))
        return f"{major:02x}:{minor:02x}"
    return ""


def holder(descriptor: int) -> str | None:
    """Return the holder of a lock that conflicts with ours on the whole of an open file.

    Returns:
        ``pid 123 (java)``, or a text that the process is outside this container; ``None`` if there is no such lock.
    """
    pid = holder_pid(descriptor)
    if pid is None:
        return None
    return named(pid) if pid > 0 else OUTSIDE


def is_ending(descriptor: int, waited_ms: int) -> bool:
    """Whether the process that holds a lock was killed and is about to end, or has just ended.

    A worker keeps its locks a moment longer than its killed command.

    Args:
        descriptor: Descriptor of the lock file.
        waited_ms: How long the caller has waited; a holder that is not found may be closing its files.
    """
    pid = holder_pid(descriptor)
    if pid is None or pid == 0:
        return pid is None or waited_ms < _CLOSING_MS
    try:
        state, flags, is_killed = _state(pid)
    except (OSError, ValueError, IndexError):
        return True
    return state in "ZX" or bool(flags & _EXITING) or is_killed


def hanging_holder(descriptor: int, noted_pid: int = 0) -> str | None:
    """Return the killed process, as ``pid 123 (java)``, that still holds a lock because its disk call does not return.

    A worker that was given up after ``--disk-timeout`` is such a process. ``None``: no process holds the lock, or a
    live one.

    Args:
        descriptor: Descriptor of the lock file.
        noted_pid: The pid that the holder wrote into it, for a holder whose open files this process may not see; 0:
            none.
    """
    try:
        pid = holder_pid(descriptor)
        if pid == 0:
            pid = noted_pid
        if not pid:
            return None
        state, _, is_killed = _state(pid)
    except (OSError, ValueError, IndexError):
        return None
    return named(pid) if is_killed and state == "D" else None


def _state(pid: int) -> tuple[str, int, bool]:
    """Return state letter and flags of a process from ``/proc``, and whether a SIGKILL is pending. Raises ``OSError``
    if the process has ended.
    """
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    pending = [line.split()[1] for line in _read(f"/proc/{pid}/status").splitlines() if "Pnd:" in line]
    return fields[0], int(fields[6]), any(int(mask, 16) >> (signal.SIGKILL - 1) & 1 for mask in pending)


def suspect_held(log_dir: str, who: str) -> LogDirSuspectError:
    """Return the error of a SUSPECT log dir whose lock the killed process ``who`` still holds."""
    return LogDirSuspectError(
        log_dir,
        expected="a lock that no killed process holds",
        found=f"{who}, which was killed and sleeps until the disk answers",
        fix="SUSPECT: check the kernel log; a broker cannot start on this disk until it answers",
    )


def holder_pid(descriptor: int) -> int | None:
    """Return the pid of the process that holds a lock of an open file; 0 if it is outside this container, ``None`` if
    no process holds it.
    """
    kind: int
    pid: int
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, whole_file(fcntl.F_WRLCK)))
    if kind == fcntl.F_UNLCK:
        return None
    if pid <= 0:
        pid = _pid_by_descriptor(descriptor) or 0
    return pid


@worker_call
def is_locked(log_dir: str) -> bool | Problem | None:
    """Whether another process holds Kafka's lock of a log dir; takes no lock and creates no file.

    Returns:
        ``None`` if there is no lock file or the log dir cannot be read; a problem if a permission is missing.

    Raises:
        LogDirSuspectError: a killed process that hangs holds the lock; it is no broker.
    """
    path = f"{log_dir}/{KAFKA_LOCK}"
    try:
        descriptor = os.open(path, _OPEN)
    except PermissionError as error:
        return Problem("no-permission", path, "permission to read it", str(error.strerror))
    except OSError:
        return None
    try:
        began_ms = clock.monotonic_ms()
        while (who := hanging_holder(descriptor)) is not None:
            if clock.monotonic_ms() - began_ms >= ENDING_MS:
                raise suspect_held(log_dir, who)
            time.sleep(PAUSE_S)
        return holder(descriptor) is not None
    finally:
        os.close(descriptor)
