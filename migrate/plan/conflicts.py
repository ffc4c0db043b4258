"""Conflicts between entries of usable inventories, as functions from data frame to data frame.

There are two kinds. A single entry can be a unit (a leftover, an unknown entry …). Or replicas contradict each other:
the contradiction is then found among few rows (the ids of topics), and its holders are looked up in the large frame.

Not here: conflicts of disks and broker entries (``census``); consequences of a conflict (``readiness``).

Spec: design §7.4.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from migrate.plan.entries import entry_name

LEFTOVER_KINDS = ("future", "delete", "stray", "staged", "purging", "incoming")
ENTRY_SLUGS = ("leftover", "metadata-file-broken", "missing-id", "unknown-entry")
GROUP_SLUGS = (
    "id-in-two-clusters",
    "one-id-two-names",
    "one-name-two-ids",
    "partition-twice-on-broker",
    "replicas-differ-in-id",
)
SLUGS = tuple(
    sorted(
        (
            *ENTRY_SLUGS,
            *GROUP_SLUGS,
            "disk-unread",
            "foreign-cluster-disk",
            "foreign-node-disk",
            "identity-broken",
            "node-id-twice",
        )
    )
)
"""All slugs of a plan, sorted."""

HOLDER_COLUMNS = (
    "slug", "cluster_no", "broker", "source", "root", "name", "topic", "topic_id", "partition", "unit_tail", "detail",
)  # fmt: skip
"""Columns of a frame of holders, the places of a conflict. ``unit_tail``: the unit's key without cluster and disk."""


def is_missing_id() -> Column:
    """Return whether a row is a live replica without topic id whose ``partition.metadata`` is not broken."""
    return (F.col("kind") == "live") & F.col("topic_id").isNull() & ~F.col("is_broken")


def is_leftover() -> Column:
    """Return whether a row is a leftover entry: staged, incoming, or renamed by a broker."""
    return F.col("kind").isin(*LEFTOVER_KINDS)


def is_unknown_entry() -> Column:
    """Return whether a row is an entry of unknown kind other than a plain file."""
    return (F.col("kind") == "unknown") & ~F.col("is_plain")


def flag_entries(entries: DataFrame) -> DataFrame:
    """Return the entries each of which is a unit of a conflict by itself.

    Args:
        entries: From ``entries.filter_usable``.

    Returns:
        ``HOLDER_COLUMNS``; one row per entry and slug.
    """
    slugs = F.array_compact(
        F.array(
            F.when(is_leftover(), F.lit("leftover")),
            F.when(F.col("is_broken"), F.lit("metadata-file-broken")),
            F.when(is_missing_id(), F.lit("missing-id")),
            F.when(is_unknown_entry(), F.lit("unknown-entry")),
        )
    )
    suspicious = is_leftover() | F.col("is_broken") | is_missing_id() | is_unknown_entry()
    flagged = entries.filter(suspicious).withColumn("slug", F.explode(slugs))
    return _as_holders(flagged, F.lit(None).cast("string"), F.col("kind"))


def ids_of_topics(live: DataFrame) -> DataFrame:
    """Fold live replicas to the topic ids of each topic.

    Args:
        live: Live replicas.

    Returns:
        ``cluster_no`` int, ``topic``, ``topic_id`` string, ``is_broken`` boolean (of any of its replicas); one row per
        combination, ``None`` being a value of its own.
    """
    return live.groupBy("cluster_no", "topic", "topic_id").agg(F.max("is_broken").alias("is_broken"))


def topics_of(ids: DataFrame) -> DataFrame:
    """Fold the result of ``ids_of_topics`` to one row per topic.

    Args:
        ids: From ``ids_of_topics``.

    Returns:
        ``cluster_no`` int, ``topic`` string (never ``None``), ``ids`` long (different ones), ``topic_id`` string (the
        smallest), ``lacks_id``, ``is_broken`` boolean (of any of its replicas); one row per topic of a cluster.
    """
    return (
        ids.filter(F.col("topic").isNotNull())
        .groupBy("cluster_no", "topic")
        .agg(
            F.count("topic_id").alias("ids"),
            F.min("topic_id").alias("topic_id"),
            F.max(F.col("topic_id").isNull()).alias("lacks_id"),
            F.max("is_broken").alias("is_broken"),
        )
    )


def names_of(ids: DataFrame) -> DataFrame:
    """Fold the result of ``ids_of_topics`` to one row per topic id.

    Returns:
        ``cluster_no`` int, ``topic_id`` string (never ``None``), ``names`` long (different ones), ``lacks_name``
        boolean; one row per id of a cluster.
    """
    return (
        ids.filter(F.col("topic_id").isNotNull())
        .groupBy("cluster_no", "topic_id")
        .agg(F.count("topic").alias("names"), F.max(F.col("topic").isNull()).alias("lacks_name"))
    )


def clusters_of(names: DataFrame) -> DataFrame:
    """Return the ids of ``names_of`` that are live in two or more clusters: ``topic_id`` string, ``clusters`` long."""
    return names.groupBy("topic_id").agg(F.count("cluster_no").alias("clusters")).filter(F.col("clusters") > 1)


