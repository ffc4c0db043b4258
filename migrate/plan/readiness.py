"""Readiness of brokers for migration: unknown (a disk was not read), blocked or clean, and why.

Plain Python over the counts of each broker.

Spec: design §7.4 (last paragraph), §7.6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from migrate.plan.census import Census
from migrate.plan.entry_counts import EntryCounts

NEVER_BLOCKING = frozenset({"missing-id"})
"""Slugs whose units block no broker by themselves; ``undecided`` of ``judge`` names brokers that one blocks."""


class Readiness(Enum):
    """Whether a broker can be migrated: yes (clean), no (blocked), or not known because a disk was not read."""

    CLEAN = "clean"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Readiness of one broker."""

    readiness: Readiness
    reasons: tuple[str, ...]
    """Slugs that block it or make it unknown, sorted; empty for a clean broker. Besides conflicts: ``symlink`` and
    ``unreadable``, replicas that cannot be moved.
    """


def judge(
    census: Census,
    entries: Mapping[int, EntryCounts],
    touched: Mapping[int, Collection[str]],
    undecided: Collection[int],
) -> tuple[Verdict, ...]:
    """Return the readiness of every broker.

    Args:
        census: The disks.
        entries: Counts by broker; those without entries may be left out.
        touched: Slugs of contradictions between replicas, by the brokers that hold them.
        undecided: Brokers that hold a replica without id of a topic for which none may be minted.

    Returns:
        One verdict per broker, by ordinal.
    """
    by_disks: dict[int, set[str]] = {}
    for holder in census.holders:
        by_disks.setdefault(holder.broker, set()).add(holder.slug)
    verdicts = []
    for broker in census.brokers:
        counts = entries.get(broker.broker, EntryCounts())
        found = {
            "leftover": counts.leftovers - counts.deletes,
            "metadata-file-broken": counts.broken,
            "unknown-entry": counts.unknown,
            "symlink": counts.symlinks,
            "unreadable": counts.unreadable,
        }
        reasons = {slug for slug, units in found.items() if units}
        reasons |= by_disks.get(broker.broker, set())
        reasons |= set(touched.get(broker.broker, ())) - NEVER_BLOCKING
        if broker.broker in undecided:
            reasons.add("missing-id")
        readiness = Readiness.UNKNOWN if broker.unread else Readiness.BLOCKED if reasons else Readiness.CLEAN
        verdicts.append(Verdict(readiness=readiness, reasons=tuple(sorted(reasons))))
    return tuple(verdicts)
