"""The steps of a migration to topic-id directories, as JSON lines: one per replica to move, of clean brokers.

Every replica of a clean broker has an id: its own, that of its siblings, or a minted one; ``readiness`` blocks the
others. Spark builds the lines, not Python, because there may be ten million.

Not here: the output files (``documents``), which brokers are clean (``readiness``).

Spec: design §7.6, §7.7.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody knows

from migrate.plan.entries import entry_name

HEADER_DISK = -1
"""``disk_no`` of a document's first line, which sorts before all steps."""
_NEEDS_ESCAPE = r'["\\\x00-\x1f]'


def is_step() -> Column:
    """Return whether a row is a replica in the topic-name layout that may be moved."""
    # Every name of the topic-id layout contains a slash; no other name does.
    in_name_layout = F.col("name").isNull() | ~F.contains("name", F.lit("/"))
    return (F.col("kind") == "live") & in_name_layout & ~F.col("is_symlink") & ~F.col("is_unreadable")


def filter_steps(live: DataFrame, disks: DataFrame) -> DataFrame:
    """Return the live replicas that get a step.

    Args:
        live: Live replicas.
        disks: ``source``, ``disk_no`` int (ascending by broker and log dir); the inventories of clean brokers only.

    Returns:
        ``cluster_no``, ``broker``, ``disk_no``, ``name``, ``topic``, ``topic_id``, ``partition``, ``log_bytes``.
    """
    return (
        live.filter(is_step())
        .join(F.broadcast(disks), on="source", how="inner")
        .select("cluster_no", "broker", "disk_no", "name", "topic", "topic_id", "partition", "log_bytes")
    )


def with_ids(moved: DataFrame, given: DataFrame | None) -> DataFrame:
    """Give every replica its id.

    Args:
        moved: From ``filter_steps``.
        given: ``cluster_no``, ``topic``, ``given_id``, ``id_from`` ("siblings", "minted"); one row per topic with
            replicas without id. ``None`` if there is no such topic.

    Returns:
        ``moved`` with ``topic_id`` never ``None``, and ``id_from`` string.
    """
    own = moved.filter(F.col("topic_id").isNotNull()).withColumn("id_from", F.lit("own"))
    if given is None:
        return own
    lacking = moved.filter(F.col("topic_id").isNull()).drop("topic_id")
    filled = lacking.join(given, on=["cluster_no", "topic"], how="inner").withColumnRenamed("given_id", "topic_id")
    return own.unionByName(filled)


def with_numbers(moved: DataFrame, headers: DataFrame) -> DataFrame:
    """Number the steps of each broker, with each document's header before them.

    Args:
        moved: From ``with_ids``.
        headers: The documents' headers: ``broker`` int, one row per clean broker.

    Returns:
        ``broker``, ``disk_no``, ``from``, ``topic``, ``topic_id``, ``id_from``, ``partition``, ``log_bytes``, ``step``
        int (0 is the header); rows of a broker lie together and ascend.
    """
    steps = moved.withColumn("from", entry_name()).drop("name", "cluster_no")
    first = headers.select("broker", F.lit(HEADER_DISK).alias("disk_no"))
    order = Window.partitionBy("broker").orderBy("disk_no", "from")
    return steps.unionByName(first, allowMissingColumns=True).withColumn("step", F.row_number().over(order) - 1)


def path_in_id_layout() -> Column:
    """Return the column ``{prefix}/{topic_id}_{partition}``: a replica's path in the topic-id layout."""
    prefix = F.substring("topic_id", 1, 2)
    return F.concat(prefix, F.lit("/"), F.col("topic_id"), F.lit("_"), F.col("partition").cast("string"))


def select_table(numbered: DataFrame, disks: DataFrame) -> DataFrame:
    """Return the rows of the plan's Parquet table ``steps/``: one per step of a broker without conflicts.

    Args:
        numbered: From ``with_numbers``.
        disks: ``disk_no``, ``cluster``, ``node_id``, ``wave``, ``log_dir``; the inventories of clean brokers.
    """
    return (
        numbered.filter(F.col("step") > 0)
        .join(F.broadcast(disks), on="disk_no", how="inner")
        .select(
            "cluster", "node_id", "wave", F.col("step").cast("long").alias("step"), F.lit("relayout").alias("op"),
            "log_dir", "from", path_in_id_layout().alias("to"), "topic", "topic_id", "partition", "id_from",
            "log_bytes",
        )
    )  # fmt: skip


def select_lines(numbered: DataFrame, headers: DataFrame, disks: DataFrame) -> DataFrame:
    """Return the lines of the documents, in order and without footers.

    Args:
        numbered: From ``with_numbers``.
        headers: ``broker``, ``path`` (of its document), ``header`` (JSON text).
        disks: ``disk_no``, ``log_dir_json``; the inventories of clean brokers.

    Returns:
        ``broker`` int, ``path`` string (of a document's first line, else ``None``), ``line`` string with its LF.
    """
    placed = numbered.join(F.broadcast(disks.select("disk_no", "log_dir_json")), on="disk_no", how="left")
    first = headers.select("broker", F.lit(0).alias("step"), "path", "header")
    return placed.join(F.broadcast(first), on=["broker", "step"], how="left").select(
        "broker",
        "path",
        F.concat(F.when(F.col("step") == 0, F.col("header")).otherwise(step_line()), F.lit("\n")).alias("line"),
    )


def step_line() -> Column:
    """Return the column with a step as one JSON object, keys sorted, without blanks.

    Spec: design §7.7.
    """
    return F.concat(
        F.lit('{"from":'), quoted("from"),
        F.lit(',"id_from":"'), F.col("id_from"),
        F.lit('","log_bytes":'), F.coalesce(F.col("log_bytes").cast("string"), F.lit("null")),
        F.lit(',"log_dir":'), F.col("log_dir_json"),
        F.lit(',"op":"relayout","partition":'), F.col("partition").cast("string"),
        F.lit(',"step":'), F.col("step").cast("string"),
        F.lit(',"to":"'), path_in_id_layout(),
        F.lit('","topic":'), quoted("topic"),
        F.lit(',"topic_id":"'), F.col("topic_id"), F.lit('"}'),
    )  # fmt: skip


def quoted(column: str) -> Column:
    """Return a text column as JSON strings. Kafka's names need no escapes; an altered inventory may contain others."""
    text = F.col(column)
    array = F.to_json(F.array(text))
    escaped = F.substr(array, F.lit(2), F.length(array) - 2)
    return F.when(text.rlike(_NEEDS_ESCAPE), escaped).otherwise(F.concat(F.lit('"'), text, F.lit('"')))
