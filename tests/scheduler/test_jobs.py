"""How often the daemon sweeps, and the timer that wakes it up."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Self

import pytest

from logdir import clock
from scheduler.jobs import Job, sweep_interval_ms
from scheduler.timer import Timer


@pytest.mark.parametrize(
    ("configured", "delay", "expected"),
    [
        pytest.param(10_000, None, 10_000, id="Kafka's default of 60 s"),
        pytest.param(10_000, 60_000, 10_000, id="the same, written down"),
        pytest.param(60_000, None, 15_000, id="more seldom than that allows"),
        pytest.param(10_000, 20_000, 5_000, id="four sweeps within a short delay"),
        pytest.param(10_000, 5_000, 1_250, id="a very short delay"),
        pytest.param(10_000, 1_000, 500, id="never more often than twice a second"),
        pytest.param(10_000, 0, 500, id="no delay at all"),
        pytest.param(1_000, 600_000, 1_000, id="as configured"),
    ],
)
def test_no_directory_comes_and_goes_between_two_sweeps(configured: int, delay: int | None, expected: int) -> None:
    assert sweep_interval_ms(configured, delay) == expected


def test_an_instant_that_has_passed_wakes_up_at_once_and_once() -> None:
    jobs: queue.Queue[Job] = queue.Queue()
    timer = Timer(*(partial(jobs.put, job) for job in (Job.SWEEP, Job.NEXT_DUE, Job.RESCAN)))
    timer.start()
    try:
        timer.set_next_due(int(time.time() * 1000) - 3_600_000)
        assert jobs.get(timeout=10) is Job.NEXT_DUE
        timer.set_next_due(int(time.time() * 1000) + 3_600_000)
        timer.set_next_due(None)
        timer.set_next_due(None)
        timer.set_next_due(1 << 62)
        timer.set_sweep(60_000, 0)  # Every 500 ms, as the broker waits for nothing.
        assert [jobs.get(timeout=10) for _ in range(3)] == [Job.SWEEP] * 3
        assert jobs.empty() or jobs.get() is Job.SWEEP
    finally:
        timer.stop()
        timer.stop()


def test_it_is_known_whether_the_thread_of_the_timer_works() -> None:
    timer = Timer(*(lambda: None for _ in range(3)))
    assert not timer.is_alive()
    timer.start()
    try:
        assert timer.is_alive()
    finally:
        timer.stop()
    assert not timer.is_alive()


class SteppedClock:
    """A wall clock that is set by a test; the boot-time clock goes on as it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.step_ms = 0
        ahead_ms, wall = clock.wall_ahead_ms, self

        class Stepped(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Self:
                return super().now(tz) + timedelta(milliseconds=wall.step_ms)

        monkeypatch.setattr("apscheduler.schedulers.base.datetime", Stepped)
        monkeypatch.setattr("apscheduler.triggers.interval.datetime", Stepped)
        monkeypatch.setattr(clock, "wall_ahead_ms", lambda: ahead_ms() + self.step_ms)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.step_ms


@contextmanager
def started() -> Iterator[tuple[Timer, queue.Queue[Job]]]:
    jobs: queue.Queue[Job] = queue.Queue()
    timer = Timer(*(partial(jobs.put, job) for job in (Job.SWEEP, Job.NEXT_DUE, Job.RESCAN)))
    timer.start()
    try:
        yield timer, jobs
    finally:
        timer.stop()


def next_run_ms(timer: Timer, job: Job) -> float:
    return float(timer._scheduler.get_job(job.value).next_run_time.timestamp() * 1000)


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000], ids=["back", "forward"])
def test_a24_every_job_is_set_again_after_a_step_of_the_wall_clock(
    step_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = SteppedClock(monkeypatch)
    with started() as (timer, jobs):
        timer.set_sweep(10_000, None)
        timer.set_next_due(wall.now_ms() + 7_200_000)
        wall.step_ms = step_ms
        timer.follow_wall_clock()
        assert jobs.get(timeout=10) is Job.RESCAN
        for job, in_ms in ((Job.SWEEP, 10_000), (Job.NEXT_DUE, 7_200_000), (Job.RESCAN, 3_600_000)):
            assert abs(next_run_ms(timer, job) - wall.now_ms() - in_ms) < 10_000
        timer.follow_wall_clock()  # It moves no further.
        timer.set_next_due(wall.now_ms())
        assert jobs.get(timeout=10) is Job.NEXT_DUE


def test_a24_what_is_due_soon_wakes_up_in_time_although_the_wall_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall = SteppedClock(monkeypatch)
    with started() as (timer, jobs):
        timer.set_sweep(60_000, 0)  # Every 500 ms.
        timer.set_next_due(wall.now_ms() + 500)
        wall.step_ms = -3_600_000
        timer.follow_wall_clock()
        found = [jobs.get(timeout=10) for _ in range(6)]
        assert (found.count(Job.RESCAN), found.count(Job.NEXT_DUE)) == (1, 1)


def test_a_clock_that_is_made_to_run_slower_brings_sweeps_and_no_rescan(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = SteppedClock(monkeypatch)
    with started() as (timer, jobs):
        timer.set_sweep(10_000, None)
        rescan_ms = next_run_ms(timer, Job.RESCAN)
        wall.step_ms = -900
        timer.follow_wall_clock()
        assert jobs.empty()
        for _ in range(2):
            wall.step_ms -= 2_000
            timer.follow_wall_clock()
            assert jobs.get_nowait() is Job.SWEEP
            assert jobs.empty()
        assert next_run_ms(timer, Job.RESCAN) == rescan_ms
