"""The port of a log dir with a worker process, which must answer within a deadline.

A worker without a sign of life for the whole timeout is killed, and its log dir is SUSPECT: it is not known whether the
call was carried out, and every later call is refused at once. The kill prevents the worker from starting another call;
a worker that hangs in the kernel ends when its disk answers, and is not waited for.

Not here: waiting for several ports (``waiting``), starting workers (``start``), the worker side (``child``).

Spec: design §2 laws 4, 6, §5 "A port per log dir".
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from logdir import clock
from logdir.disk.kernel.calls import Disk
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.work_root import WorkRoot
from logdir.errors import LogDirSuspectError
from logdir.worker import state
from logdir.worker.calls import Signature, name_of
from logdir.worker.channel import ENOUGH, READY, Inbox, frame
from logdir.worker.directory import RemoteDirectory, RemoteDisk
from logdir.worker.port import Pending, Port
from logdir.worker.reaping import has_ended
from logdir.worker.state import RootView, WorkerState
from logdir.worker.waiting import SILENT_MS, Overdue, Sent, Waiting, patience_now

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_PATIENCE_MS: Final = 10 * 1000
"""Default of ``--disk-timeout``: longest time without a sign of life."""
_ENOUGH_MS: Final = 1000
"""Timeout of a call whose further results are not needed."""
_STARTING_MS: Final = 30 * 1000
"""How long a new interpreter may take until its worker is ready: it touches no log dir before."""
_END_MS: Final = 100
"""How long to wait for a killed worker; one that hangs in the kernel ends later."""


class RemotePort:
    """Makes the calls of a log dir in a worker process."""

    def __init__(
        self,
        log_dir: str,
        pid: int,
        connection: socket.socket,
        patience_ms: int,
        waiting: Waiting,
        *,
        is_ready: bool = True,
    ) -> None:
        self.log_dir = log_dir
        self.pid = pid
        self.waiting = waiting
        self.is_suspect = False
        self.progress = 0
        """How far the worker's current call is; each call chooses what it counts."""
        self.heard_ms = clock.monotonic_ms()
        """When the worker last gave a sign of life, or was sent a call."""
        self.patience_ms = patience_ms
        """Longest time without a sign of life."""
        self._starting_until_ms = 0 if is_ready else self.heard_ms + _STARTING_MS
        """Until when the worker may start, which a busy machine delays and no log dir."""
        self.connection = connection
        connection.settimeout(patience_ms / 1000)  # A stopped worker reads nothing.
        self._inbox = Inbox()
        self._asked: Sent[Any] | None = None
        self._problem: LogDirSuspectError | None = None
        self._is_closed = self._is_reaped = False

    @property
    def disk(self) -> Disk:
        """The disk interface that opens directories."""
        return RemoteDisk(self)

    @property
    def patient_until_ms(self) -> int:
        """When the worker is killed if it gives no sign of life before then."""
        patience_ms = patience_now(self.patience_ms)
        until_ms = self.heard_ms + patience_ms
        return until_ms if patience_ms < self.patience_ms else max(until_ms, self._starting_until_ms)

    def begin(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Implement ``Port.begin``."""
        return self._send(call, args, kwargs)

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Implement ``Port.run``."""
        return cast(R, self._send(call, args, kwargs).result())

    def run_at(self, call: Callable[Concatenate[OpenLogDir, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Implement ``Port.run_at``."""
        return cast(R, self._send(call, args, kwargs).result())

    def begin_at(self, call: Callable[Concatenate[OpenLogDir, P], R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Implement ``Port.begin_at``."""
        return self._send(call, args, kwargs)

    def run_opened(self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Implement ``Port.run_opened``."""
        return cast(R, self._send(call, args, kwargs).result())

    def begin_opened(
        self, call: Callable[Concatenate[WorkerState, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> Pending[R]:
        """Implement ``Port.begin_opened``."""
        return self._send(call, args, kwargs)

    def stream_opened(
        self, call: Callable[Concatenate[WorkerState, P], Iterator[R]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[R]:
        """Implement ``Port.stream_opened``."""
        sent = self._send(call, args, kwargs, is_stream=True)
        decode = Signature.of(call).decode_result
        try:
            while not sent.is_over or sent.parts:
                while sent.parts:
                    yield from decode(sent.parts.popleft())
                if not sent.is_over:
                    self.waiting.next_part(sent)
            sent.result()
        finally:
            if not sent.is_over:
                self._end_stream(sent)

    def _end_stream(self, sent: Sent[Any]) -> None:
        """End a call whose further results are not needed; kill a worker that does not end it soon."""
        patience_ms, self.patience_ms = self.patience_ms, min(self.patience_ms, _ENOUGH_MS)
        try:
            self.connection.sendall(frame(ENOUGH))
            while not sent.is_over:
                sent.parts.clear()
                self.waiting.next_part(sent)
        except OSError as error:
            self.give_up(f"its worker process ended: {error.strerror or error}")
        except BaseException:
            self.give_up("the call was interrupted")
            raise
        finally:
            self.patience_ms = patience_ms

    def _send(
        self,
        call: Callable[..., object],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        then: Callable[[Any], Any] | None = None,
        *,
        is_stream: bool = False,
    ) -> Sent[Any]:
        """Send a call to the worker.

        Args:
            call: A ``worker_call``.
            args: Its arguments.
            kwargs: Its arguments.
            then: Converts its result.
            is_stream: Whether the call returns an iterator, whose results arrive in parts.
        """
        signature = Signature.of(call)

        def decode(value: object) -> Any:
            if is_stream:
                return None
            result = signature.decode_result(value)
            return result if then is None else then(result)

        sent: Sent[Any] = Sent(self, call.__qualname__, decode)
        if self._asked is not None:
            self.give_up("the call was interrupted")  # The previous caller left before the answer.
        if self._problem is not None:
            sent.fail(LogDirSuspectError.of(self._problem.problem()))
            return sent
        request = frame([name_of(call), signature.encode(args, kwargs)])
        self._asked = sent
        sent.begun_ns = clock.monotonic_ns()
        self.heard_ms = clock.monotonic_ms()
        try:
            along = signature.sent_along(args, kwargs)
            if along:
                sent_bytes = socket.send_fds(self.connection, [request], along)
                request = request[sent_bytes:]
            self.connection.sendall(request)
        except OSError as error:
            self.give_up(f"its worker process ended: {error.strerror or error}")
        return sent

    def expect(self, call: Callable[..., object]) -> Sent[Any]:
        """Return the pending result of a call with which the worker was started."""
        self._asked = Sent(self, call.__qualname__, Signature.of(call).decode_result)
        return self._asked

    @property
    def is_idle(self) -> bool:
        """Whether the port can take a call now."""
        return self._asked is None and not self.is_suspect

    def hear(self) -> None:
        """Read what has arrived from the worker: signs of life, parts or the answer of its call."""
        try:
            data = self.connection.recv(1 << 18)
            values = list(self._inbox.add(data))
        except (OSError, ValueError) as error:
            self.give_up(f"its worker process sent an invalid answer: {error}")
            return
        if not data:
            self.give_up("its worker process ended")
            return
        self.heard_ms = clock.monotonic_ms()
        for kind, value in values:
            if kind == READY:
                self._starting_until_ms = 0
            elif kind == "alive":
                self.progress = value
            elif kind == "part" and self._asked is not None:
                self._asked.parts.append(value)
            elif self._asked is not None:
                asked, self._asked = self._asked, None
                asked.take(kind, value)

    def give_up(self, found: str | None = None) -> None:
        """Kill the worker, mark the log dir as SUSPECT and fail the call in progress.

        Args:
            found: What happened, for the error; ``None``: the worker gave no sign of life in time.
        """
        if self._problem is None:
            self.is_suspect = True
            doing = "" if self._asked is None else f" (while {self._asked.what} was called)"
            self._problem = LogDirSuspectError(
                self.log_dir,
                expected=f"an answer within {self.patience_ms / 1000:g} s",
                found=(found or "none") + doing,
                fix="SUSPECT: check the kernel log; a broker cannot start on this disk until it answers",
            )
            self._end(is_killed=True)
        if self._asked is not None:
            asked, self._asked = self._asked, None
            asked.fail(self._problem)

    def found_suspect(self, error: LogDirSuspectError) -> None:
        """Mark the log dir as SUSPECT because the worker itself reports that it does not answer."""
        if self._problem is None and error.path == self.log_dir:
            self.is_suspect = True
            self._problem = error
            self._end(is_killed=True)

    def is_reaped(self) -> bool:
        """Implement ``Port.is_reaped``."""
        if self._is_closed and not self._is_reaped:
            self._is_reaped = has_ended(self.pid, 0)
        return self._is_reaped  # Its pid may be that of another process afterwards: the kernel is not asked again.

    def begin_root(self, *, is_start_block_allowed: bool) -> Pending[WorkRoot]:
        """Implement ``Port.begin_root``."""
        arguments = {"is_start_block_allowed": is_start_block_allowed}
        return self._send(state.open_root, (self.log_dir,), arguments, self._root_of)

    def _root_of(self, view: RootView) -> WorkRoot:
        open_dir = OpenLogDir(
            log_dir=self.log_dir,
            top=RemoteDirectory(self, view.top),
            work=RemoteDirectory(self, view.work),
            deleting=RemoteDirectory(self, view.deleting),
            incoming=RemoteDirectory(self, view.incoming),
            cluster_id=view.cluster_id,
            node_id=view.node_id,
            directory_id=view.directory_id,
            owner=view.owner,
        )
        allowed = view.is_unsupported_fs_allowed
        return WorkRoot(
            kind=view.kind, open_dir=open_dir, belongs=view.belongs, opened=ExitStack(), unsupported_fs=allowed
        )

    def end(self) -> None:
        """Implement ``Port.end``; a worker with a call in progress is left to ``close``."""
        if not self._is_closed and self._asked is None:
            self.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Implement ``Port.close``; afterwards a worker that answers has ended.

        An abandoned call is finished as long as its worker gives signs of life, and killed when it gives none, so an
        interrupted command does not wait for the whole timeout.
        """
        while self._asked is not None:
            poll = select.poll()
            poll.register(self.connection.fileno(), select.POLLIN)
            if poll.poll(SILENT_MS):
                self.hear()
            else:
                self.give_up("the call was interrupted")
        if not self._is_closed:
            self._end(is_killed=False)

    def _end(self, *, is_killed: bool) -> None:
        """End the worker; wait for it for a limited time only."""
        self._is_closed = True
        self.connection.close()
        if is_killed:
            os.kill(self.pid, signal.SIGKILL)
        self._is_reaped = has_ended(self.pid, _END_MS if is_killed else patience_now(self.patience_ms))
        if not self._is_reaped and not is_killed:
            os.kill(self.pid, signal.SIGKILL)
            self._is_reaped = has_ended(self.pid, _END_MS)


def _waiting_of(ports: Sequence[Port]) -> Waiting:
    """Return the common wait loop of a broker's ports; ports in this process have none."""
    return next((port.waiting for port in ports if isinstance(port, RemotePort)), Waiting())


@contextmanager
def overdue(ports: Sequence[Port], what: Overdue) -> Iterator[None]:
    """Call ``what.act`` once if ``what.at_ms`` has passed and a worker that makes a call gives no sign of life."""
    waiting = _waiting_of(ports)
    waiting.overdue = what
    try:
        yield
    finally:
        waiting.overdue = None


@contextmanager
def followed(ports: Sequence[Port], progress: Callable[[list[int]], None]) -> Iterator[None]:
    """Call ``progress`` from time to time with the progress of each port's call, in the order of the ports."""
    waiting = _waiting_of(ports)
    waiting.progress = progress
    try:
        yield
    finally:
        waiting.progress = None


def gather(pendings: Iterable[Pending[object]]) -> None:
    """Wait until each call of a broker's ports has ended; ``result`` then does not wait."""
    sent = [one for one in pendings if isinstance(one, Sent)]
    if sent:
        sent[0].port.waiting.gather(sent)


def took_ns(begun: Mapping[str, Pending[object]]) -> dict[str, int]:
    """Return how long workers had their calls, which are over; without calls in this process, and refused ones.

    Args:
        begun: The calls, by log dir.
    """
    took = {log_dir: one.took_ns for log_dir, one in begun.items() if isinstance(one, Sent)}
    return {log_dir: one for log_dir, one in took.items() if one is not None}
