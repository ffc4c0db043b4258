"""Rate limit of a purge, in bytes and files per second, so that other writes on the disk need not wait.

Spec: design §3.3 "Purge", §10; reliability §2.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from logdir import clock

BYTES_PER_SECOND = 256 << 20
FILES_PER_SECOND = 500
AT_ONCE = 2
"""Parallel removals if there is no rate limit: half the time on ext4, three quarters on XFS; more threads gain nothing.
"""
_LONGEST_S = 1.0


class RateLimiter:
    """A throttle that waits until the next step may be made."""

    def __init__(
        self,
        bytes_per_second: int = BYTES_PER_SECOND,
        files_per_second: int = FILES_PER_SECOND,
        *,
        clock_ms: Callable[[], int] = clock.monotonic_ms,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Start the limit now.

        Args:
            bytes_per_second: Limit; 0: no limit.
            files_per_second: Limit; 0: no limit.
            clock_ms: A monotonic clock, milliseconds.
            sleep: Sleeps for a number of seconds.
        """
        self._bytes, self._files = bytes_per_second, files_per_second
        self._clock, self._sleep = clock_ms, sleep
        self._next_ms = float(clock_ms())

    @property
    def _waits(self) -> bool:
        return bool(self._bytes or self._files)

    @property
    def at_once(self) -> int:
        """How many removals may run at a time: several only if there is no limit."""
        return 1 if self._waits else AT_ONCE

    def __call__(self, freed_bytes: int, files: int) -> None:
        """Wait until the time that this step may take has passed."""
        if not self._waits:
            return
        costs = [1000 * freed_bytes / self._bytes] if self._bytes else []
        costs += [1000 * files / self._files] if self._files else []
        now = self._clock()
        # Unused time is not saved up: the limit exists to prevent bursts.
        self._next_ms = max(self._next_ms, now) + max(costs, default=0.0)
        while (left_s := (self._next_ms - now) / 1000) > 0:
            self._sleep(min(left_s, _LONGEST_S))
            now = self._clock()
