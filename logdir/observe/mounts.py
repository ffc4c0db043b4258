"""The mount table, from ``/proc/self/mountinfo``.

A bind mount can have the same device number as its parent directory, so the mount table is needed as well (law 10).

Spec: proc(5), mountinfo; design §2 law 10.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from logdir.worker_call import worker_call

MOUNTINFO = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """One mounted file system."""

    point: bytes
    fs_type: str
    mount_id: str
    """As ``/proc/PID/fdinfo`` shows it for a file opened there."""
    device: str
    """Major and minor number, as ``8:1``; on btrfs not that of ``fstat``, which is a subvolume's."""


def parse_mountinfo(data: bytes) -> tuple[Mount, ...]:
    r"""Read mountinfo text; lines it does not understand are passed over.

    >>> parse_mountinfo(b"29 1 8:1 / /a\\040b rw shared:1 - ext4 /dev/sda1 rw")
    (Mount(point=b'/a b', fs_type='ext4', mount_id='29', device='8:1'),)
    """
    mounts = []
    for line in data.splitlines():
        left, separator, right = line.partition(b" - ")
        fields, kind = left.split(b" "), right.split(b" ")[0]
        if separator and len(fields) >= 5:
            point = _ESCAPED.sub(lambda found: bytes([int(found[1], 8) & 0xFF]), fields[4])
            mount_id, device, fs_type = (one.decode("ascii", "replace") for one in (fields[0], fields[2], kind))
            mounts.append(Mount(point, fs_type, mount_id, device))
    return tuple(mounts)


def read_mounts(path: str = MOUNTINFO) -> tuple[Mount, ...]:
    """Return the mounts of this process, in mount order; empty if the kernel does not show them."""
    try:
        with open(path, "rb") as file:
            return parse_mountinfo(file.read())
    except OSError:
        return ()


def fs_type_of(mounts: tuple[Mount, ...], real_path: bytes) -> str | None:
    """Return the file system type at an absolute path without links; ``None`` if no mount contains it."""
    best: Mount | None = None
    for mount in mounts:
        prefix = mount.point.rstrip(b"/") + b"/"
        holds = real_path == mount.point or real_path.startswith(prefix)
        # Of equal mount points the later one is on top.
        if holds and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return None if best is None else best.fs_type


def mounted_below(mounts: tuple[Mount, ...], real_path: bytes) -> frozenset[bytes]:
    """Return the paths, relative to ``real_path``, on which something is mounted."""
    prefix = real_path.rstrip(b"/") + b"/"
    return frozenset(os.path.normpath(m.point[len(prefix) :]) for m in mounts if m.point.startswith(prefix))


@worker_call
def owner_at(path: str) -> tuple[int, int] | None:
    """Return user and group of the directory that a path leads to, links followed; ``None`` if it cannot be read."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a scan starts with few imports
    except OSError:
        return None
    return found.st_uid, found.st_gid


@worker_call
def identity_at(path: str) -> tuple[int, int] | None:
    """Return device and inode of the directory that a path leads to, links followed; ``None`` if it cannot be read."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a scan starts with few imports
    except OSError:
        return None
    return found.st_dev, found.st_ino
