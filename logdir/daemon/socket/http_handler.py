"""One HTTP request on one connection: a deadline for all of it, and one for the whole of its answer.

Every answer closes its connection.

Not here: what is answered (``socket.server``, ``daemon.web``), how many clients there are (``connections``).

Spec: design §5; RFC 9112.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from logdir import clock
from logdir.daemon.socket.connections import Connections, Incoming
from logdir.text import printable

LOG: Final = logging.getLogger(__name__)
_MOST_LINE: Final = 1 << 16


class HttpHandler(BaseHTTPRequestHandler):
    """Reads one request and sends one answer; a subclass says which."""

    protocol_version = "HTTP/1.1"
    server_version = "logdird"
    sys_version = ""
    server: Connections
    raw_requestline: bytes
    wfile: io.BytesIO
    """The head of the answer, until it is sent."""

    def setup(self) -> None:
        """Read from the client until its deadline, and write to memory."""
        self.connection = self.request
        self.rfile = io.BufferedReader(Incoming(self.connection, self.server.deadline_ms), _MOST_LINE)
        self.wfile = io.BytesIO()

    def address_string(self) -> str:
        """Return nothing that has to be looked up: the log does not name clients."""
        return "client"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        """Log a request, for a search of faults alone."""
        LOG.debug("control.request %s", printable(format % args))

    def handle_one_request(self) -> None:
        """Answer one request, and close: a client asks again on a new connection."""
        with suppress(TimeoutError, ConnectionError):
            super().handle_one_request()
        self.close_connection = True

    def parse_request(self) -> bool:
        """Read the head of a request; return whether it is one, else it was answered."""
        # The base class splits the first line in the same way, and sends no answer where that yields no word.
        if not str(self.raw_requestline, "iso-8859-1").split():
            self.command = self.requestline = ""
            self.send_error(400, "an empty line")
            return False
        return super().parse_request()

    def head(self, status: int, size: int, headers: Mapping[str, str]) -> bytes:
        """Return the head of an answer.

        Args:
            status: Of HTTP.
            size: The length of the body in bytes.
            headers: Beside the length.
        """
        self.request_version = self.protocol_version  # Also where the request had none: HTTP/0.9 has no head.
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(size))
        self.send_header("Connection", "close")
        self.end_headers()
        return self.wfile.getvalue()

    def send_parts(self, parts: Iterable[bytes]) -> None:
        """Send an answer, with one deadline for all of it, however slowly it is taken.

        No part is copied: what many clients take slowly lies in memory once, if it is the same object.

        Args:
            parts: The head, and the body in one part or more.

        Raises:
            OSError: the client has gone, or does not take the answer in time.
        """
        until_ms = clock.monotonic_ms() + self.server.deadline_ms
        for part in parts:
            left_ms = until_ms - clock.monotonic_ms()
            if left_ms <= 0:
                raise TimeoutError("the client is too slow")
            self.connection.settimeout(left_ms / 1000)
            self.connection.sendall(part)

    def send_whole(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        """Send an answer; of one to HEAD the head alone.

        Args:
            status: Of HTTP.
            headers: Beside the length.
            data: The body.

        Raises:
            OSError: as ``send_parts``.
        """
        head = self.head(status, len(data), headers)
        self.send_parts((head,) if self.command == "HEAD" else (head, data))
