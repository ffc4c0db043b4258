"""The 64 clients of the control socket: no fault and no slow client takes a place for good."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from logdir.daemon.report.status import StatusResult, blank_status
from logdir.daemon.socket import client
from logdir.daemon.socket.connections import MOST_CLIENTS
from logdir.daemon.socket.server import DEADLINE_MS, Control
from logdir.daemon.supervisor import Supervisor
from logdir.errors import LogDirError, Problem
from tests.logdir.daemon.rig import ask

GET = b"GET /v1/status HTTP/1.1\r\n\r\n"
LARGE = (Problem("request-waiting", "/inbox/1.json", "x" * (2 << 20), "y"),)
"""Makes a status of 2 MiB, more than a socket takes of what its client does not read."""


class Asked:
    """The part of a supervisor that a question for the status needs."""

    def __init__(self, path: str) -> None:
        self.config = SimpleNamespace(socket=path)
        self.waiting: tuple[Problem, ...] = ()

    def status(self) -> StatusResult:
        return replace(blank_status("b1", "0"), waiting=self.waiting)


@contextmanager
def answering(path: Path, deadline_ms: int = DEADLINE_MS) -> Iterator[Asked]:
    asked = Asked(str(path / "s.sock"))
    control = Control(cast(Supervisor, asked), deadline_ms=deadline_ms)
    assert not control.is_alive()
    control.start()
    assert control.is_alive()
    try:
        yield asked
    finally:
        control.stop()


def asking(path: str) -> socket.socket:
    """Return a client that has asked for the status, and reads nothing."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(30)
    connection.connect(path)
    connection.sendall(GET)
    return connection


def test_a_thread_that_cannot_be_started_takes_no_place_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with answering(tmp_path) as asked:
        with monkeypatch.context() as broken:
            broken.setattr(threading.Thread, "start", fail)
            for _ in range(MOST_CLIENTS):
                with pytest.raises(LogDirError, match=r"at most 64 clients|daemon-unreachable"):
                    client.status(asked.config.socket)
        assert ask(asked.config.socket, GET).startswith(b"HTTP/1.1 200 ")
    assert "control.fault" in caplog.text


def test_clients_that_do_not_take_their_answer_hold_up_no_other(tmp_path: Path) -> None:
    with answering(tmp_path, deadline_ms=120_000) as asked, ExitStack() as opened:
        asked.waiting = LARGE
        clients = [opened.enter_context(asking(asked.config.socket)) for _ in range(MOST_CLIENTS)]
        for one in clients:
            one.recv(1)  # Its answer is being sent.
        assert len(ask(asked.config.socket, GET)) > 2 << 20
        # One of them has lost its place, and only one.
        assert sum(len(_all_of(one)) > 2 << 20 for one in clients) == MOST_CLIENTS - 1


def test_a_client_that_takes_its_answer_by_drips_is_cut_off(tmp_path: Path) -> None:
    with answering(tmp_path, deadline_ms=300) as asked:
        asked.waiting = LARGE
        with asking(asked.config.socket) as slow:
            taken = 0
            while part := slow.recv(1 << 14):
                taken += len(part)
                threading.Event().wait(0.02)
        assert 0 < taken < 2 << 20


def _all_of(connection: socket.socket) -> bytes:
    found = b""
    while part := connection.recv(1 << 20):
        found += part
    return found


def test_a19_of_two_daemons_that_start_in_the_same_instant_one_has_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one starts after the first has found a stale socket, and before it removes that."""
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(path)
    remove, refused = Path.unlink, []

    def remove_after_another_start(file: Path, missing_ok: bool = False) -> None:
        monkeypatch.setattr(Path, "unlink", remove)
        with pytest.raises(LogDirError) as found:
            Control(cast(Supervisor, Asked(path)))
        refused.append(found.value.slug)
        remove(file, missing_ok)

    monkeypatch.setattr(Path, "unlink", remove_after_another_start)
    with answering(tmp_path):
        assert refused == ["socket-in-use"]
        assert client.is_answering(path)
    assert not Path(path).exists()
    with answering(tmp_path):  # The lock went with the socket.
        assert client.is_answering(path)
