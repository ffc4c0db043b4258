"""The model of the report: the plan's own documents, and sums over them. ``build_model`` only reads. The model contains
the plan's documents unchanged; derived values are separate, under ``totals``, ``clusters`` and ``broker_facts``.

Not here: the page (``report.page``), and the reading of ``conflicts/`` (``report.conflicts``).

Spec: design §7.7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict, cast

from logdir.markup import percent
from migrate.errors import PlanFormatError
from migrate.report.conflicts import Conflict, read_conflicts
from migrate.report.plan import Disk, Entry, Summary, WaveCluster, Waves, read_document

RESTART_MS = 5 * 60 * 1000
"""Assumed time to stop and start the brokers of one wave. No inventory contains it; the page names it."""
MINTED_SHOWN = 200
"""Limit of minted ids on the page; all are in ``summary.json``."""
RECLAIMABLE = ("delete", "stray", "future", "staged")
WITHIN_SHOWN = 5
TOP_RECLAIM_SHOWN = 10

Counted = list[int]
"""Two numbers: how many entries, and their bytes."""


class Spread(TypedDict):
    """How evenly bytes are distributed over the brokers or the disks of a cluster."""

    count: int
    least: int
    median: int
    """The median value; of an even number of values the lower of the middle two."""
    mean: int
    most: int
    permille: int
    """Largest divided by mean, in thousandths; 0 without bytes."""
    values: list[int]


class Within(TypedDict):
    """How evenly the bytes of one broker are distributed over its disks."""

    node_id: int
    log_dir: str | None
    most: int
    mean: int
    permille: int


class WaveFacts(TypedDict):
    """Sums and times of one wave of one cluster."""

    node_ids: list[int]
    steps: int
    restarts: int
    """Number of brokers with steps, each of which is stopped and started."""
    start_ms: int
    forecast_ms: int
    """Forecast of its slowest broker: the brokers of a wave work in parallel."""
    length_ms: int
    """The forecast plus ``RESTART_MS`` if a broker restarts: the restarts of a wave happen in parallel."""


class ClusterFacts(TypedDict):
    """Sums over one cluster."""

    name: str
    readiness: dict[str, int]
    log_dirs: int
    unread: int
    kinds: dict[str, Counted]
    layouts: dict[str, int]
    replicas: int
    replicas_with_id: int
    steps: int
    restarts: int
    length_ms: int
    total_bytes: int
    free_bytes: int
    waves: list[WaveFacts]
    wave_count: int
    by_broker: Spread
    by_disk: Spread
    within: list[Within]


class BrokerFacts(TypedDict):
    """Sums over the disks of one broker: one for each broker of ``waves.json``, in the same order."""

    wave: int | None
    broker: int
    """The broker's rank, by which its disks name it."""
    twin: int
    """The number of this entry among those with the same node id, from 1; 0 if there is no other."""
    twins: int
    lists: str | None
    """What the broker's entry lists, if another entry has the same node id; else ``None``."""
    log_dirs: int
    unread: int
    replicas: int
    bytes: int
    kinds: dict[str, Counted]


class Totals(TypedDict):
    """Sums over all clusters of the fleet."""

    kinds: dict[str, Counted]
    brokers: int
    bytes: int
    reclaimable: Counted
    reclaimable_percent: int
    """Percentage of reclaimable bytes among all bytes."""
    most_reclaimable: list[int]
    """Indices of the disks with most reclaimable bytes, largest first."""
    unread: int
    steps: int
    restarts: int
    restart_ms: int
    """Assumed restart time of one wave."""
    length_ms: int
    """Duration of the waves of the cluster that takes longest."""
    total_bytes: int
    free_bytes: int
    used_percent: int
    minted: int
    minted_shown: int


class Model(TypedDict):
    """All content of the report page: the plan's documents, and sums over them."""

    summary: Summary
    waves: Waves
    disks: list[Disk]
    conflicts: list[Conflict]
    clusters: list[ClusterFacts]
    broker_facts: list[BrokerFacts]
    totals: Totals


