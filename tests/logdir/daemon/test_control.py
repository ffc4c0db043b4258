"""The control socket under bad input: a typed answer each, the daemon alive, nothing changed."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from logdir.daemon.release import RELEASE
from logdir.daemon.socket.routes import path_of
from logdir.service.batch.use_cases import NAMES, NEED_CLOSED
from logdir.service.report.json_form import to_json
from tests.logdir.daemon.rig import Daemon, ask, daemon, stage_of, unchanged, until
from tests.proof.daemon_claims import OTHER_USERS, SLOW_CLIENTS
from tests.proof.plugin import Recorder

_NOBODY = 65534


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with daemon(tmp_path_factory.mktemp("control")) as made:
        yield made


def post(path: str, body: bytes, *, length: str | None = None) -> bytes:
    size = str(len(body)) if length is None else length
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode() + body


def answer(raw: bytes) -> tuple[int, dict[str, object]]:
    head, _, body = raw.partition(b"\r\n\r\n")
    value = json.loads(body)
    assert {"command", "exit", "format", "problems", "result"} <= value.keys()
    return int(head.split(b" ")[1]), value


HOLD = b'{"apply": true, "request": {"selector": "pay", "disk": null, "names": []}}'
BAD = {
    "no such path": (b"GET /v1/nothing HTTP/1.1\r\n\r\n", 404),
    "no such use case": (post("/v1/use-cases/erase", HOLD), 404),
    "a method that is none": (b"DELETE /v1/status HTTP/1.1\r\n\r\n", 501),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "a version that is none": (b"GET /v1/status HTTP/9.9\r\n\r\n", 505),
    "no length": (b"POST /v1/use-cases/staged-hold HTTP/1.1\r\n\r\n", 413),
    "a negative length": (post("/v1/use-cases/staged-hold", HOLD, length="-1"), 413),
    "a length that is no number": (post("/v1/use-cases/staged-hold", HOLD, length="ten"), 413),
    "a huge length": (post("/v1/use-cases/staged-hold", HOLD, length="99999999999999"), 413),
    "half a body": (post("/v1/use-cases/staged-hold", HOLD[:20], length=str(len(HOLD))), 400),
    "no JSON": (post("/v1/use-cases/staged-hold", b"{"), 400),
    "no object": (post("/v1/use-cases/staged-hold", b"[]"), 400),
    "deep JSON": (post("/v1/use-cases/staged-hold", b"[" * 100_000), 400),
    "no UTF-8": (post("/v1/use-cases/staged-hold", b"\xff\xfe\x00"), 400),
    "a key too many": (post("/v1/use-cases/staged-hold", b'{"apply": true, "request": {}, "x": 1}'), 400),
    "apply no flag": (post("/v1/use-cases/staged-hold", b'{"apply": 1, "request": {}}'), 400),
    "a blank line": (b"\r\n" + post("/v1/use-cases/staged-hold", HOLD), 400),
    "a line of spaces": (b" \xa0\t\r\n", 400),
    "a key that stands twice": (post("/v1/use-cases/staged-hold", b'{"apply": false, ' + HOLD[1:]), 400),
    "no number of JSON": (post("/v1/use-cases/staged-hold", HOLD.replace(b"null", b"NaN")), 400),
    "a verb without its plan": (post("/v1/use-cases/layout", b'{"apply": true, "request": {"verb": "apply"}}'), 400),
    "a NUL": (post("/v1/use-cases/staged-hold", HOLD.replace(b"pay", b"\\u0000")), 400),
    "half a character": (
        post(
            "/v1/use-cases/staged-export",
            b'{"apply": true, "request": {"selection": {"selector": null}, "output": "/\\ud800"}}',
        ),
        400,
    ),
    "an unknown key": (post("/v1/use-cases/staged-hold", b'{"apply": true, "request": {"selektor": "pay"}}'), 400),
    "another type": (post("/v1/use-cases/staged-hold", b'{"apply": true, "request": {"selector": 3}}'), 400),
    "a long line": (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", 414),
    "many headers": (b"GET /v1/status HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_a_typed_answer(one: Daemon, name: str) -> None:
    data, expected = BAD[name]
    status, value = answer(ask(one.socket, data))
    assert status == expected
    assert value["exit"] != 0
    assert value["problems"]
    assert one.state() == "RUNNING"


def test_a_request_that_is_refused_by_its_rule_is_answered_200(one: Daemon) -> None:
    status, value = answer(ask(one.socket, post("/v1/use-cases/staged-hold", HOLD)))
    assert (status, value["exit"]) == (200, 1)
    assert one.staged() == []


def test_a_client_that_leaves_is_no_fault(one: Daemon) -> None:
    for _ in range(50):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(one.socket)
            connection.send(b"GET /v1/sta")
    assert one.state() == "RUNNING"
    assert "request.fault" not in one.log


@pytest.mark.slow
def test_a_hundred_clients_that_send_a_byte_a_minute_hold_up_nobody(tmp_path: Path, record_proof: Recorder) -> None:
    """Who was cut off comes back with the next byte; the others ask for the status and for changes, and topics go."""
    seconds = SLOW_CLIENTS.count("seconds")
    slow: list[socket.socket | None] = [None] * 100
    captured = minutes = 0
    with daemon(tmp_path) as fresh, ExitStack() as opened:
        began = time.monotonic()
        while (passed_s := time.monotonic() - began) < seconds:
            if passed_s >= 60 * minutes:
                minutes += 1
                slow = [opened.enter_context(_with_a_byte(fresh.socket, before)) for before in slow]
                connected = time.monotonic()
            assert fresh.status().state == "RUNNING"
            gone = fresh.delete(fresh.make("pay", captured))
            captured += 1
            until("it is captured", lambda: len(fresh.staged()) == captured, 5)  # noqa: B023 - called at once
            fresh.remove(gone)
            assert answer(ask(fresh.socket, post("/v1/use-cases/staged-hold", HOLD)))[0] == 200
            if captured == 1:
                # The daemon has 64 places: those that came first have lost theirs, before their deadline.
                assert all(one is not None and one.recv(1) == b"" for one in slow[:30])
                assert time.monotonic() - connected < 9
            time.sleep(0.2)
    # With each capture came a look at the status and a request.
    record_proof(SLOW_CLIENTS, {"seconds": seconds, "captures": captured})


def _with_a_byte(path: str, before: socket.socket | None) -> socket.socket:
    """Send a byte on a connection; where it was cut off, on a new one."""
    if before is not None:
        with suppress(OSError):
            before.send(b"G")  # Fails once the daemon has closed it.
            return before
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    connection.send(b"G")
    return connection


def ask_as(user: int, path: str, data: bytes) -> bytes:
    """Ask as another user who is of the socket's group, in a process of its own that only asks."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresuid(user, user, user)
            os.write(writing, ask(path, data))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answered:
        data = answered.read()
    os.waitpid(child, 0)
    return data


