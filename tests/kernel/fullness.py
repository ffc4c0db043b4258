"""File systems on which nothing more fits: not a byte, or not an inode, or neither.

Spec: design §3.4; attacks A10; reliability §7 row 21.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

FILLER = "filler"
"""The directory at the top of a file system that holds what fills it."""
HOWS = ("bytes", "inodes", "bytes and inodes")
"""What there is none left of."""
MAKING: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "ext4": (32, ("-m", "0")),
    "xfs": (64, ("-i", "maxpct=1")),
    # Its metadata has room of its own as on a disk of any size, which a tiny one is too small for.
    "btrfs": (1024, ("-m", "dup")),
}
"""How large each file system is made that is to be filled, and how."""
UNJUDGED = frozenset({FILLER, "reserve", "spare-inodes"})
"""What fills a disk, and what may be given up then."""
_RESERVE_BYTES = 4 << 20
_SPARES = 64
_ALLOCATED = (1 << 28, 1 << 24, 1 << 20, 1 << 16, 1 << 12)
_WRITTEN = (1 << 9, 1)
_SMALL_BYTES = 1024
_ENOUGH = 1 << 20


class Left(NamedTuple):
    """What a file system says is free."""

    bytes: int
    inodes: int


def left(path: Path) -> Left:
    """Return what is free."""
    found = os.statvfs(path)
    return Left(found.f_bavail * found.f_frsize, found.f_favail)


def counts_inodes(path: Path) -> bool:
    """Whether a file system has an end of inodes: btrfs makes them as they are needed."""
    return os.statvfs(path).f_files > 0


def furnish(top: Path) -> None:
    """Give every work root below a directory the reserve and the spare inodes that ``init`` makes."""
    for folder, folders, _ in os.walk(top):
        if {"deleting", "incoming"} <= set(folders):
            work = Path(folder)
            spare = work / "spare-inodes"
            spare.mkdir()
            made = [work / "reserve", spare]
            if counts_inodes(top):
                made += [spare / str(number) for number in range(_SPARES)]
            made[0].write_bytes(os.urandom(_RESERVE_BYTES))
            for path in made[2:]:
                path.touch()
            for path in made:
                os.chown(path, work.stat().st_uid, work.stat().st_gid)
            made[0].chmod(work.stat().st_mode & 0o666)


def fill(path: Path, how: str) -> None:
    """Leave nothing of this.

    Args:
        path: The top of a file system.
        how: One of ``HOWS``.
    """
    folder = path / FILLER
    folder.mkdir(exist_ok=True)
    serial = len(os.listdir(folder))
    # Opened first: without an inode no file can be made.
    with (folder / "whole").open("ab", buffering=0) as file:
        if "inodes" in how:
            _until_full((folder / f"{serial}.i{number}").touch for number in range(_ENOUGH))
        if "bytes" in how:
            for chunk in _ALLOCATED:
                _until_full(partial(_append_allocated, file.fileno(), chunk) for _ in range(_ENOUGH))
            # Where bytes lie in trees, every one that does not fit makes the kernel look everywhere for room.
            for chunk in _WRITTEN if counts_inodes(path) else ():
                data = os.urandom(chunk)
                _until_full(partial(file.write, data) for _ in range(_ENOUGH))
            with suppress(OSError):
                os.fsync(file.fileno())
    if how == "bytes" and counts_inodes(path):
        data = os.urandom(_SMALL_BYTES)
        _until_full(partial((folder / f"{serial}.s{number}").write_bytes, data) for number in range(_ENOUGH))


def _append_allocated(descriptor: int, size: int) -> None:
    os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, size)


def _until_full(calls: Iterable[Callable[[], object]]) -> None:
    for call in calls:
        try:
            call()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            return
    raise AssertionError("there is no end of room")
