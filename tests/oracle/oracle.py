"""What a plan must say, computed a second time from the fleet file and its inventories.

What it is: design §7.4 to §7.7 turned into plain Python, slow and obvious, so that a difference to the
planner is a question about the text and not about frames.

What it is not: a planner. It chooses no waves: :mod:`tests.oracle.judge` checks whatever waves it is shown
against the floors given here. Readings of unclear places are in this folder's README.

Spec: design §7.4 (readiness), §7.5 (floor, lower bound), §7.6 (minted ids), §7.7 (documents).
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.conflicts import (
    SLUGS,
    ConflictRow,
    Findings,
    Holding,
    cluster_id_of,
    find_conflicts,
    holdings,
    is_metadata_broken,
)
from tests.oracle.reading import Broker, Cluster, read_fleet

RESERVED_IDS = frozenset(
    base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode("ascii")[:22] for number in range(100)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnswer:
    """What must hold in one cluster; ``floors`` maps (topic, partition) to (broker ordinals, floor)."""

    name: str
    respect_racks: bool
    clean: Mapping[int, str | None]
    """node id -> rack; clean brokers have distinct node ids."""
    ordinals: Mapping[int, int]
    """node id of a clean broker -> its ordinal."""
    floors: Mapping[tuple[str, int], tuple[frozenset[int], int]]
    lower_bound: int
    waves_entry: Mapping[str, Any]
    """The cluster's object in ``waves.json`` without ``waves``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything of a plan that is determined by the text."""

    clusters: tuple[ClusterAnswer, ...]
    findings: Findings
    summary: Mapping[str, Any]
    """``summary.json`` without ``waves`` and ``plan_sha256``."""
    documents: Mapping[str, bytes]
    """Path below the plan -> all bytes of a broker's document."""
    steps: tuple[Mapping[str, Any], ...]
    """Rows of ``steps/`` without ``wave``."""
    conflict_rows: tuple[ConflictRow, ...]


def render(value: object) -> bytes:
    """Give the one spelling of a JSON value: sorted keys, no blanks, UTF-8, LF."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8") + b"\n"


def digest_of(digests: Iterable[str]) -> str:
    """Give the SHA-256 over digests, sorted, each with LF."""
    return hashlib.sha256("".join(f"{digest}\n" for digest in sorted(digests)).encode("ascii")).hexdigest()


def mint(inventory_sha256: str, cluster: str, topic: str, counter: int) -> str:
    """Give the id that §7.6 makes of these four."""
    material = b"\0".join(text.encode("utf-8") for text in (inventory_sha256, cluster, topic, str(counter)))
    raw = bytearray(hashlib.sha256(material).digest()[:16])
    raw[6] = 0x40 | (raw[6] & 0x0F)
    raw[8] = 0x80 | (raw[8] & 0x3F)
    return base64.urlsafe_b64encode(bytes(raw)).decode("ascii")[:22]


def mint_free(inventory_sha256: str, cluster: str, topic: str, taken: set[str], former: str | None) -> str:
    """Give the first acceptable id: the former plan's, then counter 0, 1, 2, …"""
    counter = 0
    candidate = former if former is not None else mint(inventory_sha256, cluster, topic, counter)
    while candidate in RESERVED_IDS or candidate.startswith("-") or candidate in taken:
        candidate = mint(inventory_sha256, cluster, topic, counter)
        counter += 1
    return candidate


def floor_of(cluster: Cluster, topic: str, replicas: int) -> int:
    """Give how many replicas of a partition must stay up."""
    wanted = cluster.min_insync
    for pattern, value in cluster.globs:
        if fnmatch.fnmatchcase(topic, pattern):
            wanted = value
            break
    if wanted is None:
        return replicas - 1
    return max(0, min(wanted, replicas - 1))


def _ids_by_topic(live: list[Holding]) -> dict[str, set[str]]:
    ids: dict[str, set[str]] = defaultdict(set)
    for held in live:
        if held.topic is not None:
            ids[held.topic].update({held.topic_id} - {None})  # type: ignore[arg-type]  # None was taken out
    return dict(ids)


