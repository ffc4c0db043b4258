"""The connections of a listening socket: a thread for each, a limited number of them, and a deadline for each request.

Where all places are taken, the client that has been sending its request, or taking the status, for the longest time
loses its place: clients that send or read a byte a minute hold up no other client.

Not here: what is answered (``handler``), who has a place (``places``), the threads (``thread_pool``).

Spec: design §5.
"""

from __future__ import annotations

import io
import logging
import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, BaseServer, TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final

from logdir import clock
from logdir.daemon.socket.places import Places
from logdir.daemon.socket.thread_pool import ThreadPool

if TYPE_CHECKING:
    from logdir.daemon.report.status import StatusResult
    from logdir.daemon.socket.operating import Operating
    from logdir.daemon.socket.reads import Reads
    from logdir.daemon.supervisor import Supervisor

LOG: Final = logging.getLogger(__name__)
MOST_CLIENTS: Final = 64
BACKLOG: Final = 128
"""How many connections wait to be accepted."""
_PLACE_S: Final = 1.0
"""How long a client waits for the place of one that loses it."""
_DRAIN_S: Final = 2.0
_PEER = struct.Struct("3i")


def is_owner_or_root(request: socket.socket) -> bool:
    """Whether a client is root, or the user of this process; whose a connection over TCP is the kernel does not say."""
    if request.family != socket.AF_UNIX:
        return False
    _, uid, _ = _PEER.unpack(request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return uid in (0, os.geteuid())


class Incoming(io.RawIOBase):
    """The bytes of a client, until a deadline for all of them together."""

    def __init__(self, connection: socket.socket, timeout_ms: int) -> None:
        super().__init__()
        self._connection = connection
        self._until_ms = clock.monotonic_ms() + timeout_ms

    def readable(self) -> bool:
        """Return ``True``."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has come. Raises ``TimeoutError``: the deadline has passed."""
        left_ms = self._until_ms - clock.monotonic_ms()
        if left_ms <= 0:
            raise TimeoutError("the client is too slow")
        self._connection.settimeout(left_ms / 1000)
        return self._connection.recv_into(buffer)


class Connections(ThreadingMixIn, TCPServer):
    """A server on a socket that listens, of whatever family."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, listener: socket.socket, handler: type[BaseRequestHandler], *, busy: bytes, deadline_ms: int
    ) -> None:
        """Take the socket; ``server_close`` closes it.

        Args:
            listener: It listens already.
            handler: Answers one connection; it calls ``has_read`` when it has the whole request, and ``is_sending``
                before an answer that the client can ask for again.
            busy: What a client gets for which there is no place.
            deadline_ms: How long a client may take to send its request, and to take its answer.
        """
        self.deadline_ms = deadline_ms
        self._busy = busy
        self._changed = threading.Condition()
        self._places: Places[socket.socket] = Places(MOST_CLIENTS)
        self._answering = 0
        self._pool = ThreadPool[tuple[Any, Any]](lambda client: self.process_request_thread(*client))
        # Not that of ``TCPServer``, which would make a socket.
        BaseServer.__init__(self, listener.getsockname(), handler)
        self.socket = listener

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in another thread; a client for which there is no place, or no thread, is told to come again."""
        if not self._has_place(request):
            self._refuse(request)
            self.shutdown_request(request)
            return
        try:
            self._pool.give((request, client_address))
        except BaseException:  # No more threads can be started, for example. The caller closes the connection.
            self._leave(request)
            self._refuse(request)
            raise

    def _has_place(self, request: socket.socket) -> bool:
        """Give a client a place, if need be that of the slowest one; return whether there was one."""
        may_change = is_owner_or_root(request)
        with self._changed:
            if self._places.take(request, may_change=may_change):
                return True
            slowest = self._places.drop_slowest()
            if slowest is not None:
                with suppress(OSError):
                    slowest.shutdown(socket.SHUT_RDWR)
            # Meanwhile no other client is taken: one that may only ask is not waited for without need.
            wait_s = _PLACE_S if may_change or slowest is not None else 0
            return self._changed.wait_for(lambda: self._places.take(request, may_change=may_change), wait_s)

    def _refuse(self, request: socket.socket) -> None:
        with suppress(OSError):
            request.settimeout(0.1)
            request.sendall(self._busy)

    def _leave(self, request: socket.socket) -> None:
        with self._changed:
            self._places.leave(request)
            self._changed.notify_all()

    def has_read(self, request: socket.socket) -> None:
        """Note that a client has sent its whole request: it keeps its place while that is worked on."""
        with self._changed:
            self._places.keep(request)

    def is_sending(self, request: socket.socket) -> None:
        """Note that a client takes its answer: if it is slow, it loses its place to the next one."""
        with self._changed:
            self._places.wait_for(request)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Note that a request is being answered; ``drain`` waits for it."""
        with self._changed:
            self._answering += 1
        try:
            yield
        finally:
            with self._changed:
                self._answering -= 1
                self._changed.notify_all()

    def drain(self) -> None:
        """Wait until no request is being answered, or for two seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._answering, _DRAIN_S)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and free the place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a fault of ours; a client that has gone is none."""
        if isinstance(sys.exc_info()[1], OSError):
            LOG.debug("control.client-gone", exc_info=True)
        else:
            LOG.exception("control.fault")


class ControlConnections(Connections):
    """Those of the control socket, whose handlers ask the daemon."""

    def __init__(
        self,
        listener: socket.socket,
        supervisor: Supervisor,
        reads: Reads,
        operating: Operating,
        handler: type[BaseRequestHandler],
        *,
        busy: bytes,
        deadline_ms: int,
    ) -> None:
        """Take the socket, as ``Connections``, and what the handlers ask: daemon, reads and operations."""
        super().__init__(listener, handler, busy=busy, deadline_ms=deadline_ms)
        self.supervisor, self.reads, self.operating = supervisor, reads, operating
        self.making = threading.Lock()
        """Held while an answer is made from memory."""
        self.kept_status: tuple[StatusResult, bytes] | None = None
        """The newest status that was asked for, and its JSON; used under ``making``."""
