"""Answering one connection to the control socket: HTTP, who may ask what, and sending the answer.

Not here: the connections and their deadlines (``connections``), what a path is about (``routes``), the answers
(``envelopes``), running a use case (``running``, ``reads``, ``operating``).

Spec: design §5, §6; docs/api.md; attacks of the issue "The daemon".
"""

from __future__ import annotations

import logging
import os
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

from logdir import clock
from logdir.daemon.faults import StoppingError, in_use
from logdir.daemon.requests import Answer
from logdir.daemon.socket import routes
from logdir.daemon.socket.body import MOST_BYTES, MOST_QUESTION_BYTES, Asked, asked_of, operation_of, question_of
from logdir.daemon.socket.connections import ControlConnections, Incoming, is_owner_or_root
from logdir.daemon.socket.envelopes import Reply, found, of_error, of_fault, of_operation, refusal
from logdir.daemon.socket.http_handler import HttpHandler
from logdir.daemon.socket.reads import Content
from logdir.daemon.socket.running import Came, log_dir_left, reply_of, run_on
from logdir.errors import LogDirError, Problem
from logdir.service.batch.use_cases import NEED_CLOSED
from logdir.service.reading.questions import READINGS, Question, Reading, is_of_own_log
from logdir.service.report.exit_status import Exit
from logdir.service.report.json_form import to_json
from logdir.text import printable, utf8

LOG: Final = logging.getLogger(__name__)
_JSON: Final = "application/json"
_HTML: Final = "text/html; charset=utf-8"
_DOCUMENT: Final = Path(__file__).with_name("openapi.json")
"""A link to ``docs/openapi.json``; a wheel holds its content."""
_MOST_LINE: Final = 1 << 16
_LEFT_MS: Final = 200
"""How often a waiting request looks whether its client is still there."""
_PART: Final = 1 << 20
"""How much of a long answer is sent at once."""
_LINGER_MS: Final = 2000
"""How long the rest of a request is passed over that was refused before it was read."""
_OWNER: Final = "root, or the owner of the log dirs"


@cache
def _document() -> bytes:
    """Return the document of OpenAPI. Raises ``ValueError``: the installation lacks it."""
    try:
        return _DOCUMENT.read_bytes()
    except OSError as error:
        raise ValueError(f"{_DOCUMENT}: {error.strerror or error}") from error