def build_model(plan_dir: Path) -> Model:
    """Read a plan directory into the model of the page.

    Args:
        plan_dir: The directory with ``summary.json``, ``waves.json``, ``disks.json`` and ``conflicts/``.

    Returns:
        A dict of JSON values; clusters, brokers and disks in the plan's order. Minted ids beyond ``MINTED_SHOWN``
        and conflict rows beyond their bounds are left out, their numbers are not.

    Raises:
        PlanFormatError: a document is missing, no JSON, or lacks a key.
    """
    summary = cast(Summary, read_document(plan_dir / "summary.json", tuple(Summary.__annotations__)))
    waves = cast(Waves, read_document(plan_dir / "waves.json", ("clusters",)))
    disks_path = plan_dir / "disks.json"
    document = read_document(disks_path, ("brokers", "disks"))
    disks, entries = cast("list[Disk]", document["disks"]), cast("list[Entry]", document["brokers"])
    try:
        minted = len(summary["minted"])
        summary["minted"] = summary["minted"][:MINTED_SHOWN]
        clusters: list[ClusterFacts] = []
        brokers: list[BrokerFacts] = []
        for cluster in waves["clusters"]:
            own = [disk for disk in disks if disk["cluster"] == cluster["name"]]
            brokers += _broker_facts(cluster, entries[len(brokers) :], own)
            clusters.append(_cluster_facts(cluster, own))
        totals = _totals(clusters, disks, minted)
    except (KeyError, TypeError, IndexError) as error:
        raise PlanFormatError(
            str(plan_dir), expected="a plan of this version", found=repr(error), fix="run `logdirctl fleet plan` again"
        ) from error
    conflicts = read_conflicts(plan_dir / "conflicts", summary["conflicts"])
    return Model(
        summary=summary,
        waves=waves,
        disks=disks,
        conflicts=conflicts,
        clusters=clusters,
        broker_facts=brokers,
        totals=totals,
    )


def sum_kinds(disks: Iterable[Mapping[str, object]]) -> dict[str, Counted]:
    """Return the sums of entries and bytes by kind over some disks, sorted by kind."""
    summed: dict[str, Counted] = {}
    for disk in disks:
        for kind, counted in cast("dict[str, dict[str, int]]", disk["kinds"]).items():
            into = summed.setdefault(kind, [0, 0])
            into[0] += counted["entries"]
            into[1] += counted["bytes"]
    return dict(sorted(summed.items()))


def disk_bytes(disk: Disk) -> int:
    """Return the bytes of all entries of a disk."""
    return sum(counted["bytes"] for counted in disk["kinds"].values())


def _capacity(disks: Iterable[Disk]) -> tuple[int, int]:
    # Two log dirs of one file system report the same space twice.
    seen: dict[tuple[int, object], tuple[int, int]] = {}
    for number, disk in enumerate(disks):
        if disk["total_bytes"] is not None and disk["free_bytes"] is not None:
            place = disk["device"] if disk["device"] is not None else number
            seen[disk["broker"], place] = (disk["total_bytes"], disk["free_bytes"])
    return sum(total for total, _ in seen.values()), sum(free for _, free in seen.values())


