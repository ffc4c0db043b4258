"""The data source: a row per disk and per entry, whatever state the sources are in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs pyspark: pip install 'logdird[fleet]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'logdird[fleet]'")

from pyspark.errors import PySparkException

from logdir.formats.own.inventory import DISK_KEYS, ENTRY_KEYS, Disk, Entry, render
from migrate.errors import RemoteWalkError
from migrate.session import first_line
from migrate.source.data_source import COLUMNS, PLANNER_COLUMNS, fleet_frame, pack, require_walkable, share_out
from migrate.source.fleet import parse_fleet, read_fleet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_inventory(path: Path, log_dir: str, topics: tuple[str, ...], **changes: Any) -> None:
    disk = Disk(log_dir=log_dir, taken_at_ms=5, exact=False, status="ok", node_id=1, log_dirs=(log_dir,))
    entries = [Entry("live", "log-dir", f"{topic}-0", topic=topic, partition=0, problems=("p",)) for topic in topics]
    path.write_bytes(b"".join(render(disk._replace(**changes), entries)))


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    """Two brokers: a walked log dir, one that is not there, two inventories, one cut off, one that is not there."""
    log_dir = tmp_path / "disk"
    (log_dir / "walked-3").mkdir(parents=True)
    write_inventory(tmp_path / "a.jsonl", "/data/a", ("s", "t"))
    write_inventory(tmp_path / "b.jsonl", "/data/b", ())
    write_inventory(tmp_path / "cut.jsonl", "/data/c", ("u",))
    cut = (tmp_path / "cut.jsonl").read_bytes()
    (tmp_path / "cut.jsonl").write_bytes(cut[:-20])
    file = tmp_path / "fleet.yaml"
    file.write_text(
        """clusters:
- name: one
  brokers:
  - {node_id: 1, log_dirs: [disk, gone], inventories: [a.jsonl]}
  - {node_id: 1, inventories: [cut.jsonl, none.jsonl]}
- name: two
  brokers: [{node_id: 9, inventories: [b.jsonl]}]
