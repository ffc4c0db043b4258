"""How fast a purge may go: so many bytes and files a second, so that a neighbour's writes need not wait.

Spec: design §3.3 "Purge", §10; reliability §2.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from logdir import clock

BYTES_PER_SECOND = 256 << 20
FILES_PER_SECOND = 500
AT_ONCE = 2
"""Removals side by side where nothing waits: half the time on ext4, three quarters on XFS; more gain nothing."""
_LONGEST_S = 1.0


class RateLimiter:
    """Told of every step; waits until the next may be made."""

    def __init__(
        self,
        bytes_per_second: int = BYTES_PER_SECOND,
        files_per_second: int = FILES_PER_SECOND,
        *,
        clock_ms: Callable[[], int] = clock.monotonic_ms,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin now.

        Args:
            bytes_per_second: 0: as fast as it goes.
            files_per_second: Likewise.
            clock_ms: Milliseconds.
            sleep: Told seconds.
        """
        self._bytes, self._files = bytes_per_second, files_per_second
        self._clock, self._sleep = clock_ms, sleep
        self._next_ms = float(clock_ms())

    @property
    def _waits(self) -> bool:
        return bool(self._bytes or self._files)

    @property
    def at_once(self) -> int:
        """How many removals may be under way: it is called from several threads only where it never waits."""
        return 1 if self._waits else AT_ONCE

    def __call__(self, freed_bytes: int, files: int) -> None:
        """Wait for as long as this step has to take."""
        if not self._waits:
            return
        costs = [1000 * freed_bytes / self._bytes] if self._bytes else []
        costs += [1000 * files / self._files] if self._files else []
        now = self._clock()
        # What was not used before is not saved up: a burst is what this is against.
        self._next_ms = max(self._next_ms, now) + max(costs, default=0.0)
        while (left_s := (self._next_ms - now) / 1000) > 0:
            self._sleep(min(left_s, _LONGEST_S))
            now = self._clock()
