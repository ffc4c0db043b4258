"""What the daemon does on the log dirs that it has open: sweeps, purges, and the requests of operators.

Used by the thread of changes alone.

Not here: when (``supervisor``), what a use case does (``service``).

Spec: design §3.3, §5; KIP-516, "Deletion", step 1 (a scheduled loss is logged with its path, id and instant).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from logdir import clock
from logdir.daemon.history import History
from logdir.daemon.look import Look, look_at
from logdir.daemon.session import Session
from logdir.daemon.state import LogDirState
from logdir.daemon.status import Counters, StatusResult, blank_status, waiting_of
from logdir.decide.auto_capture import CapturePolicy
from logdir.decide.staged.pressure import Pressure
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica.rate_limiter import FILES_PER_SECOND
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent
from logdir.service import purge
from logdir.service.batch.auto_capture import capture_new
from logdir.service.batch.pressure import relieve
from logdir.service.batch.purge_batches import Rates
from logdir.service.batch.use_cases import Ran, Spec, run
from logdir.service.cluster.source import SourceRequest
from logdir.service.purge import PurgeRequest
from logdir.service.report.result import ItemResult, ItemState
from logdir.text import utc
from logdir.worker.operations import PurgePausedError

LOG: Final = logging.getLogger("logdir.daemon")
BEAT_MS: Final = 60 * 1000
"""Time between two heartbeats."""
_PURGE_STEP_MS: Final = 1000
"""Longest time that a purge keeps a log dir busy: a capture may be waiting."""
_ASK_AGAIN_MS: Final = 10 * 60 * 1000
"""When what is due, and was kept by the recheck, is asked about again; and why captured replicas were removed."""
_FIRST_ASK_MS: Final = 60 * 1000
"""Time from a capture to the first such question: the broker's metadata log may lag behind."""


class Surroundings(Protocol):
    """The part of the daemon that its work needs."""

    version: str
    history: History
    counters: Counters

    def sweep(self) -> None:
        """Sweep soon."""

    def set_next_due(self, wall_ms: int | None) -> None:
        """Purge what is due at an instant; ``None``: nothing has a deadline."""

    def check_between(self, work: Work) -> None:
        """Capture what is urgent, between two steps. Raises ``StoppingError``."""


