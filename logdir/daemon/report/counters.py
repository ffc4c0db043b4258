"""What the daemon counts from its start on, for its status and its metrics; all of it is in memory alone.

The thread of changes counts, and for some of it other threads; a reader gets copies, so that nothing changes under it.

Not here: the metrics (``daemon.metrics``), what is counted over all starts (``looks``).

Spec: docs/metrics.md; KIP-631, "New Metrics".
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from logdir.errors import Problem
from logdir.service.log_dirs.quarantine import is_within
from logdir.service.report.exit_status import Exit

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of a time, in seconds; one more has no bound."""
_BOUNDS_NS: Final = tuple(round(one * 1_000_000_000) for one in BUCKETS_S)


class Times(NamedTuple):
    """How often something took how long."""

    counts: tuple[int, ...]
    """One per bucket, and one for what took longer than all of them; not cumulative."""
    sum_ns: int


NO_TIMES: Final = Times((0,) * (len(BUCKETS_S) + 1), 0)


def with_time(times: Times, took_ns: int) -> Times:
    """Return times with one more; what took exactly the bound of a bucket is in it."""
    at = bisect_left(_BOUNDS_NS, took_ns)
    counts = (*times.counts[:at], times.counts[at] + 1, *times.counts[at + 1 :])
    return Times(counts, times.sum_ns + took_ns)


class Documents(NamedTuple):
    """The documents of the inbox that came to their end."""

    done: int = 0
    refused: int = 0


NO_DOCUMENTS: Final = Documents()


@dataclass(slots=True)
class Counters:
    """What the daemon has done since it started."""

    captured: int = 0
    missed: int = 0
    purged: int = 0
    purged_bytes: int = 0
    """Bytes of segments that purges removed, also of replicas that are not gone yet."""
    purged_early: int = 0
    """Replicas whose removal began before their deadline, for room on a nearly full disk."""
    documents: Documents = NO_DOCUMENTS
    _looks: dict[str, Times] = field(default_factory=dict, init=False)
    _errors: dict[tuple[str, str], int] = field(default_factory=dict, init=False)
    _requests: dict[tuple[str, Exit], int] = field(default_factory=dict, init=False)
    _sick: dict[str, str] = field(default_factory=dict, init=False)
    """By log dir that has a problem: its slug."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    """Guards the mappings: a copy of one is made while others are counted."""

    @property
    def looks(self) -> Mapping[str, Times]:
        """Return how long looks at each log dir took; one that was not looked at is left out."""
        with self._lock:
            return dict(self._looks)

    @property
    def errors(self) -> Mapping[tuple[str, str], int]:
        """Return errors by log dir and slug; the log dir is empty where an error is about none."""
        with self._lock:
            return dict(self._errors)

    @property
    def requests(self) -> Mapping[tuple[str, Exit], int]:
        """Return the requests that were answered, by use case and exit status."""
        with self._lock:
            return dict(self._requests)

    def note_looks(self, took_ns: Mapping[str, int]) -> None:
        """Count looks; ``took_ns``: how long each took, by log dir."""
        with self._lock:
            for log_dir, one in took_ns.items():
                self._looks[log_dir] = with_time(self._looks.get(log_dir, NO_TIMES), one)

    def note_error(self, problem: Problem, log_dirs: Iterable[str]) -> None:
        """Count an error, for that of the log dirs in which its path lies."""
        self._add_error(next((one for one in log_dirs if is_within(problem.path, one)), ""), problem.slug)

    def note_states(self, problems: Mapping[str, Problem | None]) -> None:
        """Count the log dirs that have a problem and had none, or one of another slug, at the last call.

        Args:
            problems: Of every configured log dir why it is not ONLINE; ``None``: it is.
        """
        now = {log_dir: problem.slug for log_dir, problem in problems.items() if problem is not None}
        for log_dir, slug in now.items():
            if self._sick.get(log_dir) != slug:
                self._add_error(log_dir, slug)
        self._sick = now

    def note_request(self, use_case: str, status: Exit) -> None:
        """Count a request that was answered; any thread may call it."""
        with self._lock:
            self._requests[use_case, status] = self._requests.get((use_case, status), 0) + 1

    def note_document(self, *, is_done: bool) -> None:
        """Count a document of the inbox that was followed, or refused."""
        done, refused = self.documents
        self.documents = Documents(done + 1, refused) if is_done else Documents(done, refused + 1)

    def _add_error(self, log_dir: str, slug: str) -> None:
        with self._lock:
            self._errors[log_dir, slug] = self._errors.get((log_dir, slug), 0) + 1