def _spread(values: list[int]) -> Spread:
    ordered = sorted(values)
    total = sum(ordered)
    return Spread(
        count=len(ordered),
        least=ordered[0] if ordered else 0,
        median=ordered[(len(ordered) - 1) // 2] if ordered else 0,
        mean=total // len(ordered) if ordered else 0,
        most=ordered[-1] if ordered else 0,
        permille=ordered[-1] * len(ordered) * 1000 // total if total else 0,
        values=ordered,
    )


def _broker_facts(cluster: WaveCluster, entries: list[Entry], disks: list[Disk]) -> list[BrokerFacts]:
    by_rank: dict[int, list[Disk]] = {}
    for disk in disks:
        by_rank.setdefault(disk["broker"], []).append(disk)
    wave_of = {node_id: number for number, wave in enumerate(cluster["waves"]) for node_id in wave}
    claimed = Counter(broker["node_id"] for broker in cluster["brokers"])
    seen: Counter[int] = Counter()
    facts = []
    for place, broker in enumerate(cluster["brokers"]):
        node_id, entry = broker["node_id"], entries[place]
        seen[node_id] += 1
        own = by_rank.get(entry["broker"], [])
        kinds = sum_kinds(own)
        facts.append(
            BrokerFacts(
                wave=wave_of.get(node_id),
                broker=entry["broker"],
                twin=seen[node_id] if claimed[node_id] > 1 else 0,
                twins=claimed[node_id],
                lists=entry["lists"],
                log_dirs=len(own),
                unread=sum(disk["status"] != "ok" for disk in own),
                replicas=sum(disk["replicas"] for disk in own),
                bytes=sum(counted[1] for counted in kinds.values()),
                kinds=kinds,
            )
        )
    return facts


def _wave_facts(cluster: WaveCluster) -> list[WaveFacts]:
    brokers = {broker["node_id"]: broker for broker in cluster["brokers"]}
    facts, start_ms = [], 0
    for wave in cluster["waves"]:
        members = [brokers[node_id] for node_id in wave]
        forecast_ms = max(broker["forecast_ms"] for broker in members)
        restarts = sum(broker["steps"] > 0 for broker in members)
        length_ms = forecast_ms + (RESTART_MS if restarts else 0)
        facts.append(
            WaveFacts(
                node_ids=wave,
                steps=sum(broker["steps"] for broker in members),
                restarts=restarts,
                start_ms=start_ms,
                forecast_ms=forecast_ms,
                length_ms=length_ms,
            )
        )
        start_ms += length_ms
    return facts


def _cluster_facts(cluster: WaveCluster, disks: list[Disk]) -> ClusterFacts:
    readiness = dict.fromkeys(("clean", "blocked", "unknown"), 0)
    for broker in cluster["brokers"]:
        readiness[broker["readiness"]] += 1
    layouts: dict[str, int] = {}
    by_broker: dict[int, list[Disk]] = {}
    for disk in disks:
        by_broker.setdefault(disk["broker"], []).append(disk)
        if disk["status"] == "ok":
            layouts[str(disk["layout"])] = layouts.get(str(disk["layout"]), 0) + 1
    # A broker with an unread disk would look emptier than it is.
    whole = [own for own in by_broker.values() if all(disk["status"] == "ok" for disk in own)]
    within = []
    for own in whole:
        fullest = max(own, key=disk_bytes)
        spread = _spread([disk_bytes(disk) for disk in own])
        if len(own) > 1 and spread["most"]:
            within.append(
                Within(
                    node_id=fullest["node_id"],
                    log_dir=fullest["log_dir"],
                    most=spread["most"],
                    mean=spread["mean"],
                    permille=spread["permille"],
                )
            )
    within.sort(key=lambda row: (-row["permille"], row["node_id"], str(row["log_dir"])))
    waves = _wave_facts(cluster)
    total_bytes, free_bytes = _capacity(disks)
    return ClusterFacts(
        name=cluster["name"],
        readiness=readiness,
        log_dirs=len(disks),
        unread=sum(disk["status"] != "ok" for disk in disks),
        kinds=sum_kinds(disks),
        layouts=dict(sorted(layouts.items())),
        replicas=sum(disk["replicas"] for disk in disks),
        replicas_with_id=sum(disk["replicas_with_id"] for disk in disks),
        steps=sum(broker["steps"] for broker in cluster["brokers"]),
        restarts=sum(wave["restarts"] for wave in waves),
        length_ms=sum(wave["length_ms"] for wave in waves),
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        waves=waves,
        wave_count=len(waves),
        by_broker=_spread([sum(map(disk_bytes, own)) for own in whole]),
        by_disk=_spread([disk_bytes(disk) for disk in disks if disk["status"] == "ok"]),
        within=within[:WITHIN_SHOWN],
    )


def _totals(clusters: list[ClusterFacts], disks: list[Disk], minted: int) -> Totals:
    kinds: dict[str, Counted] = {kind: [0, 0] for kind in RECLAIMABLE}
    for cluster in clusters:
        for kind, counted in cluster["kinds"].items():
            into = kinds.setdefault(kind, [0, 0])
            into[0] += counted[0]
            into[1] += counted[1]
    reclaimable = [sum(kinds.get(kind, (0, 0))[part] for kind in RECLAIMABLE) for part in (0, 1)]
    held = [sum(disk["kinds"].get(kind, {}).get("bytes", 0) for kind in RECLAIMABLE) for disk in disks]
    most = sorted((place for place in range(len(disks)) if held[place]), key=lambda place: (-held[place], place))
    every = sum(counted[1] for counted in kinds.values())
    total_bytes = sum(cluster["total_bytes"] for cluster in clusters)
    free_bytes = sum(cluster["free_bytes"] for cluster in clusters)
    return Totals(
        kinds=dict(sorted(kinds.items())),
        brokers=sum(sum(cluster["readiness"].values()) for cluster in clusters),
        bytes=every,
        reclaimable=reclaimable,
        reclaimable_percent=percent(reclaimable[1], every),
        most_reclaimable=most[:TOP_RECLAIM_SHOWN],
        unread=sum(cluster["unread"] for cluster in clusters),
        steps=sum(cluster["steps"] for cluster in clusters),
        restarts=sum(cluster["restarts"] for cluster in clusters),
        restart_ms=RESTART_MS,
        # Clusters run side by side.
        length_ms=max((cluster["length_ms"] for cluster in clusters), default=0),
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        used_percent=percent(total_bytes - free_bytes, total_bytes),
        minted=minted,
        minted_shown=min(minted, MINTED_SHOWN),
    )
