"""The timer: APScheduler wakes the daemon up for its jobs, and does nothing else.

Every job is coalesced and never dropped for being late (``misfire_grace_time`` is ``None``: by default a job more than
a second late is dropped). Instants are UTC.

APScheduler stores the next run of every job as an instant of the wall clock. If that is set back by an hour, none of
them runs for an hour, the rescan neither. So ``follow_wall_clock`` is called every few seconds, by a thread that does
not depend on the wall clock: after a step it sets every job again.

Spec: style §4.2; libraries §2; attacks A17, A24, A50.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from logdir import clock
from scheduler.jobs import RESCAN_MS, Job, sweep_interval_ms

LOG: Final = logging.getLogger(__name__)
_STEP_MS: Final = 1000
"""How far the wall clock may move against the boot-time clock before ``sweep`` and ``next-due`` are set again."""
_LONG_STEP_MS: Final = 60 * 1000
"""From where on a move is a step, after which ``rescan`` is set again, too, and run at once. A time service that makes
the clock run slower moves it by less between two looks, and for hours: it makes each rescan a little late.
"""


class Timer:
    """Calls the function of the job whose time has come, from a thread of its own."""

    def __init__(self, sweep: Callable[[], None], purge_due: Callable[[], None], rescan: Callable[[], None]) -> None:
        """Make a timer that is not started.

        Args:
            sweep: Enqueues a sweep; like the others it returns at once.
            purge_due: Enqueues a purge of what is due.
            rescan: Enqueues a rescan.
        """
        self._enqueue = {Job.SWEEP: sweep, Job.NEXT_DUE: self._run_due, Job.RESCAN: rescan}
        self._purge_due = purge_due
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        )
        self._lock = threading.Lock()
        """Guards what follows, and the order in which jobs are set: two threads set them."""
        self._ahead_ms = clock.wall_ahead_ms()
        """How far the wall clock was ahead when the jobs were set last."""
        self._intervals_ms: dict[Job, int] = {}
        self._due_ms: int | None = None
        """When ``next-due`` runs, counted from where ``wall_ahead_ms`` counts; ``None``: not at all."""

    def start(self) -> None:
        """Start the thread; rescans begin by themselves."""
        self._scheduler.start()
        with self._lock:
            self._every(Job.RESCAN, RESCAN_MS)

    def set_sweep(self, configured_ms: int, delete_delay_ms: int | None) -> None:
        """Sweep from now on as often as ``jobs.sweep_interval_ms`` returns."""
        with self._lock:
            self._every(Job.SWEEP, sweep_interval_ms(configured_ms, delete_delay_ms))

    def set_next_due(self, wall_ms: int | None) -> None:
        """Run ``next-due`` once at an instant (wall clock), which may have passed; ``None``: not any more."""
        with self._lock:
            self._due_ms = None if wall_ms is None else wall_ms - clock.wall_ahead_ms()
            self._at(wall_ms)

    def follow_wall_clock(self) -> None:
        """Set the jobs again if the wall clock moved since, and make up for runs missed; called every few seconds."""
        with self._lock:
            ahead_ms = clock.wall_ahead_ms()
            moved_ms = ahead_ms - self._ahead_ms
            if abs(moved_ms) <= _STEP_MS:
                return
            self._ahead_ms = ahead_ms
            first = Job.RESCAN if abs(moved_ms) > _LONG_STEP_MS else Job.SWEEP
            for job, interval_ms in self._intervals_ms.items():
                if job in (Job.SWEEP, first):
                    self._every(job, interval_ms)
            self._at(None if self._due_ms is None else self._due_ms + ahead_ms)
        if first is Job.RESCAN:
            LOG.warning("clock.stepped by_ms=%d every job is set again", moved_ms)
        self._enqueue[first]()

    def is_alive(self) -> bool:
        """Whether its thread works."""
        thread = self._scheduler._thread
        return thread is not None and bool(thread.is_alive())

    def stop(self) -> None:
        """Stop the thread; a second call does nothing."""
        with self._lock:
            if self._scheduler.running:
                # Else its thread may end with an error: it looks for a job that it has just run for the last time.
                self._scheduler.remove_all_jobs()
                self._scheduler.shutdown(wait=False)

    def _run_due(self) -> None:
        with self._lock:
            self._due_ms = None  # A later step of the clock does not run it once more.
        self._purge_due()

    def _at(self, wall_ms: int | None) -> None:
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

    def _every(self, job: Job, interval_ms: int) -> None:
        self._intervals_ms[job] = interval_ms
        self._scheduler.add_job(
            self._enqueue[job],
            IntervalTrigger(seconds=interval_ms / 1000, timezone=UTC),
            id=job.value,
            replace_existing=True,
        )
