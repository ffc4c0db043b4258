"""What the daemon does on the log dirs that it has open: sweeps, purges, and the requests of operators.

Used by the thread of changes alone.

Not here: when (``supervisor``), what a use case does (``service``).

Spec: design §3.3, §5; KIP-516, "Deletion", step 1 (a scheduled loss is logged with its path, id and instant).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol

from logdir import clock
from logdir.daemon.faults import problem_of, reopening_error
from logdir.daemon.inbox.documents import Documents
from logdir.daemon.look import Look, look_at
from logdir.daemon.looks import Looks
from logdir.daemon.own_log import OwnLog
from logdir.daemon.purging.pause import in_steps, pause_error
from logdir.daemon.purging.purges import Around, Purges
from logdir.daemon.release import ReleaseRequest, release
from logdir.daemon.report.failed_replicas import FailedDisks
from logdir.daemon.report.reporters import RequestReporter
from logdir.daemon.report.status import StatusResult, blank_status, waiting_of
from logdir.daemon.session import Session
from logdir.daemon.start_awaited import StartAwaited
from logdir.daemon.upkeep import Upkeep
from logdir.decide.auto_capture import CapturePolicy
from logdir.disk.root.true_root import blocked
from logdir.errors import LogDirError, Problem, RefusedError
from logdir.observe.facts import LogDirFacts
from logdir.service.batch.auto_capture import Captured, capture_new, complete_linked
from logdir.service.batch.use_cases import Spec, run
from logdir.service.log_dirs.glances import Glances
from logdir.service.purge import PurgeRequest
from logdir.service.report.result import ItemResult, ItemState
from logdir.service.report.use_case import Ran
from logdir.text import utc

LOG: Final = logging.getLogger("logdir.daemon")
_FINISH_MS: Final = 8 * 1000
"""Longest time for what is linked before the log dirs are closed; the daemon's end waits for it."""


