"""The port of a log dir: its calls, made in this process or in a worker process.

Not here: worker processes and their deadline (``remote``), the choice between both (``start``).

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


class Pending(Protocol[R_co]):
    """A call in progress."""

    def result(self) -> R_co:
        """Wait for the call; return its result or raise its error."""


class BeginAt(Protocol):
    """Starts a call of one log dir, here or in its worker."""

    def __call__(
        self, call: Callable[Concatenate[S, P], R], open_dir: S, /, *args: P.args, **kwargs: P.kwargs
    ) -> Pending[R]:
        """Start the call."""


def begin_here(call: Callable[Concatenate[S, P], R], open_dir: S, /, *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
    """Make a call of one log dir in this process, when its result is requested."""
    return _Done(lambda: call(open_dir, *args, **kwargs))


class Port(Protocol):
    """Access to one log dir by calls, one at a time, which this process or a worker process makes."""

    @property
    def log_dir(self) -> str:
        """The path as configured."""

    @property
    def disk(self) -> Disk:
        """The disk interface that opens directories."""

    @property
    def is_suspect(self) -> bool:
        """Whether the log dir did not answer in time."""

    def begin(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Start a call whose arguments are values; the port takes the next call after its result was read."""

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Make a call whose arguments are values, and return its result."""

    def run_at(self, call: Callable[Concatenate[OpenLogDir, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Make a call whose first argument is the open log dir."""

    def begin_at(self, call: Callable[Concatenate[OpenLogDir, P], R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Start a call whose first argument is the open log dir."""

    def run_opened(self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Make a call whose first argument is the state of the worker."""

    def begin_opened(
        self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> Pending[R]:
        """Start a call whose first argument is the state of the worker."""

    def stream_opened(
        self, call: Callable[Concatenate[WorkerState, P], Iterator[R]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[R]:
        """Make a call as ``run_opened`` and yield its results as they arrive. Closing the iterator ends the call."""

    def begin_root(self, *, is_start_block_allowed: bool) -> Pending[WorkRoot]:
        """Start opening the work root; closing the port closes it. Raises as ``open_true_root``."""

    @property
    def is_idle(self) -> bool:
        """Whether the port can take a call now."""

    @property
    def pid(self) -> int | None:
        """Process id of its worker; ``None``: it has none."""

    def is_reaped(self) -> bool:
        """Whether the port is closed and its worker has ended; one that hangs in the kernel has not."""

    def end(self) -> None:
        """Ask its worker to end, without waiting."""

    def close(self) -> None:
        """Release the locks and close everything; a second call does nothing."""


class _Done(Generic[R]):
    """A call in this process: it runs when its result is requested."""

    def __init__(self, call: Callable[[], R]) -> None:
        self._call = call

    def result(self) -> R:
        """Run the call now, and return its result."""
        return self._call()


class LocalPort:
    """Makes the calls of a log dir in this process, without a deadline."""

    is_suspect = False
    is_idle = True
    pid: int | None = None

    def __init__(self, log_dir: str, disk: HostDisk | None = None) -> None:
        self.log_dir = log_dir
        self._opened = WorkerState(disk)

    @property
    def disk(self) -> HostDisk:
        """The disk interface that opens directories."""
        return self._opened.disk

    def begin(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Implement ``Port.begin``."""
        return _Done(lambda: call(*args, **kwargs))

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Implement ``Port.run``."""
        return call(*args, **kwargs)

    def run_at(self, call: Callable[Concatenate[OpenLogDir, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Implement ``Port.run_at``."""
        return call(self._opened.open_dir, *args, **kwargs)

    def begin_at(self, call: Callable[Concatenate[OpenLogDir, P], R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Implement ``Port.begin_at``."""
        return _Done(lambda: call(self._opened.open_dir, *args, **kwargs))

    def run_opened(self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Implement ``Port.run_opened``."""
        return call(self._opened, *args, **kwargs)

    def begin_opened(
        self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> Pending[R]:
        """Implement ``Port.begin_opened``."""
        return _Done(lambda: call(self._opened, *args, **kwargs))

    def stream_opened(
        self, call: Callable[Concatenate[WorkerState, P], Iterator[R]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[R]:
        """Implement ``Port.stream_opened``."""
        return call(self._opened, *args, **kwargs)

    def begin_root(self, *, is_start_block_allowed: bool) -> Pending[WorkRoot]:
        """Implement ``Port.begin_root``."""
        return _Done(lambda: self._open_root(is_start_block_allowed=is_start_block_allowed))

    def _open_root(self, *, is_start_block_allowed: bool) -> WorkRoot:
        state.open_root(self._opened, self.log_dir, is_start_block_allowed=is_start_block_allowed)
        if self._opened.root is None:
            raise ValueError("no work root is open")
        return self._opened.root

    def is_reaped(self) -> bool:
        """Implement ``Port.is_reaped``: there is no worker."""
        return True

    def end(self) -> None:
        """Implement ``Port.end``: does nothing, because there is no worker."""

    def close(self) -> None:
        """Implement ``Port.close``."""
        self._opened.close()
