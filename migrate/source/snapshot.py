"""A snapshot: the rows of all disks and inventories of a fleet at one time, in one directory.

``fleet scan`` writes it once; ``fleet plan`` can read it repeatedly, without the brokers, and gets the same rows and
policy. It contains ``rows/`` (Parquet, the planner's frame) and ``snapshot.json``, written last: the fleet, and name,
size and row count of every file, so that a partial copy of a snapshot is detected.

Not here: the rows' columns (``data_source``) and what follows from them (``plan.census``).

Spec: design §6 ``fleet scan``, §10 "fleet plan"; libraries §1.7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from migrate.errors import SnapshotFormatError
from migrate.plan.publish import is_partial, new_directory, require_absent, write_file
from migrate.source.data_source import COLUMNS, PLANNER_COLUMNS, fleet_frame, require_walkable, schema_of
from migrate.source.fleet import Fleet, read_fleet
from migrate.source.fleet_json import parse_fleet_json, render_fleet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSION = 1
MARKER = "snapshot.json"
_ROWS = "rows"
_ALL = COLUMNS + PLANNER_COLUMNS
_FIX = "take a new snapshot with `logdirctl fleet scan`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The counts of a snapshot."""

    sources: int
    """Number of listed log dirs and inventory files."""
    unread: int
    """Number of sources that are missing, incomplete, or of an unreadable disk."""
    rows: int
    """Number of disks and entries."""
    bytes: int
    """Size of the Parquet files."""


def _spark_path(path: Path) -> str:
    """Return a local path for Spark's reader: with its scheme, and with glob characters escaped."""
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path.absolute()))


def write_snapshot(spark: SparkSession, fleet_file: str, output: Path, *, shared_paths: bool = False) -> Scan:
    """Read every disk and inventory of a fleet into a new directory, which appears complete or not at all.

    Args:
        spark: The session; on a cluster, ``output`` must be on a file system that all its machines share.
        fleet_file: Path of the fleet file.
        output: A directory that does not exist.
        shared_paths: Whether log dirs may be walked by any machine of the session.

    Returns:
        The counts of the snapshot.

    Raises:
        ConfigError: the fleet file is invalid.
        OutputExistsError: the directory exists.
        OutputError: it cannot be written.
        RemoteWalkError: log dirs listed on a cluster.
    """
    require_absent(output)
    fleet = read_fleet(fleet_file)
    require_walkable(fleet, spark.conf.get("spark.master") or "unknown", shared_paths=shared_paths)
    with new_directory(output) as folder:
        frame = fleet_frame(spark, fleet, shared_paths=shared_paths)
        # A path to write to is never a glob, so it stays as it is.
        frame.write.option("compression", "zstd").parquet(f"file://{folder / _ROWS}")
        files = [_described(path) for path in sorted((folder / _ROWS).glob("*.parquet"))]
        document = {"snapshot": VERSION, "fleet": json.loads(render_fleet(fleet)), "files": files}
        marker = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
        write_file(folder / MARKER, marker.encode())
        sources, unread = _count_disks(folder)
    return Scan(
        sources=sources,
        unread=unread,
        rows=sum(file["rows"] for file in files),
        bytes=sum(file["bytes"] for file in files),
    )


def _described(path: Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size, "rows": pq.read_metadata(path).num_rows}


def _count_disks(folder: Path) -> tuple[int, int]:
    sources = unread = 0
    for path in (folder / _ROWS).glob("*.parquet"):
        for batch in pq.ParquetFile(path).iter_batches(columns=["kind", "status"]):
            for kind, status in zip(batch.column("kind").to_pylist(), batch.column("status").to_pylist(), strict=True):
                if kind == "disk":
                    sources += 1
                    unread += status != "ok"
    return sources, unread


def is_snapshot(path: Path) -> bool:
    """Whether a path is a directory, and so meant as a snapshot, not as a fleet file."""
    return path.is_dir()


def _marker(path: Path) -> tuple[Fleet, tuple[str, ...]]:
    """Return the fleet and the Parquet files of a snapshot, after checking each file.

    Raises:
        SnapshotFormatError: the directory is no snapshot, or an incomplete one.
    """
    if is_partial(path):
        raise SnapshotFormatError(str(path), expected="a snapshot", found="an unfinished one", fix=_FIX)
    try:
        text = (path / MARKER).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        found = getattr(error, "strerror", None) or "no UTF-8"
        raise SnapshotFormatError(str(path), expected=f"a snapshot ({MARKER})", found=found, fix=_FIX) from error
    try:
        document = json.loads(text)
        version = document["snapshot"]
        if version != VERSION:
            raise SnapshotFormatError(str(path), expected=f"snapshot version {VERSION}", found=version, fix=_FIX)
        fleet = parse_fleet_json(json.dumps(document["fleet"]))
        files = [(str(file["name"]), int(file["bytes"]), int(file["rows"])) for file in document["files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise SnapshotFormatError(
            str(path / MARKER), expected="the keys snapshot, fleet and files of a snapshot", found=repr(error), fix=_FIX
        ) from error
    for name, size, rows in files:
        file = path / _ROWS / name
        try:
            whole = "/" not in name and file.stat().st_size == size and pq.read_metadata(file).num_rows == rows
        except (OSError, pa.ArrowException) as error:
            raise SnapshotFormatError(str(file), expected="a Parquet file", found=str(error), fix=_FIX) from error
        if not whole:
            raise SnapshotFormatError(
                str(file),
                expected=f"{size} bytes, {rows} rows",
                found=f"{file.stat().st_size} bytes",
                fix=_FIX,
            )
    return fleet, tuple(name for name, _, _ in files)


def read_snapshot(spark: SparkSession, path: Path, columns: Iterable[str] = _ALL) -> tuple[Fleet, DataFrame]:
    """Read a snapshot.

    Args:
        spark: The session.
        path: The directory.
        columns: The columns wanted, in this order.

    Returns:
        The fleet as it was scanned, and the planner's frame: a row for each disk, and a row for each entry.

    Raises:
        SnapshotFormatError: the directory is no snapshot, or an incomplete one.
    """
    fleet, names = _marker(path)
    wanted = tuple(columns)
    if not names:  # No partition had a row: only for a fleet without sources, which is refused.
        raise SnapshotFormatError(str(path), expected="at least one file of rows", found="none", fix=_FIX)
    files = [_spark_path(path / _ROWS / name) for name in names]
    return fleet, spark.read.schema(schema_of(_ALL)).parquet(*files).select(*wanted)


def open_frame(
    spark: SparkSession, path: str, *, columns: Iterable[str] = _ALL, shared_paths: bool = False
) -> tuple[Fleet, DataFrame]:
    """Read the input of ``fleet plan``: a fleet file or a snapshot.

    Args:
        spark: The session.
        path: A fleet file, or the directory of a snapshot.
        columns: The columns wanted, of ``COLUMNS`` and ``PLANNER_COLUMNS``.
        shared_paths: As for ``write_snapshot``; ignored for a snapshot.

    Returns:
        The fleet and the planner's frame.

    Raises:
        ConfigError: the fleet file is invalid.
        SnapshotFormatError: the snapshot is invalid.
        RemoteWalkError: log dirs listed on a cluster.
    """
    wanted = tuple(columns)
    if is_snapshot(Path(path)):
        return read_snapshot(spark, Path(path), wanted)
    fleet = read_fleet(path)
    return fleet, fleet_frame(spark, fleet, columns=wanted, shared_paths=shared_paths)
