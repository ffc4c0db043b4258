"""Batch sizes: how many replicas share one sync, adapted to the time the previous batches took.

Many on a fast disk, because a sync costs about the same for any number; few on a slow disk, because locks are held
meanwhile and a broker's own writes wait for the same journal.

Spec: design §2 law 4 (two seconds), §3.4; baselines §3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from logdir import clock

FIRST = 128
"""Size of the first batch: far below two seconds on any disk measured (baselines §3)."""
_SHORT = 0.4
_T = TypeVar("_T")


class Batches:
    """Batch sizes that adapt to the disk: doubled after a fast batch, halved after a slow one."""

    def __init__(self, limit: int, longest_ms: int) -> None:
        """Start with a small batch.

        Args:
            limit: Largest number of items in a batch.
            longest_ms: A batch that takes longer makes the next one smaller.
        """
        self._limit = limit
        self._longest_ms = longest_ms
        self._size = min(limit, FIRST)

    def of(self, items: Sequence[_T]) -> Iterator[Sequence[_T]]:
        """Yield the items in batches, in order; the time between two yields counts as the time of a batch."""
        first = 0
        while first < len(items):
            part = items[first : first + self._size]
            first += len(part)
            began = clock.monotonic_ms()
            try:
                yield part
            finally:  # Also for the last batch of a lock hold, after which the caller asks for no more.
                self._learn(clock.monotonic_ms() - began)

    def _learn(self, took_ms: int) -> None:
        if took_ms > self._longest_ms:
            self._size = max(1, self._size // 2)
        elif took_ms < _SHORT * self._longest_ms:
            self._size = min(self._limit, self._size * 2)
