"""The status of this instant: that of the last look, with what changes between two looks.

Spec: design §5; docs/json.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from logdir.daemon.report.status import LogDirStatus, StatusResult, event_status
from logdir.daemon.state import DaemonState
from logdir.daemon.watches import shown
from logdir.errors import Problem
from logdir.formats.own.gaps_file import GapsFile


def status_now(
    looked: StatusResult,
    state: DaemonState,
    *,
    since_ms: int,
    queued: int,
    gaps: GapsFile,
    waiting: Iterable[Problem | None],
    events: Iterable[Mapping[str, object]],
    unwatched: Mapping[str, str],
    sweep_ms: int,
) -> StatusResult:
    """Return the status of now.

    Args:
        looked: The status of the last look.
        state: The state of the daemon.
        since_ms: Since when it is in it (wall clock).
        queued: Requests that wait for their turn.
        gaps: The gaps between looks.
        waiting: What waits for an operator beside what the look has found; it comes first.
        events: The newest events, oldest first.
        unwatched: Log dirs without a watch, and why.
        sweep_ms: Longest time between two sweeps.
    """
    log_dirs: tuple[LogDirStatus, ...] = looked.log_dirs
    not_watched: tuple[Problem, ...] = ()
    if unwatched:
        log_dirs, not_watched = shown(log_dirs, unwatched, sweep_ms)
    return replace(
        looked,
        pid=os.getpid(),
        state=state.name,
        state_number=int(state),
        since_ms=since_ms,
        gaps=gaps.total,
        gaps_since_ms=gaps.since_ms,
        last_gap_from_ms=None if gaps.last is None else gaps.last.from_ms,
        last_gap_to_ms=None if gaps.last is None else gaps.last.to_ms,
        queued=queued,
        waiting=tuple(one for one in (*waiting, *not_watched, *looked.waiting) if one is not None),
        events=tuple(map(event_status, events)),
        log_dirs=log_dirs,
    )
