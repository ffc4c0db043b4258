"""The space of a disk that purges have freed, and that its file system does not report as free yet.

XFS, btrfs and ext4 may report freed space some seconds later. Whoever reads the free space before that sees a disk that
is as full as before, and purges one replica after the other although the first was enough.

What was freed counts as free from its removal on, until the reported space has risen by as much, and for a minute at
the longest. A fall of the reported space is what the broker writes: it counts at once and in full, so that growth is
relieved. One case stays: where freed space is reported and the broker writes between the same two reads, only the
difference is seen, and what was written counts as free until the minute is over. That is never more than was freed.

Not here: which replicas may go (``pressure``), what a removal has freed (``service.batch.pressure``).

Spec: design §3.3 "no further than the floor"; attack A50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from logdir.decide.capture import CaptureRoom
from logdir.observe.facts import StagedReplica

LATE_MS: Final = 60 * 1000
"""How long freed space counts as free without being reported: btrfs commits every 30 s, the others more often."""


class Freed(NamedTuple):
    """What one removal has freed and no report has shown yet."""

    size_bytes: int
    inodes: int
    at_ms: int
    """Boot time of the removal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreported:
    """One disk: its free space as last reported, and what was freed beside that."""

    room: CaptureRoom
    """As reported."""
    freed: tuple[Freed, ...] = ()
    """Oldest first; nothing that a report has shown, or that is older than a minute."""

    def read(self, room: CaptureRoom, now_ms: int) -> Unreported:
        """Take the free space that the file system reports now.

        Args:
            room: What it reports.
            now_ms: Boot time.
        """
        rose_bytes = max(0, room.free_bytes - self.room.free_bytes)
        rose_inodes = max(0, room.free_inodes - self.room.free_inodes)
        left = []
        for one in self.freed:
            of_bytes, of_inodes = min(one.size_bytes, rose_bytes), min(one.inodes, rose_inodes)
            rose_bytes, rose_inodes = rose_bytes - of_bytes, rose_inodes - of_inodes
            rest = Freed(one.size_bytes - of_bytes, one.inodes - of_inodes, one.at_ms)
            if (rest.size_bytes or rest.inodes) and now_ms - one.at_ms < LATE_MS:
                left.append(rest)
        return Unreported(room=room, freed=tuple(left))

    def plus(self, freed: Freed) -> Unreported:
        """Add what a removal has freed since the free space was read."""
        return replace(self, freed=(*self.freed, freed))

    @property
    def expected(self) -> CaptureRoom:
        """Return the free space once all is reported."""
        return replace(
            self.room,
            free_bytes=self.room.free_bytes + sum(one.size_bytes for one in self.freed),
            free_inodes=self.room.free_inodes + sum(one.inodes for one in self.freed),
        )


def read(before: Unreported | None, room: CaptureRoom, now_ms: int) -> Unreported:
    """Return the free space of a disk after a read; ``before``: after the last one, ``None``: nothing was freed."""
    return Unreported(room=room) if before is None else before.read(room, now_ms)


def shrunk_bytes(before: Sequence[StagedReplica], after: Sequence[StagedReplica]) -> int:
    """Return by how many bytes staged replicas are smaller than before, or gone.

    Args:
        before: The replicas of one log dir that were to be purged.
        after: All that is staged there now; a claimed replica has another name and the same inode.
    """
    left = {item.inode: item.log_bytes or 0 for item in after}
    return sum(max(0, (item.log_bytes or 0) - left.get(item.inode, 0)) for item in before)
