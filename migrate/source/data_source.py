"""The Spark data source ``logdir``: every disk and every entry of a fleet as rows.

``spark.read.format("logdir").load("fleet.yaml")`` gives one row per entry and one per disk. A missing or incomplete
source gives only one row, with status ``broken``. There is one input partition per walked log dir; inventory files
share a few partitions, packed by size, because a Python task costs as much as ten thousand rows.

Not here: checking a file (``inventory_batches``), scanning a disk (``logdir.observe``), what rows mean (``plan``).

Spec: design §7.3; libraries §1.4.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import ArrayType, BooleanType, DataType, LongType, StringType, StructField, StructType

from logdir.errors import ConfigError, Problem
from logdir.formats.own.inventory import DISK_KEYS, ENTRY_KEYS, VERSION, Disk, digest_of
from logdir.observe.inventory_row import row_of
from logdir.observe.scan import scan_log_dir
from migrate.errors import RemoteWalkError
from migrate.session import is_local
from migrate.source.fleet import Fleet, Source, read_fleet
from migrate.source.fleet_json import parse_fleet_json, render_fleet
from migrate.source.inventory_batches import LIST_TYPE, Broken, entry_table, open_inventory, sizes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "logdir"
PARTITIONS_PER_CORE = 3
_BATCH_ROWS = 50_000
_ENOUGH_ROWS = 10_000
"""Small batches are joined until they have this many rows."""
_TEXTS = frozenset(
    (
        *("cluster", "cluster_id", "rack", "log_dir", "directory_id", "device", "fs_type", "layout", "status"),
        *("kind", "root", "name", "name_hex", "topic", "topic_id", "sha256"),
    )
)
_LISTS = frozenset(("log_dirs", "problems"))
COLUMNS = ("cluster", "entry_node_id", *DISK_KEYS, *(key for key in ENTRY_KEYS if key != "problems"))
"""The columns of design §7.3, in order."""
PLANNER_COLUMNS = ("broker", "source", "sha256")
"""Columns that the option ``planner`` adds: ordinals of broker entry and source, digest of the inventory. With it, only
disk rows have the values of the inventory's line 1; ``source`` is the same on the disk row and its entries.
"""
_OPTIONS = frozenset(("path", "planner", "partitions", "shared-paths", "columns", "fleet"))


def _spark_type(column: str) -> DataType:
    if column in _TEXTS:
        return StringType()
    if column in _LISTS:
        return ArrayType(StringType())
    return BooleanType() if column == "exact" else LongType()


def _arrow_type(column: str) -> pa.DataType:
    # Must equal exactly what Spark derives from the type above: its JVM side reads the buffers by it.
    if column in _TEXTS:
        return pa.string()
    if column in _LISTS:
        return LIST_TYPE
    return pa.bool_() if column == "exact" else pa.int64()


def schema_of(columns: Iterable[str]) -> StructType:
    """Return Spark's schema for these columns, all of them nullable."""
    return StructType([StructField(column, _spark_type(column)) for column in columns])


# -- rows ------------------------------------------------------------------------------------------------


