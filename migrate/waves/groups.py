"""The input of the waves: the distinct sets of brokers that share a partition, each with its floor.

Not here: the waves themselves (``schedule``, plain Python).

Spec: design §7.5; §7.2 (``topics``).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from migrate.source.fleet import Fleet
from migrate.source.globs import java_pattern
from migrate.waves.floor import floor_of


def min_insync(fleet: Fleet) -> Column:
    """Return the column ``min.insync.replicas`` of a row's ``cluster_no`` and ``topic``; null if not given."""
    chosen: Column | None = None
    for ordinal, cluster in enumerate(fleet.clusters):
        here = F.col("cluster_no") == ordinal
        cases: list[tuple[Column, int | None]] = [
            (here & F.col("topic").rlike(java_pattern(glob)), value) for glob, value in cluster.topics
        ]
        cases.append((here, cluster.min_insync_replicas))
        for condition, value in cases:
            given = F.lit(value).cast("int")
            chosen = F.when(condition, given) if chosen is None else chosen.when(condition, given)
    return F.lit(None).cast("int") if chosen is None else chosen


def fold_partitions(live: DataFrame, fleet: Fleet) -> DataFrame:
    """Fold live replicas to partitions.

    Args:
        live: Live replicas, a row each.
        fleet: The fleet, with the settings for the floors.

    Returns:
        ``cluster_no`` int, ``topic`` string, ``partition`` long, ``copies`` long, ``brokers`` array<int> (distinct,
        ascending), ``floor`` int; one row per partition.
    """
    return (
        live.filter(F.col("topic").isNotNull())
        .groupBy("cluster_no", "topic", "partition")
        .agg(F.count(F.lit(1)).alias("copies"), F.sort_array(F.collect_set("broker")).alias("brokers"))
        .withColumn("min_insync", min_insync(fleet))
        .withColumn("floor", floor_of(F.size("brokers"), F.col("min_insync")))
        .drop("min_insync")
    )


def fold_sets(partitions: DataFrame) -> DataFrame:
    """Fold partitions to distinct broker sets.

    Args:
        partitions: From ``fold_partitions``.

    Returns:
        ``cluster_no`` int, ``brokers`` array<int>, ``floor`` int, ``partitions`` long (how many), ``twice``
        array<struct<topic, partition>> (partitions of which a broker has two copies); one row per set and floor.
    """
    doubled = F.col("copies") > F.size("brokers")
    return partitions.groupBy("cluster_no", "brokers", "floor").agg(
        F.count(F.lit(1)).alias("partitions"),
        F.collect_list(F.when(doubled, F.struct("topic", "partition"))).alias("twice"),
    )


def filter_twice(sets: DataFrame) -> DataFrame:
    """Return ``cluster_no``, ``topic``, ``partition`` of the partitions of which a broker has two copies."""
    return sets.filter(F.size("twice") > 0).select("cluster_no", F.inline("twice"))


def with_clean(sets: DataFrame, clean: Sequence[bool]) -> DataFrame:
    """Keep the sets with a clean broker, and add the clean brokers of each.

    Args:
        sets: From ``fold_sets``.
        clean: Whether a broker is clean, by ordinal of the broker.

    Returns:
        ``cluster_no``, ``brokers``, ``floor``, ``partitions``, and ``clean`` array<int>, never empty.
    """
    # One literal array: access by position costs the same for ten brokers and for ten thousand.
    flags = F.expr(f"array({','.join('true' if flag else 'false' for flag in clean)})")
    return (
        sets.select("cluster_no", "brokers", "floor", "partitions")
        .withColumn("clean", F.filter("brokers", lambda broker: F.element_at(flags, broker + 1)))
        .filter(F.size("clean") > 0)
    )


def fold_bounds(sets: DataFrame) -> DataFrame:
    """Fold the broker sets of each cluster to the figures that bound its waves.

    Args:
        sets: From ``with_clean``.

    Returns:
        ``cluster_no`` int, ``groups`` long (how many sets), ``bound`` int (the largest ``schedule.group_bound``),
        ``offline`` long (partitions with one replica, on a clean broker); one row per cluster that has any.
    """
    spare = F.size("brokers") - F.col("floor")
    single = F.when(F.size("brokers") == 1, F.col("partitions")).otherwise(F.lit(0))
    return sets.groupBy("cluster_no").agg(
        F.count(F.lit(1)).alias("groups"),
        F.max(F.ceil(F.size("clean") / spare).cast("int")).alias("bound"),
        F.sum(single).alias("offline"),
    )


def fold_pairs(sets: DataFrame) -> DataFrame:
    """Fold broker sets to pairs of clean brokers that share a partition: ``left``, ``right`` int, each pair once."""
    left = sets.withColumn("left", F.explode("clean"))
    both = left.withColumn("right", F.explode("clean")).filter(F.col("left") < F.col("right"))
    return both.select("left", "right").dropDuplicates()
