"""Statuses for the tests of the status page: any number of log dirs, windows and events, and hostile names.

The figures fit together, and depend on the arguments alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from logdir.daemon.report.failed_replicas import FailedReplicas, FailedTopic
from logdir.daemon.report.figures import KindFigures, UndoWindow
from logdir.daemon.report.status import EventStatus, LogDirStatus, StatusResult, blank_status
from logdir.daemon.state import LogDirState
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.reasons import Reason

NOW_MS = 1_790_000_000_000
HOUR_MS = 60 * 60 * 1000
GIB = 1024**3
CONFIG = "/etc/logdird/b1.yaml"
HOSTILE = (
    "<script>document.title='owned'</script>",
    "</style><script>document.title='owned'</script>",
    "<!--<script>",
    '"><img src=http://127.0.0.1:9/x onerror=alert(1)>',
    "a&lt;b&amp;",
    "line\nbreak\u202egnp.exe\u0000",
    "/d\udcff/$style",
)
STATES = tuple(LogDirState)


def topic_id(number: int) -> Any:
    """Return an id; no two numbers have the same."""
    return TopicId((0x5A << 120 | number + 1).to_bytes(16, "big"))


def problem(number: int, word: str = "broken") -> Problem:
    return Problem(
        f"slug-{number}", f"/data/{word}-{number}", f"a {word} thing", f"{word} bytes", f"mend {word} {number}"
    )


def log_dir(number: int, state: LogDirState = LogDirState.ONLINE) -> LogDirStatus:
    """Return a log dir with something of every kind."""
    total = (4 + number) * 1024 * GIB
    kinds = tuple(
        KindFigures(kind=kind, entries=10 * (place + 1) + number, log_bytes=(20 - place) * 7 * GIB)
        for place, kind in enumerate(Kind)
    )
    return LogDirStatus(
        log_dir=f"/var/lib/kafka/data-{number}",
        state=state,
        problem=None if state is LogDirState.ONLINE else problem(number),
        free_bytes=total // (3 + number % 4),
        total_bytes=total,
        is_undo_off=number % 5 == 4,
        staged=30 + number,
        staged_bytes=(12 - number % 12) * GIB,
        held=number % 3,
        purging=number % 2,
        partial=number % 4,
        next_due_ms=NOW_MS + number * HOUR_MS,
        free_inodes=5_000_000 + number,
        kinds=kinds,
        read_at_ms=NOW_MS - HOUR_MS,
        is_watched=number % 6 != 5,
    )


def window(number: int, count: int, log_dirs: int) -> UndoWindow:
    """Return a window: the first is due, the last tenth is held, those between end one after the other."""
    is_held = number >= count - count // 10
    reasons = (*Reason, None)
    return UndoWindow(
        topic=f"payments.topic-{number:05}",
        topic_id=topic_id(number),
        reason=reasons[number % len(reasons)],
        replicas=1 + number % 24,
        log_bytes=(number * 7919 % 1000) * GIB // 100,
        log_dirs=tuple(f"/var/lib/kafka/data-{place}" for place in range(number % max(1, log_dirs) + 1)),
        staged_at_ms=NOW_MS - 4 * HOUR_MS + number * 1000,
        due_ms=None if is_held else NOW_MS + number * HOUR_MS // 4,
    )


def sample(disks: int = 3, windows: int = 12, events: int = 6, **changes: Any) -> StatusResult:
    """Return the status of a daemon that runs.

    Args:
        disks: How many log dirs it has; each state comes in turn.
        windows: How many windows it shows.
        events: How many events.
        changes: Other values of its fields.
    """
    log_dirs = tuple(log_dir(number, STATES[number % len(STATES)]) for number in range(disks))
    found = replace(
        blank_status("b1", "0.3.0"),
        pid=4711,
        state="RUNNING",
        state_number=3,
        since_ms=NOW_MS - 50 * HOUR_MS,
        looked_at_ms=NOW_MS - 2000,
        node_id=1,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        broker_runs=True,
        log_dirs=log_dirs,
        captured=1234,
        missed=2,
        gaps=3,
        gaps_since_ms=NOW_MS - 500 * HOUR_MS,
        last_gap_from_ms=NOW_MS - 60 * HOUR_MS,
        last_gap_to_ms=NOW_MS - 59 * HOUR_MS,
        purged=987,
        failed_replicas=FailedReplicas(1, (FailedTopic(topic_id(7), (0, 1, 2, 5)),)),
        waiting=tuple(problem(number) for number in range(3)),
        queued=1,
        next_due_ms=NOW_MS + HOUR_MS,
        events=tuple(
            EventStatus(at_ms=NOW_MS - (events - number) * 60_000, event=f"event-{number}", detail=f"path=/d/{number}")
            for number in range(events)
        ),
        windows=tuple(window(number, windows, disks) for number in range(windows)),
        metadata_lag=17,
        config=CONFIG,
        least_free_percent=10,
    )
    return replace(found, **changes)


def hostile() -> StatusResult:
    """Return a status in which every text that comes from outside is hostile."""
    names = HOSTILE
    bad = tuple(Problem("config-error", name, name, name, name) for name in names)
    return replace(
        sample(),
        name=names[0],
        version=names[1],
        cluster_id=names[2],
        config=f"/etc/{names[6]}/{names[3]}.yaml",
        log_dirs=tuple(
            replace(log_dir(number, LogDirState.OFFLINE), log_dir=f"/{name}", problem=bad[number])
            for number, name in enumerate(names)
        ),
        waiting=bad,
        events=tuple(EventStatus(at_ms=NOW_MS, event=name, detail=name) for name in names),
        windows=tuple(
            replace(window(number, 7, 1), topic=name, topic_id=None, log_dirs=(f"/{name}", "/elsewhere"))
            for number, name in enumerate(names)
        ),
    )


SHAPES: dict[str, StatusResult] = {
    "starting": replace(blank_status("b1", "0.3.0"), state="STARTING", state_number=1, since_ms=NOW_MS - 700, pid=4711),
    "quiet": sample(
        windows=0, events=0, waiting=(), gaps=0, failed_replicas=None, log_dirs=(log_dir(0),), next_due_ms=None
    ),
    "usual": sample(),
    "large": sample(disks=12, windows=500, events=20, windows_left_out=4321),
    "hostile": hostile(),
}
"""A status of every kind, by its name."""
