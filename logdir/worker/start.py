"""Starting workers: by fork while this process has one thread and holds no lock, otherwise as a new interpreter.

Spec: design §5 "A port per log dir"; style §4.1.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Final, ParamSpec, TypeVar, cast

from logdir.disk.lock_holder import is_locked
from logdir.errors import LogDirError
from logdir.observe.mounts import identity_at
from logdir.observe.share import is_alone
from logdir.worker.calls import Signature
from logdir.worker.child import answer_one, serve, settle
from logdir.worker.directory import read
from logdir.worker.look import look_deep
from logdir.worker.port import LocalPort, Port
from logdir.worker.reaping import Unreaped
from logdir.worker.remote import RemotePort
from logdir.worker.state import open_root
from logdir.worker.waiting import Waiting

P = ParamSpec("P")
R = TypeVar("R")

_EVERY_COMMAND: Final = (identity_at, is_locked, look_deep, open_root, read)
"""Calls that are made on every log dir of a command: their signatures are computed once, before this process forks."""
_IS_HERE: ContextVar[bool] = ContextVar("is_here", default=False)


@contextmanager
def placed(*, is_here: bool) -> Iterator[None]:
    """Choose where the ports that are started in the block run their calls.

    Args:
        is_here: ``True``: in this process, without a deadline; ``False``: in worker processes.
    """
    token = _IS_HERE.set(is_here)
    try:
        yield
    finally:
        _IS_HERE.reset(token)


def start(log_dirs: Iterable[str], patience_ms: int) -> tuple[Port, ...]:
    """Start one port for each log dir: a worker process, or this process in a block of ``placed``.

    Args:
        log_dirs: Paths as configured.
        patience_ms: How long a worker may give no sign of life.

    Returns:
        One port per log dir, in their order; the caller closes them.

    Raises:
        OSError: no more processes can be started.
    """
    if _IS_HERE.get():
        return tuple(LocalPort(log_dir) for log_dir in log_dirs)
    waiting = Waiting()
    for call in _EVERY_COMMAND:
        Signature.of(call)
    ports: list[RemotePort] = []
    try:
        for log_dir in log_dirs:
            ports.append(_started(log_dir, patience_ms, waiting))
    except BaseException:
        close_all(ports)
        raise
    return tuple(ports)


def run_apart(
    path: str, patience_ms: int, unreaped: Unreaped, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Make a read-only call in a process of its own, and return its result.

    Args:
        path: The path that the call reads, for the error.
        patience_ms: How long the process may give no sign of life.
        unreaped: Keeps the process if it does not end. While it keeps one for the path, no other is started: each
            might hang as well.
        call: A ``worker_call``.
        args: Its arguments.
        kwargs: Its arguments.

    Raises:
        LogDirSuspectError: the process gave no sign of life in time, or the one before has not ended.
    """
    if _IS_HERE.get():
        return call(*args, **kwargs)
    unreaped.require_ended(path)
    is_forked = is_alone()
    # A forked copy already has the arguments.
    port = (
        _forked_for(path, patience_ms, lambda: call(*args, **kwargs), Signature.of(call))
        if is_forked
        else _started(path, patience_ms, Waiting())
    )
    try:
        return cast(R, port.expect(call).result()) if is_forked else port.run(call, *args, **kwargs)
    finally:
        close_all((port,))
        unreaped.keep((port,))


def _forked_for(path: str, patience_ms: int, call: Callable[[], object], signature: Signature) -> RemotePort:
    """Start a copy of this process that makes one call and ends."""
    ours, theirs = socket.socketpair()
    starter = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            settle(theirs, starter)
            answer_one(theirs, call, signature)
        finally:
            os._exit(0)
    theirs.close()
    return RemotePort(path, pid, ours, patience_ms, Waiting())


@contextmanager
def aside(path: str, patience_ms: int, between: Callable[[], None]) -> Iterator[Port]:
    """Start a process for long calls that change no log dir; it is ended after the block.

    Args:
        path: The path that the calls read, for the error.
        patience_ms: How long the process may give no sign of life.
        between: Called a few times a second while it works; what it raises ends the call, and the process.

    Raises:
        OSError: no more processes can be started.
    """
    port: Port = LocalPort(path) if _IS_HERE.get() else _aside(path, patience_ms, between)
    try:
        yield port
    finally:
        close_all((port,))


def _aside(path: str, patience_ms: int, between: Callable[[], None]) -> Port:
    waiting = Waiting()
    waiting.progress = lambda _: between()
    return _started(path, patience_ms, waiting)


def run_aside(
    path: str, patience_ms: int, between: Callable[[], None], call: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Make a long call that changes no log dir in a process of its own, and return its result.

    Args:
        path: The path that the call reads, for the error.
        patience_ms: How long the process may give no sign of life.
        between: Called a few times a second while it works; what it raises ends the call.
        call: A ``worker_call``.
        args: Its arguments.
        kwargs: Its arguments.

    Raises:
        LogDirSuspectError: the process gave no sign of life in time.
    """
    with aside(path, patience_ms, between) as port:
        return port.run(call, *args, **kwargs)


def close_all(ports: Sequence[Port]) -> None:
    """Close all ports; workers that answer have ended afterwards."""
    for port in ports:
        with suppress(OSError):
            port.end()  # In parallel.
    for port in ports:
        with suppress(LogDirError, OSError):
            port.close()


def _started(log_dir: str, patience_ms: int, waiting: Waiting) -> RemotePort:
    ours, theirs = socket.socketpair()
    is_forked = is_alone()
    try:
        pid = _forked(theirs) if is_forked else _spawned(theirs)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return RemotePort(log_dir, pid, ours, patience_ms, waiting, is_ready=is_forked)


def _forked(connection: socket.socket) -> int:
    """Start a worker as a copy of this process, which has one thread and holds no lock; return its process id."""
    starter = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            settle(connection, starter)
            serve(connection)
        finally:
            # Never return into the caller's code, which would then run twice.
            os._exit(0)
    return pid


def _spawned(connection: socket.socket) -> int:
    """Start a worker as a new interpreter, because a fork of a process with threads may deadlock; return its pid."""
    # It runs the code of this installation and needs no other installed package.
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = f"import sys; sys.path.insert(0, {home!r}); from logdir.worker.child import main; main()"
    files = [(os.POSIX_SPAWN_DUP2, connection.fileno(), 0)]
    return os.posix_spawn(
        sys.executable, [sys.executable, "-I", "-S", "-c", code, str(os.getpid())], os.environ, file_actions=files
    )
