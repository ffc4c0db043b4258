"""Protocols of all calls that read or change a disk: ``host`` makes them for real, tests have a model disk.

A ``Directory`` is an open directory. Each call names an entry relative to one, by a single path component. No call
follows a link or crosses a device or mount. There are no other calls: an operation may use only these.

A method that fails raises ``OSError`` with the kernel's errno and has changed nothing, unless its docstring says
otherwise.

Spec: design §2 laws 2, 9, 10; reliability §4.2, §5.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from logdir.observe.classify import Type


class Owner(NamedTuple):
    """Owner, group and permissions of a file or directory."""

    uid: int
    gid: int
    mode: int
    """Permission bits only."""

    def for_file(self) -> Owner:
        """Return the owner for a file in a directory of this owner: the same, without the execute permissions."""
        return self._replace(mode=self.mode & 0o666)


class Stat(NamedTuple):
    """The result of ``lstat`` for an entry."""

    type: Type
    device: int
    inode: int
    links: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    owner: Owner


class Identity(NamedTuple):
    """The identity of an open directory: two directories are the same only if device, inode and mount are equal."""

    device: int
    inode: int
    mount_id: int


class Space(NamedTuple):
    """Free space of a file system, for a process without privileges."""

    free_bytes: int
    free_inodes: int
    total_bytes: int
    total_inodes: int = 0
    """The number of inodes; 0 if the file system creates them on demand and counts none (btrfs)."""
    fs_id: int = 0
    """The same for all directories of one file system (``f_fsid``); 0: not known."""


class Directory(Protocol):
    """An open directory of one disk."""

    @property
    def path(self) -> str:
        """The path it was opened with: for messages, never for a call."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close it."""

    def close(self) -> None:
        """Close it; closing twice does nothing."""

    # Looking.

    def names(self) -> list[str]:
        """Return the names of all entries, sorted; bytes that are not UTF-8 as surrogate escapes."""

    def types(self) -> dict[str, Type]:
        """Return the type of every entry, by name, sorted; links are not followed. Costs little more than ``names``."""

    def stat(self, name: str) -> Stat:
        """Return the status of an entry; a link is not followed."""

    def own_stat(self) -> Stat:
        """Return the status of this directory."""

    def identity(self) -> Identity:
        """Return the identity of this directory."""

    def space(self) -> Space:
        """Return the free space of its file system."""

    def require_changeable(self) -> None:
        """Check that this process may make and remove entries here.

        Raises:
            OSError: ``EROFS``: the file system is mounted read-only; ``EACCES``: a permission is missing.
        """

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a regular file, at most ``limit`` + 1 bytes of it.

        Raises:
            OSError: ``ELOOP`` for a link, ``EINVAL`` for any other entry that is not a regular file.
        """

    def open(self, name: str) -> Directory:
        """Open a directory in this one.

        Raises:
            OSError: ``ELOOP`` or ``ENOTDIR`` if the entry is no directory, ``EXDEV`` if it lies on another device or
                mount.
        """

    # Changing.

    def make(self, name: str, owner: Owner) -> None:
        """Create a directory. Fails with ``EEXIST``; a later failure leaves an empty directory."""

    def write(self, name: str, data: bytes, owner: Owner, mtime_ns: int | None = None) -> None:
        """Create a file with this content; it has its content and owner before it gets its name.

        Fails with ``EEXIST``. A failure leaves nothing, or an incomplete file on a file system without ``O_TMPFILE``.
        """

    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """Rename an entry, possibly into another directory of the same disk. Never replaces an entry: ``EEXIST``."""

    def replace(self, name: str, new_name: str) -> None:
        """Rename a file within this directory over another file, which is removed by that."""

    def link(self, name: str, to: Directory, new_name: str) -> None:
        """Create a hard link to a regular file. Never replaces an entry: ``EEXIST``."""

    def unlink(self, name: str) -> None:
        """Remove an entry that is no directory."""

    def remove(self, name: str) -> None:
        """Remove an empty directory."""

    def truncate(self, name: str, size_bytes: int) -> None:
        """Shorten a regular file."""

    def adopt(self, name: str, owner: Owner) -> None:
        """Set owner and mode of an entry; a link is not followed."""

    # Making durable.

    def start_writeback(self, name: str) -> None:
        """Start to write the content of a file to the disk, so that one commit of a journal serves the syncs of many.

        It makes nothing durable: without ``sync_file`` it is as if it was not called. Like every call it raises
        ``OSError`` if the file cannot be opened.
        """

    def sync_file(self, name: str) -> None:
        """Make the content of a file durable (``fsync``). A failure is final: never called again after it."""

    def sync_files(self, names: Sequence[str]) -> None:
        """Make the content of files durable, in order, as ``sync_file``: their syncs share what they wait for."""

    def sync(self) -> None:
        """Make the entries of this directory durable (``fsync``). A failure is final."""

    def sync_disk(self) -> None:
        """Make everything on this file system durable (``syncfs``). A failure is final."""


class Disk(Protocol):
    """Opens a directory by its absolute path; every other call is relative to a directory that is open."""

    def open_top(self, path: str) -> Directory:
        """Open a directory by its absolute path; its last component may not be a link.

        Raises:
            OSError: the path does not exist, or is no directory.
        """
