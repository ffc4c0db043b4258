"""Log start offsets seen before a broker took them out of its checkpoint file, which it does as it deletes a replica.

At each look the file is read first, and the ``-delete`` directories are listed after it. A directory that was not there
at one look was live when the file was read for that look, so the entry was its own. Where the look is older than the
broker's delete delay, or two directories have been one partition, the entry may be another topic's of the same name: it
is not used.

Spec: kafka-behaviour §3.2, §10.5; attacks A17.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from logdir import clock
from logdir.names import DirForm, parse_partition_dir, render_partition_dir
from logdir.service.log_dirs.glances import Glances
from logdir.service.log_dirs.last_look import Place

DELETE_DELAY_MS: Final = 60 * 1000
"""Kafka's default of ``log.segment.delete.delay.ms``."""


class _Read(NamedTuple):
    """What was read of one log dir."""

    stamp: str
    offsets: Mapping[str, int]
    at_ms: int
    """``CLOCK_BOOTTIME``."""


@dataclass(slots=True)
class SeenStarts:
    """What was seen so far, of all log dirs of a broker."""

    delete_delay_ms: int = DELETE_DELAY_MS
    """How long the broker keeps a ``-delete`` directory."""
    _now: dict[str, _Read] = field(default_factory=dict)
    _before: dict[str, _Read] = field(default_factory=dict)
    """As of the look before."""
    _of: dict[Place, int] = field(default_factory=dict)

    def stamp(self, log_dir: str) -> str:
        """Return the stamp of the file as it was read last; empty: it was not."""
        known = self._now.get(log_dir)
        return "" if known is None else known.stamp

    def read(self, found: Glances) -> None:
        """Keep what the file of every log dir held before its directories were listed."""
        self._before = self._now
        self._now = {}
        for log_dir, one in found.of.items():
            offsets = self._before[log_dir].offsets if one.starts.offsets is None else one.starts.offsets
            self._now[log_dir] = _Read(one.starts.stamp, offsets, found.at_ms)

    def note(self, log_dir: str, former: Collection[str] | None, names: Collection[str]) -> None:
        """Note whose entry is whose.

        Args:
            log_dir: The log dir.
            former: The ``-delete`` and ``-stray`` directories at the look before; ``None``: there was none.
            names: Those at this look.
        """
        before = self._before.get(log_dir)
        if before is None or former is None or clock.boottime_ms() - before.at_ms >= self.delete_delay_ms:
            return
        live = {name: _live(name) for name in names}
        many = Counter(live.values())
        for name in set(names) - set(former):
            offset = before.offsets.get(live[name])
            if offset is not None and many[live[name]] == 1:
                self._of.setdefault((log_dir, name), offset)

    def forget(self, log_dir: str) -> None:
        """Forget what was just read of a log dir whose directories could not be listed after it."""
        self._now.pop(log_dir, None)

    def of(self, place: Place) -> int | None:
        """Return the log start of a directory; ``None``: none was seen."""
        return self._of.get(place)

    def keep_only(self, there: Collection[Place]) -> None:
        """Forget directories that are not there any more."""
        self._of = {place: offset for place, offset in self._of.items() if place in there}


def _live(name: str) -> str:
    """Return the name that a ``-delete`` or ``-stray`` directory had while it was live; its own if it has no other."""
    parts = parse_partition_dir(name)
    if parts is None:
        return name
    return render_partition_dir(parts._replace(form=DirForm.CURRENT, unique=None))
