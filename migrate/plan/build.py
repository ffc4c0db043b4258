"""Building the plan directory: it appears complete or not at all, with the same bytes for the same inventories.

Findings become waves, documents, tables and a summary. Spark's tasks write documents and tables; the driver only writes
files whose size depends on the number of brokers and minted ids.

Not here: the findings (``findings``), the search for waves (``waves.schedule``), the report (``report``).

Spec: design §7.5, §7.7.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from logdir.errors import Problem, shown
from migrate.background_jobs import BackgroundJobs
from migrate.plan import conflicts, steps
from migrate.plan.census import BrokerFacts, ClusterFacts
from migrate.plan.documents import Document, write_documents
from migrate.plan.entry_counts import disks_document
from migrate.plan.findings import Findings, PersistedFrames, find
from migrate.plan.mint import read_former
from migrate.plan.publish import new_directory
from migrate.plan.readiness import Readiness
from migrate.plan.summary import PLAN, Summary
from migrate.report.page import render_report
from migrate.small_frame import small_frame
from migrate.source.fleet import Fleet
from migrate.waves import groups
from migrate.waves.schedule import WavePlan, plan_waves, plan_waves_from_pairs

GROUPS_LIMIT = 1_000_000
"""Limit of distinct (broker set, floor) groups of a cluster on the driver; above it, broker pairs are used."""
_BROKER_MS = 250
_STEPS_PER_MS = 3
_PLACE = [("source", pa.int32()), ("cluster", pa.string()), ("node_id", pa.int64()), ("log_dir", pa.string())]
_PLACES = pa.schema(_PLACE)
_STEP_PLACES = pa.schema(
    [*_PLACE, ("disk_no", pa.int32()), ("wave", pa.int32()), ("log_dir_json", pa.string())],
)
_HEADERS = pa.schema([("broker", pa.int32()), ("path", pa.string()), ("header", pa.string())])
_CONFLICTS = pa.schema(
    [
        ("slug", pa.string()),
        ("cluster", pa.string()),
        ("node_id", pa.int64()),
        ("log_dir", pa.string()),
        ("name", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int64()),
        ("unit", pa.string()),
        ("detail", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWaves:
    """The waves of one cluster, what they were planned from, and the partitions that go offline."""

    plan: WavePlan
    origin: str
    """``sets``: planned from broker sets with floors; ``pairs``: from pairs of brokers that share a partition."""
    offline: int


def json_text(value: object) -> str:
    """Return JSON with sorted keys and without blanks, on one line without LF."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def plan_fleet(
    spark: SparkSession,
    frame: DataFrame,
    fleet: Fleet,
    out: Path,
    former: Path | None = None,
    *,
    groups_limit: int = GROUPS_LIMIT,
    progress: Callable[[str], None] = lambda stage: None,
    warn: Callable[[Problem], None] = lambda problem: None,
) -> Summary:
    """Write the plan of a fleet.

    Args:
        spark: The session; the sink of documents is registered with it.
        frame: Rows of the source ``logdir`` with ``planner=true``.
        fleet: The fleet of these rows.
        out: The plan's directory: must not exist, its parent must. It appears complete or not at all.
        former: The directory of an earlier plan, whose minted ids are used first.
        groups_limit: How many broker sets of a cluster the driver collects; if there are more, broker pairs are used.
        progress: Called with the name of each stage as it begins.
        warn: Called with each topic glob that matches nothing; the path is its place in the fleet file.

    Returns:
        The content of ``summary.json``.

    Raises:
        OutputExistsError: ``out`` exists.
        OutputError: it could not be written.
        PlanFormatError: ``former`` is no plan.

    Spec: design §7.7.
    """
    earlier = {} if former is None else read_former(former)
    with new_directory(out) as directory, PersistedFrames() as kept:
        findings = find(spark, frame, fleet, earlier, kept, progress)
        for problem in _unmatched_globs(findings):
            warn(problem)
        with BackgroundJobs(spark) as beside:
            beside.begin(lambda: _write_conflicts(spark, findings, directory))
            progress("making waves")
            waves = _make_waves(findings, fleet, kept, groups_limit)
            progress("writing steps and conflicts")
            documents = _write_steps(spark, findings, waves, directory, kept, beside)
        waves_text = json_text(_waves_document(findings, waves)) + "\n"
        (directory / "waves.json").write_bytes(waves_text.encode("utf-8"))
        digests = [(document.path, document.sha256) for document in documents]
        digests.append(("waves.json", hashlib.sha256(waves_text.encode("utf-8")).hexdigest()))
        summary = _summarise(findings, waves, plan_sha256=_digest_of_files(digests))
        (directory / "summary.json").write_bytes((json_text(summary.as_json()) + "\n").encode("utf-8"))
        order = [broker.broker for broker in _in_order(findings)]
        disks_text = json_text(disks_document(findings.census, findings.tallies, order)) + "\n"
        (directory / "disks.json").write_bytes(disks_text.encode("utf-8"))
        progress("writing the report")
        (directory / "report.html").write_bytes(render_report(directory).encode("utf-8"))
    return summary


