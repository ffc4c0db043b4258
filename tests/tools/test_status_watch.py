"""``logdirctl status --watch`` asks the daemon again and again, and shows at once what it answers."""

from __future__ import annotations

import io
import os
import select
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer

import pytest

from logdir.daemon.report.status import StatusResult, blank_status
from logdir.daemon.socket import client
from logdir.service.report.json_form import to_json
from logdir.service.report.json_text import compact
from tests.tools.ctl import launch
from tools.logdirctl.main import main


def captured(count: int) -> StatusResult:
    return replace(blank_status("b1", "0"), state="RUNNING", captured=count)


class Answering(ThreadingMixIn, UnixStreamServer):
    """Answers each question for the status with one more capture."""

    asked = 0


class _Handler(BaseHTTPRequestHandler):
    server: Answering

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        pass

    def do_GET(self) -> None:
        self.server.asked += 1
        result = to_json(captured(self.server.asked))
        answer = {"command": "status", "format": 1, "exit": 0, "problems": [], "result": result}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{compact(answer)}\n".encode())


@pytest.fixture
def server() -> Iterator[Answering]:
    # The path of this folder is short enough for a socket.
    with (
        tempfile.TemporaryDirectory(prefix="logdird-") as folder,
        Answering(f"{folder}/s.sock", _Handler) as made,
    ):
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def read_until(file: int, wanted: bytes) -> bytes:
    """Read a pipe up to some bytes; fail if it ends before, or nothing comes for a minute."""
    found = b""
    while wanted not in found:
        assert select.select([file], [], [], 60)[0], found
        part = os.read(file, 1 << 16)
        assert part, found
        found += part
    return found


def test_every_answer_is_shown_when_it_comes_until_ctrl_c(server: Answering) -> None:
    with launch("status", "--socket", server.server_address, "--watch") as asking:
        assert asking.stdout is not None
        found = read_until(asking.stdout.fileno(), b"captured 3,")
        assert asking.poll() is None
        asking.send_signal(signal.SIGINT)
        asking.communicate(timeout=60)
    assert [f"captured {count},".encode() in found for count in (1, 2, 3)] == [True] * 3
    assert found.index(b"captured 1,") < found.index(b"captured 2,") < found.index(b"captured 3,")
    assert asking.returncode == 130


def test_without_it_the_daemon_is_asked_once(server: Answering) -> None:
    with launch("status", "--socket", server.server_address) as asking:
        out, _ = asking.communicate(timeout=60)
    assert (asking.returncode, out.count(b"captured"), server.asked) == (0, 1, 1)


def test_two_seconds_lie_between_two_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, object]] = []

    class Out(io.StringIO):
        def flush(self) -> None:
            done.append(("shown", self.getvalue().count("captured")))

    def asked(path: str) -> StatusResult:
        done.append(("asked", path))
        return captured(1)

    def slept(seconds: float) -> None:
        done.append(("slept", seconds))
        if len(done) > 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(client, "status", asked)
    monkeypatch.setattr(time, "sleep", slept)
    assert main(["status", "--socket", "/s", "--watch"], Out(), io.StringIO()) == 130
    assert done[:6] == [("asked", "/s"), ("shown", 1), ("slept", 2), ("asked", "/s"), ("shown", 2), ("slept", 2)]
