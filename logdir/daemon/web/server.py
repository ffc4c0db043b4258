"""The servers of the status page and of the metrics: HTTP/1.1 over TCP, GET and HEAD, read-only.

There is no password: whoever reaches the socket may read. A client changes nothing, and holds up nothing: places,
deadlines and threads are those of the control socket (``socket.connections``), and a page is made at most once a
second, however many ask. A fault here ends a page, never the daemon.

Not here: which pages there are (``web.site``), their sockets (``web.listener``, ``web.passed``).

Spec: design §5; issue "The daemon at home on a host", interfaces and status page.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from logdir import clock
from logdir.daemon.socket.connections import Connections
from logdir.daemon.socket.http_handler import HttpHandler
from logdir.daemon.web.listener import opened, require_loopback, words
from logdir.daemon.web.passed import Passed
from logdir.daemon.web.site import SITES, Body, Site
from logdir.text import printable

if TYPE_CHECKING:
    from logdir.daemon.supervisor import Supervisor

LOG: Final = logging.getLogger(__name__)
DEADLINE_MS: Final = 10 * 1000
"""How long a client may take to send its request, and to take its answer."""
FRESH_MS: Final = 1000
"""How long a page is answered again as it was made."""
_END_S: Final = 1.0
_PLAIN: Final = "text/plain; charset=utf-8"
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What a browser may do with an answer: draw it, and nothing else."""


class Web:
    """All servers of one daemon; none where neither the configuration nor a socket unit asks for one."""

    def __init__(
        self, supervisor: Supervisor, passed: Passed, *, deadline_ms: int = DEADLINE_MS, fresh_ms: int = FRESH_MS
    ) -> None:
        """Listen, and answer nothing yet.

        Args:
            supervisor: Of the daemon.
            passed: The sockets that systemd passed, by name.
            deadline_ms: How long a client may take to send its request, and to take its answer.
            fresh_ms: How long a page is answered again as it was made.

        Raises:
            ListenError: an address cannot be listened on, or is reached by more hosts than it may be.
        """
        self._servers: list[_Server] = []
        try:
            for site in SITES:
                address, unit = site.address_of(supervisor.config), site.unit_of(supervisor.config)
                for listener in opened(site.key, address, passed.get(site.name, ()), unit):
                    self._servers.append(_Server(listener, supervisor, site, deadline_ms, fresh_ms))
                    if site.is_of_this_host:
                        require_loopback(site.name, listener)
        except BaseException:
            self.stop()
            raise

    @property
    def addresses(self) -> tuple[tuple[str, str], ...]:
        """Name of the page and address of each socket."""
        return tuple((server.site.name, words(server.server_address)) for server in self._servers)

    def start(self) -> None:
        """Begin to answer."""
        for server in self._servers:
            server.thread.start()
            LOG.info("web.listening page=%s address=%s", server.site.name, words(server.server_address))

    def stop(self) -> None:
        """Answer no other client; the sockets that systemd passed stay open there, for the next start."""
        for server in self._servers:
            server.end()
        for server in self._servers:
            if server.thread.ident is not None:
                server.thread.join(_END_S)
            server.server_close()


class _Kept:
    """The newest page, made again when it is asked for and has become old; used by several threads."""

    def __init__(self, supervisor: Supervisor, site: Site, fresh_ms: int) -> None:
        self._supervisor, self._site, self._fresh_ms = supervisor, site, fresh_ms
        self._lock = threading.Lock()
        self._body: Body | None = None
        self._made_ms = 0

    def get(self) -> Body:
        """Return the page; whoever asks while it is made waits for that."""
        with self._lock:
            if self._body is None or clock.monotonic_ms() - self._made_ms >= self._fresh_ms:
                self._body = self._site.make(self._supervisor)
                self._made_ms = clock.monotonic_ms()
            return self._body


class _Server(Connections):
    """Serves one page on one socket.

    It is not ended as ``Connections`` of the control socket are, by a shutdown of the socket: one that systemd passed
    is the same socket there, and would be dead at the next start.
    """

    timeout = 0.0
    """``handle_request`` waits for no client: ``serve`` does."""

    def __init__(
        self, listener: socket.socket, supervisor: Supervisor, site: Site, deadline_ms: int, fresh_ms: int
    ) -> None:
        super().__init__(listener, _Handler, busy=_BUSY, deadline_ms=deadline_ms)
        self.site = site
        self.kept = _Kept(supervisor, site, fresh_ms)
        self._ours, self._theirs = socket.socketpair()
        self.thread = threading.Thread(target=self.serve, name=f"web-{site.name}", daemon=True)

    def serve(self) -> None:
        """Accept clients until ``end``."""
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            selector.register(self._ours, selectors.EVENT_READ)
            while all(key.fileobj is not self._ours for key, _ in selector.select()):
                self.handle_request()

    def end(self) -> None:
        """End ``serve``; a second call does nothing."""
        self._theirs.close()  # The other end can be read then.

    def server_close(self) -> None:
        """Close the socket here."""
        super().server_close()
        self._theirs.close()
        self._ours.close()


class _Handler(HttpHandler):
    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - the name of the base
        """Answer with the page."""
        site = self.server.site
        self.server.has_read(self.connection)
        if not site.is_asked_rightly(self.headers.get_all("Host", [])):
            self._refuse(421, "ask for it as localhost or 127.0.0.1, from another host by ssh -L (docs/status-page.md)")
        elif self.path.partition("?")[0] not in site.paths:
            self._refuse(404, f"there is {' and '.join(sorted(site.paths))} alone")
        elif (body := self._made()) is not None:
            self._send(200, body.content_type, body.data)

    do_HEAD = do_GET  # noqa: N815 - the name of the base

    def _made(self) -> Body | None:
        """Return the page; ``None``: it could not be made, and the client was answered."""
        try:
            return self.server.kept.get()
        except Exception:
            LOG.exception("web.fault page=%s", self.server.site.name)
            self._refuse(500, "a fault of logdird: its log says which")
            return None

    def _refuse(self, status: int, line: str, **headers: str) -> None:
        self._send(status, _PLAIN, f"{line}\n".encode(), **headers)

    def _send(self, status: int, content_type: str, data: bytes, **headers: str) -> None:
        self.server.is_sending(self.connection)  # Who does not take it holds up no other client: it can ask again.
        self.send_whole(status, {"Content-Type": content_type, **HEADERS, **headers}, data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request for a page."""
        self.close_connection = True
        with suppress(OSError, ValueError):
            if code == 501:  # The base class has this for every method that there is no function for.
                self._refuse(405, "only GET and HEAD are answered", Allow="GET, HEAD")
            else:
                self._refuse(code, printable(message or "no request of HTTP/1.1")[:200])


_TOO_MANY: Final = b"too many clients: try again\n"
_BUSY: Final = (
    f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {_PLAIN}\r\nContent-Length: {len(_TOO_MANY)}\r\n"
    "Connection: close\r\nCache-Control: no-store\r\n\r\n"
).encode() + _TOO_MANY
"""What the client gets that is one too many."""
