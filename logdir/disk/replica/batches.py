"""How many replicas share one sync, by how long the former ones took.

Many on a fast disk, for a sync costs about the same for all; few on a slow one, for locks are held meanwhile and a
broker's own writes wait for the same journal.

Spec: design §2 law 4 (two seconds), §3.4; baselines §3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from logdir import clock

FIRST = 128
"""To begin with: far below two seconds on any disk measured (baselines §3)."""
_SHORT = 0.4
_T = TypeVar("_T")


class Batches:
    """Sizes that follow the disk: after a batch that took little the next is twice as large, after a long one half."""

    def __init__(self, limit: int, longest_ms: int) -> None:
        """Begin small.

        Args:
            limit: Items in a batch, at most.
            longest_ms: How long a batch may take before the next is smaller.
        """
        self._limit = limit
        self._longest_ms = longest_ms
        self._size = min(limit, FIRST)

    def of(self, items: Sequence[_T]) -> Iterator[Sequence[_T]]:
        """Yield the items, in order; what is done between two yields is what is timed."""
        first = 0
        while first < len(items):
            part = items[first : first + self._size]
            first += len(part)
            began = clock.monotonic_ms()
            try:
                yield part
            finally:  # also of the last of a hold of the locks, after which nobody asks for more
                self._learn(clock.monotonic_ms() - began)

    def _learn(self, took_ms: int) -> None:
        if took_ms > self._longest_ms:
            self._size = max(1, self._size // 2)
        elif took_ms < _SHORT * self._longest_ms:
            self._size = min(self._limit, self._size * 2)