def _unmatched_globs(findings: Findings) -> Iterator[Problem]:
    for number, glob in findings.unmatched:
        cluster = findings.census.clusters[number]
        found = f"no topic of cluster {cluster.name} that matches"
        if cluster.has_unread:  # Its topic may be on an unread disk.
            found += " on the disks that were read"
        place = f"clusters[{number}].topics[{shown(glob)}]"
        yield Problem(
            "fleet-topic-glob-without-match", place, "a glob that matches a topic", found, "correct or remove the glob"
        )


def _digest_of_files(digests: list[tuple[str, str]]) -> str:
    lines = "".join(f"{sha256}  {path}\n" for path, sha256 in sorted(digests))
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()


def _is_clean(findings: Findings, broker: BrokerFacts) -> bool:
    return findings.verdicts[broker.broker].readiness is Readiness.CLEAN


def _make_waves(findings: Findings, fleet: Fleet, kept: PersistedFrames, limit: int) -> tuple[ClusterWaves, ...]:
    brokers = findings.census.brokers
    clean = [_is_clean(findings, broker) for broker in brokers]
    bounds = {}
    sets = findings.sets
    if any(clean):
        sets = kept.keep(sets.transform(groups.with_clean, clean))
        bounds = {row["cluster_no"]: row for row in sets.transform(groups.fold_bounds).collect()}
    # Waves are searched in the order of the keys: ranks, so that the order of the fleet file does not matter.
    ranks = findings.census.ranks()
    made = []
    for facts, cluster in zip(findings.census.clusters, fleet.clusters, strict=True):
        racks = {ranks[broker]: brokers[broker].rack for broker in facts.brokers if clean[broker]}
        respect = cluster.racks == "respect"
        row = bounds.get(facts.cluster)
        here = sets.filter(F.col("cluster_no") == facts.cluster)
        if row is None:  # No clean broker of the cluster has a replica.
            plan, origin, offline = plan_waves(clean=racks, groups=(), respect_racks=respect), "sets", 0
        elif row["groups"] <= limit:
            plan = plan_waves(clean=racks, groups=_collected_sets(here, ranks), respect_racks=respect)
            origin, offline = "sets", row["offline"]
        else:
            pairs = _collected_pairs(here, ranks)
            plan = plan_waves_from_pairs(clean=racks, pairs=pairs, groups_bound=row["bound"], respect_racks=respect)
            origin, offline = "pairs", row["offline"]
        named = {ranks[broker]: broker for broker in facts.brokers}
        waves = tuple(tuple(named[rank] for rank in wave) for wave in plan.waves)
        made.append(ClusterWaves(plan=replace(plan, waves=waves), origin=origin, offline=offline))
    return tuple(made)


def _collected_sets(sets: DataFrame, ranks: Sequence[int]) -> Iterator[tuple[frozenset[int], int]]:
    for batch in sets.select("brokers", "floor").toArrow().to_batches(max_chunksize=10_000):
        members, floors = batch.column("brokers").to_pylist(), batch.column("floor").to_pylist()
        yield from zip((frozenset(map(ranks.__getitem__, of)) for of in members), floors, strict=True)


def _collected_pairs(sets: DataFrame, ranks: Sequence[int]) -> Iterator[tuple[int, int]]:
    for batch in sets.transform(groups.fold_pairs).toArrow().to_batches(max_chunksize=10_000):
        left, right = batch.column("left").to_pylist(), batch.column("right").to_pylist()
        yield from zip(map(ranks.__getitem__, left), map(ranks.__getitem__, right), strict=True)


def _document_path(broker: BrokerFacts) -> str:
    return f"brokers/{broker.cluster_name}/{broker.node_id}.jsonl"


def _header(broker: BrokerFacts, cluster: ClusterFacts) -> str:
    return json_text(
        {
            "plan": PLAN,
            "verb": "layout",
            "cluster": cluster.name,
            "cluster_id": cluster.cluster_id,
            "node_id": broker.node_id,
            "inventory_sha256": broker.inventory_sha256,
            "log_dirs": list(broker.log_dirs),
        }
    )