def flag_one_name_two_ids(live: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the holders of topics with two or more ids: all replicas of the name, with or without id."""
    torn = topics.filter(F.col("ids") > 1).select("cluster_no", "topic", "ids")
    held = live.join(torn, on=["cluster_no", "topic"], how="inner").withColumn("slug", F.lit("one-name-two-ids"))
    return _as_holders(held, F.col("topic"), _counted("ids", "ids"))


def flag_replicas_differ(live: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the holders of partitions with two or more ids; only topics with two ids can have one."""
    torn = topics.filter(F.col("ids") > 1).select("cluster_no", "topic")
    partition = Window.partitionBy("cluster_no", "topic", "partition")
    held = (
        live.join(torn, on=["cluster_no", "topic"], how="inner")
        .withColumn("ids", F.size(F.collect_set("topic_id").over(partition)))
        .filter(F.col("ids") > 1)
        .withColumn("slug", F.lit("replicas-differ-in-id"))
    )
    return _as_holders(held, F.concat_ws("|", "topic", "partition"), _counted("ids", "ids"))


def flag_one_id_two_names(live: DataFrame, names: DataFrame) -> DataFrame:
    """Return the holders of ids with two or more names in one cluster."""
    torn = names.filter(F.col("names") > 1).select("cluster_no", "topic_id", "names")
    held = live.join(torn, on=["cluster_no", "topic_id"], how="inner").withColumn("slug", F.lit("one-id-two-names"))
    return _as_holders(held, F.col("topic_id"), _counted("names", "names"))


def flag_id_in_two_clusters(live: DataFrame, names: DataFrame) -> DataFrame:
    """Return the holders of ids that are live in two or more clusters."""
    held = live.join(names.transform(clusters_of), on="topic_id", how="inner")
    held = held.withColumn("slug", F.lit("id-in-two-clusters"))
    return _as_holders(held, F.col("topic_id"), _counted("clusters", "clusters"))


def flag_twice_by_name(live: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return the live replicas of a partition that lies twice or more on one broker, found by topic name.

    Args:
        live: Live replicas.
        partitions: ``cluster_no``, ``topic``, ``partition`` of those that have more replicas than brokers.

    Returns:
        The replicas with ``unit_topic`` string, the topic name in the unit's key.
    """
    copies = Window.partitionBy("broker", "topic", "partition")
    return (
        live.join(partitions, on=["cluster_no", "topic", "partition"], how="inner")
        .withColumn("copies", F.count("row").over(copies))
        .filter(F.col("copies") > 1)
        .drop("copies")
        .withColumn("unit_topic", F.col("topic"))
    )


def flag_twice_by_id(live: DataFrame, names: DataFrame) -> DataFrame:
    """Return the live replicas of a partition that lies twice or more on one broker, found by topic id.

    ``unit_topic`` is the smallest of their topic names. Replicas of one name are found by name; so an id is looked at
    only if it has two names, or a replica without one.
    """
    suspicious = names.filter((F.col("names") > 1) | F.col("lacks_name")).select("cluster_no", "topic_id")
    copies = Window.partitionBy("broker", "topic_id", "partition")
    return (
        live.join(suspicious, on=["cluster_no", "topic_id"], how="inner")
        .withColumn("copies", F.count("row").over(copies))
        .withColumn("unit_topic", F.coalesce(F.min("topic").over(copies), F.lit("")))
        .filter(F.col("copies") > 1)
        .drop("copies")
    )


def fold_twice(by_name: DataFrame, by_id: DataFrame) -> DataFrame:
    """Return the holders of ``partition-twice-on-broker``: units found by name and by id are counted once."""
    unit = Window.partitionBy("broker", "unit_topic", "partition")
    # A copy found by name and by id is one holder of that unit; ``row`` distinguishes copies.
    held = (
        by_name.unionByName(by_id)
        .dropDuplicates(["unit_topic", "row"])
        .withColumn("copies", F.count("row").over(unit))
        .withColumn("slug", F.lit("partition-twice-on-broker"))
    )
    return _as_holders(held, F.concat_ws("|", "unit_topic", "partition"), _counted("copies", "live copies"))


def count_units(holders: DataFrame) -> DataFrame:
    """Return ``slug`` and ``units`` long: how many units the holders of ``GROUP_SLUGS`` belong to."""
    on_broker = F.when(F.col("slug") == "partition-twice-on-broker", F.col("broker"))
    within = F.when(F.col("slug") != "id-in-two-clusters", F.col("cluster_no"))
    units = holders.select("slug", on_broker.alias("broker"), within.alias("cluster_no"), "unit_tail")
    return units.dropDuplicates().groupBy("slug").agg(F.count(F.lit(1)).alias("units"))


def union_all(frames: list[DataFrame]) -> DataFrame:
    """Return the union of frames of holders, by column name."""
    return reduce(DataFrame.unionByName, frames)


def with_units(holders: DataFrame, places: DataFrame) -> DataFrame:
    """Add the broker and log dir of each holder, and the key of the conflict that it belongs to, as text.

    Args:
        holders: ``HOLDER_COLUMNS``.
        places: ``source``, ``cluster``, ``node_id``, ``log_dir``; one row per usable inventory.

    Returns:
        The columns of ``conflicts/``.
    """
    placed = holders.join(F.broadcast(places), on="source", how="inner")
    unit = (
        F.when(F.col("slug").isin(*ENTRY_SLUGS), F.concat_ws("|", "cluster", "node_id", "log_dir", "root", "name"))
        .when(F.col("slug") == "id-in-two-clusters", F.col("unit_tail"))
        .when(F.col("slug") == "partition-twice-on-broker", F.concat_ws("|", "cluster", "node_id", "unit_tail"))
        .otherwise(F.concat_ws("|", "cluster", "unit_tail"))
    )
    return placed.select(
        "slug", "cluster", "node_id", "log_dir", "name", "topic", "topic_id", "partition", unit.alias("unit"), "detail"
    )


def _counted(column: str, of: str) -> Column:
    return F.concat(F.col(column).cast("string"), F.lit(f" {of}"))


def _as_holders(flagged: DataFrame, unit_tail: Column, detail: Column) -> DataFrame:
    return (
        flagged.withColumn("unit_tail", unit_tail)
        .withColumn("detail", detail)
        .withColumn("name", entry_name())
        .select(*HOLDER_COLUMNS)
    )