class Surroundings(Around, Protocol):
    """The part of the daemon that its work needs."""

    version: str
    failed_disks: FailedDisks
    looks: Looks
    start_awaited: StartAwaited

    def unwatch(self, log_dirs: Collection[str]) -> None:
        """End the watches of these log dirs."""

    def start_error(self) -> LogDirError | None:
        """Return the error that a handover waits; ``None``: none does."""

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
        self.own_log = OwnLog(self, supervisor.quorum)
        self.is_running: bool | None = None
        """Whether the broker runs, at the last look; ``None``: it is not known."""
        self.is_blocked = False
        """Whether a start block is set."""
        self.is_reopening = False
        """Whether a log dir that could not be opened is to be tried again."""
        self._refused: set[tuple[str, str, str]] = set()
        """Log dir, name and slug of directories that are there and were not captured: each is noted once."""
        self.purges = Purges(session, supervisor, partial(supervisor.capture_between, self))
        self.upkeep = Upkeep(session, self.note)
        self._look: Look | None = None
        """Of the sweep that has just ended."""

    def begin(self) -> None:
        """List every log dir, and beat."""
        self.upkeep.upgrade()
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
        self.upkeep.upgrade()
        self.session.beat_when_due()
        look = look_at(self.session, None if is_new else glances)
        if self.is_automatic and self.purges.relieve(look):
            look = look_at(self.session)
        self._look = look
        is_start_awaited = self.supervisor.start_awaited.is_on
        self.upkeep.look(is_running=self.is_running)
        self.documents.look(is_running=self.is_running, is_start_awaited=is_start_awaited)
        self.own_log.look(is_running=self.is_running, is_start_awaited=is_start_awaited)
        self.purges.note(look)

    def _note_running(self, glances: Glances) -> None:
        """Note whether the broker runs, and what follows for the work that no request asks for."""
        is_running = self.is_running = glances.is_running
        if glances.has_started:
            self.supervisor.start_awaited.end()
        # Behind a start block no broker runs, and only a change of layout may go on.
        self.is_blocked = is_running is not True and glances.is_blocked
        self.is_automatic = is_running is True or (self.session.config.auto_while_stopped and not self.is_blocked)

    def rescan(self) -> None:
        """Read every log dir in full; what could not be opened before is tried again."""
        self._read_all()
        self.is_reopening = bool(self.session.failed)

    def _read_all(self) -> None:
        self.session.broker.last_look.seen.clear()
        self.session.list()

    def capture(self, glances: Glances | None = None) -> bool:
        """Capture what the broker removes since the last call; return whether there was anything new to capture.

        Args:
            glances: Names of all log dirs that were read just now; ``None``: they are read here.
        """
        if not self.is_automatic:  # Law 4: on a stopped broker nothing is done by itself.
            if glances is not None:  # So that the next one finds no change.
                self.session.kept.leavers.new(self.session.broker, glances)
            self._finish_captures()
            self._note_look()
            return False
        session, counters = self.session, self.supervisor.counters
        found = capture_new(session.broker, session.kept.leavers, self.policy, self._note_look, glances)
        there = session.kept.leavers.names
        self._refused = {one for one in self._refused if one[1] in there.get(one[0], ())}
        counters.missed += session.kept.leavers.missed
        session.kept.leavers.missed = 0
        if found.facts is None:
            if session.kept.leavers.has_changed:
                session.list()
            return False
        if found.is_cut_off:
            self.supervisor.sweep()
        self._note_captured(found)
        self._note_look()
        return True

    def finish(self) -> None:
        """Bring captures to their end before the log dirs are closed, as far as that goes without an error."""
        try:
            self._finish_captures()
        except (LogDirError, OSError) as error:
            problem = problem_of(self.session.config, error)
            LOG.error("capture.failed %s", problem.line())
            self.note_error(problem)

    def _finish_captures(self) -> None:
        """Make durable what is linked, for some seconds: the log dirs are to be closed, or left to a stopped broker."""
        session = self.session
        if session.kept.leavers.linked:
            self._note_captured(complete_linked(session.broker, session.kept.leavers, self.policy, _FINISH_MS))

    def _note_captured(self, found: Captured) -> None:
        session, counters = self.session, self.supervisor.counters
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
                        if item.problem is not None:
                            self.note_error(item.problem)
        for problem in found.problems:
            LOG.error("capture.failed %s", problem.line())
            self.note_error(problem)

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
        """Purge what is due, as ``Purges.run``."""
        self.purges.run(is_automatic=self.is_automatic)

    def held_up(self) -> LogDirError | None:
        """Return the error that the daemon ends, or that a handover waits; ``None``: neither."""
        return self.supervisor.stopping() or self.supervisor.start_error()

    def note(self, event: str, **values: object) -> None:
        """Write an event into the history."""
        self.supervisor.history.add(event, **values)

    def note_error(self, problem: Problem) -> None:
        """Count an error."""
        self.supervisor.counters.note_error(problem, self.session.broker.named.log_dirs)

    def note_offset(self, followed: int, end: int) -> None:
        """Note the offset up to which the metadata log was followed, and up to which it is committed."""
        self.supervisor.figures.note_offset(followed, end)

    def note_document(self, *, is_done: bool) -> None:
        """Count a document of the inbox that was followed, or refused."""
        self.supervisor.counters.note_document(is_done=is_done)

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
        staged: tuple[LogDirFacts, ...] = ()
        if isinstance(request, PurgeRequest) and is_applied:
            if (error := self.purges.stopped()) is not None:
                raise error
            staged = self.purges.read_free_space()
            request = in_steps(request, lambda: self.purges.stopped() or self.supervisor.start_error())
            between = partial(self.supervisor.capture_between, self)
        reporter, notes = RequestReporter(between), list(session.broker.notes)
        try:
            session.require_same()
            ran = run(spec, session.broker, request, is_applied=is_applied, reporter=reporter)
        finally:
            session.keep_notes(notes)
            if is_applied:
                self.documents.is_last_read = False
                session.note_failed_syncs()
                # A marker that was rewritten in its place shows only where its directory is read again.
                self._read_all()
                self.supervisor.sweep()
        if is_applied:
            self.upkeep.look_soon()
            if not getattr(request, "is_recovery_only", False):  # No broker starts after a mere recovery.
                self.supervisor.start_awaited.note(spec)
            done = sum(one.state is ItemState.DONE for one in ran.result.items)
            LOG.info("request.done command=%r done=%d exit=%d", spec.name, done, ran.exit)
            self.supervisor.history.add("request", command=spec.name, done=done, exit=int(ran.exit))
            if isinstance(request, PurgeRequest):
                self.purges.note_requested(ran.result.items, staged)
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
        look, self._look = self._look or look_at(session), None
        read_at_ms = session.broker.last_look.read_at_ms
        log_dirs = supervisor.figures.with_kinds(look.log_dirs, session.facts, read_at_ms)
        windows, windows_left_out = supervisor.figures.windows(look)
        states = {one.log_dir: one.state for one in log_dirs}
        supervisor.failed_disks.report(states, session.facts, session.node_id, supervisor.history)
        supervisor.counters.note_states({one.log_dir: one.problem for one in log_dirs})
        deadlines = [one.next_due_ms for one in log_dirs if one.next_due_ms is not None]
        counters = supervisor.counters
        return replace(
            blank_status(session.config.name, supervisor.version),
            looked_at_ms=clock.now_ms(),
            node_id=session.node_id,
            cluster_id=session.cluster_id,
            config=session.config.file,
            least_free_percent=session.config.least_free_percent,
            broker_runs=self.is_running,
            log_dirs=log_dirs,
            captured=counters.captured,
            missed=counters.missed,
            purged=counters.purged,
            failed_replicas=supervisor.failed_disks.record(session.node_id),
            waiting=(
                *waiting_of(session, log_dirs),
                *self.upkeep.problems,
                *self.purges.waiting,
                *self._stops(),
                *self.documents.waiting,
                *self.own_log.problem,
                *supervisor.quorum.problem(session.config.client_properties),
            ),
            next_due_ms=min(deadlines, default=None),
            windows=windows,
            windows_left_out=windows_left_out,
            metadata_lag=supervisor.figures.metadata_lag,
        )

    def _stops(self) -> tuple[Problem, ...]:
        """Return the reasons why the daemon cannot do its work."""
        error = pause_error(self.session.config.state_dir)
        found = () if error is None else (error.problem(),)
        return (*found, blocked(self.session.broker.named.log_dirs[0])) if self.is_blocked else found
