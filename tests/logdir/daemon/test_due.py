"""What becomes due while the daemon plans a purge is purged as soon as that is done."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from logdir.daemon import work as daemon_work
from logdir.daemon.config import parse
from logdir.daemon.history import History
from logdir.daemon.session import Session
from logdir.daemon.status import Counters
from logdir.daemon.work import Work
from logdir.service import purge
from logdir.service.batch.auto_capture import Leavers
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.purge import PurgePlanned, PurgeRequest
from tests.logdir.daemon.rig import Daemon

OTHER_ID = "AAAAAAAAAAAAAAAAAAAABA"


class Alone:
    """What is around the work of a daemon that has no supervisor."""

    version = "0"

    def __init__(self, folder: Path) -> None:
        self.history, self.counters = History(str(folder)), Counters()
        self.due_ms: int | None = None

    def sweep(self) -> None:
        """Do nothing: the test sweeps."""

    def set_next_due(self, wall_ms: int | None) -> None:
        """Keep it."""
        self.due_ms = wall_ms

    def check_between(self, work: Work) -> None:
        """Do nothing."""


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

    session = Session.open(parse(one.config.read_bytes(), str(one.config)), quarantined={}, leavers=Leavers())
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
        monkeypatch.setattr(daemon_work.purge, "plan", slowly)
        work.purge_due()
        work.sweep()
        assert len(one.staged()) == 1
        assert around.due_ms is not None
        assert around.due_ms < time.time() * 1000 + 1000
    finally:
        session.close()
