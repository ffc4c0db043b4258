"""What the daemon does on the log dirs that it has open: sweeps, purges, and the requests of operators.

Used by the thread of changes alone.

Not here: when (``supervisor``), what a use case does (``service``).

Spec: design §3.3, §5; KIP-516, "Deletion", step 1 (a scheduled loss is logged with its path, id and instant).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from logdir import clock
from logdir.daemon.due import NextDue
from logdir.daemon.faults import reopening_error
from logdir.daemon.inbox.documents import Documents
from logdir.daemon.look import Look, look_at
from logdir.daemon.looks import Looks
from logdir.daemon.pause import STEP_MS, PauseFileError, in_steps, pause_error
from logdir.daemon.quorum import Quorum
from logdir.daemon.release import ReleaseRequest, release
from logdir.daemon.report.failed_replicas import FailedDisks
from logdir.daemon.report.history import History
from logdir.daemon.report.reporters import LossReporter, RequestReporter
from logdir.daemon.report.status import Counters, StatusResult, blank_status, waiting_of
from logdir.daemon.session import Session
from logdir.daemon.start_awaited import StartAwaited
from logdir.decide.auto_capture import CapturePolicy
from logdir.decide.staged.pressure import Pressure
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica.rate_limiter import FILES_PER_SECOND
from logdir.disk.root.true_root import blocked
from logdir.errors import LogDirError, Problem, RefusedError
from logdir.service import purge
from logdir.service.batch.auto_capture import capture_new
from logdir.service.batch.pressure import relieve
from logdir.service.batch.purge_batches import Rates
from logdir.service.batch.use_cases import Spec, run
from logdir.service.log_dirs.glances import Glances
from logdir.service.purge import PurgeRequest
from logdir.service.report.result import ItemResult, ItemState
from logdir.service.report.use_case import Ran
from logdir.text import utc
from logdir.worker.operations import PurgePausedError

LOG: Final = logging.getLogger("logdir.daemon")
_GOES_ON: Final = frozenset((PurgePausedError.code, PauseFileError.code))
"""Slugs of replicas with which a purge goes on as soon as it may."""


class Surroundings(Protocol):
    """The part of the daemon that its work needs."""

    version: str
    history: History
    counters: Counters
    failed_disks: FailedDisks
    quorum: Quorum
    looks: Looks
    start_awaited: StartAwaited

    def sweep(self) -> None:
        """Sweep soon."""

    def unwatch(self, log_dirs: Collection[str]) -> None:
        """End the watches of these log dirs."""

    def set_next_due(self, wall_ms: int | None) -> None:
        """Purge what is due at an instant; ``None``: nothing has a deadline."""

    def stopping(self) -> LogDirError | None:
        """Return that the daemon ends; ``None``: it does not."""

    def start_error(self) -> LogDirError | None:
        """Return that a handover waits; ``None``: none does."""

    def capture_between(self, work: Work) -> None:
        """Capture what is urgent, between two steps."""

    def check_between(self, work: Work, *, is_long: bool = False) -> None:
        """Capture what is urgent, between two steps. Raises ``LogDirError``: the request goes on no further."""


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
        self.documents = Documents(self)
        self.is_running: bool | None = None
        """Whether the broker runs, at the last look; ``None``: it is not known."""
        self.is_blocked = False
        """Whether a start block is set."""
        self.is_reopening = False
        """Whether a log dir that could not be opened is to be tried again."""
        self._refused: set[tuple[str, str, str]] = set()
        self.due = NextDue()
        self._look: Look | None = None
        """Of the sweep that has just ended."""
        self._kept: tuple[Problem, ...] = ()
        """Why replicas whose deadline has passed are kept."""

    def begin(self) -> None:
        """List every log dir, and beat."""
        self.supervisor.start_awaited.read(self.session.broker.open_dirs)
        self._note_running(self.session.glance(is_same_required=False))
        self.session.list()
        self.session.beat_when_due()

    def sweep(self) -> None:
        """Capture what is new, beat, and note when the next replica is due.

        Raises:
            LogDirError: the broker has to be opened again.
        """
        glances = self.session.glance()
        self._note_running(glances)
        is_new = self.capture(glances)
        self.session.beat_when_due()
        look = look_at(self.session, None if is_new else glances)
        if self._relieve(look):
            look = look_at(self.session)
        self._look = look
        self.documents.look(is_running=self.is_running, is_start_awaited=self.supervisor.start_awaited.is_on)
        if self.due.note(look, self.session.facts) or self.due.is_passed():
            self._set_timer()

    def _note_running(self, glances: Glances) -> None:
        """Note whether the broker runs, and what follows for the work that nobody requests."""
        is_running = self.is_running = glances.is_running
        if is_running:
            self.supervisor.start_awaited.end()
        # Behind a start block no broker runs, and only a change of layout may go on.
        self.is_blocked = is_running is not True and glances.is_blocked
        self.is_automatic = is_running is True or (self.session.config.auto_while_stopped and not self.is_blocked)

    def _set_timer(self) -> None:
        """Wake up when the next replica is due."""
        due_ms = self.due.at_ms
        # A millisecond later than the two clocks say: each of them is rounded down.
        self.supervisor.set_next_due(None if due_ms is None else clock.now_ms() + due_ms - clock.boottime_ms() + 1)

    def _relieve(self, look: Look) -> bool:
        """Purge captured replicas where a disk is nearly full; return whether any went."""
        config = self.session.config
        is_short = any(room.lacking for room in look.rooms.values())
        is_wanted = self.is_automatic and config.pressure is Pressure.PURGE_CAPTURED
        if not is_short or not is_wanted or self.halted() is not None:
            return False
        rates = Rates(config.purge_bytes_per_second, FILES_PER_SECOND, STEP_MS)
        found = relieve(self.session.broker, look.rooms, rates, self._losses(), halted=self.halted)
        self._purged(found.items, found.problems)
        if not any(item.state is ItemState.DONE for item in found.items):
            return False
        self.session.note_failed_syncs()
        self.session.list()
        self.supervisor.sweep()  # What was not captured for lack of space may be captured now.
        return True

    def _losses(self) -> LossReporter:
        return LossReporter(partial(self.supervisor.capture_between, self))

    def rescan(self) -> None:
        """Read every log dir in full; what could not be opened before is tried again."""
        self._read_all()
        self.is_reopening = bool(self.session.failed)

    def _read_all(self) -> None:
        self.session.broker.last_look.seen.clear()
        self.session.list()

    def capture(self, glances: Glances | None = None) -> bool:
        """Capture what is new since the last call, by a glance that was not used yet; return whether anything is."""
        if not self.is_automatic:  # Law 4: on a stopped broker nothing is done by itself.
            self._note_look()
            return False
        session, counters = self.session, self.supervisor.counters
        found = capture_new(session.broker, session.kept.leavers, self.policy, self._note_look, glances)
        counters.missed += session.kept.leavers.missed
        session.kept.leavers.missed = 0
        if found.facts is None:
            if session.kept.leavers.has_changed:
                session.list()
            return False
        if found.is_cut_off:
            self.supervisor.sweep()
        session.note_failed_syncs()
        session.list()
        deadlines = {
            (one.log_dir, one.path): one.marker for facts in session.facts for one in facts.staged if one.marker
        }
        for item in found.items:
            marker = deadlines.get((item.log_dir, item.new_path or ""))
            match item.state:
                case ItemState.DONE:
                    counters.captured += 1
                    until = None if marker is None or marker.delay_ms is None else marker.staged_at_ms + marker.delay_ms
                    self._captured(item, until)
                case ItemState.KEPT:
                    self._note("passed-over", item, item.detail)
                case _:
                    refusal = item.log_dir, item.path, "" if item.problem is None else item.problem.slug
                    if refusal not in self._refused:
                        self._refused.add(refusal)
                        self._note("not-captured", item, "" if item.problem is None else item.problem.line())
        for problem in found.problems:
            LOG.error("capture.failed %s", problem.line())
        self._note_look()
        return True

    def _note_look(self) -> None:
        """Note that the log dirs were looked at for deletions."""
        config, delay_ms = self.session.config, self.session.kept.leavers.starts.delete_delay_ms
        late = self.supervisor.looks.note(config.server_properties, delay_ms, is_running=self.is_running)
        if late is not None:
            LOG.warning("look.too-late %s", late.line())
            self.note("look-too-late", detail=late.found)

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
            LogDirError: the broker has to be opened again.
        """
        is_due = self.due.is_passed()
        if not is_due:
            self._set_timer()  # It has come early: the wall clock and the boot-time clock went apart.
        if not is_due or not self.is_automatic or self.halted() is not None:
            return
        broker, client = self.session.broker, self.session.config.client_properties
        if not self.supervisor.quorum.is_known(client, self._cluster_id):
            return  # The thread that asks calls this again, with or without an answer.
        request = PurgeRequest(
            source=self.supervisor.quorum.source(client),
            bytes_per_second=self.session.config.purge_bytes_per_second,
            budget_ms=STEP_MS,
            halted=self.halted,
            kept_reasons=self.session.config.capture_reasons,
        )
        self.session.beat(read_instant())
        self.due.ask()  # Before the plan: what becomes due meanwhile is asked about next time.
        shown = purge.plan(broker, request)
        self._kept = tuple(item.problem for item in shown.items if item.problem is not None)
        if shown.plan is not None and shown.plan.actions:
            items, problems = purge.apply(broker, shown, self._losses())
            self._purged(items, problems)
            if any(item.problem is not None and item.problem.slug in _GOES_ON for item in items):
                self.due.go_on()
        self.session.note_failed_syncs()
        self.session.list()
        self.supervisor.sweep()

    def note(self, event: str, **values: object) -> None:
        """Write an event into the history."""
        self.supervisor.history.add(event, **values)

    def halted(self) -> LogDirError | None:
        """Return why no step of a purge may begin: the daemon ends, or the pause file exists; ``None``: it may."""
        return self.supervisor.stopping() or pause_error(self.session.config.state_dir)

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
        if self.is_blocked and not (spec.options is not None and spec.options.is_start_block_allowed):
            raise RefusedError.of(blocked(", ".join(session.broker.named.log_dirs)))
        if is_applied:
            awaited = self.supervisor.start_awaited
            spec = awaited.admit(spec, session.broker.named.log_dirs)
            if awaited.is_opening_needed(spec, request, session.failed):
                self.is_reopening = True
                raise reopening_error(tuple(session.failed))
        is_long = spec.name == "staged export"
        check = partial(self.supervisor.check_between, self, is_long=is_long)
        between = check if spec.is_beside_broker and is_applied else None
        if isinstance(request, PurgeRequest) and is_applied:
            if (error := self.halted()) is not None:
                raise error
            request = in_steps(request, lambda: self.halted() or self.supervisor.start_error())
            between = partial(self.supervisor.capture_between, self)
        reporter, notes = RequestReporter(between), list(session.broker.notes)
        try:
            session.require_same()
            ran = run(spec, session.broker, request, is_applied=is_applied, reporter=reporter)
        finally:
            session.keep_notes(notes)
            if is_applied:
                session.note_failed_syncs()
                # A marker that was rewritten in its place shows only where its directory is read again.
                self._read_all()
                self.documents.is_last_read = False
                self.supervisor.sweep()
        if is_applied:
            self.supervisor.start_awaited.note(spec)
            done = sum(one.state is ItemState.DONE for one in ran.result.items)
            LOG.info("request.done command=%r done=%d exit=%d", spec.name, done, ran.exit)
            self.supervisor.history.add("request", command=spec.name, done=done, exit=int(ran.exit))
            if isinstance(request, PurgeRequest):
                self._purged(ran.result.items, ())
        return ran, tuple(reporter.lines)

    def release(self, request: ReleaseRequest, *, is_applied: bool) -> tuple[Ran, tuple[str, ...]]:
        """Let go a log dir for an operator; return the result, and no warnings. Raises as ``release.release``."""
        ran = release(self.session, request, self.supervisor.unwatch, is_applied=is_applied)
        if is_applied:
            LOG.warning("disk.released log_dir=%s exit=%d", request.log_dir, ran.exit)
            self.supervisor.history.add("released", log_dir=request.log_dir, exit=int(ran.exit))
        return ran, ()

    def is_worn(self) -> bool:
        """Whether the broker should be opened again: a log dir that was SUSPECT or had failed may be well now."""
        return self.is_reopening or self.session.may_renew()

    def status(self) -> StatusResult:
        """Return the status of the log dirs and what was done; state, queue and events are the supervisor's."""
        supervisor, session = self.supervisor, self.session
        log_dirs = (self._look or look_at(session)).log_dirs
        self._look = None
        states = {one.log_dir: one.state for one in log_dirs}
        supervisor.failed_disks.tell(states, session.facts, self._node_id, supervisor.history)
        deadlines = [one.next_due_ms for one in log_dirs if one.next_due_ms is not None]
        counters = supervisor.counters
        return replace(
            blank_status(session.config.name, supervisor.version),
            looked_at_ms=clock.now_ms(),
            node_id=self._node_id,
            cluster_id=self._cluster_id,
            broker_runs=self.is_running,
            log_dirs=log_dirs,
            captured=counters.captured,
            missed=counters.missed,
            gaps=supervisor.looks.gaps,
            purged=counters.purged,
            failed_replicas=supervisor.failed_disks.record(self._node_id),
            waiting=(
                *waiting_of(session, log_dirs),
                *self._kept,
                *self._stops(),
                *self.documents.waiting,
                *supervisor.quorum.problem(session.config.client_properties),
            ),
            next_due_ms=min(deadlines, default=None),
        )

    @property
    def _node_id(self) -> int | None:
        return next((root.belongs.node_id for root in self.session.broker.roots), None)

    @property
    def _cluster_id(self) -> str | None:
        return next((root.belongs.cluster_id for root in self.session.broker.roots), None)

    def _stops(self) -> tuple[Problem, ...]:
        """Return what keeps, or has kept, the daemon from its work."""
        error, late = pause_error(self.session.config.state_dir), self.supervisor.looks.problem
        found = (*(() if error is None else (error.problem(),)), *(() if late is None else (late,)))
        return (*found, blocked(self.session.broker.named.log_dirs[0])) if self.is_blocked else found
