"""Contradictions between replicas, on frames of a few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", reason="needs pyspark: pip install 'logdird[fleet]'")

SCHEMA = (
    "row long, broker int, source int, cluster_no int, kind string, root string, name string, topic string, "
    "topic_id string, partition long, log_bytes long, bytes long, is_broken boolean, is_plain boolean, "
    "is_symlink boolean, is_unreadable boolean"
)


def entries(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    columns = [column.split()[0] for column in SCHEMA.split(", ")]
    plain: dict[str, Any] = {"kind": "live", "root": "log-dir", "partition": 0, "cluster_no": 0, "broker": 0}
    flags = dict.fromkeys(("is_broken", "is_plain", "is_symlink", "is_unreadable"), False)
    full = [{"row": number} | plain | flags | row for number, row in enumerate(rows)]
    return spark.createDataFrame(
        [tuple(row.get("source", row["broker"]) if c == "source" else row.get(c) for c in columns) for row in full],
        SCHEMA,
    )


def found(holders: DataFrame) -> set[tuple[str, int]]:
    return {(row["unit_tail"], row["broker"]) for row in holders.collect()}


def test_an_entry_has_every_slug_that_fits(spark: SparkSession) -> None:
    from migrate.plan.conflicts import flag_entries

    frame = entries(
        spark,
        {"topic": "fine", "topic_id": "x"},
        {"topic": "bare"},
        {"topic": "torn", "is_broken": True},
        *({"kind": kind, "name": kind} for kind in ("future", "delete", "stray", "staged", "purging", "incoming")),
        {"kind": "stray", "name": "broken stray", "is_broken": True},
        {"kind": "unknown", "name": "dir"},
        {"kind": "unknown", "name": "file", "is_plain": True},
        {"kind": "file", "name": "meta.properties"},
        {"kind": "metadata", "name": "__cluster_metadata-0"},
    )
    rows = {(row["slug"], row["name"]) for row in flag_entries(frame).collect()}
    assert rows == {
        ("missing-id", "bare-0"),
        ("metadata-file-broken", "torn-0"),
        *(("leftover", kind) for kind in ("future", "delete", "stray", "staged", "purging", "incoming")),
        ("leftover", "broken stray"),
        ("metadata-file-broken", "broken stray"),
        ("unknown-entry", "dir"),
    }


@pytest.mark.slow
def test_replicas_without_id_are_counted_into_a_name_with_two(spark: SparkSession) -> None:
    from migrate.plan.conflicts import flag_one_name_two_ids, flag_replicas_differ, ids_of_topics, topics_of

    live = entries(
        spark,
        {"topic": "t", "topic_id": "x", "broker": 1},
        {"topic": "t", "topic_id": "y", "broker": 2, "partition": 1},
        {"topic": "t", "topic_id": None, "broker": 3, "partition": 2},
        {"topic": "u", "topic_id": "x", "broker": 4},
        {"topic": "t", "topic_id": "z", "broker": 5, "cluster_no": 1},
        {"topic": "v", "topic_id": "v", "broker": 6},
        {"topic": "v", "topic_id": "w", "broker": 7},
        {"topic": "v", "topic_id": None, "broker": 8},
        {"topic": "v", "topic_id": "w", "broker": 9, "partition": 1},
    )
    topics = topics_of(ids_of_topics(live))
    one_name = found(flag_one_name_two_ids(live, topics))
    assert one_name == {("t", 1), ("t", 2), ("t", 3), ("v", 6), ("v", 7), ("v", 8), ("v", 9)}
    assert found(flag_replicas_differ(live, topics)) == {("v|0", 6), ("v|0", 7), ("v|0", 8)}


def test_ids_are_compared_without_null_and_within_their_cluster(spark: SparkSession) -> None:
    from migrate.plan.conflicts import flag_id_in_two_clusters, flag_one_id_two_names, ids_of_topics, names_of

    live = entries(
        spark,
        {"topic": "a", "topic_id": None, "broker": 1},
        {"topic": "b", "topic_id": None, "broker": 2, "cluster_no": 1},
        {"topic": "c", "topic_id": "x", "broker": 3},
        {"topic": "d", "topic_id": "x", "broker": 4},
        {"topic": None, "topic_id": "x", "broker": 5},
        {"topic": None, "topic_id": "y", "broker": 6},
        {"topic": "e", "topic_id": "y", "broker": 7},
        {"topic": "f", "topic_id": "x", "broker": 8, "cluster_no": 1},
    )
    names = names_of(ids_of_topics(live))
    assert found(flag_one_id_two_names(live, names)) == {("x", 3), ("x", 4), ("x", 5)}
    assert found(flag_id_in_two_clusters(live, names)) == {("x", 3), ("x", 4), ("x", 5), ("x", 8)}


def twice(live: DataFrame) -> tuple[set[tuple[str, int]], int]:
    from migrate.plan import conflicts
    from migrate.source.fleet import Fleet
    from migrate.waves import groups

    sets = live.transform(groups.fold_partitions, Fleet(clusters=())).transform(groups.fold_sets)
    names = conflicts.names_of(conflicts.ids_of_topics(live))
    by_name = conflicts.flag_twice_by_name(live, groups.filter_twice(sets))
    holders = conflicts.fold_twice(by_name, conflicts.flag_twice_by_id(live, names))
    counted = {row["slug"]: row["units"] for row in conflicts.count_units(holders).collect()}
    held = {(row["unit_tail"], row["source"]) for row in holders.collect()}
    assert len(held) == holders.count()
    return held, counted.get("partition-twice-on-broker", 0)


def test_copies_of_one_broker_are_found_by_name_and_by_id(spark: SparkSession) -> None:
    live = entries(
        spark,
        {"topic": "b", "topic_id": "x", "source": 1},
        {"topic": "b", "topic_id": "x", "source": 2},
        {"topic": "a", "topic_id": "x", "source": 3},
        {"topic": "b", "topic_id": "x", "source": 4, "partition": 1},
        {"topic": "c", "topic_id": None, "source": 5},
        {"topic": "c", "topic_id": "c", "source": 6},
        {"topic": "b", "topic_id": "x", "source": 7, "broker": 1},
        {"topic": "a", "topic_id": "x", "source": 8, "broker": 2},
        {"topic": None, "topic_id": "x", "source": 9, "broker": 2},
        {"topic": None, "topic_id": "n", "source": 10, "broker": 3},
        {"topic": None, "topic_id": "n", "source": 11, "broker": 3},
    )
    held, units = twice(live)
    assert held == {
        ("b|0", 1), ("b|0", 2),  # by name
        ("a|0", 1), ("a|0", 2), ("a|0", 3),  # by id, under the smallest name
        ("c|0", 5), ("c|0", 6),
        ("a|0", 8), ("a|0", 9),
        ("|0", 10), ("|0", 11),
    }  # fmt: skip
    assert units == 5


@pytest.mark.slow
def test_equal_units_of_both_findings_are_one(spark: SparkSession) -> None:
    live = entries(
        spark,
        {"topic": "a", "topic_id": "x", "source": 1},
        {"topic": "a", "topic_id": "y", "source": 2},
        {"topic": "b", "topic_id": "x", "source": 3},
    )
    assert twice(live) == ({("a|0", 1), ("a|0", 2), ("a|0", 3)}, 1)


def test_floor_is_one_replica_at_a_time_or_min_insync_below_r(spark: SparkSession) -> None:
    from pyspark.sql.functions import col

    from migrate.waves.floor import floor_of

    expected = [(1, None, 0), (3, None, 2), (3, 2, 2), (3, 1, 1), (3, 0, 0), (3, 3, 2), (3, 9, 2)]
    expected += [(1, 1, 0), (5, 3, 3), (4, -1, 0)]
    rows = spark.createDataFrame(expected, "r int, min_insync int, expected int")
    found = rows.select("r", "min_insync", floor_of(col("r"), col("min_insync")).alias("floor")).collect()
    assert [tuple(row) for row in found] == expected


def test_floors_follow_the_first_matching_glob(spark: SparkSession) -> None:
    from migrate.source.fleet import Fleet
    from migrate.waves.groups import fold_partitions
    from tests.migrate.fleet_builder import a_cluster

    fleet = Fleet(
        clusters=(
            a_cluster("c", (), min_insync=2, topics=(("a*", 1), ("ab", 9))),
            a_cluster("d", (), topics=(("b", 5),)),
        )
    )
    rows = [
        {"topic": topic, "broker": 10 * cluster + broker, "cluster_no": cluster}
        for cluster in (0, 1)
        for topic in ("ab", "b", "z")
        for broker in (1, 2, 3, 4)
    ]
    folded = fold_partitions(entries(spark, *rows), fleet).collect()
    floors = {(row["cluster_no"], row["topic"]): row["floor"] for row in folded}
    assert floors == {(0, "ab"): 1, (0, "b"): 2, (0, "z"): 2, (1, "ab"): 3, (1, "b"): 3, (1, "z"): 3}
    assert {tuple(row["brokers"]) for row in folded} == {(1, 2, 3, 4), (11, 12, 13, 14)}
