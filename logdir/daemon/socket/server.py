"""The control socket: HTTP/1.1 on a unix socket, with the JSON forms of requests and results.

    GET  /v1/status            the status, from memory
    POST /v1/use-cases/NAME    {"apply": bool, "request": {…}}, the request of a use case; NAME as ``staged-purge``

The answer is the object that ``--json`` prints; that of a use case also has ``lines`` and ``warnings`` for people. The
peer's user decides: root and the daemon's own user may do everything, whoever else may connect may read the status.
A client that is slow, or one of too many, delays no other client and no work (``connections``).

Not here: what a request does (``service.batch.use_cases``), the queue (``supervisor``).

Spec: design §5, §6; docs/json.md; attacks of the issue "The daemon".
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from logdir.daemon.faults import StoppingError, in_use
from logdir.daemon.release import RELEASE
from logdir.daemon.socket.connections import BACKLOG, MOST_CLIENTS, ControlConnections, is_owner_or_root
from logdir.daemon.socket.http_handler import HttpHandler
from logdir.daemon.socket.socket_group import give_to_group
from logdir.daemon.socket.socket_lock import SocketLock
from logdir.errors import LogDirError, MalformedMessageError, Problem
from logdir.formats.own import own_json
from logdir.paths import SOCKET_LOCK
from logdir.service.batch.use_cases import NAMES, NEED_CLOSED, spec_of
from logdir.service.report.exit_status import Exit, exit_for, problems_of
from logdir.service.report.json_form import from_json, to_json
from logdir.service.report.json_text import FORMAT, compact
from logdir.service.report.use_case import Ran
from logdir.text import printable

if TYPE_CHECKING:
    from logdir.daemon.supervisor import Supervisor
    from logdir.daemon.work import Work

LOG: Final = logging.getLogger(__name__)
STATUS: Final = "/v1/status"
USE_CASES: Final = "/v1/use-cases/"
MOST_BYTES: Final = 64 * 1024 * 1024
"""Size limit of a request: room for a plan of 200,000 replicas."""
DEADLINE_MS: Final = 10 * 1000
"""How long a client may take to send its request, and to take its answer."""
_LEFT_MS: Final = 200
"""How often a waiting request looks whether its client is still there."""
_POLL_S: Final = 3600.0
_MODE: Final = 0o660


def path_of(name: str) -> str:
    """Return the path of a use case.

    >>> path_of("staged purge")
    '/v1/use-cases/staged-purge'
    """
    return USE_CASES + name.replace(" ", "-")


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
        self._lock = _locked(self._path)
        try:
            _remove_stale(self._path)
            self._server = _made(self._path, supervisor, deadline_ms)
        except BaseException:
            self._lock.release()
            raise
        # It waits for clients alone, not twice a second for its end: ``stop`` wakes it up.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="control", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether its thread works."""
        return self._thread.is_alive()

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
        self._server.drain()


