"""The connections of the control socket: a thread for each, a limited number of them, and a deadline for each request.

Where all places are taken, the client that has been sending its request for the longest time loses its place: clients
that send a byte a minute hold up no other client.

Not here: what is answered (``server``).

Spec: design §5.
"""

from __future__ import annotations

import io
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingMixIn, UnixStreamServer
from typing import TYPE_CHECKING, Any, Final

from logdir import clock

if TYPE_CHECKING:
    from logdir.daemon.supervisor import Supervisor

LOG: Final = logging.getLogger(__name__)
MOST_CLIENTS: Final = 64
_PLACE_S: Final = 1.0
"""How long a client waits for the place of one that loses it."""
_DRAIN_S: Final = 2.0


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


class Connections(ThreadingMixIn, UnixStreamServer):
    """A server on a unix socket."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, path: str, supervisor: Supervisor, handler: type[BaseRequestHandler], *, busy: bytes) -> None:
        """Make the socket.

        Args:
            path: Its path.
            supervisor: Of the daemon, for the handlers.
            handler: Answers one connection; it calls ``has_read`` when it has the whole request.
            busy: What a client gets for which there is no place.

        Raises:
            OSError: the socket cannot be made.
        """
        self.supervisor = supervisor
        self._busy = busy
        self._places = threading.BoundedSemaphore(MOST_CLIENTS)
        self._changed = threading.Condition()
        self._reading: dict[socket.socket, None] = {}
        """Clients that are sending their request, the longest first."""
        self._answering = 0
        super().__init__(path, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own."""
        if not self._places.acquire(blocking=False):
            self._drop_slowest()
            if not self._places.acquire(timeout=_PLACE_S):
                with suppress(OSError):
                    request.settimeout(0.1)
                    request.sendall(self._busy)
                self.shutdown_request(request)
                return
        with self._changed:
            self._reading[request] = None
        super().process_request(request, client_address)

    def _drop_slowest(self) -> None:
        with self._changed:
            slowest = next(iter(self._reading), None)
            if slowest is not None:
                del self._reading[slowest]
                with suppress(OSError):
                    slowest.shutdown(socket.SHUT_RDWR)

    def has_read(self, request: socket.socket) -> None:
        """Note that a client has sent its whole request: it keeps its place until it is answered."""
        with self._changed:
            self._reading.pop(request, None)

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
            self.has_read(request)
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a fault of ours; a client that has gone is none."""
        LOG.debug("control.client-gone", exc_info=True)
