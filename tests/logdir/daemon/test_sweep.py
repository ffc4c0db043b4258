"""A sweep, by the calls that it makes on the log dirs: most find nothing, and they go on for as long as a broker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from operator import gt
from pathlib import Path
from typing import Any

import pytest

from logdir import clock
from logdir.daemon.config import parse
from logdir.daemon.report.history import History
from logdir.daemon.session import Kept, Session
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.work import Work
from logdir.formats.own import heartbeat_file
from logdir.worker.remote import RemotePort
from tests.logdir.daemon import rig
from tests.logdir.daemon.rig import Daemon
from tests.tools.ctl import held


@contextmanager
def working(one: Daemon) -> Iterator[Work]:
    """Open the log dirs as a daemon does that has just started, in this process."""
    config = parse(one.config.read_bytes(), str(one.config))
    os.makedirs(config.state_dir)
    session = Session.open(config, Kept())
    try:
        work = Work(session, Supervisor(config, version="0", history=History(config.state_dir)))
        work.begin()
        yield work
    finally:
        session.close()


def seen_ms(one: Daemon) -> list[int]:
    """Return the boot time of the last heartbeat of each log dir."""
    files = (Path(f"{top}.logdird/heartbeat.json") for top in one.log_dirs)
    return [heartbeat_file.parse(file.read_bytes()).boots[-1].seen_ms for file in files]


def test_the_sweeps_of_a_daemon_beat_once_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, start_ms = Daemon(tmp_path), clock.boottime_ms() + 1000
    now_ms = start_ms
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms)
    with working(one) as work:
        for away_ms in (0, 10_000, 59_999, 60_000, 119_999, 120_000, 3_600_000):
            now_ms = start_ms + away_ms
            work.sweep()
            beaten_ms = start_ms + away_ms // 60_000 * 60_000
            assert seen_ms(one) == [beaten_ms] * 2, away_ms


@pytest.mark.slow
def test_a_running_daemon_goes_on_beating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure of its beats is made short; that it is a minute is shown above."""
    monkeypatch.setattr(rig, "CODE", f"from logdir.daemon import session; session.BEAT_MS = 600; {rig.CODE}")
    with rig.daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        for _ in range(3):
            before = seen_ms(one)
            rig.until("every heartbeat is advanced", lambda: all(map(gt, seen_ms(one), before)))  # noqa: B023


@pytest.mark.usefixtures("workers")
def test_one_that_finds_nothing_makes_one_call_on_each_log_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Daemon(tmp_path, disks=3)
    with working(one) as work:
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


@pytest.mark.parametrize("has_file", [False, True], ids=["its last lock file is not there yet", "it is"])
def test_a22_a_broker_that_has_some_of_its_locks_is_still_awaited(tmp_path: Path, has_file: bool) -> None:
    """It takes them one after the other: if the last one were taken meanwhile, its start would fail."""
    one = Daemon(tmp_path, disks=3)
    locks = [top / ".lock" for top in one.log_dirs]
    for lock in locks[: 3 if has_file else 2]:
        lock.touch()
    with working(one) as work:
        awaited = work.supervisor.start_awaited
        awaited.begin()
        with held(locks[0]), held(locks[1]):
            work.sweep()
            assert (work.is_running, awaited.is_on) == (True, True)
            locks[2].touch()
            with held(locks[2]):
                work.sweep()
                assert (work.is_running, awaited.is_on) == (True, False)


def test_beside_a_stopped_broker_that_is_left_alone_an_unchanged_log_dir_is_not_listed_again(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    one.config.write_text(one.config.read_text().replace("auto.while.stopped: true", "auto.while.stopped: false"))
    gone = one.delete(one.make("pay"))
    config = parse(one.config.read_bytes(), str(one.config))
    os.makedirs(config.state_dir)
    session = Session.open(config, Kept())
    try:
        work = Work(session, Supervisor(config, version="0", history=History(config.state_dir)))
        work.begin()
        for top in one.log_dirs:
            os.utime(top, (1, 1))
        leavers = session.kept.leavers
        changed = []
        for _ in range(2):
            work.sweep()
            changed.append(leavers.has_changed)
        assert changed == [True, False]
        assert (one.staged(), gone.exists(), leavers.handled) == ([], True, set())
        # Once it runs, what lies there is captured.
        (one.log_dirs[0] / ".lock").touch()
        with held(one.log_dirs[0] / ".lock"):
            work.sweep()
        assert len(one.staged()) == 1
    finally:
        session.close()
