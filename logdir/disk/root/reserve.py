"""The reserve of a work root for a full disk: allocated bytes, and spare inodes.

A marker needs an inode and a few bytes, and a file system may run out of either. So some empty files lie beside the
reserve; one is removed when a file of ours must be created. A file system that creates inodes on demand and counts none
(btrfs) gets no such files.

``failure.with_reserve`` releases both; this module restores them.

Spec: design §3.2, §3.4; attacks A10.
"""

from __future__ import annotations

import hashlib

from logdir.disk.kernel.calls import Directory, Owner, Space
from logdir.disk.kernel.failure import calling, is_full
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.small_file import read_file, replace_file
from logdir.errors import Problem
from logdir.paths import RESERVE, SPARE

RESERVE_BYTES = 4 * 1024 * 1024
_BYTES_PER_INODE = 64 * 1024
"""Bytes of the reserve per spare inode: 64 inodes for the whole reserve."""
SLUG_SPENT = "reserve-spent"
"""Slug of the problem that the reserve could not be restored."""
REFILL_PERCENT = 5
"""Share of the disk that must be free before the reserve is written again."""


def content(size_bytes: int, seed: str = "") -> bytes:
    """Return bytes, the same for one ``seed``, that no file system can compress (btrfs makes nothing of zeros)."""
    return hashlib.shake_256(f"reserve {seed}".encode("utf-8", "surrogatepass")).digest(size_bytes)


def is_full_size(root: Directory, reserve_bytes: int = RESERVE_BYTES) -> bool:
    """Whether the reserve has its full size."""
    try:
        return root.stat(RESERVE).size_bytes == reserve_bytes
    except FileNotFoundError:
        return False


def put_reserve(root: Directory, owner: Owner, reserve_bytes: int = RESERVE_BYTES) -> None:
    """Write the reserve unless it has its full size. Durable.

    Raises:
        DiskError: as ``replace_file``.
        OSError: no space, or no permission.
    """
    if not is_full_size(root, reserve_bytes):
        before = read_file(root, RESERVE)
        replace_file(
            root, RESERVE, content(reserve_bytes, root.path), before=before, owner=owner, work=root, keep=False
        )


def has_room(space: Space) -> bool:
    """Whether enough of the disk is free to write the reserve again."""
    return space.free_bytes * 100 >= space.total_bytes * REFILL_PERCENT


def refill_reserve(root: Directory, owner: Owner, reserve_bytes: int = RESERVE_BYTES) -> bool:
    """Write the reserve again if it was released and there is room.

    Returns:
        Whether it has its full size now.

    Raises:
        DiskError: as ``replace_file``.
        OSError: any error other than a full disk.
    """
    if is_full_size(root, reserve_bytes):
        return True
    if not has_room(root.space()):
        return False
    try:
        put_reserve(root, owner, reserve_bytes)
    except OSError as error:
        if is_full(error):
            return False
        raise
    return True


def put_back(work: Directory, owner: Owner, reserve_bytes: int = RESERVE_BYTES) -> Problem | None:
    """Restore the reserve and the spare inodes after a full disk. Changes nothing else. Durable.

    Args:
        work: A work root; its owner lock is held.
        owner: Owner of its files.
        reserve_bytes: Size of the reserve.

    Returns:
        What could not be restored, and why; ``None`` if nothing is missing.

    Raises:
        ReadOnlyDiskError: a sync failed, or the disk is sick.
    """
    try:
        with calling(work):
            if work.stat(RESERVE).size_bytes == 0 and not refill_reserve(work, owner, reserve_bytes):
                percent = f"{REFILL_PERCENT} % of its disk free"
                return _spent(work, RESERVE, "4 MiB", f"0 bytes, and less than {percent}")
            return _put_back_inodes(work, owner, reserve_bytes)
    except FileNotFoundError:
        return None  # the work root is removed
    except OSError as error:
        return _spent(work, RESERVE, "4 MiB, and 64 spare inodes", error.strerror or str(error))


def _put_back_inodes(work: Directory, owner: Owner, reserve_bytes: int) -> Problem | None:
    wanted = len(spare_names(reserve_bytes))
    try:
        with work.open(SPARE) as spare:
            count = len(spare.names())
    except FileNotFoundError:
        return None  # A work root created without a reserve.
    if count >= wanted or not work.space().total_inodes:
        return None
    count = put_inodes(work, owner, reserve_bytes)
    return None if count >= wanted else _spent(work, SPARE, f"{wanted} spare inodes", f"{count}")


def _spent(work: Directory, name: str, expected: str, found: str) -> Problem:
    fix = "free space on that disk: until then it has no reserve for when it is full"
    return Problem(SLUG_SPENT, f"{work.path}/{name}", expected, found, fix)


def spare_names(reserve_bytes: int) -> tuple[str, ...]:
    """Return the names of the spare inode files beside a reserve of this size.

    >>> len(spare_names(RESERVE_BYTES))
    64
    """
    return tuple(map(str, range(reserve_bytes // _BYTES_PER_INODE)))


def put_inodes(root: Directory, owner: Owner, reserve_bytes: int = RESERVE_BYTES) -> int:
    """Create missing spare inodes durably, at most half of the free inodes: the other half is left to other programs.

    Args:
        root: The work root, which holds their directory.
        owner: Owner of the files.
        reserve_bytes: Size of the reserve beside them.

    Returns:
        The number of spare inodes that there are now.

    Raises:
        ReadOnlyDiskError: the sync failed.
        OSError: no permission, or no space.
    """
    with root.open(SPARE) as spare:
        known = set(spare.names())
        missing = [name for name in spare_names(reserve_bytes) if name not in known]
        made = missing[: root.space().free_inodes // 2]
        for name in made:
            spare.write(name, b"", owner)
        if made:
            with syncing(spare):
                spare.sync()
    return len(known) + len(made)
