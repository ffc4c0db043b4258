"""System calls that Python's ``os`` module lacks, by ``ctypes``.

Only ``host`` uses them to change a disk. Errors are ``OSError`` with the path that the caller gives.

Spec: reliability appendix; statx(2), renameat2(2), linkat(2), syncfs(2), sync_file_range(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from logdir.disk.kernel.calls import Identity

_LIBC = ctypes.CDLL(None, use_errno=True)
_NOREPLACE = 1
_EMPTY_PATH = 0x1000
_SYMLINK_FOLLOW = 0x400
_AT_FDCWD = -100
_WRITE_OUT = 2
_STATX_INO = 0x100
_STATX_MNT_ID = 0x1000
_STATX = struct.Struct("=I28xQ96xIIQ104x")
"""``struct statx``: its mask, inode, major and minor device, and mount id."""
_STATX_BUFFER = ctypes.c_char * _STATX.size


def identity(descriptor: int, path: str) -> Identity:
    """Return device, inode and mount of an open file or directory."""
    buffer = _STATX_BUFFER()
    if _LIBC.statx(descriptor, b"", _EMPTY_PATH, _STATX_INO | _STATX_MNT_ID, buffer) != 0:
        raise _failed(path)
    mask, inode, major, minor, mount_id = _STATX.unpack_from(buffer)
    if not mask & _STATX_MNT_ID:
        # Kernels before 5.8 do not report the mount id; /proc does.
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
            mount_id = next(int(line.split()[1]) for line in file if line.startswith("mnt_id:"))
    return Identity(os.makedev(major, minor), inode, mount_id)


def rename_new(parent: int, name: str, to: int, new_name: str, path: str) -> None:
    """Rename an entry; never replaces another entry.

    Args:
        parent: Descriptor of the directory that holds it.
        name: Its name.
        to: Descriptor of the target directory.
        new_name: Its new name there.
        path: Path of the entry, for the error.
    """
    if _LIBC.renameat2(parent, os.fsencode(name), to, os.fsencode(new_name), _NOREPLACE) != 0:
        raise _failed(path)


def link_unnamed(descriptor: int, parent: int, name: str) -> None:
    """Give a file without a name a name in an open directory; never replaces an entry."""
    link, goal = f"/proc/self/fd/{descriptor}".encode("ascii"), os.fsencode(name)
    if _LIBC.linkat(_AT_FDCWD, link, parent, goal, _SYMLINK_FOLLOW) == 0:
        return
    # Without /proc, linking the descriptor itself works for root, and since Linux 6.10 for every user.
    is_missing = ctypes.get_errno() == errno.ENOENT
    if not is_missing or _LIBC.linkat(descriptor, b"", parent, goal, _EMPTY_PATH) != 0:
        raise _failed(name)


def sync_file_system(descriptor: int, path: str) -> None:
    """Make everything on the file system of an open directory durable."""
    if _LIBC.syncfs(descriptor) != 0:
        raise _failed(path)


def start_writeback(descriptor: int) -> None:
    """Start to write a file's dirty pages to its disk. Makes nothing durable, and never fails.

    It does not wait for the pages, only for room in the queue of the device. An error of the disk is left to the
    ``fsync`` that follows.
    """
    _LIBC.sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), _WRITE_OUT)


def _failed(path: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), path)
