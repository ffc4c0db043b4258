"""Census of a fleet's disks: usable inventories, unread disks, and conflicts between brokers and disks.

Plain Python over one row per disk; its small results (brokers, log dirs) control all work on the frames. It finds the
conflicts that need no entries: two brokers with one node id, foreign disks, broken identities, unread disks.

Not here: anything about entries (``conflicts``), readiness (``readiness``), reading the disks (``data_source``).

Spec: design §7.2, §7.4, §7.7 (digests).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrate.source.disk_row import DiskRow, UnreadDisk, source_names, unread_disks, usable_disks
from migrate.source.fleet import Fleet

IDENTITY_PROBLEMS = ("meta-properties-malformed", "meta-properties-missing", "no-permission")
_LISTED = 3
"""Number of names shown of a broker entry's list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """One broker entry of the fleet file, with its usable inventories."""

    broker: int
    cluster: int
    """Ordinal of its cluster in the fleet file."""
    cluster_name: str
    node_id: int
    rack: str | None
    disks: tuple[DiskRow, ...]
    """Its usable inventories by (``log_dir``, ``source``)."""
    unread_disks: tuple[UnreadDisk, ...]
    """Disks without a usable inventory."""
    lists: tuple[str, ...]
    """Display names of the sources in its entry, as in ``source_names``, sorted."""
    inventory_sha256: str

    @property
    def unread(self) -> int:
        """Number of unread disks of the broker."""
        return len(self.unread_disks)

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The log dirs of its usable inventories, sorted."""
        return tuple(disk.log_dir or "" for disk in self.disks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """One cluster of the fleet file."""

    cluster: int
    name: str
    cluster_id: str | None
    """The id in the fleet file, else the most frequent one of its disks, else ``None``."""
    brokers: tuple[int, ...]
    has_unread: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One place of one unit of a conflict: a log dir, a broker entry or, for an unread disk, its broker."""

    slug: str
    broker: int
    unit: str
    detail: str
    log_dir: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Brokers, disks and conflicts of a fleet, as far as they follow from disk rows alone."""

    clusters: tuple[ClusterFacts, ...]
    """In the fleet file's order: the ordinal is the index."""
    brokers: tuple[BrokerFacts, ...]
    """In the fleet file's order: the ordinal is the index."""
    unusable: frozenset[int]
    """Ordinals of the sources whose rows must not be used."""
    holders: tuple[Holder, ...]
    units: Mapping[str, int]
    """Number of units of each conflict found here, by slug."""
    inventory_sha256: str

    @property
    def log_dirs(self) -> int:
        """Number of all log dirs, unread ones included."""
        return sum(len(broker.disks) + broker.unread for broker in self.brokers)

    def ranks(self) -> tuple[int, ...]:
        """Return the rank of each broker, by ordinal: its position by cluster, node id and disks.

        Ordinals depend on the order of the fleet file; a plan orders brokers by rank, so that the same brokers in
        another order get the same plan. Brokers with equal facts are interchangeable.
        """
        order = sorted(self.brokers, key=_place)
        ranks = {broker.broker: rank for rank, broker in enumerate(order)}
        return tuple(ranks[broker.broker] for broker in self.brokers)


def _place(broker: BrokerFacts) -> tuple[object, ...]:
    disks = tuple((disk.log_dir or "", disk.sha256 or "") for disk in broker.disks)
    return broker.cluster_name, broker.node_id, disks, broker.rack or "", broker.unread, broker.lists


def digest_of(shas: Iterable[str]) -> str:
    """Return one SHA-256 over several digests: sorted, each with LF.

    Args:
        shas: Digests of inventories as hex.

    Returns:
        64 hex digits.

    Spec: design §7.7.
    """
    return hashlib.sha256("".join(f"{sha}\n" for sha in sorted(shas)).encode("ascii")).hexdigest()


def take_census(fleet: Fleet, rows: Iterable[DiskRow]) -> Census:
    """Count the disks of a fleet.

    Args:
        fleet: The fleet file.
        rows: One per source, in any order; ``broker`` counts the entries of ``fleet`` from 0.

    Returns:
        The facts; equal for any order of ``rows``.

    Raises:
        ValueError: a row names a broker the fleet does not have, or a source twice.
    """
    by_broker: dict[int, list[DiskRow]] = defaultdict(list)
    seen: set[int] = set()
    for row in rows:
        if row.source in seen:
            raise ValueError(f"source {row.source} is there twice")
        seen.add(row.source)
        by_broker[row.broker].append(row)
    names = source_names(fleet)
    lists: dict[int, list[str]] = defaultdict(list)
    for source in fleet.sources():
        lists[source.broker].append(names[source.number])
    brokers: list[BrokerFacts] = []
    clusters: list[ClusterFacts] = []
    holders: list[Holder] = []
    for ordinal, cluster in enumerate(fleet.clusters):
        members = []
        for number, entry in enumerate(cluster.brokers, len(brokers)):
            rows_of = by_broker.pop(number, [])
            disks = usable_disks(rows_of)
            members.append(
                BrokerFacts(
                    broker=number,
                    cluster=ordinal,
                    cluster_name=cluster.name,
                    node_id=entry.node_id,
                    rack=entry.rack if entry.rack is not None else _smallest_rack(disks),
                    disks=disks,
                    unread_disks=unread_disks(entry, rows_of, names),
                    lists=tuple(sorted(lists[number])),
                    inventory_sha256=digest_of(disk.sha256 or "" for disk in disks),
                )
            )
        brokers.extend(members)
        cluster_id = cluster.cluster_id or _most_frequent(members)
        clusters.append(
            ClusterFacts(
                cluster=ordinal,
                name=cluster.name,
                cluster_id=cluster_id,
                brokers=tuple(member.broker for member in members),
                has_unread=any(member.unread for member in members),
            )
        )
        holders += _claimed_twice(members) + _foreign(members, cluster_id)
        holders += _broken_identities(members) + _unread(members)
    if by_broker:
        raise ValueError(f"no broker entry {min(by_broker)} in the fleet")
    usable = [disk for broker in brokers for disk in broker.disks]
    return Census(
        clusters=tuple(clusters),
        brokers=tuple(brokers),
        unusable=frozenset(seen - {disk.source for disk in usable}),
        holders=tuple(holders),
        units=_count_units(holders),
        inventory_sha256=digest_of(disk.sha256 or "" for disk in usable),
    )


