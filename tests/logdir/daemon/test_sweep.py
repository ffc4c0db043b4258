"""A sweep, by the calls that it makes on the log dirs: most find nothing, and they go on for as long as a broker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from logdir.daemon.config import parse
from logdir.daemon.report.history import History
from logdir.daemon.session import Kept, Session
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.work import Work
from logdir.worker.remote import RemotePort
from tests.logdir.daemon.rig import Daemon


@pytest.mark.usefixtures("workers")
def test_one_that_finds_nothing_makes_one_call_on_each_log_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Daemon(tmp_path, disks=3)
    config = parse(one.config.read_bytes(), str(one.config))
    os.makedirs(config.state_dir)
    session = Session.open(config, Kept())
    try:
        work = Work(session, Supervisor(config, version="0", history=History(config.state_dir)))
        work.begin()
        for top in one.log_dirs:
            os.utime(top, (1, 1))
        work.sweep()  # What is there is new to it, and the heartbeats are written.
        asked: list[tuple[str, str]] = []
        send = RemotePort._send

        def noted(port: RemotePort, call: Any, *rest: Any, **more: Any) -> Any:
            asked.append((port.log_dir, call.__qualname__))
            return send(port, call, *rest, **more)

        monkeypatch.setattr(RemotePort, "_send", noted)
        work.sweep()
        work.status()
        assert asked == [(str(top), "glance") for top in one.log_dirs]
        # What one finds is looked into, in all of them.
        one.delete(one.make("pay"))
        work.sweep()
        assert {call for _, call in asked} >= {"glance", "capture_step"}
        assert len(one.staged()) == 1
    finally:
        session.close()
