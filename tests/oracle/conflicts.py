"""Every conflict of a fleet, by the letter of design §7.4, in plain Python.

What it is: for each slug one loop over lists held in memory. What it is not: fast, or written after the
planner's frames.

Spec: design §7.4 (conflicts), §7.7 (columns of ``conflicts/``, the text of a unit).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.oracle.reading import Broker, Cluster, Inventory, Row

SLUGS = (
    "one-name-two-ids",
    "one-id-two-names",
    "replicas-differ-in-id",
    "partition-twice-on-broker",
    "id-in-two-clusters",
    "node-id-twice",
    "foreign-node-disk",
    "foreign-cluster-disk",
    "identity-broken",
    "metadata-file-broken",
    "missing-id",
    "leftover",
    "unknown-entry",
    "disk-unread",
)
LEFTOVER_KINDS = ("future", "delete", "stray", "staged", "purging", "incoming")

ConflictRow = tuple[str, str, int, str | None, str | None, str | None, str | None, int | None, str]
"""slug, cluster, node_id, log_dir, name, topic, topic_id, partition, unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """An entry of a usable inventory together with the disk and the broker entry that hold it."""

    broker: Broker
    disk: Row
    entry: Row

    @property
    def topic_id(self) -> str | None:
        """The id, or None."""
        value: str | None = self.entry["topic_id"]
        return value

    @property
    def topic(self) -> str | None:
        """The topic's name, or None."""
        value: str | None = self.entry["topic"]
        return value

    @property
    def partition(self) -> int:
        """The partition of a replica."""
        value: int = self.entry["partition"]
        return value

    @property
    def place(self) -> tuple[str, ...]:
        """The parts of an entry's unit."""
        return (
            self.broker.cluster,
            str(self.broker.node_id),
            self.disk["log_dir"],
            self.entry["root"],
            self.entry["name"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What §7.4 counts: units per slug, one row per holder, and who is touched by what."""

    units: Counter[str] = field(default_factory=Counter)
    rows: list[ConflictRow] = field(default_factory=list)
    touched: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    blocked: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Slugs that block by themselves: no ``missing-id``, ``disk-unread``, ``leftover`` of kind ``delete``."""

    def add_entries(self, slug: str, parts: Iterable[str], holders: Iterable[Holding]) -> None:
        """Add one unit held by entries."""
        unit = "|".join(parts)
        self.units[slug] += 1
        for held in holders:
            broker, entry = held.broker, held.entry
            row = (entry["name"], entry["topic"], entry["topic_id"], entry["partition"], unit)
            self.rows.append((slug, broker.cluster, broker.node_id, held.disk["log_dir"], *row))
            self.touched[broker.ordinal].add(slug)
            if slug != "missing-id" and not (slug == "leftover" and entry["kind"] == "delete"):
                self.blocked[broker.ordinal].add(slug)

    def add_broker(self, slug: str, parts: Iterable[str], brokers: Iterable[Broker]) -> None:
        """Add one unit held by broker entries."""
        self.units[slug] += 1
        for broker in brokers:
            unit = "|".join(parts)
            self.rows.append((slug, broker.cluster, broker.node_id, None, None, None, None, None, unit))
            self.touched[broker.ordinal].add(slug)
            if slug != "disk-unread":
                self.blocked[broker.ordinal].add(slug)

    def add_disk(self, slug: str, broker: Broker, inventory: Inventory) -> None:
        """Add one unit held by one log dir."""
        log_dir = inventory.disk["log_dir"]
        unit = "|".join((broker.cluster, str(broker.node_id), log_dir))
        self.units[slug] += 1
        self.rows.append((slug, broker.cluster, broker.node_id, log_dir, None, None, None, None, unit))
        self.touched[broker.ordinal].add(slug)
        self.blocked[broker.ordinal].add(slug)


def holdings(cluster: Cluster) -> list[Holding]:
    """List every entry of every usable inventory of a cluster."""
    return [
        Holding(broker=broker, disk=inventory.disk, entry=entry)
        for broker in cluster.brokers
        for inventory in broker.usable
        for entry in inventory.entries
    ]


def is_metadata_broken(held: Holding) -> bool:
    """Tell whether an entry is counted as ``metadata-file-broken``."""
    return "partition-metadata-broken" in held.entry["problems"]


def cluster_id_of(cluster: Cluster) -> str | None:
    """Give the cluster id of the fleet file; without one the most frequent of its usable disks."""
    if cluster.cluster_id is not None:
        return cluster.cluster_id
    seen = Counter(
        inventory.disk["cluster_id"]
        for broker in cluster.brokers
        for inventory in broker.usable
        if inventory.disk["cluster_id"] is not None
    )
    best = None
    for found in sorted(seen):
        if best is None or seen[found] > seen[best]:
            best = found
    return best


def _find_ids(cluster: Cluster, live: list[Holding], findings: Findings) -> None:
    by_name: dict[str, list[Holding]] = defaultdict(list)
    by_id: dict[str, list[Holding]] = defaultdict(list)
    by_partition: dict[tuple[str, int], list[Holding]] = defaultdict(list)
    for held in live:
        if held.topic is not None:
            by_name[held.topic].append(held)
            by_partition[held.topic, held.partition].append(held)
        if held.topic_id is not None:
            by_id[held.topic_id].append(held)
    for name, group in by_name.items():
        if len({held.topic_id for held in group} - {None}) >= 2:
            findings.add_entries("one-name-two-ids", (cluster.name, name), group)
    for topic_id, group in by_id.items():
        if len({held.topic for held in group} - {None}) >= 2:
            findings.add_entries("one-id-two-names", (cluster.name, topic_id), group)
    for (name, partition), group in by_partition.items():
        if len({held.topic_id for held in group} - {None}) >= 2:
            findings.add_entries("replicas-differ-in-id", (cluster.name, name, str(partition)), group)


def _find_doubles(cluster: Cluster, live: list[Holding], findings: Findings) -> None:
    for broker in cluster.brokers:
        own = [held for held in live if held.broker.ordinal == broker.ordinal]
        units: dict[tuple[str, int], list[Holding]] = defaultdict(list)
        for held in own:
            twins = [other for other in own if other.partition == held.partition]
            for group in (
                [other for other in twins if held.topic is not None and other.topic == held.topic],
                [other for other in twins if held.topic_id is not None and other.topic_id == held.topic_id],
            ):
                if len(group) >= 2:
                    name = min([other.topic for other in group if other.topic is not None], default="")
                    holders = units[name, held.partition]
                    holders.extend(other for other in group if not any(other is known for known in holders))
        for (name, partition), holders in units.items():
            parts = (cluster.name, str(broker.node_id), name, str(partition))
            findings.add_entries("partition-twice-on-broker", parts, holders)


def _find_brokers_and_disks(cluster: Cluster, findings: Findings) -> None:
    claims: dict[int, dict[int, Broker]] = defaultdict(dict)
    for broker in cluster.brokers:
        claims[broker.node_id][broker.ordinal] = broker
        for inventory in broker.usable:
            if inventory.disk["node_id"] is not None:
                claims[inventory.disk["node_id"]][broker.ordinal] = broker
    for node_id, claimants in claims.items():
        if len(claimants) >= 2:
            findings.add_broker("node-id-twice", (cluster.name, str(node_id)), claimants.values())
    expected = cluster_id_of(cluster)
    directories = Counter(inventory.disk["directory_id"] for broker in cluster.brokers for inventory in broker.usable)
    for broker in cluster.brokers:
        for inventory in broker.usable:
            disk = inventory.disk
            if disk["node_id"] is not None and disk["node_id"] != broker.node_id:
                findings.add_disk("foreign-node-disk", broker, inventory)
            if disk["cluster_id"] is not None and disk["cluster_id"] != expected:
                findings.add_disk("foreign-cluster-disk", broker, inventory)
            shared = disk["directory_id"] is not None and directories[disk["directory_id"]] >= 2
            broken = {"meta-properties-missing", "meta-properties-malformed", "no-permission"}
            if shared or broken & set(disk["problems"]):
                findings.add_disk("identity-broken", broker, inventory)
        for number in range(1, broker.unread + 1):
            parts = (cluster.name, str(broker.node_id), str(number))
            findings.add_broker("disk-unread", parts, [broker])


def find_conflicts(clusters: Iterable[Cluster]) -> Findings:
    """Find every unit of every slug, in the whole fleet."""
    findings = Findings()
    homes: dict[str, list[Holding]] = defaultdict(list)
    for cluster in clusters:
        entries = holdings(cluster)
        live = [held for held in entries if held.entry["kind"] == "live"]
        _find_ids(cluster, live, findings)
        _find_doubles(cluster, live, findings)
        _find_brokers_and_disks(cluster, findings)
        for held in live:
            if held.topic_id is not None:
                homes[held.topic_id].append(held)
            elif not is_metadata_broken(held):
                findings.add_entries("missing-id", held.place, [held])
        for held in entries:
            if is_metadata_broken(held):
                findings.add_entries("metadata-file-broken", held.place, [held])
            if held.entry["kind"] in LEFTOVER_KINDS:
                findings.add_entries("leftover", held.place, [held])
            if held.entry["kind"] == "unknown" and "plain-file" not in held.entry["problems"]:
                findings.add_entries("unknown-entry", held.place, [held])
    for topic_id, group in homes.items():
        if len({held.broker.cluster for held in group}) >= 2:
            findings.add_entries("id-in-two-clusters", (topic_id,), group)
    return findings
