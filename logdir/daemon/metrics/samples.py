"""The values of every metric at one instant, from memory: the status of the last look, and what is counted.

Nothing here waits for a disk, or for the thread of changes. A value that is not known is left out, and never 0.

Not here: the text format (``exposition``), names and types (``families``).

Spec: docs/metrics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple, Protocol

from logdir.daemon.config import DaemonConfig
from logdir.daemon.looks import Looks
from logdir.daemon.metrics import families as of
from logdir.daemon.metrics.families import Family
from logdir.daemon.report.counters import BUCKETS_S, Counters, Times
from logdir.daemon.report.failed_replicas import FailedReplicas
from logdir.daemon.report.history import History
from logdir.daemon.report.status import LogDirStatus, StatusResult
from logdir.daemon.state import LogDirState
from logdir.errors import Problem, printable


class Measured(Protocol):
    """The part of the daemon that is measured."""

    config: DaemonConfig
    version: str
    counters: Counters
    history: History
    looks: Looks
    reload_problems: tuple[Problem, ...]

    def status(self) -> StatusResult:
        """Return the status of now, from memory."""


class Sample(NamedTuple):
    """One value of a metric that is no histogram."""

    family: Family
    labels: tuple[str, ...]
    """Values of the labels of the family, in their order; each can be printed."""
    value: float


class Distribution(NamedTuple):
    """One value of a histogram."""

    family: Family
    labels: tuple[str, ...]
    buckets: tuple[tuple[float, int], ...]
    """Upper bound and how many there are up to it; the last bound is infinite."""
    sum_s: float


def samples_of(daemon: Measured) -> Iterator[Sample | Distribution]:
    """Yield every value of now, from memory."""
    status, counters = daemon.status(), daemon.counters
    yield from _of_daemon(status)
    for one in status.log_dirs:
        yield from _of_log_dir(one)
    yield from _counted(counters)
    yield Sample(of.GAPS, (), status.gaps)
    yield from _instant(of.LAST_GAP_END, (), status.last_gap_to_ms)
    for log_dir, times in sorted(counters.looks.items()):
        yield distribution_of((_label(log_dir),), times)
    yield from _instant(of.LAST_LOOK, (), daemon.looks.last_ms)
    for slug, count in sorted(Counter(problem.slug for problem in status.waiting).items()):
        yield Sample(of.WAITING, (_label(slug),), count)
    yield Sample(of.FAILED_REPLICAS, (), _count_of(status.failed_replicas))
    yield Sample(of.REQUESTS_QUEUED, (), status.queued)
    yield Sample(of.HISTORY_DROPPED, (), daemon.history.dropped)
    yield Sample(of.RELOAD_FAILED, (), bool(daemon.reload_problems))


def _of_daemon(status: StatusResult) -> Iterator[Sample]:
    node_id = "" if status.node_id is None else str(status.node_id)
    names = status.name, status.version, node_id, status.cluster_id or ""
    yield Sample(of.INFO, tuple(map(_label, names)), 1)
    yield Sample(of.BROKER_STATE, (), status.state_number)
    yield from _instant(of.STATE_SINCE, (), status.since_ms)
    if status.broker_runs is not None:
        yield Sample(of.BROKER_RUNNING, (), status.broker_runs)
    if status.metadata_lag is not None:
        yield Sample(of.METADATA_LAG, (), status.metadata_lag)
    if status.looked_at_ms is not None:
        yield Sample(of.OFFLINE, (), sum(one.state is not LogDirState.ONLINE for one in status.log_dirs))


def _of_log_dir(one: LogDirStatus) -> Iterator[Sample]:
    log_dir = (_label(one.log_dir),)
    for state in LogDirState:
        yield Sample(of.LOG_DIR_STATE, (*log_dir, state.value), one.state is state)
    known = (of.FREE_BYTES, one.free_bytes), (of.SIZE_BYTES, one.total_bytes), (of.FREE_INODES, one.free_inodes)
    for family, value in known:
        if value is not None:
            yield Sample(family, log_dir, value)
    for figures in one.kinds:
        yield Sample(of.LOG_DIR_BYTES, (*log_dir, figures.kind.value), figures.log_bytes)
        yield Sample(of.LOG_DIR_ENTRIES, (*log_dir, figures.kind.value), figures.entries)
    yield from _instant(of.READ_AT, log_dir, one.read_at_ms)
    yield Sample(of.WATCHED, log_dir, one.is_watched)
    yield Sample(of.UNDO_OFF, log_dir, one.is_undo_off)
    yield Sample(of.STAGED, log_dir, one.staged)
    yield Sample(of.STAGED_BYTES, log_dir, one.staged_bytes)
    yield Sample(of.HELD, log_dir, one.held)
    yield Sample(of.PURGING, log_dir, one.purging)
    yield Sample(of.PARTIAL, log_dir, one.partial)
    yield from _instant(of.NEXT_PURGE, log_dir, one.next_due_ms)


def _counted(counters: Counters) -> Iterator[Sample]:
    yield Sample(of.CAPTURED, (), counters.captured)
    yield Sample(of.MISSED, (), counters.missed)
    yield Sample(of.PURGED, (), counters.purged)
    yield Sample(of.PURGED_BYTES, (), counters.purged_bytes)
    yield Sample(of.PURGED_EARLY, (), counters.purged_early)
    for (log_dir, slug), count in sorted(counters.errors.items()):
        yield Sample(of.ERRORS, (_label(log_dir), _label(slug)), count)
    for (use_case, status), count in sorted(counters.requests.items()):
        yield Sample(of.REQUESTS, (_label(use_case), str(int(status))), count)
    for outcome, count in zip(counters.documents._fields, counters.documents, strict=True):
        yield Sample(of.DOCUMENTS, (outcome,), count)


def distribution_of(labels: tuple[str, ...], times: Times) -> Distribution:
    """Return the histogram of looks at one log dir."""
    bounds = (*BUCKETS_S, float("inf"))
    return Distribution(
        of.LOOK_SECONDS, labels, tuple(zip(bounds, accumulate(times.counts), strict=True)), times.sum_ns / 1e9
    )


def _instant(family: Family, labels: tuple[str, ...], wall_ms: int | None) -> Iterable[Sample]:
    return () if wall_ms is None else (Sample(family, labels, wall_ms / 1000),)


def _count_of(failed: FailedReplicas | None) -> int:
    return 0 if failed is None else sum(len(topic.partitions) for topic in failed.topics)


def _label(text: str) -> str:
    """Return a text as the value of a label: on one line, and without the half characters that UTF-8 cannot hold."""
    return printable(text)
