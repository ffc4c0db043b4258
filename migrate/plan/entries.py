"""The planner's data frame of entries: few columns, every row numbered, so that it can be cached.

The data source repeats line 1 of the disk on every row; here only disk rows keep it (as one struct). Brokers, sources
and clusters are dense integers, and the name of a partition directory is kept only if it is not
``{topic}-{partition}``. So ten million rows fit in memory.

Not here: what follows from the rows (``census``, ``conflicts``, ``steps``).

Spec: design §7.1, §7.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from migrate.source.disk_row import DiskRow
from migrate.source.fleet import Fleet

DISK_COLUMNS = (
    "sha256", "status", "cluster_id", "node_id", "rack", "log_dir", "log_dirs", "directory_id", "problems", "device",
    "fs_type", "total_bytes", "free_bytes", "layout",
)  # fmt: skip
"""Columns of line 1 that the census and the report need."""
COLUMNS = (
    "broker", "source", "kind", "root", "name", "topic", "topic_id", "partition", "log_bytes", "bytes", *DISK_COLUMNS,
)  # fmt: skip
"""The columns that the planner reads of the data source: skipping the others halves the reading time."""


def with_entry_columns(frame: DataFrame, fleet: Fleet) -> DataFrame:
    """Reduce the data source's frame to the needed columns.

    Args:
        frame: Rows of the source ``logdir`` with ``planner=true``.
        fleet: The fleet of these rows.

    Returns:
        One row per entry and disk: ``row`` long (unique within this frame as cached, of no other meaning),
        ``broker``, ``source``, ``cluster_no`` int (ordinals in the fleet file), ``kind``, ``root``, ``name`` string
        (``None`` where it is ``{topic}-{partition}``), ``topic``, ``topic_id`` string, ``partition``, ``log_bytes``,
        ``bytes`` long, ``is_broken``, ``is_plain``, ``is_symlink``, ``is_unreadable`` boolean, ``disk`` struct of
        ``DISK_COLUMNS`` (``None`` but for disk rows).
    """
    is_disk = F.col("kind") == "disk"
    return frame.select(
        F.monotonically_increasing_id().alias("row"),
        F.col("broker").cast("int").alias("broker"),
        F.col("source").cast("int").alias("source"),
        _cluster_number(fleet).alias("cluster_no"),
        "kind",
        "root",
        F.when(F.col("name") != stock_name(), F.col("name")).when(stock_name().isNull(), F.col("name")).alias("name"),
        "topic",
        "topic_id",
        "partition",
        "log_bytes",
        "bytes",
        _has_problem("partition-metadata-broken").alias("is_broken"),
        _has_problem("plain-file").alias("is_plain"),
        _has_problem("symlink").alias("is_symlink"),
        _has_problem("unreadable").alias("is_unreadable"),
        F.when(is_disk, F.struct(*DISK_COLUMNS)).alias("disk"),
    )


def stock_name() -> Column:
    """Return the column ``{topic}-{partition}``; ``None`` if either is ``None``."""
    return F.concat(F.col("topic"), F.lit("-"), F.col("partition").cast("string"))


def entry_name() -> Column:
    """Return the column with an entry's name, as in its inventory."""
    return F.coalesce(F.col("name"), stock_name())


def _has_problem(slug: str) -> Column:
    return F.coalesce(F.array_contains("problems", slug), F.lit(False))


def _cluster_number(fleet: Fleet) -> Column:
    # Broker ordinals ascend with their clusters, so a cluster is an interval of ordinals.
    number: Column | None = None
    after = 0
    for ordinal, cluster in enumerate(fleet.clusters):
        after += len(cluster.brokers)
        condition = F.col("broker") < after
        number = F.when(condition, F.lit(ordinal)) if number is None else number.when(condition, F.lit(ordinal))
    return F.lit(None).cast("int") if number is None else number


def disk_rows(collected: Iterable[Row]) -> tuple[DiskRow, ...]:
    """Return collected rows as ``DiskRow`` values, in the same order.

    Args:
        collected: Rows with ``broker``, ``source`` and ``disk``.
    """
    rows = []
    for row in collected:
        disk = row["disk"].asDict()
        log_dirs, problems = disk.pop("log_dirs"), disk.pop("problems")
        rows.append(
            DiskRow(
                broker=row["broker"],
                source=row["source"],
                log_dirs=None if log_dirs is None else tuple(log_dirs),
                problems=tuple(problems or ()),
                **disk,
            )
        )
    return tuple(rows)


def filter_usable(scan: DataFrame, unusable: Iterable[int]) -> DataFrame:
    """Drop disk rows, and the entries of the sources with the ordinals in ``unusable``."""
    entries = scan.filter(F.col("kind") != "disk").drop("disk")
    sources = sorted(unusable)
    return entries.filter(~F.col("source").isin(sources)) if sources else entries


def filter_live(entries: DataFrame) -> DataFrame:
    """Keep the live replicas."""
    return entries.filter(F.col("kind") == "live")
