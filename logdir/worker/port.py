"""A port per log dir: the calls of one log dir, in this process or in a worker process.

Not here: worker processes and their deadline (``remote``), which of the two a log dir gets (``start``).

Spec: design §2 laws 4, 6, §5 "A port per log dir".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from logdir.disk.kernel.calls import Disk
from logdir.disk.kernel.host import HostDisk
from logdir.disk.root.open_log_dir import LogDirTop, OpenLogDir
from logdir.disk.root.work_root import WorkRoot
from logdir.worker import state
from logdir.worker.state import WorkerState

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=LogDirTop)
R_co = TypeVar("R_co", covariant=True)


class RunAt(Protocol):
    """Makes a call of one log dir, here or in its worker."""

    def __call__(self, call: Callable[Concatenate[S, P], R], open_dir: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Make it and return its result."""


def run_here(call: Callable[Concatenate[S, P], R], open_dir: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Make a call of one log dir in this process."""
    return call(open_dir, *args, **kwargs)


class Pending(Protocol[R_co]):
    """A call that was begun."""

    def result(self) -> R_co:
        """Return its result, or raise what it raised; waits for it."""


class Port(Protocol):
    """One log dir, by its calls. Makes one at a time."""

    @property
    def log_dir(self) -> str:
        """Its path as configured."""

    @property
    def disk(self) -> Disk:
        """Opens directories."""

    @property
    def is_suspect(self) -> bool:
        """Whether it did not answer in time."""

    def begin(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Begin a call of values; the port takes no other until its result was asked for."""

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Make a call of values and return its result."""

    def run_at(self, call: Callable[Concatenate[OpenLogDir, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Make a call whose first argument is the open log dir."""

    def run_opened(self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Make a call whose first argument is the state of the worker."""

    def begin_opened(
        self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> Pending[R]:
        """Begin a call as ``run_opened``."""

    def stream_opened(
        self, call: Callable[Concatenate[WorkerState, P], Iterator[R]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[R]:
        """Make a call as ``run_opened``; yield what it yields, as it comes. Closing the iterator ends the call."""

    def begin_root(self, *, is_start_block_allowed: bool) -> Pending[WorkRoot]:
        """Begin to open the work root; its directories are closed with the port. Raises as ``open_true_root``."""

    @property
    def is_idle(self) -> bool:
        """Whether it can be asked, and would answer."""

    def end(self) -> None:
        """Let its worker end, without waiting for that."""

    def close(self) -> None:
        """Release the locks and close what is open; twice does nothing."""


class _Done(Generic[R]):
    """A call that was made in this process."""

    def __init__(self, call: Callable[[], R]) -> None:
        self._call = call

    def result(self) -> R:
        """As ``Pending.result``: the call is made now."""
        return self._call()


class LocalPort:
    """The calls of a log dir, made in this process: no deadline holds."""

    is_suspect = False
    is_idle = True

    def __init__(self, log_dir: str, disk: HostDisk | None = None) -> None:
        self.log_dir = log_dir
        self._opened = WorkerState(disk)

    @property
    def disk(self) -> HostDisk:
        """Opens directories."""
        return self._opened.disk

    def begin(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """As ``Port.begin``."""
        return _Done(lambda: call(*args, **kwargs))

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """As ``Port.run``."""
        return call(*args, **kwargs)

    def run_at(self, call: Callable[Concatenate[OpenLogDir, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """As ``Port.run_at``."""
        return call(self._opened.open_dir, *args, **kwargs)

    def run_opened(self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """As ``Port.run_opened``."""
        return call(self._opened, *args, **kwargs)

    def begin_opened(
        self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> Pending[R]:
        """As ``Port.begin_opened``."""
        return _Done(lambda: call(self._opened, *args, **kwargs))

    def stream_opened(
        self, call: Callable[Concatenate[WorkerState, P], Iterator[R]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[R]:
        """As ``Port.stream_opened``."""
        return call(self._opened, *args, **kwargs)

    def begin_root(self, *, is_start_block_allowed: bool) -> Pending[WorkRoot]:
        """As ``Port.begin_root``."""
        return _Done(lambda: self._open_root(is_start_block_allowed=is_start_block_allowed))

    def _open_root(self, *, is_start_block_allowed: bool) -> WorkRoot:
        state.open_root(self._opened, self.log_dir, is_start_block_allowed=is_start_block_allowed)
        if self._opened.root is None:
            raise ValueError("no work root is open")
        return self._opened.root

    def end(self) -> None:
        """As ``Port.end``: there is no worker."""

    def close(self) -> None:
        """As ``Port.close``."""
        self._opened.close()
