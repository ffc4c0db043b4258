"""Counts of a fleet's entries: counted once by disk and kind, then added up by broker or listed by disk.

Not here: conflicts between replicas (``conflicts``), consequences of the counts (``readiness``).

Spec: design §7.4, §7.7; the report's ``disks.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from migrate.plan import conflicts, steps
from migrate.plan.census import BrokerFacts, Census, listed
from migrate.source.disk_row import DiskRow, UnreadDisk


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Number and sizes of the entries of one kind in one log dir."""

    source: int
    kind: str
    entries: int
    bytes: int
    log_bytes: int
    with_id: int
    steps: int
    """Number of replicas in the topic-name layout that can be moved to topic ids."""
    broken: int
    missing: int
    """Number of replicas without an id and without a broken metadata file."""
    unknown: int
    """Number of unknown entries, without plain files."""
    symlinks: int
    unreadable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCounts:
    """Counts over the usable inventories of one broker."""

    replicas: int = 0
    bytes: int = 0
    """Bytes of all entries of the broker."""
    log_bytes: int = 0
    """Bytes of the logs of its live replicas."""
    steps: int = 0
    leftovers: int = 0
    """Number of leftover entries."""
    deletes: int = 0
    """Number of leftovers of kind ``delete``, which do not block the broker."""
    broken: int = 0
    missing: int = 0
    unknown: int = 0
    symlinks: int = 0
    """Number of replicas with the problem ``symlink``."""
    unreadable: int = 0
    """Number of replicas with the problem ``unreadable``."""


def tally_entries(usable: DataFrame) -> tuple[Tally, ...]:
    """Count entries by disk and kind.

    Args:
        usable: Entries of usable inventories.

    Returns:
        Sorted by (``source``, ``kind``), without empty ones. Bounded by disks times kinds.
    """
    sums = {
        "entries": F.lit(1),
        "bytes": F.coalesce(F.col("bytes"), F.lit(0)),
        "log_bytes": F.coalesce(F.col("log_bytes"), F.lit(0)),
        "with_id": _number(F.col("topic_id").isNotNull()),
        "steps": _number(steps.is_step()),
        "broken": _number(F.col("is_broken")),
        "missing": _number(conflicts.is_missing_id()),
        "unknown": _number(conflicts.is_unknown_entry()),
        "symlinks": _number(F.col("is_symlink")),
        "unreadable": _number(F.col("is_unreadable")),
    }
    folded = usable.groupBy("source", "kind").agg(*(F.sum(column).alias(name) for name, column in sums.items()))
    names = tuple(field.name for field in fields(Tally))
    rows = [Tally(**{name: row[name] for name in names}) for row in folded.collect()]
    return tuple(sorted(rows, key=lambda row: (row.source, row.kind)))


def _number(condition: Column) -> Column:
    return F.when(condition, F.lit(1)).otherwise(F.lit(0))


def by_broker(census: Census, tallies: Iterable[Tally]) -> dict[int, EntryCounts]:
    """Return the counts of each broker by its ordinal, brokers without entries included."""
    of_source: dict[int, list[Tally]] = {}
    for tally in tallies:
        of_source.setdefault(tally.source, []).append(tally)
    return {
        broker.broker: _counts([tally for disk in broker.disks for tally in of_source.get(disk.source, ())])
        for broker in census.brokers
    }


def _counts(tallies: list[Tally]) -> EntryCounts:
    live = [tally for tally in tallies if tally.kind == "live"]
    return EntryCounts(
        replicas=sum(tally.entries for tally in live),
        bytes=sum(tally.bytes for tally in tallies),
        log_bytes=sum(tally.log_bytes for tally in live),
        steps=sum(tally.steps for tally in live),
        leftovers=sum(tally.entries for tally in tallies if tally.kind in conflicts.LEFTOVER_KINDS),
        deletes=sum(tally.entries for tally in tallies if tally.kind == "delete"),
        broken=sum(tally.broken for tally in tallies),
        missing=sum(tally.missing for tally in live),
        unknown=sum(tally.unknown for tally in tallies),
        symlinks=sum(tally.symlinks for tally in live),
        unreadable=sum(tally.unreadable for tally in live),
    )


def count_units(counted: Iterable[EntryCounts]) -> dict[str, int]:
    """Return the number of units of the conflicts that are single entries, by slug."""
    counts = list(counted)
    return {
        "leftover": sum(count.leftovers for count in counts),
        "metadata-file-broken": sum(count.broken for count in counts),
        "missing-id": sum(count.missing for count in counts),
        "unknown-entry": sum(count.unknown for count in counts),
    }


def disks_document(census: Census, tallies: Iterable[Tally], order: Sequence[int]) -> dict[str, object]:
    """Return ``disks.json``, which only the report reads: one object per log dir, unread ones last within their broker.

    Args:
        census: The disks.
        tallies: Counts by disk and kind.
        order: Ordinals of the brokers, as ``waves.json`` lists them.

    Returns:
        ``{"brokers": [...], "disks": [...]}``: of each broker of ``waves.json``, in its order, its rank (``broker``)
        and, where its node id is listed twice, what its entry lists; disks by (cluster name, broker, log dir).
    """
    ranks = census.ranks()
    kinds: dict[int, dict[str, Tally]] = {}
    for tally in tallies:
        kinds.setdefault(tally.source, {})[tally.kind] = tally
    rows: list[Mapping[str, object]] = []
    for broker in sorted(census.brokers, key=lambda b: ranks[b.broker]):
        rank = ranks[broker.broker]
        rows += [_disk_object(broker, rank, disk, kinds.get(disk.source, {})) for disk in broker.disks]
        rows += [_disk_object(broker, rank, disk, {}) for disk in broker.unread_disks]
    entries = Counter((broker.cluster, broker.node_id) for broker in census.brokers)
    places = [
        {
            "broker": ranks[number],
            "lists": listed(broker.lists) if entries[broker.cluster, broker.node_id] > 1 else None,
        }
        for number, broker in ((number, census.brokers[number]) for number in order)
    ]
    return {"brokers": places, "disks": rows}


def _disk_object(
    broker: BrokerFacts, rank: int, disk: DiskRow | UnreadDisk, kinds: Mapping[str, Tally]
) -> dict[str, object]:
    live = kinds.get("live")
    read = disk if isinstance(disk, DiskRow) else None
    return {
        "cluster": broker.cluster_name,
        "broker": rank,
        "node_id": broker.node_id,
        "rack": broker.rack,
        "log_dir": disk.log_dir,
        "device": read and read.device,
        "fs_type": read and read.fs_type,
        "total_bytes": read and read.total_bytes,
        "free_bytes": read and read.free_bytes,
        "layout": read and read.layout,
        "status": "ok" if read else "unread",
        "replicas": live.entries if live else 0,
        "replicas_with_id": live.with_id if live else 0,
        "kinds": {kind: {"entries": tally.entries, "bytes": tally.bytes} for kind, tally in sorted(kinds.items())},
    }
