"""A look at the log dirs between two pieces of work: free space, heartbeats, and the status that follows from them.

Used by the thread of changes alone.

Not here: what is staged (``session``), what is done about it (``work``).

Spec: design §3.3, §5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from logdir.clock import Instant
from logdir.daemon.report.status import LogDirStatus, log_dir_status
from logdir.daemon.session import Session
from logdir.daemon.state import LogDirState
from logdir.decide.capture import CaptureRoom
from logdir.decide.staged.deadline import Due, Held, NotYet, due
from logdir.disk.kernel.calls import Space
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirError, LogDirSuspectError
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from logdir.service.capture import room_of
from logdir.service.log_dirs.glances import Glances


class Staged(NamedTuple):
    """What is staged in one log dir, and until when."""

    items: tuple[StagedReplica, ...]
    """Claimed replicas and unfinished copies among them."""
    deadlines: tuple[int | None, ...]
    """When each that is staged (``Kind.STAGED``) may be purged, in their order, on the boot-time clock; past instants,
    too. ``None``: it is held.
    """

    @property
    def timed(self) -> Iterator[tuple[StagedReplica, int | None]]:
        """Return each that is staged, and its deadline."""
        return zip((one for one in self.items if one.kind is Kind.STAGED), self.deadlines, strict=True)


class Look(NamedTuple):
    """The log dirs at one instant."""

    now: Instant
    log_dirs: tuple[LogDirStatus, ...]
    """Every configured log dir, in the order of the configuration."""
    rooms: dict[str, CaptureRoom]
    """Free space of the log dirs that answer."""
    deadlines: tuple[int, ...]
    """When each staged replica on an ONLINE log dir may be purged, on the boot-time clock; past instants, too."""
    staged: dict[str, Staged]
    """Of every configured log dir, in the order of the configuration."""


def look_at(session: Session, glances: Glances | None = None) -> Look:
    """Look at every configured log dir; ``glances``: of just now, ``None``: their free space is asked for."""
    now, states, beats, rooms = read_instant(), session.states(), _beats(session), _rooms(session, glances)
    found_staged = {one.log_dir: one.staged for one in session.facts}
    staged: dict[str, Staged] = {}
    log_dirs: list[LogDirStatus] = []
    deadlines: list[int] = []
    for log_dir in session.broker.named.log_dirs:
        items = found_staged.get(log_dir, ())
        of_all = _deadlines(items, beats.get(log_dir), now)
        staged[log_dir] = Staged(items, of_all)
        counting = [one for one in of_all if one is not None]
        held = len(of_all) - len(counting)
        first = min(counting, default=None)
        next_due_ms = None if first is None else now.wall_ms + max(0, first - now.boottime_ms)
        found = log_dir_status(log_dir, states[log_dir], items, next_due_ms, held, rooms.get(log_dir))
        log_dirs.append(found)
        if found.state is LogDirState.ONLINE:
            deadlines += counting
    return Look(now, tuple(log_dirs), rooms, tuple(deadlines), staged)


def _deadlines(staged: Sequence[StagedReplica], beat: Heartbeat | None, now: Instant) -> tuple[int | None, ...]:
    """Return the deadlines of staged replicas on the boot-time clock, as ``Staged`` has them."""
    found: list[int | None] = []
    for item in staged:
        if item.kind is not Kind.STAGED:
            continue
        marker = item.marker
        match Held(why="no marker") if marker is None else due(marker, beat, now):
            case NotYet(remaining_ms=remaining_ms):
                found.append(now.boottime_ms + remaining_ms)
            case Due(elapsed_ms=elapsed_ms) if marker is not None and marker.delay_ms is not None:
                found.append(now.boottime_ms - (elapsed_ms - marker.delay_ms))
            case _:
                found.append(None)
    return tuple(found)


def _beats(session: Session) -> dict[str, Heartbeat | None]:
    """Return the heartbeats: as written last, or, where nothing may be written, as read."""
    found = {}
    for open_dir in session.broker.open_dirs:
        if open_dir.log_dir in session.beats and open_dir.log_dir not in session.broker.quarantined:
            found[open_dir.log_dir] = session.beats[open_dir.log_dir]
            continue
        try:
            found[open_dir.log_dir] = session.broker.heartbeat_of(open_dir)
        except (LogDirError, OSError):
            continue
    return found


def _rooms(session: Session, glances: Glances | None) -> dict[str, CaptureRoom]:
    found = {}
    for open_dir in session.broker.open_dirs:
        space = _space(open_dir) if glances is None else glances.space_of(open_dir.log_dir)
        if space is not None:
            found[open_dir.log_dir] = room_of(space, session.config.least_free_percent)
    return found


def _space(open_dir: OpenLogDir) -> Space | None:
    try:
        return open_dir.top.space()
    except (LogDirSuspectError, OSError):
        return None