class _Between:
    """A reporter of a purge: captures come between its steps."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def begin(self, what: str, total: int) -> None:
        """Do nothing."""

    def advance(self, count: int) -> None:
        """Capture what is urgent. Raises ``StoppingError``."""
        self._work.supervisor.check_between(self._work)

    def end(self) -> None:
        """Do nothing."""

    def warn(self, line: str) -> None:
        """Log it: a loss of data, before it happens."""
        LOG.warning("replica.loss %s", line)


class _Logged:
    """A reporter of a request: warnings are logged, and kept for the answer; captures come between its steps."""

    def __init__(self, between: Callable[[], None] | None) -> None:
        """Begin; ``between``: called between two steps of a request that holds no lock of Kafka."""
        self.lines: list[str] = []
        self._between = between

    def begin(self, what: str, total: int) -> None:
        """Do nothing."""

    def advance(self, count: int) -> None:
        """Capture what is urgent. Raises ``StoppingError``."""
        if self._between is not None:
            self._between()

    def end(self) -> None:
        """Do nothing."""

    def warn(self, line: str) -> None:
        """Keep and log it."""
        self.lines.append(line)
        LOG.warning("request.warning %s", line)


class Work:
    """The work on an open broker."""

    def __init__(self, session: Session, supervisor: Surroundings) -> None:
        """Take a session that was just opened."""
        self.session = session
        self.supervisor = supervisor
        config = session.config
        self.policy = CapturePolicy(delays=config.delays, excluded=config.capture_exclude)
        self.is_automatic = False
        """Whether captures and purges are done unasked: a broker runs, or the configuration allows it."""
        self.is_reopening = False
        """Whether a log dir that could not be opened is to be tried again."""
        self._beaten_ms: int | None = None
        self._refused: set[tuple[str, str, str]] = set()
        self._due_ms: int | None = None
        """When to purge next, as the next two on the boot-time clock."""
        self._asked_ms: int | None = None
        """When it was last asked what may be purged; ``None``: not yet, or not all of it was done."""
        self._look: Look | None = None
        """Of the sweep that has just ended."""
        self._reasons_due_ms: int | None = None
        """When to ask the metadata why captured replicas were removed; ``None``: there are none."""
        self._kept: tuple[Problem, ...] = ()
        """Why replicas whose deadline has passed are kept."""

    def begin(self) -> None:
        """List every log dir, and beat."""
        self.session.list()
        self._beat()

    def sweep(self) -> None:
        """Capture what is new, beat, and note when the next replica is due.

        Raises:
            LogDirError: the broker has to be opened again.
        """
        self.session.require_same()
        self.is_automatic = self.session.config.auto_while_stopped or self.session.is_running() is True
        self.capture()
        self._beat()
        look = look_at(self.session)
        if self._relieve(look):
            look = look_at(self.session)
        self._look = look
        due_ms = self._next_due(look)
        # A timer that fired a moment too early found nothing due, and is set again.
        if due_ms != self._due_ms or (due_ms is not None and due_ms <= clock.boottime_ms()):
            self._due_ms = due_ms
            wall_ms = None if due_ms is None else clock.now_ms() + due_ms - clock.boottime_ms()
            self.supervisor.set_next_due(wall_ms)

    def _next_due(self, look: Look) -> int | None:
        """Return when to purge next, on the boot-time clock; ``None``: nothing has a deadline."""
        asked_ms, now_ms = self._asked_ms, clock.boottime_ms()
        wanted = [one for one in look.deadlines if asked_ms is None or one > asked_ms]
        if asked_ms is not None and len(wanted) < len(look.deadlines):
            wanted.append(asked_ms + _ASK_AGAIN_MS)  # It was due when last asked about, and was kept.
        if any(one.purging and one.state is LogDirState.ONLINE for one in look.log_dirs):
            wanted.append(now_ms)  # A removal that was interrupted goes on.
        if not self._has_captured():
            self._reasons_due_ms = None
        else:
            self._reasons_due_ms = self._reasons_due_ms or now_ms + _FIRST_ASK_MS
            wanted.append(self._reasons_due_ms)
        return min(wanted, default=None)

    def _has_captured(self) -> bool:
        """Whether a captured replica has a deadline, and may be due before it for the reason of its removal."""
        return any(
            item.marker is not None and item.marker.intent is Intent.CAPTURED and item.marker.delay_ms is not None
            for facts in self.session.facts
            for item in facts.staged
            if item.kind is Kind.STAGED
        )

    def _relieve(self, look: Look) -> bool:
        """Purge captured replicas where a disk is nearly full; return whether any went."""
        config = self.session.config
        is_short = any(room.lacking for room in look.rooms.values())
        if not is_short or not self.is_automatic or config.pressure is not Pressure.PURGE_CAPTURED:
            return False
        rates = Rates(config.purge_bytes_per_second, FILES_PER_SECOND, _PURGE_STEP_MS)
        found = relieve(self.session.broker, look.rooms, rates, _Between(self))
        self._purged(found.items, found.problems)
        if not any(item.state is ItemState.DONE for item in found.items):
            return False
        self.session.note_failed_syncs()
        self.session.list()
        self.supervisor.sweep()  # What was not captured for lack of space may be captured now.
        return True

    def rescan(self) -> None:
        """Read every log dir in full; what could not be opened before is tried again."""
        self._read_all()
        self.is_reopening = bool(self.session.failed)

    def _read_all(self) -> None:
        self.session.broker.last_look.seen.clear()
        self.session.list()

    def capture(self) -> None:
        """Capture what is new since the last call."""
        session = self.session
        if not self.is_automatic:
            return  # Law 4: on a stopped broker nothing is done by itself.
        found = capture_new(session.broker, session.leavers, self.policy)
        counters = self.supervisor.counters
        counters.missed += session.leavers.missed
        session.leavers.missed = 0
        if found.facts is None:
            if session.leavers.has_changed:
                session.list()
            return
        session.note_failed_syncs()
        session.list()
        deadlines = {
            (one.log_dir, one.path): one.marker for facts in session.facts for one in facts.staged if one.marker
        }
        for item in found.items:
            place = item.log_dir, item.path
            marker = deadlines.get((item.log_dir, item.new_path or ""))
            match item.state:
                case ItemState.DONE:
                    counters.captured += 1
                    until = None if marker is None or marker.delay_ms is None else marker.staged_at_ms + marker.delay_ms
                    self._captured(item, until)
                case ItemState.KEPT:
                    self._note("passed-over", item, item.detail)
                case _:
                    slug = "" if item.problem is None else item.problem.slug
                    if (*place, slug) not in self._refused:
                        self._refused.add((*place, slug))
                        self._note("not-captured", item, "" if item.problem is None else item.problem.line())
        for problem in found.problems:
            LOG.error("capture.failed %s", problem.line())

    def _captured(self, item: ItemResult, until_ms: int | None) -> None:
        ref = item.ref
        topic_id = None if ref is None or ref.topic_id is None else str(ref.topic_id)
        name = None if ref is None else str(ref)
        path = self.session.broker.path_of(item.log_dir, item.new_path or item.path)
        if until_ms is None:
            LOG.info("replica.captured replica=%s topic_id=%s path=%s", name, topic_id, path)
        else:
            LOG.warning(
                "replica.captured replica=%s topic_id=%s path=%s purge_at=%s", name, topic_id, path, utc(until_ms)
            )
        self.supervisor.history.add(
            "captured", log_dir=item.log_dir, path=item.path, new_path=item.new_path, undo_until_ms=until_ms
        )

    def _note(self, event: str, item: ItemResult, why: str) -> None:
        LOG.info("replica.%s path=%s/%s %s", event, item.log_dir, item.path, why)
        self.supervisor.history.add(event, log_dir=item.log_dir, path=item.path, detail=why)

    def purge_due(self) -> None:
        """Purge what is due, at the configured rate; captures come between its steps.

        Raises:
            StoppingError: the daemon ends.
            LogDirError: the broker has to be opened again.
        """
        is_due = self._due_ms is not None and self._due_ms <= clock.boottime_ms()
        if not is_due or not self.is_automatic:
            return
        broker = self.session.broker
        request = PurgeRequest(
            source=SourceRequest(),
            bytes_per_second=self.session.config.purge_bytes_per_second,
            budget_ms=_PURGE_STEP_MS,
            kept_reasons=self.session.config.capture_reasons,
        )
        self.session.beat(read_instant())
        # Planning takes a while, and what becomes due meanwhile has not been asked about.
        asked_ms = clock.boottime_ms()
        shown = purge.plan(broker, request)
        self._asked_ms = asked_ms
        self._reasons_due_ms = self._asked_ms + _ASK_AGAIN_MS
        self._kept = tuple(item.problem for item in shown.items if item.problem is not None)
        if shown.plan is not None and shown.plan.actions:
            items, problems = purge.apply(broker, shown, _Between(self))
            self._purged(items, problems)
            if any(item.problem is not None and item.problem.slug == PurgePausedError.code for item in items):
                self._asked_ms = None
        self.session.note_failed_syncs()
        self.session.list()
        self.supervisor.sweep()

    def _purged(self, items: Sequence[ItemResult], problems: Sequence[Problem]) -> None:
        for item in items:
            if item.state is ItemState.DONE:
                self.supervisor.counters.purged += 1
                LOG.info("replica.purged path=%s", self.session.broker.path_of(item.log_dir, item.path))
                self.supervisor.history.add("purged", log_dir=item.log_dir, path=item.path)
        for problem in problems:
            LOG.error("purge.failed %s", problem.line())

    def run(self, spec: Spec, request: Any, *, is_applied: bool) -> tuple[Ran, tuple[str, ...]]:
        """Run a use case for an operator; return the result, and the warnings that came before a change.

        Raises:
            LogDirError: as the use case.
        """
        session = self.session
        between = partial(self.supervisor.check_between, self) if spec.is_beside_broker and is_applied else None
        reporter = _Logged(between)
        try:
            session.require_same()
            ran = run(spec, session.broker, request, is_applied=is_applied, reporter=reporter)
        finally:
            notes = session.broker.notes
            notes[:] = dict.fromkeys(notes)
            if is_applied:
                session.note_failed_syncs()
                # A marker that was rewritten in its place shows only where its directory is read again.
                self._read_all()
                self.supervisor.sweep()
        if is_applied:
            done = sum(one.state is ItemState.DONE for one in ran.result.items)
            LOG.info("request.done command=%r done=%d exit=%d", spec.name, done, ran.exit)
            self.supervisor.history.add("request", command=spec.name, done=done, exit=int(ran.exit))
        return ran, tuple(reporter.lines)

    def is_worn(self) -> bool:
        """Whether the broker should be opened again: a log dir that was SUSPECT may answer now."""
        return self.is_reopening or self.session.may_renew()

    def status(self) -> StatusResult:
        """Return the status of the log dirs and what was done; state, queue and events are the supervisor's."""
        supervisor, session = self.supervisor, self.session
        log_dirs = (self._look or look_at(session)).log_dirs
        self._look = None
        belongs = [root.belongs for root in session.broker.roots]
        deadlines = [one.next_due_ms for one in log_dirs if one.next_due_ms is not None]
        counters = supervisor.counters
        return replace(
            blank_status(session.config.name, supervisor.version),
            looked_at_ms=clock.now_ms(),
            node_id=belongs[0].node_id if belongs else None,
            cluster_id=belongs[0].cluster_id if belongs else None,
            broker_runs=session.is_running(),
            log_dirs=log_dirs,
            captured=counters.captured,
            missed=counters.missed,
            purged=counters.purged,
            waiting=(*waiting_of(session, log_dirs), *self._kept),
            next_due_ms=min(deadlines, default=None),
        )

    def _beat(self) -> None:
        now_ms = clock.boottime_ms()
        if self._beaten_ms is not None and now_ms - self._beaten_ms < BEAT_MS:
            return
        self.session.beat(read_instant())
        self._beaten_ms = now_ms
