"""The broker as the daemon has it open: a worker and the owner lock for each log dir, for as long as the daemon runs.

A log dir that fails is left out, and the others go on. A SUSPECT log dir is taken back once its worker process has
ended: then the whole broker is opened again, by the same path as at a start, so that a successor begins by listing. If
the broker is opened again for another reason, a log dir whose worker has not ended is left out.

Used by one thread.

Not here: opening itself (``service.log_dirs.opening``), when anything is done (``supervisor``).

Spec: design §2 laws 4, 6, §5 "A port per log dir"; attacks A19, A40, A41.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from logdir import clock
from logdir.clock import Instant
from logdir.daemon.config import DaemonConfig, delete_delay_ms, short_delete_delay
from logdir.daemon.quarantines import Quarantined, Quarantines, still, why_left_out
from logdir.daemon.state import LogDirState
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.errors import (
    ConfigError,
    LockHeldError,
    LogDirError,
    LogDirOfflineError,
    LogDirReplacedError,
    LogDirSuspectError,
    NoPermissionError,
    NotFormattedError,
    Problem,
    ReadOnlyDiskError,
)
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.formats.own.work_root_file import Belonging
from logdir.observe.facts import LogDirFacts
from logdir.observe.mounts import identity_at
from logdir.refusal_slug import Why
from logdir.service.batch.auto_capture import Leavers
from logdir.service.batch.free_space import FreeSpace
from logdir.service.batch.seen_starts import DELETE_DELAY_MS
from logdir.service.log_dirs import proof
from logdir.service.log_dirs.glances import Glances
from logdir.service.log_dirs.last_look import Place
from logdir.service.log_dirs.open_broker import OpenBroker, heartbeat_lost
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.quarantine import is_within, keep_in_mind
from logdir.service.log_dirs.request import LeftOut
from logdir.worker.look import NOTHING
from logdir.worker.reaping import Unreaped
from logdir.worker.remote import RemotePort
from logdir.worker.start import run_apart

BEAT_MS = 60 * 1000
"""Time between two heartbeats."""
_GLANCE_MS = 1000
"""How long a log dir that failed may take to show what it is now."""
START_TIMEOUT_MS = 3 * 1000
"""How long a log dir may give no sign of life while the daemon starts: the others wait for it only then."""


def _untimed(took_ns: Mapping[str, int]) -> None:
    """Do nothing."""


@dataclass(slots=True)
class Kept:
    """What is kept from one session to the next."""

    leavers: Leavers = field(default_factory=Leavers)
    quarantined: dict[str, Quarantined] = field(default_factory=dict)
    """Log dirs whose disk has turned out sick since the daemon started, and which may not be changed."""
    unreaped: Unreaped = field(default_factory=Unreaped)
    """Workers that were killed and have not ended: their log dirs are SUSPECT and left out."""
    released: dict[str, Problem] = field(default_factory=dict)
    """Log dirs that were let go by an operator, and how they are taken back."""
    resting: dict[str, Problem] = field(default_factory=dict)
    """Log dirs that failed again and again, which the next session leaves out."""
    free: FreeSpace = field(default_factory=FreeSpace)
    """The free space that is expected after purges; a log dir that is opened again does not report it sooner."""
    belongs: Belonging | None = None
    """Cluster and node of the log dirs as they were opened last; a disk of another broker is left out."""
    timed: Callable[[Mapping[str, int]], None] = _untimed
    """Called after each glance with ``Glances.took_ns``."""


@dataclass(slots=True)
class Session:
    """A broker that is open."""

    config: DaemonConfig
    broker: OpenBroker
    failed: dict[str, Problem]
    """Log dirs that could not be opened, and why."""
    kept: Kept
    quarantines: Quarantines
    facts: tuple[LogDirFacts, ...] = ()
    """Of the last look at every log dir."""
    warnings: tuple[Problem, ...] = ()
    """What the status shows beside what is wrong; it fails no request."""
    beats: dict[str, Heartbeat | None] = field(default_factory=dict)
    """The heartbeats that were written last; ``None``: there is none to advance."""
    is_resting: bool = False
    """Whether a log dir is left out for a while, and the broker is to be opened again after it."""
    is_another_there: bool = False
    """Whether something was mounted or unmounted where a log dir failed: the broker should be opened again."""
    _failed_at: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    """Device and inode of log dirs that failed, a minute ago; ``None``: it could not be read."""
    _silent: set[str] = field(default_factory=set)
    """Log dirs that failed and did not answer then."""
    _beaten_ms: int | None = None
    """``CLOCK_BOOTTIME`` of the last ``beat_when_due`` that wrote one."""
    _stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def open(cls, config: DaemonConfig, kept: Kept, *, is_first: bool = True) -> Session:
        """Open every log dir of the broker that can be opened.

        Args:
            config: The configuration.
            kept: What is kept from one session to the next; this one adds to it.
            is_first: Whether the daemon starts: then only a log dir that cannot be read or written, or is not
                formatted, is left out, and any other fault ends the start. Later each log dir with a fault is left out.

        Raises:
            ConfigError: the broker's configuration is invalid.
            NoWorkRootError: a log dir has no work root.
            NoPermissionError: this process does not run as the owner of a log dir.
            RefusedError: at the start, a file of the broker can be neither linked nor leased (``proof.prove``).
            WorkRootOwnedError: another logdird process works there.
            LogDirError: no log dir can be opened; the errors of ``opening.opened``.
        """
        failed = dict(kept.resting)
        kept.resting.clear()
        is_resting = bool(failed)
        skipped: set[str] = set()
        first: LogDirError | None = None
        unreaped, leavers = kept.unreaped, kept.leavers
        while True:
            request = config.broker_request(skipped=tuple(skipped))
            request = replace(request, disk_timeout_ms=min(request.disk_timeout_ms, START_TIMEOUT_MS))
            stack = ExitStack()
            without = {log_dir: problem for log_dir, problem in failed.items() if log_dir not in skipped}
            left_out = LeftOut(unreaped.problems() | without | kept.released, unreaped)
            try:
                broker = stack.enter_context(
                    opened(
                        request,
                        changes=True,
                        needs_all=False,
                        is_start_block_allowed=True,
                        left_out=left_out,
                        known=kept.belongs,
                    )
                )
                broker.quarantined.update({one: failed[one] for one in skipped & broker.quarantined.keys()})
                # Before anything is changed, be it for a proof.
                broker.quarantined.update(still(kept.quarantined, broker))
                for root in broker.roots:
                    proof.require_owner(root)
                _prove(broker, failed, is_first=is_first)
            except LogDirError as error:
                stack.close()
                log_dir = _log_dir_of(error, request.config().log_dirs, failed)
                if log_dir is None or not _is_its_own(error, is_first=is_first):
                    if first is not None and error.slug == Why.NO_LOG_DIR_ANSWERS.value:
                        raise first from error  # That no log dir is left only follows from it.
                    raise
                first = first or error
                failed[log_dir] = why_left_out(error)
                if isinstance(error, LogDirOfflineError | ReadOnlyDiskError):
                    skipped.add(log_dir)  # It is looked at as far as it can be.
                continue
            except BaseException:
                stack.close()
                raise
            for port in broker.ports.ports:
                if isinstance(port, RemotePort):
                    port.patience_ms = config.disk_timeout_ms
            named = {(note.slug, note.path) for note in broker.notes}
            broker.notes.extend(one for one in failed.values() if (one.slug, one.path) not in named)
            short = short_delete_delay(config.server_properties)
            delay_ms = delete_delay_ms(config.server_properties)
            leavers.starts.delete_delay_ms = DELETE_DELAY_MS if delay_ms is None else delay_ms
            leavers.reopened(broker)
            kept.belongs = broker.all_roots[0].belongs
            return cls(
                config=config,
                broker=broker,
                failed=failed,
                kept=kept,
                quarantines=Quarantines(broker, kept.quarantined),
                warnings=() if short is None else (short,),
                is_resting=is_resting,
                _stack=stack,
            )

    @property
    def node_id(self) -> int | None:
        """Node id of the log dirs; ``None``: none is open."""
        return next((root.belongs.node_id for root in self.broker.roots), None)

    @property
    def cluster_id(self) -> str | None:
        """Cluster id of the log dirs; ``None``: it is not known."""
        return next((root.belongs.cluster_id for root in self.broker.roots), None)

    def note_failed_syncs(self) -> None:
        """Quarantine the disks on which a sync failed, and record that for later processes at once."""
        broker = self.broker
        open_dirs = {open_dir.log_dir: open_dir for open_dir in broker.open_dirs}
        sick = keep_in_mind(broker.ports.failed_syncs(), tuple(open_dirs.values()), broker.quarantined)
        for log_dir, problem in sick.items():
            self.quarantines.begin_for_good(open_dirs[log_dir], problem)

    def let_go(self, log_dir: str, problem: Problem) -> None:
        """End the worker of a log dir, and leave it out from now on; ``problem``: why, and how it is taken back."""
        if log_dir not in self.kept.released:
            self.kept.released[log_dir] = problem
            self.kept.unreaped.keep([self.broker.ports.let_go(log_dir, problem)])
            self.failed.pop(log_dir, None)
            self.kept.leavers.identities.pop(log_dir, None)  # Another disk may be mounted there.
            self.broker.notes[:] = [note for note in self.broker.notes if not is_within(note.path, log_dir)]
            self.list()

    def beat(self, now: Instant) -> None:
        """Advance the heartbeat of every log dir; one whose heartbeat cannot be written is quarantined.

        Raises:
            LogDirReplacedError: the owner lock or the path of a log dir that was quarantined until now is another one.
        """
        is_any_back = False
        for open_dir in self.quarantines.to_beat():
            try:
                with map_os_errors(open_dir.log_dir):
                    self.quarantines.require_ours(open_dir)
                    written = self.beats[open_dir.log_dir] = self.broker.beat_of(open_dir, now)
            except LogDirSuspectError as error:
                self.broker.ports.note(error)
                continue
            except LogDirReplacedError:
                raise
            except LogDirError as error:
                self.quarantines.begin(open_dir, error)
                continue
            is_any_back |= self.quarantines.end(open_dir)
            lost = heartbeat_lost(open_dir)
            if written is None and lost not in self.broker.notes:
                self.broker.notes.append(lost)
            elif written is not None and lost in self.broker.notes:
                self.broker.notes.remove(lost)
        self.note_failed_syncs()
        if is_any_back:
            self.list()

    def beat_when_due(self) -> None:
        """Advance the heartbeats, and look after log dirs that failed, a minute after the last time."""
        now_ms = clock.boottime_ms()
        if self._beaten_ms is None or now_ms - self._beaten_ms >= BEAT_MS:
            self.beat(read_instant())
            self.is_another_there = self._is_another_there() or self.is_another_there
            self._beaten_ms = now_ms

    def _is_another_there(self) -> bool:
        """Whether the path of a log dir that failed leads to another directory than a minute ago."""
        before, self._failed_at = self._failed_at, {}
        for log_dir in self.failed:
            if log_dir not in self._silent:
                try:
                    self._failed_at[log_dir] = run_apart(log_dir, _GLANCE_MS, self.kept.unreaped, identity_at, log_dir)
                except LogDirSuspectError:
                    self._silent.add(log_dir)  # Each further process might stay with it.
        return any(before.get(log_dir, now) != now for log_dir, now in self._failed_at.items())

    def keep_notes(self, before: Sequence[Problem]) -> None:
        """Forget what a request noted, but for what is so beside it: log dirs that have stopped answering.

        Args:
            before: The notes before the request.
        """
        notes = self.broker.notes
        notes[:] = dict.fromkeys([*before, *(note for note in notes if note.path in self.broker.ports.suspect)])

    def close(self) -> None:
        """Release every lock and end every worker; a second call does nothing."""
        self._stack.close()

    def list(self, places: Collection[Place] = ()) -> None:
        """Look at every log dir, and store what is there; read into these directories although they are not new."""
        if self.broker.last_look.seen:
            self.facts = self.broker.look_again(NOTHING, places)
        else:
            self.facts = self.broker.look(NOTHING)

    def glance(self, *, is_same_required: bool = True) -> Glances:
        """Glance at every log dir; raise as ``require_same``, if that is required, and as ``broker.glance``."""
        if is_same_required:
            self.broker.require_unchanged()
        found = self.kept.leavers.glance(self.broker, is_same_required=is_same_required)
        self.kept.timed(found.took_ns)
        return found

    def states(self) -> dict[str, tuple[LogDirState, Problem | None]]:
        """Return the state of every configured log dir, and why it is not ONLINE."""
        found: dict[str, tuple[LogDirState, Problem | None]] = {}
        notes = {note.path: note for note in self.broker.notes}
        problems = {one.log_dir: one.problem for one in self.facts if one.problem is not None}
        for log_dir in self.broker.named.log_dirs:
            if log_dir in self.kept.released:
                found[log_dir] = LogDirState.OFFLINE, self.kept.released[log_dir]
            elif log_dir in self.failed and log_dir not in self.broker.quarantined:
                found[log_dir] = LogDirState.OFFLINE, self.failed[log_dir]
            elif log_dir in self.broker.ports.suspect:
                found[log_dir] = LogDirState.SUSPECT, notes.get(log_dir) or problems.get(log_dir)
            elif log_dir in self.broker.quarantined:
                problem = self.broker.quarantined[log_dir]
                read_only = problem.slug == ReadOnlyDiskError.code
                found[log_dir] = LogDirState.READ_ONLY if read_only else LogDirState.QUARANTINED, problem
            elif log_dir in problems or log_dir in self.broker.missing:
                found[log_dir] = LogDirState.OFFLINE, problems.get(log_dir)
            else:
                found[log_dir] = LogDirState.ONLINE, None
        return found

    def may_renew(self) -> bool:
        """Whether a log dir might be taken back: one that was SUSPECT and has no worker left, of this or a former
        session, or one that had failed.
        """
        if self.is_resting or self.is_another_there:
            return True
        known = self.kept.released.keys() | self.failed.keys()
        suspect = [one for one in self.broker.ports.ports if one.is_suspect and one.log_dir not in known]
        self.kept.unreaped.keep(suspect)
        return bool({port.log_dir for port in suspect} - self.kept.unreaped.pids().keys())

    def require_same(self) -> None:
        """Check that configuration, owner locks and mounts are as the session began.

        Raises:
            RefusedError: the broker's configuration changed.
            LogDirReplacedError: an owner lock was replaced, or a directory was mounted, unmounted or renamed.
        """
        self.broker.require_unchanged()
        self.broker.require_owned()
        self.broker.require_in_place()


def _prove(broker: OpenBroker, failed: dict[str, Problem], *, is_first: bool) -> None:
    """Prove on every log dir what the daemon does there; quarantine those that fail until the broker is opened again.

    Raises:
        LogDirError: a log dir fails at the start of the daemon, though its disk answers and can be written.
    """
    for log_dir, error in proof.prove(broker).items():
        if is_first and not _is_its_own(error, is_first=True):
            raise error
        failed[log_dir] = broker.quarantined[log_dir] = error.problem()


def _is_its_own(error: LogDirError, *, is_first: bool) -> bool:
    """Whether a log dir is left out for an error, and the others go on."""
    if isinstance(error, ConfigError | LockHeldError):
        return False
    if is_first:
        # What is not formatted may be the mount point of a disk that is not mounted.
        left_out = LogDirOfflineError | ReadOnlyDiskError | NotFormattedError
        return isinstance(error, left_out) and not isinstance(error, NoPermissionError)
    return True


def _log_dir_of(error: LogDirError, log_dirs: tuple[str, ...], known: dict[str, Problem]) -> str | None:
    """Return the log dir that an error is about, unless it is known already."""
    for log_dir in log_dirs:
        if log_dir not in known and is_within(error.path, log_dir):
            return log_dir
    return None