class Handler(HttpHandler):
    """Answers the one request of a connection."""

    server: ControlConnections
    about = "logdird"
    """What is asked for, as an answer calls it that no use case gives."""
    is_rest_unread = False
    """Whether the request was refused before its body was read."""

    def finish(self) -> None:
        """End the connection; one that is closed before all of it was read is reset, and its client gets no answer."""
        if self.is_rest_unread:
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_WR)
                rest = Incoming(self.connection, _LINGER_MS)
                passed_over = bytearray(_MOST_LINE)
                while rest.readinto(passed_over):
                    pass
        super().finish()

    def do_GET(self) -> None:  # noqa: N802 - the name of the base
        """Answer a question from memory."""
        self._guarded(self._get)

    def do_POST(self) -> None:  # noqa: N802 - the name of the base
        """Run a use case, or enqueue an operation."""
        self._guarded(self._post)

    def do_DELETE(self) -> None:  # noqa: N802 - the name of the base
        """Take an operation back."""
        self._guarded(self._delete)

    def _guarded(self, act: Callable[[], None]) -> None:
        """Answer a fault of ours by its name, too."""
        try:
            act()
        except OSError:
            raise  # The client has gone, or is too slow.
        except Exception as error:
            LOG.exception("request.fault command=%r", self.about)
            self._send(of_fault(self.about, error))

    def _get(self) -> None:
        match self.path:
            case routes.STATUS | routes.METRICS | routes.PAGE:
                self.server.has_read(self.connection)
                # One at a time: many who ask take no more of the interpreter from the thread of changes than one does.
                with self.server.making:
                    data, kind = self._made()
                self._give(data, kind)
            case routes.OPENAPI:
                self._give(_document(), _JSON)
            case _:
                self._get_operation()

    def _made(self) -> tuple[bytes, str]:
        """Return what is made from memory, and its media type; the caller holds ``making``."""
        daemon, server = self.server.supervisor, self.server
        if self.path == routes.METRICS:
            # Loaded by the first who asks: a daemon that nobody scrapes needs no library for it.
            from logdir.daemon.metrics import exposition

            return exposition.text_of(daemon), exposition.CONTENT_TYPE
        status = daemon.status()
        if self.path == routes.PAGE:
            from logdir.daemon.page.render import render

            return utf8(render(status, clock.now_ms())).encode(), _HTML
        kept = server.kept_status
        if kept is None or kept[0] is not status:  # As long as nothing changes it is the same object.
            kept = server.kept_status = status, found("status", status).data
        return kept[1], _JSON

    def _get_operation(self) -> None:
        identity = routes.operation_at(self.path)
        if self.path != routes.OPERATIONS and identity is None:
            self._refuse(404, "no-such-path", "a path that docs/api.md lists", "another path")
        elif self._may_change():
            self.about = "operations" if identity is None else "operation"
            try:
                if identity is None:
                    items = [to_json(one) for one in self.server.operating.all()]
                    self._give(found(self.about, {"items": items}).data, _JSON)
                else:
                    self._give(of_operation(self.about, *self.server.operating.find(identity)), _JSON)
            except LogDirError as error:
                self._send(of_error(self.about, error))

    def _post(self) -> None:
        if self.path == routes.OPERATIONS:
            self._post_operation()
            return
        name = routes.use_case_at(self.path)
        if name is None:
            self.is_rest_unread = True
            self._refuse(404, "no-such-path", f"{routes.USE_CASES}NAME of a use case", "another path")
            return
        self.about = name
        if name in NEED_CLOSED:
            self.is_rest_unread = True
            self._send(refusal(409, name, in_use(name, self.server.supervisor.config.socket).problem()))
        elif (reading := READINGS.get(name)) is not None:
            self._read(reading)
        elif self._may_change() and (body := self._body(MOST_BYTES)) is not None:
            self.server.has_read(self.connection)
            with self.server.answering():
                try:
                    asked = asked_of(name, body)
                    del body  # It may be large, and the request takes its turn.
                    answer = self.server.supervisor.submit(name, lambda work: run_on(work, asked))
                except LogDirError as error:
                    self._send(of_error(name, error))
                    return
                self._send(self._awaited(asked, answer))

    def _post_operation(self) -> None:
        self.about = "operation"
        if not self._may_change() or (body := self._body(MOST_BYTES)) is None:
            return
        self.server.has_read(self.connection)
        try:
            operation = self.server.operating.add(operation_of(body), len(body))
        except LogDirError as error:
            reply = of_error(self.about, error)
            # Who looks at the status alone must not take it for one that is queued.
            self._send(reply._replace(status=400) if reply.status == 200 else reply)
            return
        data = of_operation(self.about, operation, None)
        self._send_data(202, data, _JSON, Location=routes.operation_path(operation.id))

    def _delete(self) -> None:
        identity = routes.operation_at(self.path)
        if identity is None:
            self.send_error(501, f"Unsupported method ({self.command!r})")
        elif self._may_change():
            self.about = "operation"
            try:
                data = of_operation(self.about, self.server.operating.cancel(identity), None)
            except LogDirError as error:
                self._send(of_error(self.about, error))
                return
            self._send_data(200, data, _JSON)

    def _read(self, reading: Reading) -> None:
        """Answer a question to a use case that only reads."""
        if (body := self._body(MOST_QUESTION_BYTES)) is None:
            return
        self.server.has_read(self.connection)
        may_change = is_owner_or_root(self.connection)
        try:
            question = question_of(reading, body)
            if may_change or is_of_own_log(question):
                self._answer(reading, question, may_change=may_change)
            else:
                fix = "leave source out, or run the command as root or as the owner of the log dirs"
                self._refuse(403, "no-permission", f"{_OWNER}, where source names a file", "another user", fix)
        except LogDirError as error:
            self._send(of_error(reading.name, error))

    def _answer(self, reading: Reading, question: Question, *, may_change: bool) -> None:
        with (
            self.server.answering(),
            self.server.reads.answered(
                reading, question, may_change=may_change, is_wanted=self._is_waited_for
            ) as content,
        ):
            self.server.is_sending(self.connection)
            self._send_content(content)

    def _is_waited_for(self) -> bool:
        """Whether the client is still there."""
        poll = select.poll()
        poll.register(self.connection.fileno(), 0)  # POLLHUP is always reported.
        return not poll.poll(0)

    def _may_change(self) -> bool:
        """Whether the client may change something; else it was answered that it may not."""
        if is_owner_or_root(self.connection):
            return True
        self.is_rest_unread = True
        fix = "run the command as root, or as the owner of the log dirs"
        self._refuse(403, "no-permission", _OWNER, "another user", fix)
        return False

    def _body(self, most_bytes: int) -> bytes | None:
        """Return the body of a request; ``None``: there is none that is whole, which was answered."""
        text = self.headers.get("Content-Length", "")
        if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) > most_bytes:
            self.is_rest_unread = True
            self._refuse(413, "malformed-message", f"a Content-Length of at most {most_bytes}", text or "none")
            return None
        body = self.rfile.read(int(text))
        if len(body) != int(text):
            self._refuse(400, "malformed-message", f"{int(text)} bytes", f"{len(body)} bytes")
            return None
        return body

    def _awaited(self, asked: Asked, answer: Answer) -> Reply:
        """Wait for the answer to a request; one whose client has left before its turn is not begun."""
        poll = select.poll()
        poll.register(self.connection.fileno(), 0)  # POLLHUP is always reported.
        while not answer.done():
            if poll.poll(_LEFT_MS) and answer.cancel():
                error = StoppingError("request", expected="a client that waits", found="one that has left")
                return of_error(asked.spec.name, error)
            with suppress(TimeoutError):
                answer.exception(0.05)
        came: Callable[[], Came] = answer.result
        return reply_of(asked.spec.name, came, self.server.reads, log_dir_left(asked))

    def _refuse(self, status: int, slug: str, expected: str, found: str, fix: str = "") -> None:
        problem = Problem(slug, printable(self.path)[:200], expected, printable(found)[:200], fix)
        self._send(refusal(status, "logdird", problem))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is no HTTP of ours, in the form of all answers."""
        self.close_connection = True
        problem = Problem("malformed-message", "request", "HTTP/1.1", printable(message or str(code))[:200])
        with suppress(OSError, ValueError):
            self._send(refusal(code, "logdird", problem, exit_status=Exit.USAGE))

    def _give(self, data: bytes, kind: str) -> None:
        """Send what a client can ask for again: if it is slow to take it, it holds up no other client."""
        self.server.has_read(self.connection)
        self.server.is_sending(self.connection)
        self._send_data(200, data, kind)

    def _send(self, reply: Reply) -> None:
        self._send_data(reply.status, reply.data, _JSON)

    def _send_data(self, status: int, data: bytes, kind: str, **headers: str) -> None:
        self.send_parts((self.head(status, len(data), {"Content-Type": kind, **headers}), data))

    def _send_content(self, content: Content) -> None:
        """Send an answer from its file."""
        head = self.head(200, content.size, {"Content-Type": _JSON})
        self.send_parts(chain((head,), _parts_of(content)))


def _parts_of(content: Content) -> Iterator[bytes]:
    """Yield an answer in parts, read from its file."""
    offset = 0
    while part := os.pread(content.file, _PART, offset):
        yield part
        offset += len(part)
