"""One sower per conflict slug: each puts its trouble on few brokers, so that most of a fleet stays clean.

What it is: functions that add entries to drafts, or spoil line 1 of a disk. What it is not: the count of
conflicts; what was really sown is what the oracle counts.

Spec: design §7.4 (slugs), §7.1 (kinds and problems).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.oracle.drafts import (
    DAMAGES,
    BrokerDraft,
    ClusterDraft,
    DiskDraft,
    new_entry,
    new_id,
    new_line,
    new_replica,
)

ODD_NAMES = (
    "pipe|d",
    "dash-1",
    "trail-",
    "sp ace",
    'quo"te',
    "back\\slash",
    "ümlaut",
    "line\u2028sep",
    "nl\nx",
    "next\u0085line",
    "\uff5ewide",
    "\U0001f600astral",
    "tab\tx",
    "a.b",
    "a_b",
    "-lead",
)
"""Legal or not, Kafka reads them all as topics; the last before a dash sorts differently in UTF-16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where a sower works: one cluster, its few victims, and the slugs sown in this fleet."""

    rng: Random
    cluster: ClusterDraft
    victims: list[BrokerDraft]
    slugs: frozenset[str]

    def name(self) -> str:
        """Make a topic name nobody has."""
        name = f"{self.rng.choice((*ODD_NAMES, 'bad', 'bad', 'bad'))}{self.rng.randrange(10**6)}"
        self.cluster.topics[name] = new_id(self.rng)
        return name

    def disk(self) -> DiskDraft:
        """Choose a disk of a victim."""
        return self.rng.choice(self.rng.choice(self.victims).disks)


def _one_name_two_ids(field: Field) -> None:
    name = field.name()
    for partition in range(field.rng.randrange(2, 4)):
        field.disk().entries.append(new_replica(field.rng, name, partition, new_id(field.rng)))
    if "missing-id" in field.slugs:
        field.disk().entries.append(new_replica(field.rng, name, 9, None))


def _one_id_two_names(field: Field) -> None:
    topic_id, same = new_id(field.rng), "partition-twice-on-broker" in field.slugs
    disk = field.disk()
    for number in range(2):
        partition = 0 if same else number
        disk.entries.append(new_replica(field.rng, field.name(), partition, topic_id))
    if "metadata-file-broken" in field.slugs:
        entry = new_replica(field.rng, "x", 5, topic_id, by_id=True, problems=("partition-metadata-broken",))
        entry["topic"] = None
        field.disk().entries.append(entry)


def _replicas_differ(field: Field) -> None:
    name = field.name()
    brokers = field.rng.sample(field.victims, 2)
    if "partition-twice-on-broker" in field.slugs and len(brokers[0].disks) > 1 and field.rng.random() < 0.5:
        disks = field.rng.sample(brokers[0].disks, 2)
    else:
        disks = [field.rng.choice(broker.disks) for broker in brokers]
    for disk in disks:
        disk.entries.append(new_replica(field.rng, name, 0, new_id(field.rng)))


def _partition_twice(field: Field) -> None:
    name = field.name()
    topic_id = field.cluster.topics[name]
    broker = field.rng.choice(field.victims)
    first = field.rng.choice(broker.disks)
    others = [disk for disk in broker.disks if disk is not first]
    first.entries.append(new_replica(field.rng, name, 1, topic_id))
    if others and field.rng.random() < 0.6:
        second = new_replica(field.rng, name, 1, topic_id, by_id=field.rng.random() < 0.5)
        if "missing-id" in field.slugs and field.rng.random() < 0.5:
            second = new_replica(field.rng, name, 1, None)
        field.rng.choice(others).entries.append(second)
    else:
        first.entries.append(new_replica(field.rng, name, 1, topic_id, by_id=True))


def _node_id_twice(field: Field) -> None:
    rng = field.rng
    if "foreign-node-disk" in field.slugs and rng.random() < 0.6:
        victim, other = rng.sample(field.victims, 2)
        rng.choice(victim.disks).line["node_id"] = other.node_id
        return
    twin = rng.choice(field.victims)
    line = new_line(rng, cluster_id=field.cluster.cluster_id, node_id=twin.node_id, log_dir="/data/0", rack=twin.rack)
    disk = DiskDraft(line=line)
    for partition in range(rng.randrange(3)):
        disk.entries.append(new_replica(rng, field.name(), partition, new_id(rng)))
    field.cluster.brokers.append(BrokerDraft(node_id=twin.node_id, rack=twin.rack, disks=[disk]))


def _foreign_node(field: Field) -> None:
    field.disk().line["node_id"] = 9000 + field.rng.randrange(9)


def _foreign_cluster(field: Field) -> None:
    rng = field.rng
    if "cluster_id" not in field.cluster.settings and rng.random() < 0.3:
        # A tie between two ids: the smallest wins, and half of the disks are foreign.
        disks = [disk for broker in field.cluster.brokers for disk in broker.disks]
        other = rng.choice(("AAA-tie", "zzz-tie"))
        for disk in disks[: len(disks) // 2]:
            disk.line["cluster_id"] = other
        if len(disks) % 2:
            disks[-1].line["cluster_id"] = None
        return
    field.disk().line["cluster_id"] = rng.choice(("AAother", "zzother", new_id(rng)))


def _identity_broken(field: Field) -> None:
    rng, disk = field.rng, field.disk()
    match rng.randrange(3):
        case 0:
            disk.line.update(cluster_id=None, node_id=None, directory_id=None)
            disk.line["problems"] = ["meta-properties-missing"]
        case 1:
            disk.line["directory_id"] = None
            disk.line["problems"] = ["meta-properties-malformed"]
        case _:
            other = rng.choice(rng.choice(field.victims).disks)
            if other is disk:
                disk.line["problems"] = ["meta-properties-malformed"]
            other.line["directory_id"] = disk.line["directory_id"]


def _metadata_broken(field: Field) -> None:
    rng, broken = field.rng, ("partition-metadata-broken",)
    topic, partition = field.name(), rng.randrange(9)
    choice = rng.randrange(6)
    if choice == 0:
        entry = new_entry(rng, "metadata", "__cluster_metadata-0", problems=broken)
        disk = field.disk()
        disk.entries = [one for one in disk.entries if one["kind"] != "metadata"]
        disk.entries.append(entry)
        return
    if choice == 1 and "leftover" in field.slugs:
        name = f"{topic}-{partition}.{rng.randbytes(16).hex()}-delete"
        entry = new_entry(rng, "delete", name, topic=topic, partition=partition, problems=broken)
    elif choice == 2:
        # An id other than in the name: the file's id is told all the same.
        entry = new_replica(rng, topic, partition, new_id(rng), by_id=True, problems=broken)
        entry["topic_id"] = field.cluster.topics[topic]
    elif choice == 3:
        entry = new_replica(rng, "x", partition, new_id(rng), by_id=True, problems=broken)
        entry.update(topic=None, topic_id=None)
    else:
        entry = new_replica(rng, topic, partition, None, problems=broken)
        if "missing-id" in field.slugs:
            # No id among the siblings, and none may be minted.
            field.disk().entries.append(new_replica(rng, topic, partition + 1, None))
    field.disk().entries.append(entry)


def _missing_id(field: Field) -> None:
    rng = field.rng
    mode = rng.randrange(3)
    topics = sorted(field.cluster.topics)
    chosen = set(topics if mode == 0 else rng.sample(topics, max(1, len(topics) // 3)))
    spared = 0.0 if mode < 2 else 0.5
    for broker in field.cluster.brokers:
        for disk in broker.disks:
            for entry in disk.entries:
                by_name = entry["kind"] == "live" and "/" not in entry["name"] and not entry["problems"]
                if by_name and entry["topic"] in chosen and rng.random() >= spared:
                    entry.update(topic_id=None, problems=["partition-metadata-missing"])
    if rng.random() < 0.3:
        # A link stands for a replica whose id nobody read.
        field.disk().entries.append(new_replica(rng, field.name(), 0, None, problems=("symlink",)))
    field.disk().entries.append(new_replica(rng, field.name(), 0, None))


def _leftover(field: Field) -> None:
    rng = field.rng
    everywhere = [disk for broker in field.cluster.brokers for disk in broker.disks]
    for _ in range(rng.randrange(1, 5)):
        name, topic_id, partition = field.name(), new_id(rng), rng.randrange(20)
        suffix = f"{name}-{partition}.{rng.randbytes(16).hex()}"
        work = f"{topic_id}_{partition}"
        kind, path, root = rng.choice(
            (
                ("delete", f"{suffix}-delete", "log-dir"),
                ("delete", f"{suffix}-delete", "log-dir"),
                ("future", f"{suffix}-future", "log-dir"),
                ("stray", f"{suffix}-stray", "log-dir"),
                ("staged", f"deleting/{work}", "work-root"),
                ("staged", f"deleting/{work}.2", "log-dir"),
                ("purging", f"deleting/{work}.purging", "work-root"),
                ("incoming", f"incoming/{work}.ready", "work-root"),
            )
        )
        disk = rng.choice(everywhere) if kind == "delete" else field.disk()
        entry = new_entry(
            rng, kind, path, root=root, topic=name, topic_id=rng.choice((topic_id, None)), partition=partition
        )
        disk.entries.append(entry)


def _unknown_entry(field: Field) -> None:
    rng, disk = field.rng, field.disk()
    if rng.random() < 0.5:
        disk.entries.append(new_entry(rng, "unknown", f"lost+found{rng.randrange(10**6)}"))
        return
    # Two names that differ only in bytes which are not UTF-8: one text, two entries.
    for raw in rng.sample((b"caf\xe9", b"caf\xff", b"caf\xfe"), rng.randrange(1, 3)):
        name = raw.decode("utf-8", "replace")
        disk.entries.append(new_entry(rng, "unknown", name, name_hex=raw.hex()))


def _disk_unread(field: Field) -> None:
    rng = field.rng
    broker = rng.choice(field.victims)
    for number in range(rng.choice((1, 1, 1, 2))):
        disk = rng.choice(broker.disks)
        match rng.randrange(8):
            case 0:
                disk.line["log_dirs"] = [
                    *(disk.line["log_dirs"] or [disk.line["log_dir"]]),
                    f"/data/9{number}",
                ]
            case 1:
                broker.walked = sorted({*broker.walked, f"/nowhere-at-all/data{number}"})
            case 2:
                broker.walked = sorted({*broker.walked, f"gone/data{number}"})
            case 3:
                # The entry names the log dir whose inventory it also lists.
                broker.walked = sorted({*broker.walked, disk.line["log_dir"]})
            case _:
                disk.damage = rng.choice(DAMAGES)


def sow_id_in_two_clusters(fields: list[Field]) -> None:
    """Put one id into both clusters."""
    topic_id = new_id(fields[0].rng)
    name = fields[0].name()
    for field in fields[:2]:
        own = name if field.rng.random() < 0.6 else field.name()
        field.disk().entries.append(new_replica(field.rng, own, 0, topic_id))


SOWERS = {
    "one-name-two-ids": _one_name_two_ids,
    "one-id-two-names": _one_id_two_names,
    "replicas-differ-in-id": _replicas_differ,
    "partition-twice-on-broker": _partition_twice,
    "metadata-file-broken": _metadata_broken,
    "missing-id": _missing_id,
    "leftover": _leftover,
    "unknown-entry": _unknown_entry,
    "foreign-node-disk": _foreign_node,
    "foreign-cluster-disk": _foreign_cluster,
    "node-id-twice": _node_id_twice,
    "identity-broken": _identity_broken,
    "disk-unread": _disk_unread,
}
"""In the order of work: what spoils whole disks comes last. ``id-in-two-clusters`` needs two fields."""
