"""Synthetic plan directories for the report: any number of disks, hostile names, every kind of conflict.

The numbers are consistent with one another, as a plan's are, and depend on the arguments alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from migrate.report.conflicts import SCHEMA

GIB = 1024**3
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
KINDS = ("live", "future", "delete", "stray", "staged", "purging", "incoming", "metadata", "file", "unknown")
HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    "<!--<script>",
    '"><img src=http://127.0.0.1:9/x onerror=alert(1)>',
    "t" * 249,
    "a&lt;b&amp;",
    "line\nbreak\u202egnp.exe\u0000",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a synthetic plan is like."""

    brokers: int = 3
    disks: int = 2
    """Per broker."""
    clusters: int = 1
    waves: int = 3
    unread_every: int = 0
    """Every so many brokers lack a disk; 0 for none."""
    blocked_every: int = 0
    topics: tuple[str, ...] = ("orders", "payments.v2", "clickstream-raw")
    conflicts: int = 0
    """Units per slug in use."""
    minted: int = 3
    layout: str = "topic-name"
    seed: int = 7


TINY = Shape(brokers=5, disks=1)
SMALL = Shape(brokers=12, disks=4, waves=4, unread_every=9, blocked_every=5, conflicts=4)
LARGE = Shape(brokers=100, disks=10, clusters=2, waves=14, unread_every=41, blocked_every=13, conflicts=60, minted=900)
"""2,000 disks."""
LARGE_SINGLE = Shape(
    brokers=2000,
    disks=1,
    waves=90,
    unread_every=97,
    blocked_every=13,
    conflicts=400,
    minted=900,
    topics=HOSTILE,
)
"""2,000 disks, one per broker."""
HOSTILE_PLAN = Shape(brokers=3, disks=2, blocked_every=2, topics=HOSTILE, conflicts=7, minted=7)


