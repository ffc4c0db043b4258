"""Findings: everything a plan is based on: counts, conflicts, ids to assign, readiness.

This module chains the data frames, and collects the few results that the driver needs: per broker, per conflict, per
topic without id. A fleet without contradictions costs only the search for them.

Not here: waves and files (``build``), the rules themselves (``census``, ``conflicts``, ``mint``, ``readiness``).

Spec: design §7.4, §7.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple, Self

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows
from pyspark.storagelevel import StorageLevel

from migrate.plan import conflicts, entries
from migrate.plan.census import Census, take_census
from migrate.plan.entry_counts import EntryCounts, Tally, by_broker, count_units, tally_entries
from migrate.plan.mint import assign_ids
from migrate.plan.readiness import Verdict, judge
from migrate.plan.summary import MintedId
from migrate.source.fleet import Fleet
from migrate.source.globs import java_pattern
from migrate.waves import groups

_GIVEN_SCHEMA = "cluster_no int, topic string, given_id string, id_from string"


class PersistedFrames:
    """Caches data frames in memory, or on disk, until the body of its ``with`` is left."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def keep(self, frame: DataFrame) -> DataFrame:
        """Cache a frame, which is then computed only once; return it."""
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self._stack.callback(kept.unpersist)
        return kept


class TopicGlob(NamedTuple):
    """One topic glob in the ``topics`` of a cluster in the fleet file."""

    cluster: int
    """Ordinal of the cluster in the fleet file."""
    glob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The facts about a fleet before waves are planned."""

    census: Census
    tallies: tuple[Tally, ...]
    entries: Mapping[int, EntryCounts]
    """Counts by ordinal of the broker."""
    units: Mapping[str, int]
    """Number of units of every conflict, by slug; 0 if not found."""
    verdicts: tuple[Verdict, ...]
    """Readiness of each broker; the index is the ordinal of the broker."""
    minted: tuple[MintedId, ...]
    usable: DataFrame
    """Entries of usable inventories."""
    sets: DataFrame
    """Distinct broker sets that share partitions, from ``groups.fold_sets``."""
    holders: DataFrame | None
    """Contradictions between replicas, ``conflicts.HOLDER_COLUMNS``; ``None``: there are none."""
    given: DataFrame | None
    """Ids for topics with replicas without id, as ``steps.with_ids`` takes them; ``None``: no replica lacks an id."""
    unmatched: tuple[TopicGlob, ...]
    """Topic globs of the fleet file that match no topic, in its order."""


def find(
    spark: SparkSession,
    frame: DataFrame,
    fleet: Fleet,
    former: Mapping[tuple[str, str], str],
    kept: PersistedFrames,
    progress: Callable[[str], None],
) -> Findings:
    """Collect the findings of a fleet.

    Args:
        spark: The session.
        frame: Rows of the source ``logdir`` with ``planner=true``.
        fleet: The fleet of these rows.
        former: Minted ids of an earlier plan, by (cluster name, topic).
        kept: Caches the data frames of the result.
        progress: Called with the name of each stage as it begins.

    Returns:
        The findings; their frames live as long as ``kept``.
    """
    progress("reading inventories")
    scan = kept.keep(frame.transform(entries.with_entry_columns, fleet))
    disks = scan.filter(F.col("kind") == "disk").select("broker", "source", "disk").collect()
    census = take_census(fleet, entries.disk_rows(disks))
    usable = scan.transform(entries.filter_usable, census.unusable)
    tallies = tally_entries(usable)
    counted = by_broker(census, tallies)

    progress("looking for conflicts")
    live = usable.transform(entries.filter_live)
    ids = kept.keep(live.transform(conflicts.ids_of_topics))
    topics = kept.keep(ids.transform(conflicts.topics_of))
    names = kept.keep(ids.transform(conflicts.names_of))
    sets = kept.keep(live.transform(groups.fold_partitions, fleet).transform(groups.fold_sets))
    unread = [cluster.cluster for cluster in census.clusters if cluster.has_unread]
    undecidable = F.col("cluster_no").isin(unread) | F.col("is_broken")
    globs = [TopicGlob(number, glob) for number, cluster in enumerate(fleet.clusters) for glob, _ in cluster.topics]
    facts = _collect_facts(topics, names, sets, undecidable, globs)
    holders = _contradictions(live, topics, names, sets, facts, kept)
    units = dict.fromkeys(conflicts.SLUGS, 0) | dict(census.units) | count_units(counted.values())
    touched: dict[int, set[str]] = {}
    if holders is not None:
        units |= {row["slug"]: row["units"] for row in holders.transform(conflicts.count_units).collect()}
        for row in holders.select("slug", "broker").dropDuplicates().collect():
            touched.setdefault(row["broker"], set()).add(row["slug"])

    progress("giving ids")
    idless = topics.filter(F.col("ids") == 0)
    undecided: set[int] = set()
    minted: tuple[MintedId, ...] = ()
    if facts["undecided"]:
        # If all replicas of such a topic on a broker are broken, that blocks the broker, and it holds no missing-id
        # unit.
        lacking = live.filter(conflicts.is_missing_id())
        stuck = idless.filter(undecidable).select("cluster_no", "topic")
        held = lacking.join(stuck, on=["cluster_no", "topic"], how="left_semi")
        undecided = {row["broker"] for row in held.select("broker").dropDuplicates().collect()}
    if facts["idless"] > facts["undecided"]:
        wanted = idless.filter(~undecidable).select("cluster_no", "topic").toArrow()
        named = _named(wanted, census)
        minted = _mint(spark, census, named, former, usable, ids)
    return Findings(
        census=census,
        tallies=tallies,
        entries=counted,
        units=units,
        verdicts=judge(census, counted, touched, undecided),
        minted=minted,
        usable=usable,
        sets=sets,
        holders=holders,
        given=_given(spark, census, minted, topics) if units["missing-id"] else None,
        unmatched=tuple(glob for number, glob in enumerate(globs) if _matched(number) not in facts),
    )


def _collect_facts(
    topics: DataFrame, names: DataFrame, sets: DataFrame, undecidable: Column, globs: Sequence[TopicGlob]
) -> dict[str, int]:
    """Return the counts that decide which conflicts to search, in one Spark job, because each job has a fixed cost."""
    lacking = F.col("ids") == 0
    facts = [
        _facts(topics, two_ids=F.col("ids") > 1, idless=lacking, undecided=lacking & undecidable),
        _facts(names, two_names=F.col("names") > 1, suspicious=(F.col("names") > 1) | F.col("lacks_name")),
        _facts(names.transform(conflicts.clusters_of), scattered=F.lit(True)),
        _facts(sets, twice=F.size("twice") > 0),
    ]
    if globs:
        facts.append(_matches(topics, globs))
    return {row["fact"]: row["rows"] for row in conflicts.union_all(facts).collect()}


def _matched(number: int) -> str:
    return f"glob {number}"


def _matches(topics: DataFrame, globs: Sequence[TopicGlob]) -> DataFrame:
    # All globs are tested, also after a match: a glob that never wins draws no warning.
    asked = [
        F.when((F.col("cluster_no") == cluster) & F.col("topic").rlike(java_pattern(glob)), F.lit(_matched(number)))
        for number, (cluster, glob) in enumerate(globs)
    ]
    matched = topics.select(F.explode(F.array_compact(F.array(*asked))).alias("fact"))
    return matched.groupBy("fact").agg(F.count(F.lit(1)).alias("rows"))


def _facts(frame: DataFrame, **conditions: Column) -> DataFrame:
    counted = frame.agg(*(F.count(F.when(condition, 1)).alias(name) for name, condition in conditions.items()))
    pairs = [column for name in conditions for column in (F.lit(name), F.col(name))]
    return counted.select(F.explode(F.create_map(*pairs)).alias("fact", "rows"))


def _contradictions(
    live: DataFrame,
    topics: DataFrame,
    names: DataFrame,
    sets: DataFrame,
    facts: Mapping[str, int],
    kept: PersistedFrames,
) -> DataFrame | None:
    found: list[DataFrame] = []
    if facts["two_ids"]:
        found.append(conflicts.flag_one_name_two_ids(live, topics))
        found.append(conflicts.flag_replicas_differ(live, topics))
    if facts["two_names"]:
        found.append(conflicts.flag_one_id_two_names(live, names))
    if facts["scattered"]:
        found.append(conflicts.flag_id_in_two_clusters(live, names))
    if facts["twice"] or facts["suspicious"]:
        by_name = conflicts.flag_twice_by_name(live, sets.transform(groups.filter_twice))
        found.append(conflicts.fold_twice(by_name, conflicts.flag_twice_by_id(live, names)))
    return kept.keep(conflicts.union_all(found)) if found else None


def _named(wanted: pa.Table, census: Census) -> list[tuple[str, str]]:
    clusters = wanted.column("cluster_no").to_pylist()
    topics = wanted.column("topic").to_pylist()
    return [(census.clusters[number].name, topic) for number, topic in zip(clusters, topics, strict=True)]


def _mint(
    spark: SparkSession,
    census: Census,
    named: list[tuple[str, str]],
    former: Mapping[tuple[str, str], str],
    usable: DataFrame,
    ids: DataFrame,
) -> tuple[MintedId, ...]:
    earlier = {key: former[key] for key in named if key in former}
    elsewhere: dict[str, set[tuple[str, str]]] = {}
    if earlier:
        given = spark.createDataFrame(pa.table({"topic_id": sorted(set(earlier.values()))}), "topic_id string")
        found = ids.join(F.broadcast(given), on="topic_id", how="inner").select("topic_id", "cluster_no", "topic")
        for row in found.dropDuplicates().collect():
            elsewhere.setdefault(row["topic_id"], set()).add((census.clusters[row["cluster_no"]].name, row["topic"]))
    # The fleet's ids are not collected: ids are drawn, searched in the fleet, and drawn again if one exists.
    taken: set[str] = set()
    while True:
        minted = assign_ids(census.inventory_sha256, named, former=earlier, taken=taken, live_elsewhere=elsewhere)
        fresh = sorted({entry.topic_id for entry in minted} - set(earlier.values()))
        if not fresh:
            return minted
        drawn = spark.createDataFrame(pa.table({"topic_id": fresh}), "topic_id string")
        hits = usable.select("topic_id").join(drawn, on="topic_id", how="left_semi").dropDuplicates().collect()
        if not hits:
            return minted
        taken |= {row["topic_id"] for row in hits}


def _given(spark: SparkSession, census: Census, minted: tuple[MintedId, ...], topics: DataFrame) -> DataFrame:
    siblings = topics.filter((F.col("ids") == 1) & F.col("lacks_id")).select(
        "cluster_no", "topic", F.col("topic_id").alias("given_id"), F.lit("siblings").alias("id_from")
    )
    if not minted:
        return siblings
    number = {cluster.name: cluster.cluster for cluster in census.clusters}
    table = pa.table(
        {
            "cluster_no": pa.array([number[entry.cluster] for entry in minted], pa.int32()),
            "topic": [entry.topic for entry in minted],
            "given_id": [entry.topic_id for entry in minted],
            "id_from": ["minted"] * len(minted),
        }
    )
    return siblings.unionByName(spark.createDataFrame(table, _GIVEN_SCHEMA))
