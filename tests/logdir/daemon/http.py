"""Requests to the control socket as a client of any kind sends them, and what came back."""

from __future__ import annotations

import json
from email.parser import Parser
from typing import Any, NamedTuple

from logdir.daemon.socket import routes
from tests.logdir.daemon.rig import Daemon, ask, until


class Response(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> dict[str, Any]:
        """Return its one JSON object."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def slugs(self) -> list[str]:
        return [problem["slug"] for problem in self.value["problems"]]


def bytes_of(method: str, path: str, body: object = None) -> bytes:
    """Return the bytes of a request; ``body``: its JSON, or its bytes."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    length = "" if body is None else f"Content-Length: {len(data)}\r\n"
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{length}\r\n".encode() + data


def parsed(raw: bytes) -> Response:
    """Return the answer in what came back, which is whole."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, _, rest = head.decode().partition("\r\n")
    version, status, _ = first.split(" ", 2)
    headers = {name.lower(): value for name, value in Parser().parsestr(rest).items()}
    assert (version, headers["connection"]) == ("HTTP/1.1", "close")
    assert len(body) == int(headers["content-length"])
    return Response(int(status), headers, body)


def send(one: Daemon, method: str, path: str, body: object = None) -> Response:
    """Send a request, and return its answer."""
    return parsed(ask(one.socket, bytes_of(method, path, body)))


def read(one: Daemon, name: str, request: object = None) -> Response:
    """Ask a use case that only reads."""
    return send(one, "POST", routes.path_of(name), {"apply": False, "request": request or {}})


def enqueued(one: Daemon, part: str, request: object, *, is_applied: bool = True) -> str:
    """Enqueue an operation, and return its id."""
    response = send(one, "POST", routes.OPERATIONS, {"use_case": part, "apply": is_applied, "request": request})
    assert response.status == 202, response
    identity: str = response.value["result"]["id"]
    assert response.headers["location"] == routes.operation_path(identity)
    return identity


def operation(one: Daemon, identity: str) -> dict[str, Any]:
    """Return what is said of an operation."""
    response = send(one, "GET", routes.operation_path(identity))
    assert response.status == 200, response
    found: dict[str, Any] = response.value["result"]
    return found


def ended(one: Daemon, identity: str) -> dict[str, Any]:
    """Wait until an operation has ended, and return what is said of it."""
    until("it has ended", lambda: operation(one, identity)["ended_at_ms"] is not None)
    return operation(one, identity)
