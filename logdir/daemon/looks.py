"""When the daemon last looked for deletions, and how often it looked too late: a broker may have removed some by then.

The last look is kept in a file of the state directory, so that a time in which no daemon ran is known, too. The file is
for this alone: without it a start knows of no gap. It is written by the thread of the history, because work never waits
for the disk of the state directory.

Spec: design §5; issue "The daemon", undo for stock Kafka; attacks A17.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from logdir import clock
from logdir.errors import Problem
from logdir.paths import LAST_LOOK
from logdir.text import utc

SLUG: Final = "look-too-late"
_RESERVE_MS: Final = 10 * 1000
"""How long before the broker removes a directory a look must have come, to capture it in time."""
_MOST_BYTES: Final = 256


class Look(NamedTuple):
    """One look, on the clocks of the host."""

    boot_id: str
    boottime_ms: int
    wall_ms: int


def longest_ms(delete_delay_ms: int) -> int:
    """Return the longest time between two looks that misses no deletion, by the broker's delete delay."""
    return max(delete_delay_ms - _RESERVE_MS, delete_delay_ms // 2)


class Looks:
    """The looks of one daemon. Used by the thread of changes."""

    def __init__(self, state_dir: str, write: Callable[[str], None]) -> None:
        """Read when the last daemon looked.

        Args:
            state_dir: The state directory.
            write: Takes the content of the file to write.
        """
        self._last = _read(Path(state_dir, LAST_LOOK))
        self._write = write
        self.gaps = 0
        """How often there was too long a time between two looks."""
        self.problem: Problem | None = None
        """The last of these; ``None``: there was none."""

    def note(self, server_properties: str, delete_delay_ms: int, *, is_running: bool | None) -> Problem | None:
        """Note a look of now; return the problem if it came too late.

        Args:
            server_properties: The broker's configuration, for the message.
            delete_delay_ms: How long the broker keeps a ``-delete`` directory.
            is_running: Whether the broker runs; ``None``: it is not known.
        """
        now = Look(clock.boot_id(), clock.boottime_ms(), clock.now_ms())
        last, self._last = self._last, now
        self._write(" ".join(map(str, now)) + "\n")
        if last is None:
            return None
        if last.boot_id != now.boot_id:
            # Before this boot no broker ran; since then it was not looked at, if it runs already.
            last = Look(now.boot_id, 0, now.wall_ms - now.boottime_ms) if is_running else now
        longest = longest_ms(delete_delay_ms)
        if now.boottime_ms - last.boottime_ms <= longest:
            return None
        self.gaps += 1
        expected = f"a look for deletions every {longest // 1000} s: the broker keeps them {delete_delay_ms // 1000} s"
        found = f"none from {utc(last.wall_ms)} to {utc(now.wall_ms)} (UTC)"
        fix = "if the broker ran, what it deleted then may be gone; the daemon has to run while the broker does"
        self.problem = Problem(SLUG, server_properties, expected, found, fix)
        return self.problem


def _read(path: Path) -> Look | None:
    """Return the last look; ``None``: none is known."""
    try:
        with path.open("rb") as file:
            boot_id, boottime, wall = file.read(_MOST_BYTES).decode("ascii").split()
        return Look(boot_id, int(boottime), int(wall))
    except (OSError, ValueError):
        return None
