"""What the daemon shows of itself: its state, its log dirs, what waits for an operator, what is purged next.

The thread that owns the log dirs makes a status after each look; readers get it from memory.

Spec: design §5, §6 ``status``; docs/json.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from logdir.daemon.report.failed_replicas import FailedReplicas
from logdir.daemon.report.figures import KindFigures, UndoWindow
from logdir.daemon.session import Session
from logdir.daemon.state import LogDirState
from logdir.decide.capture import CaptureRoom
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from logdir.service.report.json_form import KEY
from logdir.service.report.table import Column
from logdir.text import size, utc


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirStatus:
    """One log dir."""

    log_dir: str
    state: LogDirState
    problem: Problem | None = None
    """Why it is not ONLINE."""
    free_bytes: int | None = None
    total_bytes: int | None = None
    is_undo_off: bool = False
    """Whether its disk is so full that nothing is captured (``staged.min.free``)."""
    staged: int = 0
    """Staged replicas, those without a deadline included."""
    staged_bytes: int = 0
    """Bytes of their segments; a captured replica shares them with its broker until that removes it."""
    held: int = field(default=0, metadata={KEY: "staged_held"})
    """Staged replicas without a deadline."""
    purging: int = 0
    """Replicas whose removal has begun."""
    partial: int = 0
    """Partial captures: they can be exported, and not restored."""
    next_due_ms: int | None = None
    """Wall clock: when its next staged replica may be purged; ``None``: none has a deadline."""
    free_inodes: int | None = None
    """``None``: not known, or the file system does not count them."""
    kinds: tuple[KindFigures, ...] = field(default=(), metadata={KEY: "by_kind"})
    """What lies there, in the order of ``Kind``; files, and directories of a kind that is not known, are left out.

    Directories that came or went since it was read in full are counted; the bytes of the others are from then.
    """
    read_at_ms: int | None = None
    """Wall clock: when it was read in full the last time; ``None``: not yet."""
    is_watched: bool = True
    """Whether a watch process finds deletions at once; else only the sweep does."""


def _undo(one: LogDirStatus) -> str | None:
    """Return whether what is deleted there can be undone; ``None``: it is not ONLINE, and nothing is captured."""
    if one.state is not LogDirState.ONLINE:
        return None
    return "off: below floor" if one.is_undo_off else "on"


COLUMNS: Final[tuple[Column[LogDirStatus], ...]] = (
    Column("log dir", "log_dir"),
    Column("state", "state"),
    Column("free", lambda one: size(one.free_bytes), is_number=True),
    Column("undo", _undo),
    Column("staged", "staged", is_number=True),
    Column("bytes", lambda one: size(one.staged_bytes), is_number=True),
    Column("held", "held", is_number=True),
    Column("next purge (UTC)", lambda one: utc(one.next_due_ms)),
)
"""The table of log dirs, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStatus:
    """One of the last events."""

    at_ms: int
    event: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusResult:
    """The daemon at one instant."""

    name: str = field(metadata={KEY: "daemon"})
    """The name of its configuration file without ``.yaml``."""
    version: str
    pid: int
    state: str
    """Name of a ``DaemonState``."""
    state_number: int
    """Its number in KIP-631."""
    since_ms: int
    """Wall clock: since when it is in this state."""
    looked_at_ms: int | None
    """Wall clock of the last look at the log dirs; ``None``: not yet."""
    node_id: int | None
    cluster_id: str | None
    broker_runs: bool | None
    """``None``: no lock file can be read."""
    log_dirs: tuple[LogDirStatus, ...] = field(metadata={KEY: "items"})
    captured: int
    """Directories captured since the daemon started."""
    missed: int
    """Directories that the broker removed before they were captured, since the daemon started."""
    gaps: int
    """How often no process looked for deletions for too long, over all starts of the daemon."""
    gaps_since_ms: int
    """Wall clock: since when these are counted."""
    last_gap_from_ms: int | None
    last_gap_to_ms: int | None
    """Wall clock: beginning and end of the last of these; ``None``: there was none."""
    purged: int
    failed_replicas: FailedReplicas | None = None
    """The replicas on failed disks; ``None``: no disk has failed."""
    waiting: tuple[Problem, ...]
    """What waits for an operator."""
    queued: int
    """Requests that wait for their turn."""
    next_due_ms: int | None
    events: tuple[EventStatus, ...]
    """The newest, oldest first."""
    windows: tuple[UndoWindow, ...] = ()
    """What can be undone: those that go first, first; then held ones."""
    windows_left_out: int = 0
    """How many more there are."""
    metadata_lag: int | None = None
    """Records of the metadata log behind the last one that is known to be committed and was followed, when the log was
    read last (KIP-631, ``MetadataLag``); ``None``: it was not read yet.
    """
    config: str | None = None
    """Absolute path of its configuration file; ``None``: the log dirs were not looked at yet."""
    least_free_percent: int | None = None
    """The floor of free space (``staged.min.free``); ``None``: likewise."""

    @property
    def summary(self) -> tuple[str, ...]:
        """For people: the daemon and its broker; what it has done, and what comes next; the gaps in its looks."""
        runs = {True: "runs", False: "is stopped", None: "is not known to run"}[self.broker_runs]
        where = f"node {self.node_id} of cluster {self.cluster_id}"
        done = f"captured {self.captured}, missed {self.missed}, purged {self.purged}"
        return (
            f"{self.name}: {self.state} since {utc(self.since_ms)}; {where}; its broker {runs}",
            f"{done}; {self.queued} requests wait; next purge {utc(self.next_due_ms)}",
            self._gaps,
        )

    @property
    def _gaps(self) -> str:
        count = {0: "no gap", 1: "1 gap"}.get(self.gaps, f"{self.gaps} gaps")
        last = f", the last from {utc(self.last_gap_from_ms)} to {utc(self.last_gap_to_ms)}" if self.gaps else ""
        return f"{count} without a look for deletions since {utc(self.gaps_since_ms)}{last}"