def _made(path: str, supervisor: Supervisor, deadline_ms: int) -> ControlConnections:
    """Make a socket that does not exist. Raises ``LogDirError``: it cannot be made."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)
    try:
        listener.bind(path)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _unusable(path, error.strerror or str(error)) from error
    finally:
        os.umask(before)
    give_to_group(path)
    Path(path).chmod(_MODE)
    return ControlConnections(listener, supervisor, _Handler, busy=_BUSY, deadline_ms=deadline_ms)


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


class _Handler(HttpHandler):
    server: ControlConnections

    def do_GET(self) -> None:  # noqa: N802 - the name of the base
        """Answer a question."""
        if self.path != STATUS:
            self._refuse(404, "no-such-path", self.path, STATUS, "another path")
            return
        self.server.has_read(self.connection)
        answer = _envelope("status", Exit.DONE, (), to_json(self.server.supervisor.status()))
        self.server.is_sending(self.connection)  # Who does not take it holds up no other client: it can ask again.
        self._send(200, answer)

    def do_POST(self) -> None:  # noqa: N802 - the name of the base
        """Run a use case."""
        name = next((one for one in (*NAMES, RELEASE.name) if path_of(one) == self.path), None)
        if (closed := next((one for one in NEED_CLOSED if path_of(one) == self.path), None)) is not None:
            problem = in_use(closed, self.server.supervisor.config.socket).problem()
            self._send(409, _envelope(closed, Exit.REFUSED, (problem,), {}))
        elif name is None:
            self._refuse(404, "no-such-path", self.path, f"{USE_CASES}NAME of a use case", "another path")
        elif not is_owner_or_root(self.connection):
            fix = "run the command as root, or as the owner of the log dirs"
            self._refuse(403, "no-permission", self.path, "root, or the owner of the log dirs", "another user", fix)
        elif (body := self._body()) is not None:
            self.server.has_read(self.connection)
            with self.server.answering():
                self._run(name, body)

    def _body(self) -> bytes | None:
        text = self.headers.get("Content-Length", "")
        if not (text.isascii() and text.isdecimal()) or len(text) > 9 or int(text) > MOST_BYTES:
            self._refuse(
                413, "malformed-message", self.path, f"a Content-Length of at most {MOST_BYTES}", text or "none"
            )
            return None
        body = self.rfile.read(int(text))
        if len(body) != int(text):
            self._refuse(400, "malformed-message", self.path, f"{int(text)} bytes", f"{len(body)} bytes")
            return None
        return body

    def _run(self, name: str, body: bytes) -> None:
        spec = RELEASE if name == RELEASE.name else spec_of(name)
        try:
            is_applied, request = _parsed(body, spec.request)
            _require_valid(request)

            def work(work: Work) -> tuple[Ran, tuple[str, ...]]:
                if spec is RELEASE:
                    return work.release(request, is_applied=is_applied)
                return work.run(spec, request, is_applied=is_applied)

            ran, warnings = self._awaited(self.server.supervisor.submit(name, work))
        except StoppingError as error:
            problem = error.problem()
            self._send(503, _envelope(name, Exit.REFUSED, (problem,), {}))
            return
        except LogDirError as error:
            status = 400 if isinstance(error, MalformedMessageError) else 200
            self._send(status, _envelope(name, exit_for(error), problems_of(error), {}))
            return
        except Exception as error:
            LOG.exception("request.fault command=%r", name)
            words = f"{type(error).__name__}: {error}"
            fault = Problem("internal-error", name, "an answer", printable(words), "report this line")
            self._send(500, _envelope(name, Exit.INTERNAL, (fault,), {}))
            return
        answer = _envelope(name, ran.exit, ran.problems, to_json(ran.result))
        more = {"lines": list(ran.lines), "is_waiting": ran.is_waiting, "next": ran.next}
        self._send(200, answer | more | {"warnings": list(warnings)})

    def _awaited(self, answer: Any) -> Any:
        """Wait for an answer; a request whose client has left before its turn is not begun.

        Raises:
            StoppingError: the client has left, or the daemon ends.
        """
        poll = select.poll()
        poll.register(self.connection.fileno(), 0)  # POLLHUP is always reported.
        while not answer.done():
            if poll.poll(_LEFT_MS) and answer.cancel():
                raise StoppingError("request", expected="a client that waits", found="one that has left")
            with suppress(TimeoutError):
                answer.exception(0.05)
        return answer.result()

    def _refuse(self, status: int, slug: str, path: str, expected: str, found: str, fix: str = "") -> None:
        problem = Problem(slug, printable(path)[:200], expected, printable(found)[:200], fix)
        self._send(status, _envelope("logdird", Exit.REFUSED, (problem,), {}))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is no HTTP of ours, in the form of all answers."""
        self.close_connection = True
        problem = Problem("malformed-message", "request", "HTTP/1.1", printable(message or str(code))[:200])
        with suppress(OSError, ValueError):
            self._send(code, _envelope("logdird", Exit.USAGE, (problem,), {}))

    def _send(self, status: int, answer: dict[str, object]) -> None:
        data = f"{compact(answer)}\n".encode()
        self.send_whole(status, {"Content-Type": "application/json"}, data)


def _raw(status: int, reason: str, problem: Problem) -> bytes:
    data = f"{compact(_envelope('logdird', Exit.REFUSED, (problem,), {}))}\n".encode()
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + data


def _envelope(command: str, status: Exit, problems: tuple[Problem, ...], result: object) -> dict[str, object]:
    return {
        "command": command,
        "format": FORMAT,
        "exit": int(status),
        "problems": [problem._asdict() for problem in problems],
        "result": result,
    }


_BUSY: Final = _raw(
    503,
    "Service Unavailable",
    Problem("daemon-busy", "control socket", f"at most {MOST_CLIENTS} clients", "one more", "repeat the command"),
)
"""What the client gets that is one too many."""


def _parsed(body: bytes, kind: type) -> tuple[bool, Any]:
    """Return whether to apply, and the request.

    Raises:
        MalformedMessageError: the body is no such object.
    """
    try:
        # A key that stands twice is refused: the other value of ``apply`` may be what was meant.
        value = own_json.parse_json(body)
        if b"\\u" in body:  # Only written so can a text hold what no name and no path can.
            for text in _texts(value):
                os.fsencode(text)  # A byte that is not UTF-8 is half a character of a kind that is right.
                if "\0" in text:
                    raise ValueError("a text with a NUL character")
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError("request", expected="one JSON object", found=printable(str(error))) from error
    if not isinstance(value, dict) or value.keys() != {"apply", "request"} or type(value["apply"]) is not bool:
        expected = "an object with the keys apply (true or false) and request"
        raise MalformedMessageError(
            "request", expected=expected, found="another value", fix="docs/json.md lists the keys"
        )
    return value["apply"], from_json(kind, value["request"])


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _require_valid(request: Any) -> None:
    """Check that a request is valid.

    Raises:
        MalformedMessageError: its parts do not fit together, which none of our own commands sends.
        ConfigError: as the request.
    """
    if not hasattr(request, "require_valid"):
        return
    try:
        request.require_valid()
    except ValueError as error:
        fix = "docs/json.md lists the keys"
        raise MalformedMessageError(
            "request", expected="a request whose parts fit together", found=printable(str(error)), fix=fix
        ) from error
