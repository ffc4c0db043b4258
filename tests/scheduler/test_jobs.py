"""How often the daemon sweeps, and the timer that wakes it up."""

from __future__ import annotations

import queue
import time
from functools import partial

import pytest

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
