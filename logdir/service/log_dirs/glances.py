"""What every log dir of a broker answered to one glance.

Spec: design §3.3, §5 "A port per log dir".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from logdir.disk.kernel.calls import Space
from logdir.errors import Problem
from logdir.service.log_dirs.ports import running_of
from logdir.worker.glance import Glance


class Glances(NamedTuple):
    """The answers, by log dir; one that gave none is left out."""

    at_ms: int
    """``CLOCK_BOOTTIME`` before the first answer."""
    of: Mapping[str, Glance]
    took_ns: Mapping[str, int] = MappingProxyType({})
    """By log dir: how long its worker had the call, also where it gave no answer; without calls in this process."""

    @property
    def is_running(self) -> bool | None:
        """Whether a broker runs on these log dirs; ``None``: no lock file can be read."""
        found = running_of(one.is_locked for one in self.of.values())
        return None if isinstance(found, Problem) else found

    @property
    def has_started(self) -> bool:
        """Whether a broker holds Kafka's lock of every log dir that answered: one that starts takes them in turn, and
        would fail if another process held the last of them meanwhile.
        """
        return bool(self.of) and all(one.is_locked is True for one in self.of.values())

    @property
    def is_blocked(self) -> bool:
        """Whether a start block lies in a log dir, so that only a change of layout may go on."""
        return any(one.is_blocked for one in self.of.values())

    def space_of(self, log_dir: str) -> Space | None:
        """Return the free space of a log dir; ``None``: it is not known."""
        found = self.of.get(log_dir)
        return None if found is None else found.space
