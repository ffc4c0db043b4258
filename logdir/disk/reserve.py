"""The room a work root keeps for the day the disk is full: written, so that it is really there.

It is given up by ``failure.give_up_reserve`` and put back here.

Spec: design §3.2, §3.4; attacks A10.
"""

from __future__ import annotations

import hashlib

from logdir.disk.calls import Directory, Owner, Space
from logdir.disk.failure import is_full
from logdir.disk.small_file import read_file, replace_file
from logdir.observe.classify import RESERVE

RESERVE_BYTES = 4 * 1024 * 1024
REFILL_PERCENT = 5
"""How much of the disk must be free before the room is taken again."""


def content(size_bytes: int, seed: str = "") -> bytes:
    """Return bytes that no file system can store in fewer (btrfs compresses zeros to nothing)."""
    return hashlib.shake_256(f"reserve {seed}".encode("utf-8", "surrogatepass")).digest(size_bytes)


def is_full_size(root: Directory, reserve_bytes: int = RESERVE_BYTES) -> bool:
    """Whether the reserve is all there."""
    try:
        return root.stat(RESERVE).size_bytes == reserve_bytes
    except FileNotFoundError:
        return False


def put_reserve(root: Directory, owner: Owner, reserve_bytes: int = RESERVE_BYTES) -> None:
    """Write the reserve unless it is all there. Durable.

    Raises:
        DiskError: as ``replace_file``.
        OSError: no room, or no rights.
    """
    if not is_full_size(root, reserve_bytes):
        before = read_file(root, RESERVE)
        replace_file(
            root, RESERVE, content(reserve_bytes, root.path), before=before, owner=owner, work=root, keep=False
        )


def has_room(space: Space) -> bool:
    """Whether enough of the disk is free to take the room again."""
    return space.free_bytes * 100 >= space.total_bytes * REFILL_PERCENT


def refill_reserve(root: Directory, owner: Owner, reserve_bytes: int = RESERVE_BYTES) -> bool:
    """Write the reserve again if it was given up and there is room.

    Returns:
        Whether it is all there now.

    Raises:
        DiskError: as ``replace_file``.
        OSError: anything but a full disk.
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
