"""Random fleets on disk: healthy ones first, then each conflict sown with a probability of about one half.

What it is: ``make_fleet(seed, folder)``, the same bytes for the same seed. What it is not: a load generator;
a fleet has tens to hundreds of replicas, so that the slow oracle stays fast.

Spec: design §7.1, §7.2, §7.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.oracle.conflicts import SLUGS
from tests.oracle.drafts import (
    DAMAGES,
    BrokerDraft,
    ClusterDraft,
    DiskDraft,
    Style,
    new_entry,
    new_id,
    new_line,
    new_replica,
    write_fleet,
)
from tests.oracle.oracle import Answer
from tests.oracle.sowing import ODD_NAMES, SOWERS, Field, sow_id_in_two_clusters

CHANCES = {
    # An id that differs within a partition differs within a name too: the latter is sown less by itself.
    "replicas-differ-in-id": 0.48,
    "one-name-two-ids": 0.2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCase:
    """One generated fleet."""

    seed: int
    path: Path
    sown: frozenset[str]


def _settings(rng: Random, cluster_id: str, topics: Iterable[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if rng.random() < 0.6:
        settings["cluster_id"] = cluster_id
    if rng.random() < 0.7:
        settings["min.insync.replicas"] = rng.choice((1, 1, 2, 3))
    if rng.random() < 0.5:
        patterns = rng.sample(("o*", "*", "*s*", "[a-p]*", "??????*", "clicks.*", *sorted(topics)[:2]), 4)
        escaped = [pattern for pattern in patterns if pattern not in settings]
        settings["topics"] = {pattern: {"min.insync.replicas": rng.randrange(1, 4)} for pattern in escaped}
    if rng.random() < 0.6:
        settings["racks"] = rng.choice(("ignore", "ignore", "respect"))
    return settings


def _healthy_brokers(rng: Random, cluster_id: str) -> list[BrokerDraft]:
    brokers = []
    before_3_7 = rng.random() < 0.25
    racks = rng.choice(((None,), ("r1", "r2"), ("r1", "r2", "r3"), ("r1", "r2", None)))
    said_by_entry = rng.random() < 0.4
    for node_id in rng.sample(range(120), rng.randrange(3, 13)):
        rack = rng.choice(racks)
        disks = []
        for number in range(rng.randrange(1, 5)):
            own = None if said_by_entry else rack
            if rng.random() < 0.05:
                own = rng.choice((None, "r0", "r9"))
            line = new_line(rng, cluster_id=cluster_id, node_id=node_id, log_dir=f"/data/{number}", rack=own)
            if before_3_7:
                line["directory_id"] = None
            disks.append(DiskDraft(line=line))
        if rng.random() < 0.6:
            for disk in disks:
                disk.line["log_dirs"] = [one.line["log_dir"] for one in disks]
        brokers.append(BrokerDraft(node_id=node_id, rack=rack if said_by_entry else None, disks=disks))
    return brokers


def _place_topics(rng: Random, cluster: ClusterDraft) -> None:
    by_id = {id(broker): rng.choice((0.0, 0.0, 0.0, 0.5, 1.0)) for broker in cluster.brokers}
    # Now and then a broker is new and holds nothing yet: it gets a document without steps.
    homes = cluster.brokers[: -1 if len(cluster.brokers) > 3 and rng.random() < 0.3 else None]
    for topic, topic_id in cluster.topics.items():
        replicas = rng.choice((1, 2, 2, 3, 3, 3))
        for partition in range(rng.randrange(1, 7)):
            for broker in rng.sample(homes, min(replicas, len(homes))):
                new = new_replica(rng, topic, partition, topic_id, by_id=rng.random() < by_id[id(broker)])
                rng.choice(broker.disks).entries.append(new)


def _add_harmless(rng: Random, cluster: ClusterDraft) -> None:
    """Add what every log dir holds and what no conflict is."""
    for broker in cluster.brokers:
        for disk in broker.disks:
            for name in ("meta.properties", "recovery-point-offset-checkpoint", ".lock"):
                disk.entries.append(new_entry(rng, "file", name))
            if rng.random() < 0.2:
                disk.entries.append(new_entry(rng, "unknown", "notes.txt", problems=("plain-file",)))
            if rng.random() < 0.1:
                name, raw = "b\ufffd", b"b\xff"
                disk.entries.append(new_entry(rng, "unknown", name, name_hex=raw.hex(), problems=("plain-file",)))
        if rng.random() < 0.3:
            broker.disks[0].entries.append(
                new_entry(
                    rng,
                    "metadata",
                    "__cluster_metadata-0",
                    topic="__cluster_metadata",
                    topic_id="AAAAAAAAAAAAAAAAAAAAAQ",
                    partition=0,
                )
            )


def make_drafts(seed: int) -> tuple[list[ClusterDraft], frozenset[str], Random]:
    """Make the drafts of one fleet, the slugs sown, and the generator to go on with."""
    rng = Random(seed)
    sown = frozenset(slug for slug in SLUGS if rng.random() < CHANCES.get(slug, 0.5))
    names = rng.sample(("alpha", "b.eta", "C-3", "d_4", "omega"), 2)
    clusters = []
    fields = []
    for name in names:
        cluster_id = new_id(rng)
        topics = {f"{rng.choice(('orders', 'clicks', 'audit'))}{n}": new_id(rng) for n in range(rng.randrange(2, 18))}
        for odd in rng.sample(ODD_NAMES, rng.randrange(1, 4)):
            topics[odd] = new_id(rng)
        cluster = ClusterDraft(
            name=name,
            settings=_settings(rng, cluster_id, topics),
            cluster_id=cluster_id,
            brokers=_healthy_brokers(rng, cluster_id),
            topics=topics,
        )
        _place_topics(rng, cluster)
        _add_harmless(rng, cluster)
        clusters.append(cluster)
        victims = rng.sample(cluster.brokers, max(2, len(cluster.brokers) // 4))
        fields.append(Field(rng=rng, cluster=cluster, victims=victims, slugs=sown))
    one_is_clean = rng.random() < 0.6
    if "id-in-two-clusters" in sown:
        sow_id_in_two_clusters(fields)
    for slug, sow in SOWERS.items():
        if slug in sown:
            # A replica without id blocks nobody by itself: the clean cluster may mint.
            sow(fields[0] if one_is_clean and slug != "missing-id" else rng.choice(fields))
    if rng.random() < 0.3:
        entry = new_replica(rng, fields[0].name(), 0, new_id(rng), problems=("unreadable",))
        fields[0].disk().entries.append(entry)
    rng.shuffle(clusters)
    return clusters, sown, rng


def _write(rng: Random, clusters: list[ClusterDraft], folder: Path) -> Path:
    style = Style(
        sort_keys=rng.random() < 0.5,
        ascii_only=rng.random() < 0.3,
        extra_keys=rng.random() < 0.3,
        gzipped=rng.random() < 0.5,
    )
    folder.mkdir(parents=True, exist_ok=True)
    return write_fleet(rng, clusters, folder, style)


def make_fleet(seed: int, folder: Path) -> FleetCase:
    """Write the fleet of a seed below ``folder``, which is made.

    Args:
        seed: any integer; equal seeds write equal bytes.
        folder: an empty or absent directory.

    Returns:
        The case; ``sown`` is what was meant, not what is counted (an unread disk may hide a conflict).
    """
    clusters, sown, rng = make_drafts(seed)
    return FleetCase(seed=seed, path=_write(rng, clusters, folder), sown=sown)


def make_later_fleet(seed: int, folder: Path, taken: str | None = None) -> FleetCase:
    """Write the fleet of a seed some time later: newer inventories, a topic more without an id.

    Args:
        seed: that of the first fleet.
        folder: an empty or absent directory.
        taken: an id that somebody else carries by now, so that it may not be minted.

    Returns:
        The case, to be planned with the first fleet's plan as former one.
    """
    clusters, sown, rng = make_drafts(seed)
    for cluster in clusters:
        for broker in cluster.brokers:
            for disk in broker.disks:
                disk.line["taken_at_ms"] += 3_600_000
    disk = clusters[0].brokers[0].disks[0]
    disk.entries.append(new_replica(rng, "later", 0, None))
    if taken is not None:
        disk.entries.append(new_replica(rng, "thief", 0, taken))
    return FleetCase(seed=seed, path=_write(rng, clusters, folder), sown=sown)


def make_damaged_fleet(folder: Path) -> FleetCase:
    """Write one fleet in which every way to leave a disk unread has a broker of its own; two brokers are well."""
    rng = Random(0)
    cluster_id, topic_id = new_id(rng), new_id(rng)
    brokers = []
    for node_id, damage in enumerate((None, None, *DAMAGES, "named", "named-null", "walked", "walked-twice")):
        disks = []
        for number in range(2):
            line = new_line(rng, cluster_id=cluster_id, node_id=node_id, log_dir=f"/data/{number}", rack=None)
            disks.append(DiskDraft(line=line, entries=[new_replica(rng, "t", number, topic_id)]))
        broker = BrokerDraft(node_id=node_id, rack=None, disks=disks)
        match damage:
            case "named":
                disks[0].line["log_dirs"] = ["/data/0", "/data/1", "/data/2", "/data/3"]
            case "named-null":
                disks[0].line["log_dirs"] = ["/data/0", "/data/2"]
                disks[1].damage = "status-unreadable"
            case "walked":
                broker.walked = ["/nowhere-at-all/1", "gone/2"]
            case "walked-twice":
                broker.walked = ["/data/1"]
            case _:
                disks[1].damage = damage
        brokers.append(broker)
    brokers[0].disks[0].entries = [new_replica(rng, "may-lie-elsewhere", 0, None)]
    brokers[1].disks[0].entries = []
    cluster = ClusterDraft(name="all-damages", settings={}, cluster_id=cluster_id, brokers=brokers)
    return FleetCase(seed=0, path=_write(rng, [cluster], folder), sown=frozenset({"disk-unread"}))


def slug_shares(answers: Iterable[Answer]) -> dict[str, float]:
    """Give, per slug, the share of fleets in which the oracle counts at least one unit."""
    counted: Counter[str] = Counter()
    total = 0
    for answer in answers:
        total += 1
        counted.update(slug for slug in SLUGS if answer.findings.units[slug])
    return {slug: counted[slug] / max(1, total) for slug in SLUGS}


def unproven_slugs(answers: Iterable[Answer]) -> list[str]:
    """Name the slugs counted in less than a quarter of the fleets, or absent from less than a quarter."""
    return [slug for slug, share in slug_shares(answers).items() if not 0.25 <= share <= 0.75]