@pytest.mark.root
def test_a_user_without_the_right_reads_the_status_and_changes_nothing(record_proof: Recorder) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: asks as another user")
    with tempfile.TemporaryDirectory(prefix="logdird-") as name, daemon(Path(name)) as fresh:
        Path(name).chmod(0o755)
        live = fresh.make()
        status, value = answer(ask_as(_NOBODY, fresh.socket, b"GET /v1/status HTTP/1.1\r\n\r\n"))
        assert (status, value["exit"]) == (200, 0)
        stage = json.dumps({"apply": True, "request": to_json(stage_of("pay"))}).encode()
        names = [one for one in (*NAMES, RELEASE.name) if one not in NEED_CLOSED]
        before = unchanged(fresh)
        for command in names:
            status, value = answer(ask_as(_NOBODY, fresh.socket, post(path_of(command), stage)))
            assert (status, [one["slug"] for one in value["problems"]]) == (403, ["no-permission"])  # type: ignore[attr-defined]
        assert unchanged(fresh) == before
        assert "request" not in {event["event"] for event in fresh.events()}
        # The same request of one who has the right does change it.
        assert answer(ask(fresh.socket, post(path_of("stage"), stage)))[0] == 200
        assert not live.is_dir()
    record_proof(OTHER_USERS, {"use cases": len(names)})


def test_the_socket_is_for_owner_and_group_alone(tmp_path: Path) -> None:
    with daemon(tmp_path) as fresh:
        assert Path(fresh.socket).stat().st_mode & 0o777 == 0o660
