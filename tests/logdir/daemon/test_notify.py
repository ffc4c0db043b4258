"""Messages to systemd, received on a real socket."""

from __future__ import annotations

import socket
from pathlib import Path

from logdir.daemon.report.notify import Notifier


def test_lines_arrive_in_one_datagram(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}).send("READY=1", "STATUS=RUNNING")
        assert receiver.recv(100) == b"READY=1\nSTATUS=RUNNING"


def test_an_abstract_socket_is_reached() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("\0logdird-test-notify")
        Notifier({"NOTIFY_SOCKET": "@logdird-test-notify"}).send("STOPPING=1")
        assert receiver.recv(100) == b"STOPPING=1"


def test_without_a_service_manager_nothing_happens(tmp_path: Path) -> None:
    Notifier({}).send("READY=1")
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "none")}).send("READY=1")


def test_the_watchdog_is_fed_twice_as_often_as_asked() -> None:
    assert Notifier({"WATCHDOG_USEC": "30000000"}).watchdog_ms == 15_000
    assert Notifier({}).watchdog_ms is None
    assert Notifier({"WATCHDOG_USEC": "soon"}).watchdog_ms is None
