"""Points at which a call on a cold ext4 hangs, on a loop device whose image lies on a FUSE server that does not answer.

After the mount nothing of the disk is in memory. What is looked at then stays there, and is answered without the
server; the first call that needs a block that is not there sleeps until the server answers, and no signal ends it.
What was read is locked in memory: a machine that reclaims pages nobody uses would make another call the first.

The content of a file is another matter: a process that waits for it sleeps as well, but SIGKILL ends it. So a marker
hangs where it is opened, at its inode.

Not here: the mounts (``rig``), what must hold.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.hung.rig import Broker

_FLUSH_BUFFERS: Final = 0x1261
"""BLKFLSBUF: of a block device nothing is kept in memory that is not in use."""
_IN_A_BLOCK: Final = 16
"""Inodes of 256 bytes."""
_HOLES: Final = 128
"""More inodes than are free between those in use."""
_CACHESTAT: Final = 451
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p


class Point(NamedTuple):
    """What is in memory when the disk begins to hang."""

    call: str
    """The function of the kernel in which a worker then sleeps."""
    cold: tuple[str, ...] = ()
    """Names of files whose inodes are not in memory; those of all others are."""
    is_listed: bool = True
    """Whether the directories of replicas can be listed."""
    is_looked_at: bool = True
    """Whether anything was."""


POINTS: Final = {
    "opening": Point("path_lookupat", is_looked_at=False),
    "listing": Point("iterate_dir", is_listed=False),
    "reading a marker": Point("path_openat", cold=("partition.metadata", "replica.json")),
}
LOCKING: Final = Point("path_openat", cold=(".lock",))


def tops(broker: Broker) -> tuple[Path, Path]:
    """Return the log dir and the work root on the sick disk."""
    return broker.sick, Path(f"{broker.sick}.logdird")


def set_apart(broker: Broker, point: Point) -> None:
    """Put each cold file of a point into an inode that shares its block of the disk with no file that is looked at."""
    beside = broker.sick.parent / "beside"
    beside.mkdir()
    numbers = iter(range(1 << 20))

    def fill(count: int) -> None:
        for _ in range(count):
            (beside / str(next(numbers))).touch()

    fill(_HOLES)
    for path in [path for path, is_cold in _files(broker, point) if is_cold]:
        fill(_IN_A_BLOCK)
        new = path.with_name(f"{path.name}.new")
        new.write_bytes(path.read_bytes())
        new.replace(path)
    fill(_IN_A_BLOCK)


@contextmanager
def cooled(broker: Broker, image: Path, point: Point) -> Iterator[None]:
    """Read of a disk that was just mounted all but what a point leaves cold, and keep the rest in memory meanwhile.

    Args:
        broker: Its second log dir lies on the disk.
        image: The image of the disk, on the FUSE server.
        point: The point.
    """
    device = broker.sick.parent.stat().st_dev
    name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
    # No block of inodes is read because one near it is, and none stays that the mount has read so.
    Path(f"/sys/fs/ext4/{name}/inode_readahead_blks").write_text("0")
    _drop_blocks(Path("/dev", name))
    if point.is_looked_at:
        for path, is_cold in _files(broker, point):
            if not is_cold:
                path.read_bytes()
    if not point.is_listed:
        _drop_blocks(Path("/dev", name))
        # What a command that changes does before it looks at replicas is answered: it looks up names in its work root,
        # and writes to files there.
        for entry in os.scandir(tops(broker)[1]):
            os.utime(entry, ns=(entry.stat().st_atime_ns, entry.stat().st_mtime_ns))
    if point.is_looked_at:
        # Which blocks are free is known: what a command writes before it comes to the point is written.
        with (broker.sick.parent / "written").open("wb") as file:
            file.write(bytes(1))
            file.flush()
            os.fsync(file.fileno())
    # What the loop device has read of its image is in memory a second time, as pages of that file.
    descriptor = os.open(image, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    with _kept(Path("/dev", name)):
        yield


@contextmanager
def _kept(device: Path) -> Iterator[None]:
    """Lock in memory what is there of a device, and read nothing: mmap(2), cachestat(2), mlock(2)."""
    descriptor = os.open(device, os.O_RDONLY)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        # Not by ``mmap``: it hands out no address of a mapping that is only read, and locking one that is private and
        # written to locks copies.
        shown = _LIBC.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, descriptor, ctypes.c_long(0))
        _require(shown != ctypes.c_void_p(-1).value, "mmap")
        for at in range(0, size, mmap.PAGESIZE):
            if _is_in_memory(descriptor, at):
                page = ctypes.c_void_p(shown + at)
                _require(_LIBC.mlock(page, ctypes.c_size_t(mmap.PAGESIZE)) == 0, "mlock")
        # What is not locked goes now, on every machine, not at some time on some.
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        yield
        _LIBC.munmap(ctypes.c_void_p(shown), ctypes.c_size_t(size))
    finally:
        os.close(descriptor)


def _is_in_memory(descriptor: int, at: int) -> bool:
    """Whether a page of a device is; mincore(2) does not see what a file system has read of its own."""
    where = (ctypes.c_uint64 * 2)(at, mmap.PAGESIZE)
    counts = (ctypes.c_uint64 * 5)()
    _require(_LIBC.syscall(_CACHESTAT, descriptor, where, counts, 0) == 0, "cachestat")
    return counts[0] > 0


def _require(is_done: bool, call: str) -> None:
    if not is_done:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), call)


def _drop_blocks(device: Path) -> None:
    """Forget blocks of directories and of inodes; names, inodes and the content of files stay in memory."""
    descriptor = os.open(device, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _FLUSH_BUFFERS, 0)
    finally:
        os.close(descriptor)


def _files(broker: Broker, point: Point) -> Iterator[tuple[Path, bool]]:
    """Yield every file, and whether it is to be cold; looks up none, but every directory."""
    for top in tops(broker):
        for base, _, files in os.walk(top):
            Path(base).stat()
            for name in files:
                yield Path(base, name), name in point.cold