def topic_id(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def build_plan(plan_dir: Path, shape: Shape = TINY, *, files: int = 1, shuffle: int = 0) -> Path:
    """Write a plan directory and return it.

    Args:
        plan_dir: Must not exist.
        shape: What it is like.
        files: Into how many files ``conflicts/`` is split.
        shuffle: Seed of the order of its rows; 0 keeps it.
    """
    plan_dir.mkdir(parents=True)
    chance = random.Random(shape.seed)
    disks: list[dict[str, Any]] = []
    clusters: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    ordinal = 0
    for number in range(shape.clusters):
        name = ("main", "analytics", "edge")[number] if number < 3 else f"cluster-{number}"
        brokers = []
        for node_id in range(1, shape.brokers + 1):
            own = [_disk(chance, shape, name, ordinal, node_id, place) for place in range(shape.disks)]
            unread = bool(shape.unread_every) and node_id % shape.unread_every == 0
            if unread:
                own[-1] = _unread(own[-1])
                rows.append(_row("disk-unread", name, f"{node_id}|1", node_id, own[-1]["log_dir"]))
            blocked = bool(shape.blocked_every) and node_id % shape.blocked_every == 0 and not unread
            steps = 0 if unread or blocked else sum(disk["replicas"] for disk in own)
            reasons = ["disk-unread"] if unread else ["one-name-two-ids", "unknown-entry"] if blocked else []
            brokers.append(
                {
                    "node_id": node_id,
                    "rack": f"r{node_id % 3}",
                    "readiness": "unknown" if unread else "blocked" if blocked else "clean",
                    "reasons": reasons,
                    "steps": steps,
                    "log_bytes": sum(disk["kinds"].get("live", {"bytes": 0})["bytes"] for disk in own),
                    "forecast_ms": 250 + -(-steps // 3),
                }
            )
            disks += own
            ordinal += 1
        clean = [broker["node_id"] for broker in brokers if broker["readiness"] == "clean"]
        waves = [wave for wave in (clean[start :: shape.waves] for start in range(shape.waves)) if wave]
        clusters.append(
            {
                "name": name,
                "cluster_id": topic_id(name),
                "from": "sets",
                "lower_bound": max(0, len(waves) - 1),
                "waves": waves,
                "brokers": brokers,
            }
        )
        rows += _conflicts(chance, shape, name, disks)
    _write(plan_dir, shape, disks, clusters, rows, files=files, shuffle=shuffle)
    return plan_dir


def _disk(chance: random.Random, shape: Shape, cluster: str, ordinal: int, node_id: int, place: int) -> dict[str, Any]:
    total = chance.choice((2, 4, 4, 4, 8)) * 1024 * GIB
    live = int(total * chance.triangular(0.25, 0.96, 0.62))
    replicas = chance.randrange(180, 420)
    kinds = {
        "live": {"entries": replicas, "bytes": live},
        "file": {"entries": 7, "bytes": chance.randrange(4000, 90000)},
    }
    for kind, often, share in (
        ("delete", 0.5, 0.02),
        ("stray", 0.25, 0.05),
        ("future", 0.12, 0.03),
        ("staged", 0.2, 0.04),
        ("unknown", 0.05, 0.001),
    ):
        if chance.random() < often:
            kinds[kind] = {
                "entries": chance.randrange(1, 9),
                "bytes": int(total * share * chance.random() / 2),
            }
    used = sum(counted["bytes"] for counted in kinds.values())
    free = max(0, total - used - chance.randrange(1, 60) * GIB)
    return {
        "cluster": cluster,
        "broker": ordinal,
        "node_id": node_id,
        "rack": f"r{node_id % 3}",
        "log_dir": f"/var/lib/kafka/data-{place}",
        "device": f"8:{16 * (place + 1)}",
        "fs_type": "xfs",
        "total_bytes": total,
        "free_bytes": free,
        "layout": shape.layout,
        "status": "ok",
        "replicas": replicas,
        "replicas_with_id": replicas - (chance.randrange(0, 6) if shape.minted else 0),
        "kinds": dict(sorted(kinds.items())),
    }


def _unread(disk: dict[str, Any]) -> dict[str, Any]:
    keys = ("device", "fs_type", "total_bytes", "free_bytes", "layout")
    return {
        **disk,
        **dict.fromkeys(keys),
        "status": "unread",
        "replicas": 0,
        "replicas_with_id": 0,
        "kinds": {},
    }


def _row(
    slug: str,
    cluster: str,
    unit: str,
    node_id: int,
    log_dir: str | None,
    *,
    name: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    detail: str | None = None,
) -> dict[str, Any]:
    return {
        "slug": slug,
        "cluster": cluster,
        "unit": f"{cluster}|{unit}",
        "node_id": node_id,
        "log_dir": log_dir,
        "name": name,
        "topic": topic,
        "topic_id": None if topic is None or slug == "missing-id" else topic_id(f"{topic}{node_id % 2}"),
        "partition": partition,
        "detail": detail,
    }


def _conflicts(chance: random.Random, shape: Shape, cluster: str, disks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    places = [disk for disk in disks if disk["cluster"] == cluster and disk["status"] == "ok"]
    for unit in range(shape.conflicts):
        topic = shape.topics[unit % len(shape.topics)]
        named = topic if unit < len(shape.topics) else f"{topic}.{unit}"
        for disk in chance.sample(places, min(3, len(places))):
            node_id, log_dir = disk["node_id"], disk["log_dir"]
            rows.append(
                _row(
                    "one-name-two-ids",
                    cluster,
                    named,
                    node_id,
                    log_dir,
                    name=f"{named}-{unit}",
                    topic=named,
                    partition=unit,
                    detail="2 ids",
                )
            )
        disk = chance.choice(places)
        node_id, log_dir = disk["node_id"], disk["log_dir"]
        name = f"deleting/{topic_id(named)}_{unit}"
        rows.append(
            _row(
                "leftover",
                cluster,
                f"{node_id}|{log_dir}|work-root|{name}",
                node_id,
                log_dir,
                name=name,
                topic=named,
                partition=unit,
                detail="staged",
            )
        )
        odd = f"lost+found-{unit}"
        rows.append(_row("unknown-entry", cluster, f"{node_id}|{log_dir}|log-dir|{odd}", node_id, log_dir, name=odd))
    return rows


def _write(
    plan_dir: Path,
    shape: Shape,
    disks: list[dict[str, Any]],
    clusters: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    *,
    files: int,
    shuffle: int,
) -> None:
    brokers = [broker for cluster in clusters for broker in cluster["brokers"]]
    ranks = {(disk["cluster"], disk["node_id"]): disk["broker"] for disk in disks}
    entries = [
        {"broker": ranks[cluster["name"], broker["node_id"]], "lists": None}
        for cluster in sorted(clusters, key=lambda cluster: cluster["name"])
        for broker in cluster["brokers"]
    ]
    counts = {
        slug: len({(row["cluster"], row["unit"]) for row in rows if row["slug"] == slug}) for slug in sorted(SLUGS)
    }
    summary = {
        "plan": 1,
        "clusters": len(clusters),
        "brokers": {
            key: sum(broker["readiness"] == key for broker in brokers) for key in ("blocked", "clean", "unknown")
        },
        "log_dirs": len(disks),
        "replicas": sum(disk["replicas"] for disk in disks),
        "bytes": sum(counted["bytes"] for disk in disks for counted in disk["kinds"].values()),
        "conflicts": counts,
        "minted": [
            {
                "cluster": clusters[0]["name"],
                "topic": shape.topics[number] if number < len(shape.topics) else f"topic-{number:05}",
                "topic_id": topic_id(f"minted {number}"),
            }
            for number in range(shape.minted)
        ],
        "offline_during": 3 if shape.conflicts else 0,
        "waves": max(len(cluster["waves"]) for cluster in clusters),
        "lower_bound": max(cluster["lower_bound"] for cluster in clusters),
        "inventory_sha256": hashlib.sha256(b"inventories").hexdigest(),
        "plan_sha256": hashlib.sha256(b"plan").hexdigest(),
    }
    for name, value in (
        ("summary", summary),
        ("waves", {"clusters": sorted(clusters, key=lambda cluster: cluster["name"])}),
        (
            "disks",
            {
                "brokers": entries,
                "disks": sorted(disks, key=lambda disk: (disk["cluster"], disk["broker"], disk["log_dir"])),
            },
        ),
    ):
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        (plan_dir / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (plan_dir / "conflicts").mkdir()
    if shuffle:
        random.Random(shuffle).shuffle(rows)
    for number in range(files):
        table = pa.Table.from_pylist(rows[number::files], schema=SCHEMA)
        pq.write_table(table, plan_dir / "conflicts" / f"part-{number:05}.parquet")
    (plan_dir / "conflicts" / "_SUCCESS").touch()
