"""The purges that no operator requests: of what is due, and on a disk that is nearly full.

Used by the thread of changes alone.

Not here: when (``due``, ``supervisor``), which replicas (``decide.staged``), how they are removed (``service.purge``).

Spec: design §3.3, §5; attacks A14, A50.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from logdir import clock
from logdir.daemon.due import NextDue
from logdir.daemon.look import Look
from logdir.daemon.pause import STEP_MS, PauseFileError, pause_error
from logdir.daemon.quorum import Quorum
from logdir.daemon.report.history import History
from logdir.daemon.report.reporters import LossReporter
from logdir.daemon.report.status import Counters
from logdir.daemon.session import Session
from logdir.decide.staged.pressure import Pressure
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica.rate_limiter import FILES_PER_SECOND
from logdir.errors import LogDirError, Problem
from logdir.service import purge
from logdir.service.batch.pressure import relieve
from logdir.service.batch.purge_batches import Rates
from logdir.service.purge import PurgeRequest
from logdir.service.report.result import ItemResult, ItemState
from logdir.worker.operations import PurgePausedError

LOG: Final = logging.getLogger("logdir.daemon")
_GOES_ON: Final = frozenset((PurgePausedError.code, PauseFileError.code))
"""Slugs of replicas with which a purge goes on as soon as it may."""


class Around(Protocol):
    """The part of the daemon that purges need."""

    history: History
    counters: Counters
    quorum: Quorum

    def sweep(self) -> None:
        """Sweep soon."""

    def set_next_due(self, wall_ms: int | None) -> None:
        """Purge what is due at an instant; ``None``: nothing has a deadline."""

    def stopping(self) -> LogDirError | None:
        """Return that the daemon ends; ``None``: it does not."""

    def reloading(self) -> LogDirError | None:
        """Return that the configuration was read again; ``None``: the open log dirs were opened by it."""


class Purges:
    """The purges of an open broker."""

    def __init__(self, session: Session, around: Around, between: Callable[[], None]) -> None:
        """Take the open broker; nothing is due yet.

        Args:
            session: The open broker.
            around: The daemon.
            between: Captures what is urgent; called between two steps.
        """
        self._session, self._around, self._between = session, around, between
        self._due = NextDue()
        self.kept: tuple[Problem, ...] = ()
        """Why replicas whose deadline has passed are kept."""

    def note(self, look: Look) -> None:
        """Take a look at the log dirs, and wake up when the next replica is due."""
        if self._due.note(look, self._session.facts) or self._due.is_passed():
            self._set_timer()

    def _set_timer(self) -> None:
        due_ms = self._due.at_ms
        # A millisecond later than the two clocks say: each of them is rounded down.
        self._around.set_next_due(None if due_ms is None else clock.now_ms() + due_ms - clock.boottime_ms() + 1)

    def stopped(self) -> LogDirError | None:
        """Return why no step of a purge may begin: the daemon ends, or the pause file exists; ``None``: it may."""
        return self._around.stopping() or pause_error(self._session.config.state_dir)

    def halted(self) -> LogDirError | None:
        """Return why no step of a purge that nobody requests may begin, as ``stopped``.

        After the configuration was read again none does either: it may keep what the former one lets go.
        """
        return self.stopped() or self._around.reloading()

    def relieve(self, look: Look) -> bool:
        """Purge captured replicas where a disk is nearly full; return whether any went."""
        session, config = self._session, self._session.config
        is_short = any(room.lacking for room in look.rooms.values())
        if not is_short or config.pressure is not Pressure.PURGE_CAPTURED or self.halted() is not None:
            return False
        rates = Rates(config.purge_bytes_per_second, FILES_PER_SECOND, STEP_MS)
        found = relieve(session.broker, look.rooms, rates, LossReporter(self._between), halted=self.halted)
        self.note_purged(found.items, found.problems)
        if not any(item.state is ItemState.DONE for item in found.items):
            return False
        session.note_failed_syncs()
        session.list()
        self._around.sweep()  # What was not captured for lack of space may be captured now.
        return True

    def run(self, *, is_automatic: bool) -> None:
        """Purge what is due, at the configured rate; captures come between its steps.

        Args:
            is_automatic: Whether anything is purged unasked now.

        Raises:
            LogDirError: the broker has to be opened again.
        """
        is_due = self._due.is_passed()
        if not is_due:
            self._set_timer()  # It has come early: the wall clock and the boot-time clock went apart.
        if not is_due or not is_automatic or self.halted() is not None:
            return
        session, quorum = self._session, self._around.quorum
        client = session.config.client_properties
        if not quorum.is_known(client, session.cluster_id):
            return  # The thread that asks calls this again, with or without an answer.
        request = PurgeRequest(
            source=quorum.source(client),
            bytes_per_second=session.config.purge_bytes_per_second,
            budget_ms=STEP_MS,
            halted=self.halted,
            kept_reasons=session.config.capture_reasons,
        )
        session.beat(read_instant())
        self._due.ask()  # Before the plan: what becomes due meanwhile is asked about next time.
        shown = purge.plan(session.broker, request)
        self.kept = tuple(item.problem for item in shown.items if item.problem is not None)
        if shown.plan is not None and shown.plan.actions:
            items, problems = purge.apply(session.broker, shown, LossReporter(self._between))
            self.note_purged(items, problems)
            if any(item.problem is not None and item.problem.slug in _GOES_ON for item in items):
                self._due.go_on()
        session.note_failed_syncs()
        session.list()
        self._around.sweep()

    def note_purged(self, items: Sequence[ItemResult], problems: Sequence[Problem]) -> None:
        """Count what was purged, and write it into log and history."""
        for item in items:
            if item.state is ItemState.DONE:
                self._around.counters.purged += 1
                LOG.info("replica.purged path=%s", self._session.broker.path_of(item.log_dir, item.path))
                self._around.history.add("purged", log_dir=item.log_dir, path=item.path)
        for problem in problems:
            LOG.error("purge.failed %s", problem.line())
