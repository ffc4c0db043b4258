"""Detection of stale disks: disks that were away while the broker ran on its others, hours behind by their heartbeats.

The heartbeats of all work roots of a broker advance together. A disk that is behind was unmounted, dead, in another
host, or restored from an older copy: replicas staged on it may have been restored or purged since, and its live
replicas may live elsewhere. So it is reported, and nothing on it is restored, staged or purged until an operator has
checked it.

An older copy of all disks together is not detected, nor a disk that was away while nothing was changed.

Not here: the file (``formats.own.heartbeat_file``), when it is written (``disk.record.heartbeat``).

Spec: attacks A25; design §2 law 2.
"""

from __future__ import annotations

from collections.abc import Mapping

from logdir.formats.own.heartbeat_file import Heartbeat

STALE_DISK = "stale-disk"
"""Slug of the problem of a stale disk. It alone keeps no deletion from being captured there."""
RETURNED_MS = 60 * 60 * 1000
"""The lag from which on a disk is stale: more than any interrupted command can cause."""


def returned(heartbeats: Mapping[str, Heartbeat | None]) -> Mapping[str, int]:
    """Return how far each stale disk is behind the others.

    Args:
        heartbeats: By log dir; ``None`` if missing or unreadable.

    Returns:
        Milliseconds by log dir, for those an hour or more behind another one.
    """
    known = {log_dir: beat for log_dir, beat in heartbeats.items() if beat is not None}
    found = {}
    for log_dir, mine in known.items():
        behind = max((_behind_ms(mine, other) for at, other in known.items() if at != log_dir), default=0)
        if behind >= RETURNED_MS:
            found[log_dir] = behind
    return found


def _behind_ms(mine: Heartbeat, other: Heartbeat) -> int:
    """Return how much later another disk was in use than this one, as far as both heartbeats show; 0 or less if it was
    not.
    """
    last, latest = mine.boots[-1], other.boots[-1]
    if len(mine.boots) > len(other.boots) and mine.boots[0].boot_id == other.boots[0].boot_id:
        return 0  # This disk has seen more boots.
    same = [n for n, boot in enumerate(other.boots) if boot.boot_id == last.boot_id]
    if last.boot_id == latest.boot_id and (len(same) == 1 or latest.seen_ms >= last.seen_ms):
        return latest.seen_ms - last.seen_ms
    if len(mine.boots) >= len(other.boots) and any(boot.boot_id == latest.boot_id for boot in mine.boots[:-1]):
        return 0
    seen = 0
    if same:
        after = sum(boot.seen_ms + boot.credited_ms for boot in other.boots[same[-1] + 1 :])
        seen = other.boots[same[-1]].seen_ms - last.seen_ms + after
    return max(seen, other.wall_ms - mine.wall_ms)