def _count_units(holders: Iterable[Holder]) -> dict[str, int]:
    # A broker is a broker entry, also where two have one node id: their log dirs are units of their own.
    shared = {"node-id-twice"}
    return dict(Counter(h[0] for h in {(h.slug, None if h.slug in shared else h.broker, h.unit) for h in holders}))


def _smallest_rack(disks: Iterable[DiskRow]) -> str | None:
    return min((disk.rack for disk in disks if disk.rack is not None), default=None)


def _most_frequent(members: Iterable[BrokerFacts]) -> str | None:
    counted = Counter(disk.cluster_id for member in members for disk in member.disks if disk.cluster_id is not None)
    return min(counted, key=lambda cluster_id: (-counted[cluster_id], cluster_id), default=None)


def _disk_unit(member: BrokerFacts, disk: DiskRow) -> str:
    return f"{member.cluster_name}|{member.node_id}|{disk.log_dir}"


def _claimed_twice(members: Sequence[BrokerFacts]) -> list[Holder]:
    claims: dict[int, list[tuple[BrokerFacts, str]]] = defaultdict(list)
    for member in members:
        by_disks = {disk.node_id for disk in member.disks if disk.node_id is not None}
        for node_id in sorted(by_disks | {member.node_id}):
            claims[node_id].append((member, "its entry" if node_id == member.node_id else "a disk of it"))
    return [
        Holder(
            slug="node-id-twice",
            broker=member.broker,
            unit=f"{member.cluster_name}|{node_id}",
            detail=f"node id {node_id} claimed by {by}; {len(claiming)} broker entries claim it; this one lists "
            + listed(member.lists),
        )
        for node_id, claiming in sorted(claims.items())
        if len(claiming) > 1
        for member, by in claiming
    ]


def listed(names: Sequence[str]) -> str:
    """Return the names of an entry in one line: the first three, and the number of others."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _foreign(members: Iterable[BrokerFacts], cluster_id: str | None) -> list[Holder]:
    holders = []
    for member in members:
        for disk in member.disks:
            unit = _disk_unit(member, disk)
            if disk.node_id is not None and disk.node_id != member.node_id:
                detail = f"node.id {disk.node_id}, node_id {member.node_id} in the fleet file"
                holders.append(_of_disk("foreign-node-disk", member, disk, unit, detail))
            if disk.cluster_id is not None and disk.cluster_id != cluster_id:
                detail = f"cluster.id {disk.cluster_id}, that of the cluster is {cluster_id}"
                holders.append(_of_disk("foreign-cluster-disk", member, disk, unit, detail))
    return holders


def _broken_identities(members: Sequence[BrokerFacts]) -> list[Holder]:
    held = Counter(disk.directory_id for member in members for disk in member.disks if disk.directory_id is not None)
    holders = []
    for member in members:
        for disk in member.disks:
            reasons = [slug for slug in IDENTITY_PROBLEMS if slug in disk.problems]
            holding = 0 if disk.directory_id is None else held[disk.directory_id]
            if holding > 1:
                reasons.append(f"directory.id {disk.directory_id} in {holding} log dirs")
            if reasons:
                unit = _disk_unit(member, disk)
                holders.append(_of_disk("identity-broken", member, disk, unit, ", ".join(reasons)))
    return holders


def _of_disk(slug: str, member: BrokerFacts, disk: DiskRow, unit: str, detail: str) -> Holder:
    return Holder(slug=slug, broker=member.broker, unit=unit, detail=detail, log_dir=disk.log_dir)


def _unread(members: Iterable[BrokerFacts]) -> list[Holder]:
    return [
        Holder(
            slug="disk-unread",
            broker=member.broker,
            unit=f"{member.cluster_name}|{member.node_id}|{number}",
            detail=f"{number} of {member.unread}: {disk.log_dir or 'path not known'} ({disk.why})",
        )
        for member in members
        for number, disk in enumerate(member.unread_disks, 1)
    ]