class _Rows:
    """Builds Arrow batches with the frame's columns from what one source contains."""

    def __init__(self, columns: tuple[str, ...], *, is_lean: bool) -> None:
        self.is_lean = is_lean
        self.schema = pa.schema([pa.field(column, _arrow_type(column)) for column in columns])

    def disk(self, source: Source, values: dict[str, Any]) -> pa.RecordBatch:
        """Return the one disk row of a source."""
        row = _of_source(source) | {"kind": "disk"} | values
        arrays = [pa.array([row.get(field.name)], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def entries(self, source: Source, values: dict[str, Any], batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch of entries, with the disk's values on each row unless the frame is lean."""
        # Repeating the disk's values on every row takes a third of the reading time.
        row = _of_source(source) if self.is_lean else _of_source(source) | values
        count = batch.num_rows
        arrays = [
            batch.column(field.name) if field.name in ENTRY_KEYS else _repeated(row.get(field.name), field.type, count)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _of_source(source: Source) -> dict[str, Any]:
    return {
        "cluster": source.cluster,
        "entry_node_id": source.entry_node_id,
        "broker": source.broker,
        "source": source.number,
    }


def _of_disk(disk: Disk, sha256: str) -> dict[str, Any]:
    return {"inventory": VERSION, "sha256": sha256, **disk._asdict()}


def _repeated(value: object, kind: pa.DataType, count: int) -> pa.Array:
    if value is None:
        return pa.nulls(count, kind)
    return pa.repeat(pa.scalar(value, kind), count)


def _walk(rows: _Rows, source: Source) -> Iterator[pa.RecordBatch]:
    disk, found = scan_log_dir(source.path)
    entries = tuple(map(row_of, found))
    values = _of_disk(disk, digest_of(disk, entries))
    yield rows.disk(source, values)
    for start in range(0, len(entries), _BATCH_ROWS):
        for batch in entry_table(entries[start : start + _BATCH_ROWS]).to_batches():
            yield rows.entries(source, values, batch)


def _read_file(rows: _Rows, source: Source) -> Iterator[pa.RecordBatch]:
    with open_inventory(source.path) as found:
        if isinstance(found, Broken):
            yield rows.disk(source, {"status": "broken", "problems": [found.slug]})
            return
        values = _of_disk(found.disk, found.sha256)
        yield rows.disk(source, values)
        for batch in found.batches:
            yield rows.entries(source, values, batch)


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in fewer, larger batches: each batch costs a round trip to the JVM."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= _ENOUGH_ROWS:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches(_BATCH_ROWS)
            held, count = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches(_BATCH_ROWS)


def read_sources(
    sources: Iterable[Source], columns: tuple[str, ...], *, is_lean: bool = False
) -> Iterator[pa.RecordBatch]:
    """Read log dirs and inventory files on this machine.

    Args:
        sources: The sources to read.
        columns: The columns wanted, of ``COLUMNS`` and ``PLANNER_COLUMNS``.
        is_lean: Whether only disk rows have the values of the inventory's line 1.

    Yields:
        Batches of at most 50,000 rows; at least one row per source, its disk row before its entries.
    """
    rows = _Rows(columns, is_lean=is_lean)
    yield from _joined(
        batch for source in sources for batch in (_walk if source.is_walked else _read_file)(rows, source)
    )


# -- sharing out -----------------------------------------------------------------------------------------


class Share(InputPartition):
    """An input partition of Spark: the sources that one task reads."""

    def __init__(self, sources: tuple[Source, ...]) -> None:
        super().__init__(None)
        self.sources = sources


def pack(sizes: Iterable[int], bins: int) -> list[list[int]]:
    """Distribute files by size: the largest first, each to the least filled bin.

    Args:
        sizes: Bytes of each file.
        bins: How many bins at most; 1 or more.

    Returns:
        The indices of the files in each bin, ascending; no bin is empty.

    >>> pack([5, 1, 1, 3], 2)
    [[0], [1, 2, 3]]
    """
    known = list(sizes)
    heap = [(0, number) for number in range(min(bins, len(known)))]
    packed: list[list[int]] = [[] for _ in heap]
    for index in sorted(range(len(known)), key=lambda i: (-known[i], i)):
        load, number = heapq.heappop(heap)
        packed[number].append(index)
        heapq.heappush(heap, (load + max(known[index], 1), number))
    return [sorted(bin_) for bin_ in packed]


def share_out(fleet: Fleet, bins: int) -> list[Share]:
    """Return the input partitions: one per walked log dir, and at most ``bins`` for all inventory files."""
    walked = [source for source in fleet.sources() if source.is_walked]
    files = [source for source in fleet.sources() if not source.is_walked]
    packed = pack(sizes_of([source.path for source in files]), bins)
    return [Share((source,)) for source in walked] + [Share(tuple(files[i] for i in bin_)) for bin_ in packed]


def require_walkable(fleet: Fleet, master: str, *, shared_paths: bool) -> None:
    """Check that every log dir of a fleet file is walked on this machine, or on one that sees the same paths.

    Args:
        fleet: The fleet.
        master: The Spark session's master URL.
        shared_paths: Whether every machine of the session sees the same paths.

    Raises:
        RemoteWalkError: the fleet lists log dirs, the master is not local, and ``shared_paths`` is false.
    """
    walked = next((source for source in fleet.sources() if source.is_walked), None)
    if walked is not None and not shared_paths and not is_local(master):
        raise _refusal(walked.path, master)


def _refusal(path: str, master: str) -> RemoteWalkError:
    return RemoteWalkError(
        path,
        expected="log_dirs only with a local master",
        found=f"master {master}",
        fix="take inventories on the brokers, or add --shared-paths",
    )


# -- the data source -------------------------------------------------------------------------------------


def _is_true(options: Mapping[str, str], key: str) -> bool:
    value = options.get(key, "false").lower()
    if value not in {"true", "false"}:
        raise _bad_option(key, "true or false", value)
    return value == "true"


def _bad_option(key: str, expected: str, found: str) -> ConfigError:
    return ConfigError((Problem("data-source-option", f"option {key}", expected, found, "correct the option"),))


class LogDirSource(DataSource):
    """The Spark data source behind ``spark.read.format("logdir")``.

    Options: ``path`` (the fleet file; what ``load`` is given), ``planner`` (``PLANNER_COLUMNS`` too, and the values of
    line 1 on disk rows only), ``partitions`` (how many for inventory files), ``shared-paths``, ``columns`` (names,
    comma-separated, to be read instead of all), ``fleet`` (a fleet as JSON instead of a path).
    """

    options: dict[str, str]

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of the option ``columns``, or all.

        Raises:
            ConfigError: an option is unknown or has a wrong value.
        """
        unknown = sorted(key for key in self.options if key.lower() not in _OPTIONS)
        if unknown:
            raise _bad_option(unknown[0], f"one of {', '.join(sorted(_OPTIONS))}", "an unknown option")
        known = COLUMNS + (PLANNER_COLUMNS if _is_true(self.options, "planner") else ())
        wanted = self.options.get("columns")
        if wanted is None:
            return schema_of(known)
        chosen = [column.strip() for column in wanted.split(",")]
        strange = [column for column in chosen if column not in known]
        if strange or len(set(chosen)) != len(chosen):
            raise _bad_option("columns", f"each at most once of {', '.join(known)}", wanted)
        return schema_of(chosen)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for these columns."""
        return LogDirReader(tuple(schema.fieldNames()), dict(self.options.items()))


class LogDirReader(DataSourceReader):
    """Distributes a fleet to tasks, and reads the sources of one task."""

    def __init__(self, columns: tuple[str, ...], options: Mapping[str, str]) -> None:
        self.columns = columns
        self.options = {key.lower(): value for key, value in options.items()}
        self.is_shared = _is_true(self.options, "shared-paths")
        self.is_planner = _is_true(self.options, "planner")
        strange = [column for column in columns if column not in COLUMNS + PLANNER_COLUMNS]
        if strange:
            raise _bad_option("schema", f"columns of {', '.join(COLUMNS)}", ", ".join(strange))

    def partitions(self) -> list[Share]:
        """Read the fleet file; return one ``Share`` of its sources per task."""
        cores = len(os.sched_getaffinity(0))
        given = self.options.get("partitions", str(cores * PARTITIONS_PER_CORE))
        if not (given.isascii() and given.isdecimal() and 0 < int(given) <= 1_000_000):
            raise _bad_option("partitions", "a number from 1 to 1000000", given)
        return share_out(self._fleet(), int(given))

    def _fleet(self) -> Fleet:
        if "fleet" in self.options:
            return parse_fleet_json(self.options["fleet"])
        if "path" not in self.options:
            raise _bad_option("path", 'a fleet file: spark.read.format("logdir").load("fleet.yaml")', "none")
        return read_fleet(self.options["path"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the sources of one task. Runs on a Spark worker."""
        if not isinstance(partition, Share):
            return iter(())  # Spark's stand-in for no partition at all
        if not self.is_shared:
            _require_local_task(partition)
        return read_sources(partition.sources, self.columns, is_lean=self.is_planner)


def _require_local_task(share: Share) -> None:
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:
        return  # Called directly, in this process.
    # Spark passes a query's settings to its tasks as local properties: only there a worker finds the master.
    master = task.getLocalProperty("spark.master") or "unknown"
    if not is_local(master):
        for source in share.sources:
            if source.is_walked:
                raise _refusal(source.path, master)


def fleet_frame(
    spark: SparkSession,
    fleet: Fleet,
    *,
    columns: Iterable[str] | None = None,
    planner: bool = True,
    shared_paths: bool = False,
    partitions: int | None = None,
) -> DataFrame:
    """Return the frame of a fleet whose fleet file was already read.

    Args:
        spark: The session.
        fleet: From ``read_fleet``; passed as a whole, so that globs are not expanded again.
        columns: The columns wanted; ``None`` for all.
        planner: Whether to add ``PLANNER_COLUMNS`` and keep the values of line 1 on disk rows only.
        shared_paths: Whether every machine of the session sees the same paths.
        partitions: How many partitions for inventory files; ``None``: three per core of the session.

    Returns:
        One row per disk and per entry. Reading is lazy and repeated by every action: cache or write a frame that is
        used twice, above all one of walked log dirs.

    Raises:
        RemoteWalkError: as ``require_walkable``.
    """
    require_walkable(fleet, spark.conf.get("spark.master") or "unknown", shared_paths=shared_paths)
    bins = partitions or spark.sparkContext.defaultParallelism * PARTITIONS_PER_CORE
    reader = spark.read.format(FORMAT).option("fleet", render_fleet(fleet)).option("partitions", bins)
    reader = reader.option("planner", planner).option("shared-paths", shared_paths)
    if columns is not None:
        reader = reader.option("columns", ",".join(columns))
    return reader.load()
