"""The supervisor: the threads of the daemon, its one queue of changes, and the order in which they are done.

    main thread      signals, messages to systemd
    quorum           asks the cluster how far its metadata log is committed, while there is such a question (``quorum``)
    changes          owns the log dirs (``session``): captures first, then one request after the other, then the
                     documents of the inbox, then what is due
    watches          reads the hints of the watch processes
    control          answers requests (``socket.server``); the timer's thread enqueues jobs

Only the thread *changes* works on log dirs, so nothing here needs a lock but the queue. A status is answered from
memory. A captured directory may be gone within seconds, so captures also come between two steps of a purge.

The daemon takes Kafka's locks only for a request of an operator, and for a document of the inbox where the
configuration allows that (``documents``).

Not here: what a use case does (``service``), the timer (``scheduler``), HTTP (``socket.server``).

Spec: design §2 laws 4, 6, §5; attacks A19, A22, A40, A41, A49.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from logdir import clock
from logdir.daemon.config import DaemonConfig, needing_restart
from logdir.daemon.faults import ReloadingError, StoppingError, problem_of, reloading_error, stopping_error
from logdir.daemon.figures import Figures
from logdir.daemon.looks import Looks
from logdir.daemon.quorum import Quorum
from logdir.daemon.report.counters import Counters
from logdir.daemon.report.failed_replicas import FailedDisks
from logdir.daemon.report.history import History
from logdir.daemon.report.now import status_now
from logdir.daemon.report.status import StatusResult, blank_status
from logdir.daemon.requests import Answer, Request, Requests
from logdir.daemon.session import Kept, Session
from logdir.daemon.start_awaited import StartAwaited
from logdir.daemon.state import DaemonState, Event, after
from logdir.daemon.timer import Timer
from logdir.daemon.work import Work
from logdir.errors import ConfigError, LogDirError, Problem, RefusedError
from logdir.service.log_dirs.quarantine import is_within

LOG: Final = logging.getLogger(__name__)
RETRY_MS: Final = 5 * 1000
"""Time between two attempts to open a broker that cannot be opened."""
_FIRST_WAIT_MS: Final = 1000
_LONGEST_WAIT_MS: Final = 60 * 1000
"""Time between two times that the broker is opened again: it doubles while a log dir keeps failing."""


class Supervisor:
    """The daemon of one broker."""

    def __init__(self, config: DaemonConfig, *, version: str, history: History, timer: Timer | None = None) -> None:
        """Make a daemon that is not started.

        Args:
            config: Its configuration.
            version: The release, for the status.
            history: Takes the events.
            timer: Wakes it up; ``None``: it is woken up by calls of ``sweep`` alone.
        """
        self.config, self.version = config, version
        self.history, self.timer = history, timer
        self.counters, self.figures = Counters(), Figures()
        self.failed_disks = FailedDisks()
        self.quorum = Quorum(self.purge_due)
        self.start_awaited = StartAwaited()
        self.looks = Looks(config.state_dir, history.keep_look)
        self.started: Answer = Answer()
        """Ends when the log dirs were opened for the first time, or with the error that prevents it."""
        self._state = DaemonState.STARTING
        self._since_ms = clock.now_ms()
        self._lock = threading.Condition()
        self._requests = Requests()
        self._is_sweep_due = self._is_purge_due = True
        self._is_rescan_due = self._is_stopping = self._is_reload_due = False
        self._status: StatusResult | None = None
        self._shown = blank_status(config.name, version)
        """What ``status`` returned last."""
        self._kept = Kept(timed=self.counters.note_looks)
        self._log_dirs: tuple[str, ...] = ()
        self.unwatch: Callable[[Collection[str]], None] = lambda log_dirs: None
        """Ends the watches of these log dirs; the process sets it."""
        self.unwatched: Callable[[], Mapping[str, str]] = dict
        """Returns the log dirs without a watch, and why; the process sets it."""
        self.reports: list[Callable[[], Iterable[Problem]]] = []
        """Each returns what waits for an operator in another part of the daemon; the process adds them."""
        self._opened_ms = 0
        self._wait_ms = 0
        """How long a session lasts at least before the broker is opened again."""
        self.reload_problems: tuple[Problem, ...] = ()
        """Why the configuration file was not taken when it was read again."""
        self._problem: Problem | None = None
        """Why the log dirs are not open."""
        self._thread = threading.Thread(target=self._run, name="changes", daemon=True)

    @property
    def state(self) -> DaemonState:
        """Its state."""
        return self._state

    def start(self) -> None:
        """Start the thread of changes; ``started`` shows what came of it."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no other change, and end when the one in progress has ended; a second call does nothing."""
        with self._lock:
            self._move(Event.STOP)
            self._is_stopping = True
            self._lock.notify_all()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; return whether it came in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def is_alive(self) -> bool:
        """Whether the thread of changes works."""
        return self._thread.is_alive()

    def reload(self, config: DaemonConfig) -> None:
        """Open the broker again by another configuration, as soon as the change in progress has ended.

        Raises:
            ConfigError: a key of the new configuration differs that takes effect only at a start.
        """
        if moved := needing_restart(self.config, config):
            found = f"another {' and another '.join(moved)}"
            problem = Problem("config-error", config.file, "the same as at the start", found, "restart logdird")
            raise ConfigError((problem,))
        with self._lock:
            if config.server_properties != self.config.server_properties:
                self._kept.belongs = None  # It may be another broker.
            self.config, self.reload_problems, self._is_reload_due = config, (), True
            self._lock.notify_all()
        self.history.add("reloaded", file=config.file)

    def refuse_reload(self, problems: tuple[Problem, ...]) -> None:
        """Keep the configuration as it is; the status and the history show why."""
        self.reload_problems = problems
        for problem in problems:
            self.counters.note_error(problem, ())
        self.history.add("reload-refused", problem="; ".join(problem.line() for problem in problems))

    def sweep(self) -> None:
        """Look soon for directories that a broker is removing."""
        with self._lock:
            self._is_sweep_due = True
            self._lock.notify_all()

    def purge_due(self) -> None:
        """Purge soon what is due."""
        with self._lock:
            self._is_purge_due = True
            self._lock.notify_all()

    def rescan(self) -> None:
        """Read every log dir in full soon."""
        with self._lock:
            self._is_rescan_due = self._is_sweep_due = self._is_purge_due = True
            self._lock.notify_all()

    def submit(self, what: str, run: Callable[[Work], Any]) -> Answer:
        """Enqueue a request; return its future result.

        Args:
            what: Its name, for the history.
            run: Called by the thread of changes.

        Raises:
            StoppingError: the daemon ends.
        """
        request = Request(what, run, Answer())
        with self._lock:
            if self._is_stopping:
                raise stopping_error()
            self._requests.add(request)
            self._lock.notify_all()
        return request.answer

    def status(self) -> StatusResult:
        """Return the status of the last look, with the state of now; the same object as long as nothing changes."""
        with self._lock:
            queued, state, since_ms, problem = len(self._requests), self._state, self._since_ms, self._problem
        others = [one for report in self.reports for one in report()]
        found = status_now(
            self._status or blank_status(self.config.name, self.version),
            state,
            since_ms=since_ms,
            queued=queued,
            gaps=self.looks.gaps,
            waiting=(problem, *self.reload_problems, self.looks.late, self.looks.unread, *others),
            events=self.history.last(),
            unwatched=self.unwatched(),
            sweep_ms=self.config.sweep_ms,
        )
        if found != self._shown:  # Who asks a thousand times a second may keep what was made of it.
            self._shown = found
        return self._shown

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                if not self._serve_once():
                    self._wait(RETRY_MS)
        except BaseException as error:
            LOG.exception("daemon.fault")
            if not self.started.done():
                self.started.set_exception(error)
            raise
        finally:
            with self._lock:
                if not self._is_stopping:
                    self._move(Event.STOP)
                    self._is_stopping = True
                self._move(Event.IDLE)
                left = self._requests.take_all()
            for request in left:
                request.refuse(stopping_error(), self.counters)

    def _serve_once(self) -> bool:
        """Open the broker, and serve until it has to be opened again or the daemon stops; return whether it opened."""
        session: Session | None = None
        try:
            session = Session.open(self.config, self._kept, is_first=not self.started.done())
            self._log_dirs = session.broker.named.log_dirs
            self._note_opening()
            work = Work(session, self)
            work.begin()
            self._status = work.status()
        except (LogDirError, OSError) as error:
            if session is not None:
                session.close()
            if not self.started.done():
                self.started.set_exception(error)
                self.stop()
                return False
            problem = self._problem = problem_of(self.config, error)
            LOG.error("broker.not-opened %s", problem.line())
            self.counters.note_error(problem, self._log_dirs)
            with self._lock:
                waiting = self._requests.take_all()
            for request in waiting:
                request.refuse(RefusedError.of(problem), self.counters)
            return False
        self._problem = None
        with self._lock:
            self._is_sweep_due = True  # Nothing was looked at since the last session.
            if self._state is DaemonState.RECOVERY:
                self._move(Event.LISTED)
        if not self.started.done():
            self.started.set_result(None)
        try:
            is_well = self._serve(work)
            # After an error, too: what its broker has removed meanwhile would stay partial for good.
            work.finish()
        finally:
            session.close()
        if not is_well and not self._rest():
            self._wait(max(_FIRST_WAIT_MS, self._wait_ms))
        return True

    def _rest(self) -> bool:
        """Leave out for a while the log dir that failed, if it is known, so that the others are served meanwhile.

        One that failed for the first time in a while is only opened again.
        """
        problem, log_dirs = self._problem, self._log_dirs
        log_dir = None if problem is None else next((one for one in log_dirs if is_within(problem.path, one)), None)
        if problem is None or log_dir is None:
            return False
        if self._wait_ms:
            self._kept.resting[log_dir] = problem
        return True

    def _note_opening(self) -> None:
        """Lengthen the time until the broker is opened once more, if it was opened not long ago."""
        now_ms = clock.monotonic_ms()
        is_calm = now_ms - self._opened_ms > 2 * _LONGEST_WAIT_MS
        self._wait_ms = 0 if is_calm else min(max(_FIRST_WAIT_MS, 2 * self._wait_ms), _LONGEST_WAIT_MS)
        self._opened_ms = now_ms
        with self._lock:
            if self._state is DaemonState.STARTING:
                self._move(Event.OPENED)

    def _serve(self, work: Work) -> bool:
        """Do one thing after the other, the most urgent first; return ``False`` if one of them failed as a whole."""
        while not self._is_stopping:
            try:
                if self._take("_is_rescan_due"):
                    work.rescan()
                if self._take("_is_sweep_due"):
                    work.sweep()
                elif (request := self._next()) is not None:
                    request.do(work, self.counters)
                elif work.documents.follow_next() or work.own_log.follow():
                    pass
                elif self._take("_is_purge_due"):
                    work.purge_due()
                elif not self._is_reload_due:
                    self._wait(None)
                    continue
                self._status = work.status()
            except StoppingError:
                return True
            except (LogDirError, OSError) as error:
                problem = self._problem = problem_of(self.config, error)
                LOG.error("work.failed %s", problem.line())
                self.counters.note_error(problem, self._log_dirs)
                self.history.add("failed", problem=problem.line())
                return False  # The broker is opened again, and looked at from the beginning.
            if self._take("_is_reload_due"):
                self._kept.released.clear()  # A reload means that the disks let go are back.
                return True
            if clock.monotonic_ms() - self._opened_ms >= self._wait_ms and work.is_worn():
                LOG.warning("broker.reopened %s", self.config.server_properties)
                return True
        return True

    def _take(self, flag: str) -> bool:
        with self._lock:
            is_due = bool(getattr(self, flag))
            setattr(self, flag, False)
            return is_due

    def _next(self) -> Request | None:
        with self._lock:
            return self._requests.take()

    def _is_something_due(self) -> bool:
        """Whether there is something to do; the caller holds the lock."""
        is_due = self._is_sweep_due or self._is_rescan_due or self._is_purge_due or self._is_reload_due
        return bool(is_due or self._requests)

    def _wait(self, timeout_ms: int | None) -> None:
        """Wait for something to do; with a time limit wait for the whole of it, unless the daemon stops."""
        with self._lock:
            if timeout_ms is not None:
                self._lock.wait_for(lambda: self._is_stopping, timeout_ms / 1000)
            else:
                self._lock.wait_for(lambda: self._is_stopping or self._is_something_due())

    def set_next_due(self, wall_ms: int | None) -> None:
        """Purge what is due at an instant (wall clock); ``None``: nothing has a deadline."""
        if self.timer is not None:
            self.timer.set_next_due(wall_ms)

    def stopping(self) -> StoppingError | None:
        """Return the error that the daemon ends; ``None``: it does not."""
        return stopping_error() if self._is_stopping else None

    def reloading(self) -> ReloadingError | None:
        """Return the error that the configuration was read again; ``None``: the open log dirs were opened by it."""
        return reloading_error(self.config.file) if self._is_reload_due else None

    def capture_between(self, work: Work) -> None:
        """Capture what is urgent; called between two steps."""
        if self._take("_is_sweep_due"):
            work.capture()

    def check_between(self, work: Work, *, is_long: bool = False) -> None:
        """Capture what is urgent; called between two steps.

        Raises:
            LogDirError: the daemon ends, or, of what takes long, keeps a broker from its start.
        """
        if (error := self.stopping() or (self.start_error() if is_long else None)) is not None:
            raise error
        self.capture_between(work)

    def start_error(self) -> LogDirError | None:
        """Return the error that a handover waits, for what would take long; ``None``: none does."""
        with self._lock:
            return self._requests.start_error()

    def _move(self, event: Event) -> None:
        before, self._state = self._state, after(self._state, event)
        if before is not self._state:
            self._since_ms = clock.now_ms()
            LOG.info("daemon.state state=%s", self._state.name)
            self.history.add("state", state=self._state.name)
