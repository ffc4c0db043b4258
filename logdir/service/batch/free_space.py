"""The free space of the log dirs of a broker, with what purges have freed and no file system reports yet.

Kept by a process that purges unasked, from one purge to the next: a look that comes milliseconds after a removal does
not show yet what it freed. A process that has just started knows of no removal.

Not here: how long what was freed counts (``decide.staged.unreported``).

Spec: design §3.3 "no further than the floor"; attack A50.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from logdir import clock
from logdir.decide.capture import CaptureRoom
from logdir.decide.staged import unreported
from logdir.decide.staged.unreported import Freed, Unreported, shrunk_bytes
from logdir.errors import LogDirError
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.service.capture import room_of
from logdir.service.log_dirs.last_look import Place
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors


@dataclass(slots=True)
class FreeSpace:
    """Free space by file system: what is freed in one log dir is free for the others on it. A log dir that was never
    read is missing.
    """

    of: dict[str | int, Unreported] = field(default_factory=dict)
    """By ``f_fsid``; by log dir where that is not known."""
    _file_systems: dict[str, str | int] = field(default_factory=dict)
    """The key of each log dir."""

    def take(self, rooms: Mapping[str, CaptureRoom]) -> dict[str, CaptureRoom]:
        """Take free space that was just read; return what is expected to be free, by log dir."""
        now_ms = clock.boottime_ms()
        for log_dir, room in rooms.items():
            key = self._file_systems[log_dir] = room.fs_id or log_dir
            self.of[key] = unreported.read(self.of.get(key), room, now_ms)
        return {log_dir: self.of[self._file_systems[log_dir]].expected for log_dir in rooms}

    def read(self, broker: OpenBroker, log_dir: str) -> CaptureRoom | None:
        """Read the free space of a log dir; return what is expected to be free, ``None``: it does not answer."""
        room = reported(broker, log_dir)
        return None if room is None else self.take({log_dir: room})[log_dir]

    def add(self, log_dir: str, size_bytes: int, inodes: int = 0) -> None:
        """Add what was freed since the last read; nothing is expected of a log dir that was never read."""
        key = self._file_systems.get(log_dir)
        if key is not None and (size_bytes or inodes):
            self.of[key] = self.of[key].plus(Freed(size_bytes, inodes, clock.boottime_ms()))

    def add_shrunk(self, before: Sequence[LogDirFacts], after: Sequence[LogDirFacts], places: Iterable[Place]) -> None:
        """Add by how much replicas are smaller than before, or gone.

        Args:
            before: Facts of every log dir from before a purge.
            after: Facts of every log dir from after it.
            places: The replicas that it purged, as they lay before it.
        """
        chosen = frozenset(places)
        left = {one.log_dir: one for one in after if one.problem is None}
        for one in before:
            purged: list[StagedReplica] = [item for item in one.staged if (one.log_dir, item.path) in chosen]
            if purged and one.log_dir in left:
                self.add(one.log_dir, shrunk_bytes(purged, left[one.log_dir].staged))


def reported(broker: OpenBroker, log_dir: str) -> CaptureRoom | None:
    """Return the free space that the file system of a log dir reports; ``None``: it does not answer."""
    try:
        with map_os_errors(log_dir):
            space = broker.site_of(log_dir).top.space()
    except (KeyError, LogDirError):
        return None
    return room_of(space, broker.request.least_free_percent)