def _lower_bound(
    cluster: Cluster, clean: set[int], floors: Mapping[tuple[str, int], tuple[frozenset[int], int]]
) -> int:
    if not clean:
        return 0
    bounds = [1]
    for brokers, floor in floors.values():
        down = len(brokers & clean)
        if down >= 1:
            bounds.append(-(-down // (len(brokers) - floor)))
    if cluster.respect_racks:
        bounds.append(len({broker.rack for broker in cluster.brokers if broker.ordinal in clean}))
    return max(bounds)


def _document(
    broker: Broker, cluster_id: str | None, ids: Mapping[str, set[str]], minted: Mapping[str, str]
) -> tuple[bytes, list[dict[str, Any]]]:
    """Write the document of a clean broker and list its steps."""
    todo = [
        (inventory.disk["log_dir"], entry["name"], entry)
        for inventory in broker.usable
        for entry in inventory.entries
        if entry["kind"] == "live" and "/" not in entry["name"]
    ]
    steps: list[dict[str, Any]] = []
    for log_dir, name, entry in sorted(todo, key=lambda item: item[:2]):
        topic = entry["topic"]
        if entry["topic_id"] is not None:
            topic_id, source = entry["topic_id"], "own"
        elif ids[topic]:
            (topic_id,), source = ids[topic], "siblings"
        else:
            topic_id, source = minted[topic], "minted"
        steps.append(
            {
                "step": len(steps) + 1,
                "op": "relayout",
                "log_dir": log_dir,
                "from": name,
                "to": f"{topic_id[:2]}/{topic_id}_{entry['partition']}",
                "topic": topic,
                "topic_id": topic_id,
                "partition": entry["partition"],
                "id_from": source,
                "log_bytes": entry["log_bytes"],
            }
        )
    header = {
        "plan": 1,
        "verb": "layout",
        "cluster": broker.cluster,
        "cluster_id": cluster_id,
        "node_id": broker.node_id,
        "inventory_sha256": digest_of(inventory.sha256 for inventory in broker.usable),
        "log_dirs": sorted(inventory.disk["log_dir"] for inventory in broker.usable),
    }
    body = b"".join([render(header), *map(render, steps)])
    return body + render({"steps": len(steps), "sha256": hashlib.sha256(body).hexdigest()}), steps


def answer(fleet_yaml: Path, former: Path | None = None) -> Answer:
    """Compute what the plan of a fleet must be.

    Args:
        fleet_yaml: the fleet file.
        former: a plan directory whose minted ids are taken first.

    Returns:
        All that the text determines; the waves themselves are free within the floors.
    """
    clusters = read_fleet(fleet_yaml)
    findings = find_conflicts(clusters)
    usable = [inventory for cluster in clusters for broker in cluster.brokers for inventory in broker.usable]
    inventory_sha256 = digest_of(inventory.sha256 for inventory in usable)
    taken = {entry["topic_id"] for inventory in usable for entry in inventory.entries} - {None}
    kept: dict[tuple[str, str], str] = {}
    if former is not None:
        for row in json.loads((former / "summary.json").read_text(encoding="utf-8"))["minted"]:
            kept[row["cluster"], row["topic"]] = row["topic_id"]

    minted: list[dict[str, str]] = []
    answers: list[ClusterAnswer] = []
    documents: dict[str, bytes] = {}
    all_steps: list[dict[str, Any]] = []
    readiness_counts = Counter({"clean": 0, "blocked": 0, "unknown": 0})
    offline_during = 0
    for cluster in sorted(clusters, key=lambda one: one.name):
        live = [held for held in holdings(cluster) if held.entry["kind"] == "live"]
        ids = _ids_by_topic(live)
        broken_topics = {held.topic for held in live if is_metadata_broken(held)}
        has_unread = any(broker.unread for broker in cluster.brokers)
        ids_minted: dict[str, str] = {}
        without_id: set[str] = set()
        for topic in sorted(topic for topic, found in ids.items() if not found):
            if has_unread or topic in broken_topics:
                without_id.add(topic)
                continue
            chosen = mint_free(inventory_sha256, cluster.name, topic, taken, kept.get((cluster.name, topic)))
            taken.add(chosen)
            ids_minted[topic] = chosen
            minted.append({"cluster": cluster.name, "topic": topic, "topic_id": chosen})

        reasons: dict[int, set[str]] = {
            broker.ordinal: set(findings.blocked[broker.ordinal]) for broker in cluster.brokers
        }
        for broker in cluster.brokers:
            if broker.unread:
                reasons[broker.ordinal].add("disk-unread")
        for held in live:
            if held.topic in without_id and not is_metadata_broken(held):
                reasons[held.broker.ordinal].add("missing-id")
            reasons[held.broker.ordinal].update({"symlink", "unreadable"} & set(held.entry["problems"]))
        clean = {broker.ordinal for broker in cluster.brokers if not reasons[broker.ordinal]}

        holders: dict[tuple[str, int], set[int]] = defaultdict(set)
        for held in live:
            if held.topic is not None:
                holders[held.topic, held.partition].add(held.broker.ordinal)
        floors = {
            key: (frozenset(brokers), floor_of(cluster, key[0], len(brokers))) for key, brokers in holders.items()
        }
        offline_during += sum(1 for brokers in holders.values() if len(brokers) == 1 and brokers <= clean)

        rows: list[dict[str, Any]] = []
        cluster_id = cluster_id_of(cluster)
        for broker in cluster.brokers:
            steps: list[dict[str, Any]] = []
            state = "unknown" if broker.unread else "clean" if broker.ordinal in clean else "blocked"
            readiness_counts[state] += 1
            if state == "clean":
                path = f"brokers/{cluster.name}/{broker.node_id}.jsonl"
                documents[path], steps = _document(broker, cluster_id, ids, ids_minted)
                for step in steps:
                    all_steps.append({**step, "cluster": cluster.name, "node_id": broker.node_id})
            rows.append(
                {
                    "node_id": broker.node_id,
                    "rack": broker.rack,
                    "readiness": state,
                    "reasons": sorted(reasons[broker.ordinal]),
                    "steps": len(steps),
                    "log_bytes": sum(
                        held.entry["log_bytes"] or 0 for held in live if held.broker.ordinal == broker.ordinal
                    ),
                    "forecast_ms": 250 + -(-len(steps) // 3),
                }
            )
        rows.sort(key=lambda row: (row["node_id"], render(row)))
        lower_bound = _lower_bound(cluster, clean, floors)
        answers.append(
            ClusterAnswer(
                name=cluster.name,
                respect_racks=cluster.respect_racks,
                clean={one.node_id: one.rack for one in cluster.brokers if one.ordinal in clean},
                ordinals={one.node_id: one.ordinal for one in cluster.brokers if one.ordinal in clean},
                floors=floors,
                lower_bound=lower_bound,
                waves_entry={
                    "name": cluster.name,
                    "cluster_id": cluster_id,
                    "from": "sets",
                    "lower_bound": lower_bound,
                    "brokers": rows,
                },
            )
        )
    entries = [entry for inventory in usable for entry in inventory.entries]
    summary = {
        "plan": 1,
        "clusters": len(clusters),
        "brokers": dict(readiness_counts),
        "log_dirs": len(usable) + sum(broker.unread for cluster in clusters for broker in cluster.brokers),
        "replicas": sum(1 for entry in entries if entry["kind"] == "live"),
        "bytes": sum(entry["bytes"] or 0 for entry in entries),
        "conflicts": {slug: findings.units[slug] for slug in SLUGS},
        "minted": sorted(minted, key=lambda row: (row["cluster"], row["topic"])),
        "offline_during": offline_during,
        "lower_bound": max((one.lower_bound for one in answers), default=0),
        "inventory_sha256": inventory_sha256,
    }
    return Answer(
        clusters=tuple(answers),
        findings=findings,
        summary=summary,
        documents=documents,
        steps=tuple(all_steps),
        conflict_rows=tuple(findings.rows),
    )
