"""The timer: APScheduler wakes the daemon up for its jobs, and does nothing else.

Every job is coalesced and never dropped for being late (``misfire_grace_time`` is ``None``: by default a job more than
a second late is dropped). Instants are UTC. APScheduler waits on a clock that does not follow steps of the wall clock,
so no instant is trusted for longer than the time between two rescans.

Spec: style §4.2; libraries §2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from scheduler.jobs import RESCAN_MS, Job, sweep_interval_ms


class Timer:
    """Calls the function of the job whose time has come, from a thread of its own."""

    def __init__(self, sweep: Callable[[], None], purge_due: Callable[[], None], rescan: Callable[[], None]) -> None:
        """Make a timer that is not started.

        Args:
            sweep: Enqueues a sweep; like the others it returns at once.
            purge_due: Enqueues a purge of what is due.
            rescan: Enqueues a rescan.
        """
        self._enqueue = {Job.SWEEP: sweep, Job.NEXT_DUE: purge_due, Job.RESCAN: rescan}
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        )

    def start(self) -> None:
        """Start the thread; rescans begin by themselves."""
        self._scheduler.start()
        self._every(Job.RESCAN, RESCAN_MS)

    def set_sweep(self, configured_ms: int, delete_delay_ms: int | None) -> None:
        """Sweep from now on as often as ``jobs.sweep_interval_ms`` returns."""
        self._every(Job.SWEEP, sweep_interval_ms(configured_ms, delete_delay_ms))

    def set_next_due(self, wall_ms: int | None) -> None:
        """Run ``next-due`` once at an instant (wall clock), which may have passed; ``None``: not any more."""
        job = Job.NEXT_DUE
        try:
            at = None if wall_ms is None else datetime.fromtimestamp(wall_ms / 1000, UTC)
        except (OverflowError, ValueError, OSError):
            at = None  # So far away that a later sweep sets it again.
        if at is not None:
            self._scheduler.add_job(
                self._enqueue[job], DateTrigger(at, timezone=UTC), id=job.value, replace_existing=True
            )
        else:
            with suppress(JobLookupError):  # It has run, or was never set.
                self._scheduler.remove_job(job.value)

    def is_alive(self) -> bool:
        """Whether its thread works."""
        thread = self._scheduler._thread
        return thread is not None and bool(thread.is_alive())

    def stop(self) -> None:
        """Stop the thread; a second call does nothing."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def _every(self, job: Job, interval_ms: int) -> None:
        self._scheduler.add_job(
            self._enqueue[job],
            IntervalTrigger(seconds=interval_ms / 1000, timezone=UTC),
            id=job.value,
            replace_existing=True,
        )
