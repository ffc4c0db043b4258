"""When the daemon purges next: nothing that is due waits for the next rescan."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

import pytest

from logdir.daemon.config import parse
from logdir.daemon.figures import Figures
from logdir.daemon.looks import Looks
from logdir.daemon.quorum import Quorum
from logdir.daemon.report.counters import Counters
from logdir.daemon.report.failed_replicas import FailedDisks
from logdir.daemon.report.history import History
from logdir.daemon.session import Kept, Session
from logdir.daemon.start_awaited import StartAwaited
from logdir.daemon.work import Work
from logdir.service import purge
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.purge import PurgePlanned, PurgeRequest
from tests.logdir.daemon.rig import Daemon

OTHER_ID = "AAAAAAAAAAAAAAAAAAAABA"


class Alone:
    """What is around the work of a daemon that has no supervisor."""

    def __init__(self, folder: Path) -> None:
        self.version, self.history, self.counters = "0", History(str(folder)), Counters()
        self.failed_disks, self.figures = FailedDisks(), Figures()
        self.quorum = Quorum(self.sweep)
        self.start_awaited = StartAwaited()
        self.looks = Looks("/nonexistent", lambda look, gaps: None)
        self.asked: list[int | None] = []
        """The instants for which the timer was set."""

    def sweep(self) -> None:
        """Do nothing: the test sweeps."""

    def unwatch(self, log_dirs: Collection[str]) -> None:
        """Do nothing: there is no watch."""

    def set_next_due(self, wall_ms: int | None) -> None:
        """Keep it."""
        self.asked.append(wall_ms)

    def stopping(self) -> None:
        """Return ``None``."""

    def reloading(self) -> None:
        """Return ``None``."""

    def capture_between(self, work: Work) -> None:
        """Do nothing."""

    def check_between(self, work: Work, *, is_long: bool = False) -> None:
        """Do nothing."""

    def start_error(self) -> None:
        """Return ``None``: no handover waits."""


def opened(one: Daemon) -> Session:
    return Session.open(parse(one.config.read_bytes(), str(one.config)), Kept())


@pytest.mark.slow
def test_a_timer_that_fires_a_moment_early_is_set_again_by_the_next_sweep(tmp_path: Path) -> None:
    one = Daemon(tmp_path, more="delete.topic.delay.ms: 2s\n")
    (tmp_path / "state").mkdir()
    session = opened(one)
    try:
        around = Alone(tmp_path / "state")
        work = Work(session, around)
        work.begin()
        one.delete(one.make())
        work.sweep()
        work.purge_due()
        assert len(one.staged()) == 1
        time.sleep(2.1)
        around.asked.clear()
        work.sweep()
        assert len(around.asked) == 1
        work.purge_due()
        assert one.staged() == []
    finally:
        session.close()


@pytest.mark.slow
def test_what_becomes_due_while_a_purge_is_planned_is_asked_about_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path, more="delete.topic.delay.ms: 4s\n")
    (tmp_path / "state").mkdir()
    plan = purge.plan

    def slowly(broker: OpenBroker, request: PurgeRequest) -> PurgePlanned:
        found = plan(broker, request)
        time.sleep(3)
        return found

    session = opened(one)
    try:
        around = Alone(tmp_path / "state")
        work = Work(session, around)
        work.begin()
        one.delete(one.make("early"))
        work.sweep()
        time.sleep(2.5)
        one.delete(one.make("late", topic_id=OTHER_ID))
        work.sweep()
        time.sleep(1.6)
        monkeypatch.setattr(purge, "plan", slowly)
        work.purge_due()
        work.sweep()
        assert len(one.staged()) == 1
        due_ms = around.asked[-1]
        assert due_ms is not None
        assert due_ms < time.time() * 1000 + 1000
    finally:
        session.close()
