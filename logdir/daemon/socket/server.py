"""The control socket: HTTP/1.1 on a unix socket, with the JSON forms of requests and results.

    GET    /v1/status             the status, from memory
    GET    /metrics               the metrics, from memory
    GET    /status.html           the status as a page, from memory
    GET    /v1/openapi.json       this interface as a document of OpenAPI
    POST   /v1/use-cases/NAME     {"apply": bool, "request": {…}}, the request of a use case; NAME as ``staged-purge``
    POST   /v1/operations         the same with "use_case": NAME, and the answer is not waited for
    GET    /v1/operations[/ID]    how operations stand, and the answer of one
    DELETE /v1/operations/ID      take one back that has not begun

An answer in JSON is the object that ``--json`` prints; that of a use case also has ``lines`` and ``warnings`` for
people. The peer's user decides: root and the daemon's own user may do everything, whoever else may connect may read. A
client that is slow, or one of too many, delays no other client and no work (``connections``).

Not here: what is answered (``handler``), what a request does (``service.batch.use_cases``), the queue (``supervisor``).

Spec: design §5, §6; docs/api.md, docs/json.md; attacks of the issue "The daemon".
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from logdir.daemon.socket.connections import BACKLOG, MOST_CLIENTS, ControlConnections
from logdir.daemon.socket.envelopes import of_error, raw
from logdir.daemon.socket.handler import Handler
from logdir.daemon.socket.operating import Operating
from logdir.daemon.socket.reads import Reads
from logdir.daemon.socket.refusals import busy_error
from logdir.daemon.socket.socket_group import give_to_group
from logdir.daemon.socket.socket_lock import SocketLock
from logdir.errors import LogDirError
from logdir.paths import SOCKET_LOCK

if TYPE_CHECKING:
    from logdir.daemon.supervisor import Supervisor

DEADLINE_MS: Final = 10 * 1000
"""How long a client may take to send its request, and to take its answer."""
_POLL_S: Final = 3600.0
_MODE: Final = 0o660
_BUSY: Final = raw(
    "Service Unavailable",
    of_error("logdird", busy_error("control socket", f"at most {MOST_CLIENTS} clients", "one more")),
)
"""What the client gets that is one too many."""


class Control:
    """The control socket of one daemon."""

    def __init__(self, supervisor: Supervisor, *, deadline_ms: int = DEADLINE_MS) -> None:
        """Make the socket; it must not be in use.

        Args:
            supervisor: Of the daemon.
            deadline_ms: How long a client may take to send its request, and to take its answer.

        Raises:
            LogDirError: the socket is in use by another process, or cannot be made.
        """
        self._path = supervisor.config.socket
        self._reads = Reads(supervisor)
        self._operating = Operating(supervisor, self._reads)
        self._lock = _locked(self._path)
        try:
            _remove_stale(self._path)
            self._server = self._made(supervisor, deadline_ms)
        except BaseException:
            self._lock.release()
            raise
        # It waits for clients alone, not twice a second for its end: ``stop`` wakes it up.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="control", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._operating.start()
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether its threads work."""
        return self._thread.is_alive() and self._operating.is_alive()

    def stop(self) -> None:
        """Take the socket away; the answers of requests that were begun are sent, if their clients take them soon."""
        with suppress(OSError):
            self._server.socket.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:  # Else nobody serves, and there is no end to wait for.
            self._server.shutdown()
        self._server.server_close()
        with suppress(OSError):
            Path(self._path).unlink()
        self._lock.release()
        self._reads.stop()
        self._operating.stop()
        self._server.drain()

    def _made(self, supervisor: Supervisor, deadline_ms: int) -> ControlConnections:
        """Make the socket, which does not exist. Raises ``LogDirError``: it cannot be made."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o117)
        try:
            listener.bind(self._path)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            raise _unusable(self._path, error.strerror or str(error)) from error
        finally:
            os.umask(before)
        give_to_group(self._path)
        Path(self._path).chmod(_MODE)
        return ControlConnections(
            listener, supervisor, self._reads, self._operating, Handler, busy=_BUSY, deadline_ms=deadline_ms
        )


def _unusable(path: str, found: str) -> LogDirError:
    return LogDirError(
        path, expected="a socket of this daemon alone", found=found, fix="stop the other daemon", slug="socket-in-use"
    )


def _locked(path: str) -> SocketLock:
    """Take the lock beside a socket. Raises ``LogDirError``: another daemon has it, or it cannot be taken."""
    try:
        lock = SocketLock.take(path)
    except OSError as error:
        raise _unusable(path + SOCKET_LOCK, error.strerror or str(error)) from error
    if lock is None:
        raise _unusable(path, f"a daemon that holds {path}{SOCKET_LOCK}")
    return lock


def _remove_stale(path: str) -> None:
    """Remove the socket of a daemon that has ended. Raises ``LogDirError``: it answers, or is something else."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            # A file of another kind refuses a connection, too.
            if not Path(path).is_socket():
                raise _unusable(path, "no socket") from None
            Path(path).unlink()
            return
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
    raise _unusable(path, "a daemon that answers there")
