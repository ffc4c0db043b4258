"""A wall clock that is set while the daemon runs changes neither when it looks nor when it purges (A24, A50, A17)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.logdir.daemon import rig
from tests.logdir.daemon.rig import Daemon, daemon, until

STEPPED = """
import datetime, pathlib, sys, time
import apscheduler.schedulers.base as base, apscheduler.triggers.interval as interval
from logdir.daemon import process

process._TICK_S = 0.2
step, real = pathlib.Path(sys.argv[2]).with_name("step-ms"), time.time_ns


def step_ms():
    return int(step.read_text()) if step.exists() else 0


class Stepped(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.now(tz) + datetime.timedelta(milliseconds=step_ms())


base.datetime = interval.datetime = Stepped
time.time_ns = lambda: real() + step_ms() * 1_000_000
"""
"""Sets the wall clock of the daemon, and of its timer, by what a file beside its configuration says."""


def step(one: Daemon, by_ms: int) -> None:
    new = one.folder / "new"
    new.write_text(str(by_ms))
    new.rename(one.folder / "step-ms")


def has_looked_since(one: Daemon, at_ms: int | None) -> bool:
    return one.status().looked_at_ms != at_ms


@pytest.mark.slow
@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000], ids=["back", "forward"])
def test_a24_sweeps_and_purges_go_on_when_the_wall_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_ms: int
) -> None:
    monkeypatch.setattr(rig, "CODE", STEPPED + rig.CODE)
    with daemon(tmp_path, more="delete.topic.delay.ms: 4s\nsweep.interval.ms: 500\n") as one:
        gone = one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        one.remove(gone)
        step(one, by_ms)
        # Nothing changes in the log dirs any more, so that no hint wakes the daemon up.
        until("its deadline wakes the daemon up", lambda: one.staged() == [])
        until("it is counted", lambda: one.status().purged == 1)
        for _ in range(3):
            before = one.status().looked_at_ms
            until("it looks again", partial(has_looked_since, one, before))
        assert "clock.stepped" in one.log