def _write_steps(
    spark: SparkSession,
    findings: Findings,
    waves: tuple[ClusterWaves, ...],
    directory: Path,
    kept: PersistedFrames,
    beside: BackgroundJobs,
) -> list[Document]:
    census = findings.census
    clean = [broker for broker in census.brokers if _is_clean(findings, broker)]
    wave_of = {broker: number for made in waves for number, members in enumerate(made.plan.waves) for broker in members}
    (directory / "brokers").mkdir()
    disks = [(broker, disk) for broker in clean for disk in broker.disks]
    places = small_frame(
        spark,
        (
            (disk.source, broker.cluster_name, broker.node_id, disk.log_dir, number, wave_of[broker.broker],
             json_text(disk.log_dir))
            for number, (broker, disk) in enumerate(disks)
        ),
        _STEP_PLACES,
    )  # fmt: skip
    headers = small_frame(
        spark,
        ((broker.broker, _document_path(broker), _header(broker, census.clusters[broker.cluster])) for broker in clean),
        _HEADERS,
    )
    live = findings.usable.filter(F.col("kind") == "live")
    numbered = kept.keep(
        live.transform(steps.filter_steps, places.select("source", "disk_no"))
        .transform(steps.with_ids, findings.given)
        .transform(steps.with_numbers, headers)
    )
    table = numbered.transform(steps.select_table, places)
    beside.begin(lambda: _write_table(table, directory / "steps"))
    lines = numbered.transform(steps.select_lines, headers, places)
    expected = {_document_path(broker): findings.entries[broker.broker].steps for broker in clean}
    return write_documents(spark, lines, directory, expected)


def _write_conflicts(spark: SparkSession, findings: Findings, directory: Path) -> None:
    brokers = findings.census.brokers
    places = small_frame(
        spark,
        (
            (disk.source, broker.cluster_name, broker.node_id, disk.log_dir)
            for broker in brokers
            for disk in broker.disks
        ),
        _PLACES,
    )
    of_disks = small_frame(
        spark,
        (
            (holder.slug, brokers[holder.broker].cluster_name, brokers[holder.broker].node_id, holder.log_dir,
             None, None, None, None, holder.unit, holder.detail)
            for holder in findings.census.holders
        ),
        _CONFLICTS,
    )  # fmt: skip
    found = [findings.usable.transform(conflicts.flag_entries)]
    if findings.holders is not None:
        found.append(findings.holders)
    rows = conflicts.union_all(found).transform(conflicts.with_units, places).unionByName(of_disks)
    _write_table(rows, directory / "conflicts")


def _write_table(frame: DataFrame, directory: Path) -> None:
    frame.write.mode("errorifexists").parquet(f"file://{directory}")
    for marker in (*directory.glob(".*.crc"), directory / "_SUCCESS"):
        marker.unlink(missing_ok=True)


def _broker_document(findings: Findings, broker: BrokerFacts) -> dict[str, object]:
    verdict, counts = findings.verdicts[broker.broker], findings.entries[broker.broker]
    number = counts.steps if verdict.readiness is Readiness.CLEAN else 0
    return {
        "node_id": broker.node_id,
        "rack": broker.rack,
        "readiness": verdict.readiness.value,
        "reasons": list(verdict.reasons),
        "steps": number,
        "log_bytes": counts.log_bytes,
        "forecast_ms": _BROKER_MS + -(-number // _STEPS_PER_MS),
    }


def _in_order(findings: Findings) -> list[BrokerFacts]:
    """Return the brokers as ``waves.json`` lists them: by cluster, node id and their JSON text; equal ones by rank."""
    ranks = findings.census.ranks()

    def place(broker: BrokerFacts) -> tuple[object, ...]:
        document = json_text(_broker_document(findings, broker))
        return broker.cluster_name, broker.node_id, document, ranks[broker.broker]

    return sorted(findings.census.brokers, key=place)


def _waves_document(findings: Findings, waves: tuple[ClusterWaves, ...]) -> dict[str, object]:
    brokers = findings.census.brokers
    members: dict[str, list[dict[str, object]]] = {cluster.name: [] for cluster in findings.census.clusters}
    for broker in _in_order(findings):
        members[broker.cluster_name].append(_broker_document(findings, broker))
    documents: list[dict[str, object]] = [
        {
            "name": cluster.name,
            "cluster_id": cluster.cluster_id,
            "from": made.origin,
            "lower_bound": made.plan.lower_bound,
            "waves": [sorted(brokers[broker].node_id for broker in wave) for wave in made.plan.waves],
            "brokers": members[cluster.name],
        }
        for cluster, made in zip(findings.census.clusters, waves, strict=True)
    ]
    return {"clusters": sorted(documents, key=lambda document: str(document["name"]))}


def _summarise(findings: Findings, waves: tuple[ClusterWaves, ...], *, plan_sha256: str) -> Summary:
    census = findings.census
    readiness = [verdict.readiness for verdict in findings.verdicts]
    return Summary(
        clusters=len(census.clusters),
        brokers={state.value: readiness.count(state) for state in Readiness},
        log_dirs=census.log_dirs,
        replicas=sum(counts.replicas for counts in findings.entries.values()),
        bytes=sum(counts.bytes for counts in findings.entries.values()),
        conflicts=findings.units,
        minted=findings.minted,
        offline_during=sum(made.offline for made in waves),
        waves=max((len(made.plan.waves) for made in waves), default=0),
        lower_bound=max((made.plan.lower_bound for made in waves), default=0),
        inventory_sha256=census.inventory_sha256,
        plan_sha256=plan_sha256,
    )
