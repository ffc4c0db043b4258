"""How long ago a replica was staged, for people: exact within one boot, else what is certain of it.

Deadlines count certain time alone; the wall clock only shows whether that is all of the age.

Not here: deadlines (``deadline``).

Spec: design §3.3, §6 ``staged ls``; attacks A24.
"""

from __future__ import annotations

from typing import NamedTuple

from logdir import text
from logdir.clock import Instant
from logdir.decide.staged.deadline import CLOCK_ERROR_MS, beat, elapsed_ms
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.formats.own.replica_marker import ReplicaMarker


class Age(NamedTuple):
    """The time since a replica was staged."""

    certain_ms: int
    """At least so long."""
    wall_ms: int | None
    """By both clocks, in one boot; else by the wall clock, ``None`` if that is not synchronised."""


def age_of(marker: ReplicaMarker, heartbeat: Heartbeat | None, now: Instant) -> Age | None:
    """Return the age of a staged replica; ``None``: it is not known.

    Args:
        marker: Its marker, which matches its place.
        heartbeat: Heartbeat of its work root; ``None`` if it is missing or unreadable.
        now: The current instant.
    """
    if heartbeat is None:
        return None
    certain_ms = elapsed_ms(marker.boot_id, marker.boottime_ms, heartbeat, now)
    if certain_ms < 0:
        if marker.boot_id == now.boot_id:
            return None
        certain_ms = 0  # Staged after the last heartbeat of its boot.
    ids = [boot.boot_id for boot in beat(heartbeat, now).boots]
    if ids.index(ids[-1]) == len(ids) - 1 and ids[-1] == marker.boot_id:  # One that repeats may be an earlier boot.
        return Age(certain_ms, certain_ms)
    if not now.is_synchronised:
        return Age(certain_ms, None)
    wall_ms = now.wall_ms - marker.staged_at_ms
    # The wall clock was wrong at the staging, or the boots are not of one host: which of both is not known.
    return None if wall_ms < certain_ms - CLOCK_ERROR_MS else Age(certain_ms, max(certain_ms, wall_ms))


def words(age: Age | None) -> str:
    """Return an age as text for people.

    >>> words(Age(93_600_000, 93_700_000)), words(Age(61_000, None)), words(Age(0, 7_200_000)), words(None)
    ('26 h', 'at least 61 s', 'at least 0 s', '?')
    """
    if age is None:
        return "?"
    certain = text.age(age.certain_ms)
    return certain if age.wall_ms is not None and text.age(age.wall_ms) == certain else f"at least {certain}"