"""
    )
    return file


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


@pytest.mark.spark
def test_load_of_a_fleet_file_gives_a_row_per_disk_and_entry(spark: SparkSession, fleet_file: Path) -> None:
    frame = spark.read.format("logdir").load(str(fleet_file))
    assert tuple(frame.columns) == COLUMNS
    assert COLUMNS[:2] == ("cluster", "entry_node_id")
    assert set(COLUMNS[2:]) == set(DISK_KEYS) | set(ENTRY_KEYS)
    types = dict(frame.dtypes)
    assert {types[c] for c in ("log_dirs", "problems")} == {"array<string>"}
    assert types["exact"] == "boolean"
    assert {types[c] for c in ("inventory", "partition", "oldest_ms", "entry_node_id")} == {"bigint"}
    found = rows(frame)
    assert sorted((row["cluster"], row["kind"], row["status"], row["name"] or "") for row in found) == [
        ("one", "disk", "broken", ""),
        ("one", "disk", "broken", ""),
        ("one", "disk", "ok", ""),
        ("one", "disk", "ok", ""),
        ("one", "disk", "unreadable", ""),
        ("one", "live", "ok", "s-0"),
        ("one", "live", "ok", "t-0"),
        ("one", "live", "ok", "walked-3"),
        ("two", "disk", "ok", ""),
    ]
    entry = next(row for row in found if row["name"] == "s-0")
    assert entry["log_dir"] == "/data/a"
    assert entry["log_dirs"] == ["/data/a"]
    assert entry["problems"] == ["p"]
    assert (entry["taken_at_ms"], entry["inventory"], entry["partition"]) == (5, 1, 0)
    for row in found:
        if row["status"] == "broken":
            named = {key for key, value in row.items() if value is not None}
            assert named == {"cluster", "entry_node_id", "kind", "status", "problems"}
            assert row["problems"] in (["absent"], ["not-whole"])


@pytest.mark.spark
def test_planner_columns_tell_brokers_and_sources_apart(spark: SparkSession, fleet_file: Path) -> None:
    frame = fleet_frame(spark, read_fleet(str(fleet_file)))
    assert tuple(frame.columns) == COLUMNS + PLANNER_COLUMNS
    disks = [row for row in rows(frame) if row["kind"] == "disk"]
    told = sorted((row["source"], row["broker"], row["status"], row["sha256"] is not None) for row in disks)
    assert told == [
        (0, 0, "ok", True),
        (1, 0, "unreadable", True),
        (2, 0, "ok", True),
        (3, 1, "broken", False),
        (4, 1, "broken", False),
        (5, 2, "ok", True),
    ]
    sha256 = next(row["sha256"] for row in disks if row["source"] == 2)
    assert f'"sha256":"{sha256}"' in (fleet_file.parent / "a.jsonl").read_text()


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 7])
def test_rows_do_not_depend_on_the_partitioning(spark: SparkSession, fleet_file: Path, partitions: int) -> None:
    columns = ["source", "name", "kind", "status", "sha256"]
    fleet = parse_fleet(
        b"clusters: [{name: a, brokers: [{node_id: 1, inventories: [a.jsonl, b.jsonl, cut.jsonl]}]}]", str(fleet_file)
    )
    frame = fleet_frame(spark, fleet, columns=columns, partitions=partitions)
    assert frame.columns == columns
    told = sorted(repr(row) for row in rows(frame))
    assert told == sorted(repr(row) for row in rows(fleet_frame(spark, fleet, columns=columns)))
    assert len(told) == 5


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nonsense": "1"}, "an unknown option"),
        ({"columns": "name,name"}, "columns"),
        ({"columns": "broker"}, "columns"),
        ({"planner": "maybe"}, "true or false"),
        ({"partitions": "0"}, "a number"),
    ],
)
def test_wrong_option_is_one_line(spark: SparkSession, fleet_file: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.read.format("logdir").options(**options).load(str(fleet_file)).count()
    assert said in first_line(caught.value)


@pytest.mark.spark
def test_fault_of_the_fleet_file_reaches_who_loads_it(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("clusters: []")
    with pytest.raises(PySparkException) as caught:
        spark.read.format("logdir").load(str(tmp_path / "fleet.yaml")).count()
    line = first_line(caught.value)
    assert line.startswith("config-error: ")
    assert "at least one cluster" in line


@pytest.mark.parametrize(
    ("master", "refused"),
    [("local", False), ("local[2,3]", False), ("local-cluster[1,1,1024]", True), ("spark://h:1", True), ("yarn", True)],
)
def test_log_dirs_are_walked_by_a_local_master_only(fleet_file: Path, master: str, refused: bool) -> None:
    fleet = read_fleet(str(fleet_file))
    require_walkable(fleet, master, shared_paths=True)
    if not refused:
        require_walkable(fleet, master, shared_paths=False)
        return
    with pytest.raises(RemoteWalkError, match="take inventories on the brokers, or add --shared-paths"):
        require_walkable(fleet, master, shared_paths=False)


def test_inventories_alone_go_to_any_master(fleet_file: Path) -> None:
    fleet = parse_fleet(b"clusters: [{name: a, brokers: [{node_id: 1, inventories: [a]}]}]", str(fleet_file))
    require_walkable(fleet, "yarn", shared_paths=False)


def test_walked_dirs_have_a_task_each_and_files_share(fleet_file: Path) -> None:
    shares = share_out(read_fleet(str(fleet_file)), 2)
    assert [[source.number for source in share.sources] for share in shares][:2] == [[0], [1]]
    assert sorted(source.number for share in shares[2:] for source in share.sources) == [2, 3, 4, 5]
    assert len(shares) == 4


@pytest.mark.parametrize(("sizes", "bins"), [([], 3), ([0, 0, 0], 2), ([9, 1, 1, 1, 8], 2), ([1], 5), ([3] * 100, 7)])
def test_packing_loses_nothing_and_is_even(sizes: list[int], bins: int) -> None:
    packed = pack(sizes, bins)
    assert sorted(index for bin_ in packed for index in bin_) == list(range(len(sizes)))
    assert all(packed)
    assert len(packed) == min(bins, len(sizes))
    loads = [sum(sizes[index] for index in bin_) for bin_ in packed]
    assert max(loads, default=0) - min(loads, default=0) <= max(sizes, default=0)
