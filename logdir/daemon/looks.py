"""When the daemon last looked for deletions, and how often it looked too late: a broker may have removed some by then.

Both are kept in files of the state directory: the last look, so that a time in which no daemon ran is known, too, and
the count of such times, so that no restart forgets one (``gaps.json``). The files are for this alone: without the first
a start knows of no gap, and without the second it counts from then on. They are written by the thread of the history,
because work never waits for the disk of the state directory.

Spec: design §5; issue "The daemon", undo for stock Kafka; attacks A17.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from logdir import clock
from logdir.errors import FormatError, Problem
from logdir.formats.own import gaps_file
from logdir.formats.own.gaps_file import Gap, GapsFile
from logdir.paths import GAPS, LAST_LOOK
from logdir.text import utc

LOG: Final = logging.getLogger("logdir.daemon")
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
    """The looks at one broker. Used by the thread of changes; others may read its fields."""

    def __init__(self, state_dir: str, write: Callable[[str, bytes], None]) -> None:
        """Read when the last daemon looked, and the gaps that were counted.

        Moves a count that cannot be read aside, so that it is not replaced.

        Args:
            state_dir: The state directory.
            write: Takes the content of the two files: the last look, and the count, which is empty if none is kept.
        """
        self._last = _read(Path(state_dir, LAST_LOOK))
        self._write = write
        self.late: Problem | None = None
        """The last gap of this daemon; ``None``: there was none."""
        since_ms = clock.now_ms() if self._last is None else self._last.wall_ms
        self.gaps = GapsFile(0, max(0, since_ms), None)
        """The gaps that are counted, those that other daemons counted among them."""
        self.unread: Problem | None = None
        """Why a count that was kept is not known; ``None``: it is, or there was none."""
        self._is_kept = True
        self._read_gaps(Path(state_dir, GAPS))
        self._kept = gaps_file.render(self.gaps)

    @property
    def last_ms(self) -> int | None:
        """Wall clock of the last look, also of a daemon before this one; ``None``: none is known."""
        last = self._last
        return None if last is None else last.wall_ms

    def note(self, server_properties: str, delete_delay_ms: int, *, is_running: bool | None) -> Problem | None:
        """Note a look of now; return the problem if it came too late.

        Args:
            server_properties: The broker's configuration, for the message.
            delete_delay_ms: How long the broker keeps a ``-delete`` directory.
            is_running: Whether the broker runs; ``None``: it is not known.
        """
        now = Look(clock.boot_id(), clock.boottime_ms(), clock.now_ms())
        last, self._last = self._last, now
        late = None if last is None else self._late(server_properties, delete_delay_ms, last, now, is_running)
        self._write(" ".join(map(str, now)) + "\n", self._kept if self._is_kept else b"")
        return late

    def _late(
        self, server_properties: str, delete_delay_ms: int, last: Look, now: Look, is_running: bool | None
    ) -> Problem | None:
        """Count the time between two looks if it was too long; return the problem."""
        if last.boot_id != now.boot_id:
            # Before this boot no broker ran; since then it was not looked at, if it runs already.
            last = Look(now.boot_id, 0, now.wall_ms - now.boottime_ms) if is_running else now
        longest = longest_ms(delete_delay_ms)
        if now.boottime_ms - last.boottime_ms <= longest:
            return None
        gap = Gap(last.boot_id, last.boottime_ms, max(0, last.wall_ms), max(0, now.wall_ms))
        before = self.gaps.last
        # A daemon that was killed had counted it, and had not written yet that it looked.
        is_known = before is not None and before[:2] == gap[:2]
        expected = f"a look for deletions every {longest // 1000} s: the broker keeps them {delete_delay_ms // 1000} s"
        found = f"none from {utc(last.wall_ms)} to {utc(now.wall_ms)} (UTC)"
        fix = "if the broker ran, what it deleted then may be gone; the daemon has to run while the broker does"
        self.late = Problem(SLUG, server_properties, expected, found, fix)
        self.gaps = self.gaps._replace(total=self.gaps.total + (0 if is_known else 1), last=gap)
        self._kept = gaps_file.render(self.gaps)
        return self.late

    def _read_gaps(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                data = file.read(gaps_file.MAX_BYTES + 1)
            self.gaps = gaps_file.parse(data, str(path))
        except FileNotFoundError:
            return
        except FormatError as error:
            self._keep_aside(path, error.problem())
        except OSError as error:
            expected = "a file that can be read"
            self._keep_aside(path, Problem("io-error", str(path), expected, error.strerror or str(error)))

    def _keep_aside(self, path: Path, problem: Problem) -> None:
        aside = f"{path}.{clock.now_ms()}"
        fix = f"gaps are counted anew from {utc(self.gaps.since_ms)} on; what lay there is kept as {aside}"
        try:
            path.rename(aside)
        except OSError as error:
            self._is_kept = False
            reason = error.strerror or str(error)
            fix = f"move it away ({reason}), and start logdird again: until then a restart forgets the gaps it counts"
        self.unread = problem._replace(fix=fix)
        LOG.warning("gaps.unread %s", self.unread.line())


def _read(path: Path) -> Look | None:
    """Return the last look; ``None``: none is known."""
    try:
        with path.open("rb") as file:
            boot_id, boottime, wall = file.read(_MOST_BYTES).decode("ascii").split()
        return Look(boot_id, int(boottime), int(wall))
    except (OSError, ValueError):
        return None
