"""What the daemon asks of a timer; the timer itself is given to it from outside.

Spec: style §4.2; design §5.
"""

from __future__ import annotations

from typing import Protocol


class Timer(Protocol):
    """Calls back when a job's time has come (``scheduler.timer.Timer``)."""

    def start(self) -> None:
        """Start it."""

    def set_sweep(self, configured_ms: int, delete_delay_ms: int | None) -> None:
        """Sweep so often, or more often where a broker removes a ``-delete`` directory after a short delay."""

    def set_next_due(self, wall_ms: int | None) -> None:
        """Call back once at an instant, which may have passed; ``None``: not any more."""

    def follow_wall_clock(self) -> None:
        """Set every job again if the wall clock was set."""

    def is_alive(self) -> bool:
        """Whether it works."""

    def stop(self) -> None:
        """Stop it."""
