"""An open directory of a worker, used from another process: every call of ``disk.calls.Directory`` is sent.

The functions run in the worker, the class in its starter. A hot loop does not use this: it is a call of its own
(``calls``).

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, Self, TypeVar

from logdir.disk.kernel.calls import Directory, Identity, Owner, Space, Stat
from logdir.observe.classify import Type
from logdir.worker.state import Handle, WorkerState

P = ParamSpec("P")
R = TypeVar("R")


class Caller(Protocol):
    """What a directory needs of its port."""

    @property
    def is_suspect(self) -> bool:
        """As ``Port.is_suspect``."""

    def run_opened(self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """As ``Port.run_opened``."""


def open_top(opened: WorkerState, path: str) -> Handle:
    """As ``Disk.open_top``."""
    return opened.handle(opened.disk.open_top(path))


def close(opened: WorkerState, at: int) -> None:
    """As ``Directory.close``."""
    opened.close_handle(at)


def names(opened: WorkerState, at: int) -> list[str]:
    """As ``Directory.names``."""
    return opened.directory(at).names()


def types(opened: WorkerState, at: int) -> Mapping[str, Type]:
    """As ``Directory.types``."""
    return opened.directory(at).types()


def stat(opened: WorkerState, at: int, name: str) -> Stat:
    """As ``Directory.stat``."""
    return opened.directory(at).stat(name)


def own_stat(opened: WorkerState, at: int) -> Stat:
    """As ``Directory.own_stat``."""
    return opened.directory(at).own_stat()


def identity(opened: WorkerState, at: int) -> Identity:
    """As ``Directory.identity``."""
    return opened.directory(at).identity()


def space(opened: WorkerState, at: int) -> Space:
    """As ``Directory.space``."""
    return opened.directory(at).space()


def require_changeable(opened: WorkerState, at: int) -> None:
    """As ``Directory.require_changeable``."""
    opened.directory(at).require_changeable()


def read(opened: WorkerState, at: int, name: str, limit: int) -> bytes:
    """As ``Directory.read``."""
    return opened.directory(at).read(name, limit)


def open_in(opened: WorkerState, at: int, name: str) -> Handle:
    """As ``Directory.open``."""
    return opened.handle(opened.directory(at).open(name))


def make(opened: WorkerState, at: int, name: str, owner: Owner) -> None:
    """As ``Directory.make``."""
    opened.directory(at).make(name, owner)


def write(opened: WorkerState, at: int, name: str, data: bytes, owner: Owner, mtime_ns: int | None) -> None:
    """As ``Directory.write``."""
    opened.directory(at).write(name, data, owner, mtime_ns)


def rename(opened: WorkerState, at: int, name: str, to: int, new_name: str) -> None:
    """As ``Directory.rename``."""
    opened.directory(at).rename(name, opened.directory(to), new_name)


def replace(opened: WorkerState, at: int, name: str, new_name: str) -> None:
    """As ``Directory.replace``."""
    opened.directory(at).replace(name, new_name)


def link(opened: WorkerState, at: int, name: str, to: int, new_name: str) -> None:
    """As ``Directory.link``."""
    opened.directory(at).link(name, opened.directory(to), new_name)


def unlink(opened: WorkerState, at: int, name: str) -> None:
    """As ``Directory.unlink``."""
    opened.directory(at).unlink(name)


def remove(opened: WorkerState, at: int, name: str) -> None:
    """As ``Directory.remove``."""
    opened.directory(at).remove(name)


def truncate(opened: WorkerState, at: int, name: str, size_bytes: int) -> None:
    """As ``Directory.truncate``."""
    opened.directory(at).truncate(name, size_bytes)


def adopt(opened: WorkerState, at: int, name: str, owner: Owner) -> None:
    """As ``Directory.adopt``."""
    opened.directory(at).adopt(name, owner)


def sync_file(opened: WorkerState, at: int, name: str) -> None:
    """As ``Directory.sync_file``."""
    opened.directory(at).sync_file(name)


def sync(opened: WorkerState, at: int) -> None:
    """As ``Directory.sync``."""
    opened.directory(at).sync()


def sync_disk(opened: WorkerState, at: int) -> None:
    """As ``Directory.sync_disk``."""
    opened.directory(at).sync_disk()


class RemoteDirectory:
    """A directory that a worker has open."""

    __slots__ = ("_at", "_path", "_port")

    def __init__(self, port: Caller, handle: Handle) -> None:
        self._port = port
        self._at, self._path = handle

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
        """Close it; closing twice, or when its worker is gone, does nothing."""
        if self._at > 0 and not self._port.is_suspect:
            self._port.run_opened(close, self._at)
        self._at = 0

    def names(self) -> list[str]:
        """As ``Directory.names``."""
        return self._port.run_opened(names, self._at)

    def types(self) -> dict[str, Type]:
        """As ``Directory.types``."""
        return dict(self._port.run_opened(types, self._at))

    def stat(self, name: str) -> Stat:
        """As ``Directory.stat``."""
        return self._port.run_opened(stat, self._at, name)

    def own_stat(self) -> Stat:
        """As ``Directory.own_stat``."""
        return self._port.run_opened(own_stat, self._at)

    def identity(self) -> Identity:
        """As ``Directory.identity``."""
        return self._port.run_opened(identity, self._at)

    def space(self) -> Space:
        """As ``Directory.space``."""
        return self._port.run_opened(space, self._at)

    def require_changeable(self) -> None:
        """As ``Directory.require_changeable``."""
        self._port.run_opened(require_changeable, self._at)

    def read(self, name: str, limit: int) -> bytes:
        """As ``Directory.read``."""
        return self._port.run_opened(read, self._at, name, limit)

    def open(self, name: str) -> RemoteDirectory:
        """As ``Directory.open``."""
        return RemoteDirectory(self._port, self._port.run_opened(open_in, self._at, name))

    def make(self, name: str, owner: Owner) -> None:
        """As ``Directory.make``."""
        self._port.run_opened(make, self._at, name, owner)

    def write(self, name: str, data: bytes, owner: Owner, mtime_ns: int | None = None) -> None:
        """As ``Directory.write``."""
        self._port.run_opened(write, self._at, name, data, owner, mtime_ns)

    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """As ``Directory.rename``."""
        self._port.run_opened(rename, self._at, name, self._same(to), new_name)

    def replace(self, name: str, new_name: str) -> None:
        """As ``Directory.replace``."""
        self._port.run_opened(replace, self._at, name, new_name)

    def link(self, name: str, to: Directory, new_name: str) -> None:
        """As ``Directory.link``."""
        self._port.run_opened(link, self._at, name, self._same(to), new_name)

    def unlink(self, name: str) -> None:
        """As ``Directory.unlink``."""
        self._port.run_opened(unlink, self._at, name)

    def remove(self, name: str) -> None:
        """As ``Directory.remove``."""
        self._port.run_opened(remove, self._at, name)

    def truncate(self, name: str, size_bytes: int) -> None:
        """As ``Directory.truncate``."""
        self._port.run_opened(truncate, self._at, name, size_bytes)

    def adopt(self, name: str, owner: Owner) -> None:
        """As ``Directory.adopt``."""
        self._port.run_opened(adopt, self._at, name, owner)

    def sync_file(self, name: str) -> None:
        """As ``Directory.sync_file``."""
        self._port.run_opened(sync_file, self._at, name)

    def sync(self) -> None:
        """As ``Directory.sync``."""
        self._port.run_opened(sync, self._at)

    def sync_disk(self) -> None:
        """As ``Directory.sync_disk``."""
        self._port.run_opened(sync_disk, self._at)

    def _same(self, other: Directory) -> int:
        """Return the handle of another directory of the same worker. Raises ``TypeError``."""
        if not isinstance(other, RemoteDirectory) or other._port is not self._port:
            raise TypeError(f"two directories of one call lie on one log dir: {other!r}")
        return other._at


class RemoteDisk:
    """The file systems of this host as a worker opens them."""

    def __init__(self, port: Caller) -> None:
        self._port = port

    def open_top(self, path: str) -> RemoteDirectory:
        """As ``Disk.open_top``."""
        return RemoteDirectory(self._port, self._port.run_opened(open_top, path))
