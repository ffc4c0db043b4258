"""The clocks; no other module reads one, so that what decides can be given any instant."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the wall clock in milliseconds since the epoch (UTC)."""
    return time.time_ns() // 1_000_000
