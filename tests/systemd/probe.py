"""What a process may do in the sandbox of the units: each thing is tried, and the name of its error noted.

Started as ``probe.py SEEN LOG_DIR WORK_ROOT GID``, in a unit with the settings of ``logdird@.service``. It writes one
JSON object: an empty text for what was done, else the name of the errno; and what is seen of clock, boot and processes.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from logdir.disk.kernel.kernel_clock import read_instant

_NEW_MOUNTS = 0x20000


def tried(call: Callable[[], object]) -> str:
    """Make a call; return the name of its error, or an empty text."""
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


def lease(path: Path) -> None:
    """Take a lease on a file, and give it back."""
    with path.open("rb") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def rename(log_dir: Path, work: Path) -> None:
    """Rename a directory from the log dir to the work root, and back."""
    here, there = log_dir / "probed", work / "probed"
    here.mkdir()
    here.rename(there)
    there.rename(here)
    here.rmdir()


def link(log_dir: Path, work: Path) -> None:
    """Give a file of the log dir a second name in the work root, for a moment."""
    place = work / "linked"
    os.link(log_dir / "meta.properties", place)
    place.unlink()


def give(work: Path, gid: int) -> None:
    """Make a directory that belongs to a group that this process is in, with the bit of its group."""
    place = work / "given"
    place.mkdir()
    try:
        os.chown(place, -1, gid)
        place.chmod(0o2770)
        if place.stat().st_gid != gid or not place.stat().st_mode & 0o2000:
            raise OSError(errno.EINVAL, "it has another group, or mode")
    finally:
        place.rmdir()


def leave_mounts() -> None:
    """Ask for mounts of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")


def main() -> None:
    """Try all, and write what came of it."""
    seen, log_dir, work, gid = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    now = read_instant()
    found = {
        "boot_id": now.boot_id,
        "is_synchronised": now.is_synchronised,
        "pids": sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()),
        "own_pid": os.getpid(),
        "tmp": os.listdir("/tmp"),
        "lease": tried(lambda: lease(log_dir / "meta.properties")),
        "rename": tried(lambda: rename(log_dir, work)),
        "link": tried(lambda: link(log_dir, work)),
        "chown": tried(lambda: give(work, gid)),
        "write elsewhere": tried(lambda: Path("/etc/probed").write_text("")),
        "write the checkout": tried(lambda: Path("/opt/logdird/probed").write_text("")),
        "set the clock": tried(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time())),
        "network": tried(lambda: socket.socket(socket.AF_INET).close()),
        "mounts of its own": tried(leave_mounts),
        "code in memory": tried(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC).close()),
        "priority": tried(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5)),
    }
    Path(seen).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
