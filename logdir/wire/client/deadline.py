"""The one deadline of a call to a cluster: connections, authentication, the request and its answer.

Spec: design §5, every call has a deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from logdir.clock import monotonic_ms


class Deadline:
    """An instant after which nothing is waited for any more."""

    __slots__ = ("_end_ms", "_now", "timeout_ms")

    def __init__(self, timeout_ms: int, now: Callable[[], int] = monotonic_ms) -> None:
        """Start the time.

        Args:
            timeout_ms: Time for the whole call, milliseconds.
            now: Monotonic milliseconds.
        """
        self.timeout_ms: Final = timeout_ms
        self._now = now
        self._end_ms = now() + timeout_ms

    def left_s(self, most_ms: int | None = None) -> float:
        """Return the seconds that are left, at most so many milliseconds.

        Raises:
            TimeoutError: no time is left.
        """
        left_ms = self._end_ms - self._now()
        if left_ms <= 0:
            raise TimeoutError
        return (left_ms if most_ms is None else min(left_ms, most_ms)) / 1000

    def part(self, count: int) -> Deadline:
        """Return a deadline after one of ``count`` equal parts of what is left, at least one millisecond from now."""
        left_ms = max(0, self._end_ms - self._now())
        return Deadline(max(1, left_ms // count), self._now)
