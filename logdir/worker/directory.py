"""Remote access to an open directory of a worker: every call of ``disk.kernel.calls.Directory`` is sent to it.

The functions run in the worker; their parameter ``at`` is the number of a handle (``WorkerState``). The classes run in
the process that started the worker. Frequent operations do not use this: each is a call of its own (``calls``).

Spec: design §5 "A port per log dir".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, Self, TypeVar

from logdir.disk.kernel.calls import Directory, Identity, Owner, Space, Stat
from logdir.observe.classify import Type
from logdir.worker.state import Handle, WorkerState
from logdir.worker_call import worker_call

P = ParamSpec("P")
R = TypeVar("R")


class Caller(Protocol):
    """The part of a port that a directory needs."""

    @property
    def is_suspect(self) -> bool:
        """See ``Port.is_suspect``."""

    def run_opened(self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """See ``Port.run_opened``."""


@worker_call
def open_top(opened: WorkerState, path: str) -> Handle:
    """Handle ``Disk.open_top`` in the worker process."""
    return opened.handle(opened.disk.open_top(path))


@worker_call
def close(opened: WorkerState, at: int) -> None:
    """Handle ``Directory.close`` in the worker process."""
    opened.close_handle(at)


@worker_call
def names(opened: WorkerState, at: int) -> list[str]:
    """Handle ``Directory.names`` in the worker process."""
    return opened.directory(at).names()


@worker_call
def types(opened: WorkerState, at: int) -> Mapping[str, Type]:
    """Handle ``Directory.types`` in the worker process."""
    return opened.directory(at).types()


@worker_call
def stat(opened: WorkerState, at: int, name: str) -> Stat:
    """Handle ``Directory.stat`` in the worker process."""
    return opened.directory(at).stat(name)


@worker_call
def own_stat(opened: WorkerState, at: int) -> Stat:
    """Handle ``Directory.own_stat`` in the worker process."""
    return opened.directory(at).own_stat()


@worker_call
def identity(opened: WorkerState, at: int) -> Identity:
    """Handle ``Directory.identity`` in the worker process."""
    return opened.directory(at).identity()


@worker_call
def space(opened: WorkerState, at: int) -> Space:
    """Handle ``Directory.space`` in the worker process."""
    return opened.directory(at).space()


@worker_call
def require_changeable(opened: WorkerState, at: int) -> None:
    """Handle ``Directory.require_changeable`` in the worker process."""
    opened.directory(at).require_changeable()


@worker_call
def read(opened: WorkerState, at: int, name: str, limit: int) -> bytes:
    """Handle ``Directory.read`` in the worker process."""
    return opened.directory(at).read(name, limit)


@worker_call
def open_in(opened: WorkerState, at: int, name: str) -> Handle:
    """Handle ``Directory.open`` in the worker process."""
    return opened.handle(opened.directory(at).open(name))


@worker_call
def make(opened: WorkerState, at: int, name: str, owner: Owner) -> None:
    """Handle ``Directory.make`` in the worker process."""
    opened.directory(at).make(name, owner)


@worker_call
def write(opened: WorkerState, at: int, name: str, data: bytes, owner: Owner, mtime_ns: int | None) -> None:
    """Handle ``Directory.write`` in the worker process."""
    opened.directory(at).write(name, data, owner, mtime_ns)


@worker_call
def rename(opened: WorkerState, at: int, name: str, to: int, new_name: str) -> None:
    """Handle ``Directory.rename`` in the worker process."""
    opened.directory(at).rename(name, opened.directory(to), new_name)


@worker_call
def replace(opened: WorkerState, at: int, name: str, new_name: str) -> None:
    """Handle ``Directory.replace`` in the worker process."""
    opened.directory(at).replace(name, new_name)


@worker_call
def link(opened: WorkerState, at: int, name: str, to: int, new_name: str) -> None:
    """Handle ``Directory.link`` in the worker process."""
    opened.directory(at).link(name, opened.directory(to), new_name)


@worker_call
def unlink(opened: WorkerState, at: int, name: str) -> None:
    """Handle ``Directory.unlink`` in the worker process."""
    opened.directory(at).unlink(name)


@worker_call
def remove(opened: WorkerState, at: int, name: str) -> None:
    """Handle ``Directory.remove`` in the worker process."""
    opened.directory(at).remove(name)


@worker_call
def truncate(opened: WorkerState, at: int, name: str, size_bytes: int) -> None:
    """Handle ``Directory.truncate`` in the worker process."""
    opened.directory(at).truncate(name, size_bytes)


@worker_call
def adopt(opened: WorkerState, at: int, name: str, owner: Owner) -> None:
    """Handle ``Directory.adopt`` in the worker process."""
    opened.directory(at).adopt(name, owner)


@worker_call
def sync_file(opened: WorkerState, at: int, name: str) -> None:
    """Handle ``Directory.sync_file`` in the worker process."""
    opened.directory(at).sync_file(name)


@worker_call
def sync(opened: WorkerState, at: int) -> None:
    """Handle ``Directory.sync`` in the worker process."""
    opened.directory(at).sync()


@worker_call
def sync_disk(opened: WorkerState, at: int) -> None:
    """Handle ``Directory.sync_disk`` in the worker process."""
    opened.directory(at).sync_disk()


class RemoteDirectory:
    """A directory that a worker has open: each method is a call to that worker."""

    __slots__ = ("_at", "_path", "_port")

    def __init__(self, port: Caller, handle: Handle) -> None:
        self._port = port
        self._at, self._path = handle

    @property
    def path(self) -> str:
        """The path with which the directory was opened."""
        return self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory; does nothing if it is closed already, or if the log dir is SUSPECT."""
        if self._at > 0 and not self._port.is_suspect:
            self._port.run_opened(close, self._at)
        self._at = 0

    def names(self) -> list[str]:
        """Call ``Directory.names`` in the worker process."""
        return self._port.run_opened(names, self._at)

    def types(self) -> dict[str, Type]:
        """Call ``Directory.types`` in the worker process."""
        return dict(self._port.run_opened(types, self._at))

    def stat(self, name: str) -> Stat:
        """Call ``Directory.stat`` in the worker process."""
        return self._port.run_opened(stat, self._at, name)

    def own_stat(self) -> Stat:
        """Call ``Directory.own_stat`` in the worker process."""
        return self._port.run_opened(own_stat, self._at)

    def identity(self) -> Identity:
        """Call ``Directory.identity`` in the worker process."""
        return self._port.run_opened(identity, self._at)

    def space(self) -> Space:
        """Call ``Directory.space`` in the worker process."""
        return self._port.run_opened(space, self._at)

    def require_changeable(self) -> None:
        """Call ``Directory.require_changeable`` in the worker process."""
        self._port.run_opened(require_changeable, self._at)

    def read(self, name: str, limit: int) -> bytes:
        """Call ``Directory.read`` in the worker process."""
        return self._port.run_opened(read, self._at, name, limit)

    def open(self, name: str) -> RemoteDirectory:
        """Call ``Directory.open`` in the worker process."""
        return RemoteDirectory(self._port, self._port.run_opened(open_in, self._at, name))

    def make(self, name: str, owner: Owner) -> None:
        """Call ``Directory.make`` in the worker process."""
        self._port.run_opened(make, self._at, name, owner)

    def write(self, name: str, data: bytes, owner: Owner, mtime_ns: int | None = None) -> None:
        """Call ``Directory.write`` in the worker process."""
        self._port.run_opened(write, self._at, name, data, owner, mtime_ns)

    def rename(self, name: str, to: Directory, new_name: str) -> None:
        """Call ``Directory.rename`` in the worker process."""
        self._port.run_opened(rename, self._at, name, self._same(to), new_name)

    def replace(self, name: str, new_name: str) -> None:
        """Call ``Directory.replace`` in the worker process."""
        self._port.run_opened(replace, self._at, name, new_name)

    def link(self, name: str, to: Directory, new_name: str) -> None:
        """Call ``Directory.link`` in the worker process."""
        self._port.run_opened(link, self._at, name, self._same(to), new_name)

    def unlink(self, name: str) -> None:
        """Call ``Directory.unlink`` in the worker process."""
        self._port.run_opened(unlink, self._at, name)

    def remove(self, name: str) -> None:
        """Call ``Directory.remove`` in the worker process."""
        self._port.run_opened(remove, self._at, name)

    def truncate(self, name: str, size_bytes: int) -> None:
        """Call ``Directory.truncate`` in the worker process."""
        self._port.run_opened(truncate, self._at, name, size_bytes)

    def adopt(self, name: str, owner: Owner) -> None:
        """Call ``Directory.adopt`` in the worker process."""
        self._port.run_opened(adopt, self._at, name, owner)

    def start_writeback(self, name: str) -> None:
        """Do nothing: it is for the syncs of many files, and these are made in the worker process."""

    def sync_file(self, name: str) -> None:
        """Call ``Directory.sync_file`` in the worker process."""
        self._port.run_opened(sync_file, self._at, name)

    def sync_files(self, names: Sequence[str]) -> None:
        """Call ``Directory.sync_file`` in the worker process for each."""
        for name in names:
            self.sync_file(name)

    def sync(self) -> None:
        """Call ``Directory.sync`` in the worker process."""
        self._port.run_opened(sync, self._at)

    def sync_disk(self) -> None:
        """Call ``Directory.sync_disk`` in the worker process."""
        self._port.run_opened(sync_disk, self._at)

    def _same(self, other: Directory) -> int:
        """Return the handle of another directory of the same worker. Raises ``TypeError``."""
        if not isinstance(other, RemoteDirectory) or other._port is not self._port:
            raise TypeError(f"both directories of one call must lie on one log dir: {other!r}")
        return other._at


class RemoteDisk:
    """The file systems of this host, opened by calls to a worker."""

    def __init__(self, port: Caller) -> None:
        self._port = port

    def open_top(self, path: str) -> RemoteDirectory:
        """Call ``Disk.open_top`` in the worker process."""
        return RemoteDirectory(self._port, self._port.run_opened(open_top, path))
