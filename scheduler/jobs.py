"""The three jobs of one node, and how often each runs.

- ``sweep``: finds ``-delete`` and ``-stray`` directories whose event was missed.
- ``next-due``: runs once, when the earliest deadline passes.
- ``rescan``: reads every log dir in full, and purges what is due.

Spec: style §4.2; libraries §2; kafka-behaviour §3.2.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

SWEEP_MS: Final = 10 * 1000
"""Default time between two sweeps: a broker removes a ``-delete`` directory after 60 s."""
LEAST_SWEEP_MS: Final = 500
RESCAN_MS: Final = 60 * 60 * 1000
_DELETE_DELAY_MS: Final = 60 * 1000
_SWEEPS_IN_DELAY = 4
"""How many sweeps see a ``-delete`` directory before its broker removes it."""


class Job(Enum):
    """A job of the timer; its value is its id."""

    SWEEP = "sweep"
    NEXT_DUE = "next-due"
    RESCAN = "rescan"


def sweep_interval_ms(configured_ms: int, delete_delay_ms: int | None) -> int:
    """Return the time between two sweeps: never so long that a directory may come and go between two of them.

    Args:
        configured_ms: ``sweep.interval.ms``.
        delete_delay_ms: The broker's ``log.segment.delete.delay.ms``; ``None``: not known, Kafka's default holds.
    """
    delay_ms = _DELETE_DELAY_MS if delete_delay_ms is None else delete_delay_ms
    return max(LEAST_SWEEP_MS, min(configured_ms, delay_ms // _SWEEPS_IN_DELAY))
