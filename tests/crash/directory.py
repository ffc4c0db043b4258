"""An open directory of the model: ``logdir.disk.kernel.calls.Directory`` in memory.

Not here: what a call does to the tree (``filesystem``), numbering and failing of calls (``model``).

Spec: ``logdir.disk.kernel.calls``; reliability §4.4.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from logdir.disk.kernel.calls import Directory, Identity, Owner, Space, Stat
from logdir.disk.kernel.host import Call
from logdir.observe.classify import Type
from tests.crash.filesystem import FileSystem, failure
from tests.crash.tree import Node

if TYPE_CHECKING:
    from tests.crash.model import ModelHost

_BLOCK_BYTES = 4096
TwoNames = Callable[[int, str, str, int, str, str], None]
"""What takes two directories and names of one disk, and their paths."""


def _component(name: str) -> str:
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"not a single path component: {name!r}")
    return name


def directory_node(system: FileSystem, at: int, name: str, path: str) -> Node:
    """Return the node of an entry that is a directory."""
    node = system.find(at, name, path)
    if node.type is not Type.DIRECTORY:
        raise failure(errno.ENOTDIR, path)
    return node


def _not_short(number: int) -> None:
    raise OSError(number, "planned")


class ModelDirectory:
    """An open directory of a model host."""

    __slots__ = ("_host", "_inode", "_is_open", "_path", "_system")

    def __init__(self, host: ModelHost, system: FileSystem, inode: int, path: str) -> None:
        self._host = host
        self._system = system
        self._inode = inode
        self._path = path
        self._is_open = True

    @property
    def path(self) -> str:
        """Where it was opened."""
        return self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; closing twice does nothing."""
        self._is_open = False

    def _at(self, name: str) -> str:
        return f"{self._path}/{_component(name)}"

    def _open(self) -> int:
        if not self._is_open:
            raise failure(errno.EBADF, self._path)
        if self._system.status == "absent":
            raise failure(errno.EIO, self._path)
        return self._inode

    def _perform(
        self,
        name: str,
        path: str,
        act: Callable[[int], None],
        *,
        to: str = "",
        short: Callable[[int], None] = _not_short,
    ) -> None:
        self._host.perform(Call(name, path, to), self._system, lambda: act(self._open()), short)

    def _goal(self, to: Directory) -> ModelDirectory:
        if not isinstance(to, ModelDirectory) or to._host is not self._host:
            raise TypeError(f"two directories of one call lie on one kind of disk: {to!r}")
        return to

    # Looking.

    def names(self) -> list[str]:
        """Return the names of all entries, sorted."""
        return sorted(self._system.nodes[self._open()].entries)

    def types(self) -> dict[str, Type]:
        """Return what every entry is, by its name, sorted."""
        return {name: self.stat(name).type for name in self.names()}

    def _stat(self, node: Node) -> Stat:
        links = self._system.link_count(node)
        size = _BLOCK_BYTES if node.type is Type.DIRECTORY else len(node.data)
        return Stat(node.type, self._system.device, node.inode, links, size, node.mtime_ns, node.ctime_ns, node.owner)

    def stat(self, name: str) -> Stat:
        """Return what an entry is; a link is not followed."""
        path = self._at(name)
        return self._stat(self._system.find(self._open(), name, path))

    def own_stat(self) -> Stat:
        """Return what this directory is."""
        return self._stat(self._system.nodes[self._open()])

    def identity(self) -> Identity:
        """Return which directory this is."""
        return Identity(self._system.device, self._open(), self._system.device)

    def space(self) -> Space:
        """Return what is left."""
        total = self._system.capacity_bytes
        return Space(max(0, total - self._system.used_bytes()), self._system.free_inodes(), total, 1 << 20)

    def require_changeable(self) -> None:
        """Return if entries can be made and removed here."""
        self._open()
        if self._system.status == "read-only":
            raise failure(errno.EROFS, self.path)

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a regular file, at most ``limit`` + 1 bytes of it."""
        path = self._at(name)
        return self._system.regular(self._open(), name, path).data[: limit + 1]

    def open(self, name: str) -> ModelDirectory:
        """Open a directory in this one."""
        path = self._at(name)
        node = directory_node(self._system, self._open(), name, path)
        if any(system.mount == path for system in self._host.systems):
            raise failure(errno.EXDEV, path)
        return ModelDirectory(self._host, self._system, node.inode, path)

    # Changing.

    def make(self, name: str, owner: Owner) -> None:
        """Make a directory that belongs to ``owner``."""
        path, process, make = self._at(name), self._host.process, self._system.make
        self._perform(
            "mkdir",
            path,
            lambda at: make(at, name, path, owner, process),
            short=lambda number: make(self._open(), name, path, owner, process, short=number),
        )

    def write(self, name: str, data: bytes, owner: Owner, mtime_ns: int | None = None) -> None:
        """Make a new file with this content that belongs to ``owner``."""
        path, process, write = self._at(name), self._host.process, self._system.write
        self._perform(
            "write",
            path,
            lambda at: write(at, name, path, data, owner, mtime_ns, process),
            short=lambda number: write(self._open(), name, path, data, owner, mtime_ns, process, short=number),
        )

    def _two(self, call: str, act: Callable[[FileSystem], TwoNames], name: str, to: Directory, new_name: str) -> None:
        goal = self._goal(to)
        path, new_path = self._at(name), goal._at(new_name)

        def do(at: int) -> None:
            new = goal._open()
            if goal._system is not self._system:
                if call == "link":
                    self._system.find(at, name, path)
                    if new_name in goal._system.nodes[new].entries:
                        raise failure(errno.EEXIST, new_path)
                raise failure(errno.EXDEV, path)
            act(self._system)(at, name, path, new, new_name, new_path)

        self._perform(call, path, do, to=new_path)

    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """Rename an entry, never over another."""
        self._two("rename", lambda system: system.rename, name, to, new_name)

    def replace(self, name: str, new_name: str) -> None:
        """Rename a file within this directory over another."""
        path = self._at(name)
        to = self._at(new_name)
        self._perform("replace", path, lambda at: self._system.replace(at, name, new_name, path), to=to)

    def link(self, name: str, to: Directory, new_name: str) -> None:
        """Give a regular file a second name."""
        self._two("link", lambda system: system.link, name, to, new_name)

    def unlink(self, name: str) -> None:
        """Remove a name that is no directory's."""
        path = self._at(name)
        self._perform("unlink", path, lambda at: self._system.unlink(at, name, path))

    def remove(self, name: str) -> None:
        """Remove an empty directory."""
        path = self._at(name)
        self._perform("rmdir", path, lambda at: self._system.remove(at, name, path))

    def truncate(self, name: str, size_bytes: int) -> None:
        """Make a regular file shorter."""
        path = self._at(name)
        self._perform("truncate", path, lambda at: self._system.truncate(at, name, path, size_bytes))

    def adopt(self, name: str, owner: Owner) -> None:
        """Give an entry, not followed, an owner and a mode."""
        path, process = self._at(name), self._host.process
        self._perform("chown", path, lambda at: self._system.adopt(at, name, path, owner, process))

    # Making durable.

    def start_writeback(self, name: str) -> None:
        """Do nothing: the next sync has to make the file durable, as on a disk."""

    def sync_file(self, name: str) -> None:
        """Make the content of a file durable."""
        path, sync = self._at(name), self._system.sync

        def inode() -> int:
            return self._system.regular(self._open(), name, path).inode

        self._perform(
            "fsync", path, lambda _: sync(inode(), path), short=lambda number: sync(inode(), path, failed=number)
        )

    def sync_files(self, names: Sequence[str]) -> None:
        """Make the content of files durable, in order."""
        for name in names:
            self.sync_file(name)

    def _sync(self, call: str, inode: int) -> None:
        path, sync = self._path, self._system.sync
        self._perform(call, path, lambda _: sync(inode, path), short=lambda number: sync(inode, path, failed=number))

    def sync(self) -> None:
        """Make the entries of this directory durable."""
        self._sync("fsync-dir", self._inode)

    def sync_disk(self) -> None:
        """Make everything on this file system durable."""
        self._sync("syncfs", 0)
