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
from logdir.daemon.figures import Figures
from logdir.daemon.look import Look
from logdir.daemon.purging.due import NextDue
from logdir.daemon.purging.pause import STEP_MS, pause_error
from logdir.daemon.purging.undone import GOES_ON, Undone
from logdir.daemon.quorum import Quorum
from logdir.daemon.report.counters import Counters
from logdir.daemon.report.history import History
from logdir.daemon.report.reporters import LossReporter
from logdir.daemon.session import Session
from logdir.decide.staged.pressure import Pressure
from logdir.decide.staged.unreported import shrunk_bytes
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica.rate_limiter import FILES_PER_SECOND
from logdir.errors import LogDirError, Problem
from logdir.observe.facts import LogDirFacts
from logdir.paths import DELETING
from logdir.service import purge
from logdir.service.batch.pressure import Known, relieve
from logdir.service.batch.purge_batches import Rates
from logdir.service.purge import PurgeRequest
from logdir.service.report.result import ItemResult, ItemState

LOG: Final = logging.getLogger("logdir.daemon")


class Around(Protocol):
    """The part of the daemon that purges need."""

    history: History
    counters: Counters
    quorum: Quorum
    figures: Figures

    def sweep(self) -> None:
        """Sweep soon."""

    def set_next_due(self, wall_ms: int | None) -> None:
        """Purge what is due at an instant; ``None``: nothing has a deadline."""

    def stopping(self) -> LogDirError | None:
        """Return the error that the daemon ends; ``None``: it does not."""

    def reloading(self) -> LogDirError | None:
        """Return the error that the configuration was read again; ``None``: the open log dirs were opened by it."""


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
        self._kept: tuple[Problem, ...] = ()
        """Why replicas whose deadline has passed are kept."""
        self._undone = Undone()

    @property
    def waiting(self) -> tuple[Problem, ...]:
        """Why replicas that are to be purged are still there."""
        return tuple(dict.fromkeys((*self._kept, *self._undone.problems)))

    def note(self, look: Look) -> None:
        """Take a look at the log dirs, and wake up when the next replica is due."""
        self._forget_settled(look)
        if self._due.note(look, self._session.facts) or self._due.is_passed():
            self._set_timer()

    def _forget_settled(self, look: Look) -> None:
        """Forget replicas that are not there any more, or may stay."""
        is_on = self._session.config.pressure is Pressure.PURGE_CAPTURED
        nearly_full = {log_dir for log_dir, room in look.rooms.items() if is_on and room.lacking}
        self._undone.keep_only(self._session.facts, nearly_full)

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
        """Purge captured replicas where a disk is nearly full; return whether any went, or is claimed now."""
        session, config = self._session, self._session.config
        if config.pressure is not Pressure.PURGE_CAPTURED or self.halted() is not None:
            return False
        self._forget_settled(look)
        rates = Rates(config.purge_bytes_per_second, FILES_PER_SECOND, STEP_MS)
        known = Known(session.facts, session.kept.free, self._undone.failed, self._undone.announced)
        before, reporter = session.facts, LossReporter(self._between)
        found = relieve(session.broker, look.rooms, rates, reporter, known, halted=self.halted)
        self._note(found.items, found.problems, self._undone.note(found.items, is_early=True))
        if not any(item.state is ItemState.DONE or item.new_path is not None for item in found.items):
            return False
        self._around.counters.purged_early += early_of(look, found.items)
        # What is removed in whole is counted as free already.
        self._list(before, [item for item in found.items if item.state is not ItemState.DONE])
        self._count_bytes(before, found.items)
        if any(item.state is ItemState.DONE for item in found.items):
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
            announced=frozenset(self._undone.announced),
            kept_reasons=session.config.capture_reasons,
        )
        session.beat(read_instant())
        self._due.ask()  # Before the plan: what becomes due meanwhile is asked about next time.
        shown = purge.plan(session.broker, request)
        self._kept = tuple(item.problem for item in shown.items if item.problem is not None)
        if shown.looking is not None:
            seen = shown.looking.look
            self._around.figures.note_log(seen.image or seen.aged, seen.latest, request.source.high_watermark)
        items: Sequence[ItemResult] = ()
        planned = () if shown.looking is None else shown.looking.facts
        if shown.plan is not None and shown.plan.actions and shown.looking is not None:
            self.read_free_space()
            self._undone.announced.update((one.log_dir, f"{DELETING}/{one.name}") for one in shown.plan.actions)
            items, problems = purge.apply(session.broker, shown, LossReporter(self._between))
            self._note(items, problems, self._undone.note(items))
        self._list(() if shown.looking is None else shown.looking.facts, items)
        self._count_bytes(planned, items)
        self._around.sweep()

    def read_free_space(self) -> tuple[LogDirFacts, ...]:
        """Read the free space before a purge; return what is staged, for ``note_requested``."""
        for open_dir in self._session.broker.changeable:
            self._session.kept.free.read(self._session.broker, open_dir.log_dir)
        return self._session.facts

    def note_requested(self, items: Sequence[ItemResult], before: Sequence[LogDirFacts]) -> None:
        """Note what a purge of an operator has done; the log dirs were looked at after it.

        Args:
            items: Its result.
            before: From ``read_free_space``.
        """
        self._note(items, (), self._undone.note_requested(items))
        self._note_freed(before, items)
        self._count_bytes(before, items)

    def _list(self, before: Sequence[LogDirFacts], items: Sequence[ItemResult]) -> None:
        """Look at the log dirs after a purge, and note what it has freed."""
        self._session.note_failed_syncs()
        begun = [item for item in items if item.state is ItemState.UNDONE]
        self._session.list([(item.log_dir, item.new_path or item.path) for item in begun])
        self._note_freed(before, items)

    def _note_freed(self, before: Sequence[LogDirFacts], items: Sequence[ItemResult]) -> None:
        purged = (item for item in items if item.state in (ItemState.DONE, ItemState.UNDONE))
        places = [(item.log_dir, item.path) for item in purged]
        self._session.kept.free.add_shrunk(before, self._session.facts, places)

    def _count_bytes(self, before: Sequence[LogDirFacts], items: Sequence[ItemResult]) -> None:
        """Count by how many bytes replicas are smaller than before a purge, or gone; they were looked at after it."""
        purged = [item for item in items if item.state in (ItemState.DONE, ItemState.UNDONE)]
        self._around.counters.purged_bytes += freed_bytes(before, self._session.facts, purged)

    def _note(self, items: Sequence[ItemResult], problems: Sequence[Problem], undone: Sequence[Problem]) -> None:
        """Count what was purged, write it into log and history, and log what was not."""
        for item in items:
            if item.state is ItemState.DONE:
                self._around.counters.purged += 1
                LOG.info("replica.purged path=%s", self._session.broker.path_of(item.log_dir, item.path))
                self._around.history.add("purged", log_dir=item.log_dir, path=item.path)
        for problem in (*problems, *undone):
            LOG.error("purge.failed %s", problem.line())
            self._around.counters.note_error(problem, self._session.broker.named.log_dirs)
        if any(item.problem is not None and item.problem.slug in GOES_ON for item in items):
            self._due.go_on()


def early_of(look: Look, items: Sequence[ItemResult]) -> int:
    """Return how many replicas cannot be taken back any more, and could have been until their deadline.

    Args:
        look: From before they were purged.
        items: What a purge has done; one that was claimed before was counted then.
    """
    begun = {(item.log_dir, item.path) for item in items if item.state is ItemState.DONE or item.new_path is not None}
    return sum(
        (log_dir, item.path) in begun and (due_ms is None or due_ms > look.now.boottime_ms)
        for log_dir, staged in look.staged.items()
        for item, due_ms in staged.timed
    )


def freed_bytes(before: Sequence[LogDirFacts], after: Sequence[LogDirFacts], items: Sequence[ItemResult]) -> int:
    """Return by how many bytes of segments replicas are smaller than before a purge, or gone.

    Args:
        before: Facts of every log dir from before it.
        after: Facts of every log dir from after it; what lies on one that cannot be read is left out.
        items: The replicas.
    """
    places = {(item.log_dir, item.path) for item in items}
    left = {one.log_dir: one.staged for one in after if one.problem is None}
    return sum(
        shrunk_bytes([item for item in one.staged if (one.log_dir, item.path) in places], left[one.log_dir])
        for one in before
        if one.log_dir in left
    )