def log_dir_status(
    log_dir: str,
    state: tuple[LogDirState, Problem | None],
    staged: Sequence[StagedReplica],
    next_due_ms: int | None,
    held: int,
    room: CaptureRoom | None,
) -> LogDirStatus:
    """Return the status of one log dir.

    Args:
        log_dir: Its path.
        state: Its state, and why it is not ONLINE.
        staged: What is staged there.
        next_due_ms: When the next of it may be purged (wall clock); ``None``: none has a deadline.
        held: How many of it have no deadline.
        room: Free space of its disk; ``None``: not known.
    """
    kinds = Counter(one.kind for one in staged)
    return LogDirStatus(
        log_dir=log_dir,
        state=state[0],
        problem=state[1],
        free_bytes=None if room is None else room.free_bytes,
        free_inodes=None if room is None or not room.total_inodes else room.free_inodes,
        total_bytes=None if room is None else room.total_bytes,
        is_undo_off=room is not None and bool(room.lacking),
        staged=kinds[Kind.STAGED],
        staged_bytes=sum(one.log_bytes or 0 for one in staged if one.kind is Kind.STAGED),
        held=held,
        purging=kinds[Kind.PURGING],
        partial=kinds[Kind.INCOMING],
        next_due_ms=next_due_ms,
    )


def event_status(event: Mapping[str, object]) -> EventStatus:
    """Return an event of the history as a line of the status."""
    rest = {key: value for key, value in event.items() if key not in ("at_ms", "event")}
    detail = " ".join(_worded(key, value) for key, value in sorted(rest.items()))
    at_ms = event["at_ms"]
    return EventStatus(at_ms=at_ms if isinstance(at_ms, int) else 0, event=str(event["event"]), detail=detail)


def _worded(key: str, value: object) -> str:
    """Return a part of an event; an instant is written for people, also one that will never come."""
    if key.endswith("_ms") and (value is None or isinstance(value, int)):
        return f"{key.removesuffix('_ms')}={utc(value)}"
    return f"{key}={value}"


def waiting_of(session: Session, log_dirs: Sequence[LogDirStatus]) -> tuple[Problem, ...]:
    """Return what waits for an operator: log dirs that are not ONLINE, and notes of the session."""
    found = [one.problem for one in log_dirs if one.problem is not None]
    return tuple(dict.fromkeys([*found, *session.broker.notes, *session.warnings]))


def blank_status(name: str, version: str) -> StatusResult:
    """Return the status of a daemon that has not looked at its log dirs yet."""
    return StatusResult(
        name=name,
        version=version,
        pid=0,
        state="",
        state_number=0,
        since_ms=0,
        looked_at_ms=None,
        node_id=None,
        cluster_id=None,
        broker_runs=None,
        log_dirs=(),
        captured=0,
        missed=0,
        gaps=0,
        gaps_since_ms=0,
        last_gap_from_ms=None,
        last_gap_to_ms=None,
        purged=0,
        waiting=(),
        queued=0,
        next_due_ms=None,
        events=(),
    )
