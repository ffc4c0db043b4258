"""The calls by which a disk is looked at and changed, as protocols: ``io`` does them for real, a model in tests.

A ``Directory`` is an open directory. Everything is named relative to one, by a single path component; nothing is
followed, nothing crosses a device or mount. There are no other calls: an operation that needs more than these is not
an operation of this project.

Every method raises ``OSError`` with the kernel's errno and has then changed nothing, unless it says otherwise.

Spec: design §2 laws 2, 9, 10; reliability §4.2, §5.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Protocol, Self

from logdir.observe.classify import Type


class Owner(NamedTuple):
    """To whom a file or directory belongs, and who may do what with it."""

    uid: int
    gid: int
    mode: int
    """Permission bits only."""

    def for_file(self) -> Owner:
        """Return the owner of a file in a directory of this owner: nobody may execute it."""
        return self._replace(mode=self.mode & 0o666)


class Stat(NamedTuple):
    """What ``lstat`` says of an entry."""

    type: Type
    device: int
    inode: int
    links: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    owner: Owner


class Identity(NamedTuple):
    """Which directory a path leads to now: two are the same only if all three are equal."""

    device: int
    inode: int
    mount_id: int


class Space(NamedTuple):
    """What a file system has left for a process without privileges."""

    free_bytes: int
    free_inodes: int
    total_bytes: int
    total_inodes: int = 0
    """0: it counts none, and makes them as they are needed (btrfs)."""


class Directory(Protocol):
    """An open directory of one disk."""

    @property
    def path(self) -> str:
        """Where it was opened: for messages, never for a call."""

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
        """Return what every entry is, by its name, sorted; a link is not followed. Costs little more than the names."""

    def stat(self, name: str) -> Stat:
        """Return what an entry is; a link is not followed."""

    def own_stat(self) -> Stat:
        """Return what this directory is."""

    def identity(self) -> Identity:
        """Return which directory this is."""

    def space(self) -> Space:
        """Return what is left on its file system."""

    def require_changeable(self) -> None:
        """Return if this process may make and remove entries here.

        Raises:
            OSError: ``EROFS``, ``EACCES``.
        """

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a regular file, at most ``limit`` + 1 bytes of it.

        Raises:
            OSError: ``ELOOP`` for a link, ``EINVAL`` for anything else that is no regular file.
        """

    def open(self, name: str) -> Directory:
        """Open a directory in this one.

        Raises:
            OSError: ``ELOOP`` or ``ENOTDIR`` for what is no directory, ``EXDEV`` for one on another device or mount.
        """

    # Changing.

    def make(self, name: str, owner: Owner) -> None:
        """Make a directory. Fails with ``EEXIST``; a failure after that leaves an empty directory."""

    def write(self, name: str, data: bytes, owner: Owner, mtime_ns: int | None = None) -> None:
        """Make a new file with this content, whole and given away before it has its name.

        Fails with ``EEXIST``. A failure leaves nothing; on a file system that makes no file without a name, a part of a
        file.
        """

    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """Rename an entry, also into another directory of the same disk. Never replaces: ``EEXIST``."""

    def replace(self, name: str, new_name: str) -> None:
        """Rename a file within this directory over another, which is gone then."""

    def link(self, name: str, to: Directory, new_name: str) -> None:
        """Give a regular file a second name. Never replaces: ``EEXIST``."""

    def unlink(self, name: str) -> None:
        """Remove a name that is no directory's."""

    def remove(self, name: str) -> None:
        """Remove an empty directory."""

    def truncate(self, name: str, size_bytes: int) -> None:
        """Make a regular file shorter."""

    def adopt(self, name: str, owner: Owner) -> None:
        """Give an entry, not followed, an owner and a mode."""

    # Making durable.

    def sync_file(self, name: str) -> None:
        """Make the content of a file durable (``fsync``). A failure is final: never called again after it."""

    def sync(self) -> None:
        """Make the entries of this directory durable (``fsync``). A failure is final."""

    def sync_disk(self) -> None:
        """Make everything on this file system durable (``syncfs``). A failure is final."""


class Disk(Protocol):
    """How the first directory of a path is opened; everything after is relative to it."""

    def open_top(self, path: str) -> Directory:
        """Open a directory by its absolute path; its last component may not be a link.

        Raises:
            OSError: it is not there, or no directory.
        """
