"""A snapshot gives the rows and the fleet again, or is none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs pyspark: pip install 'logdird[fleet]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'logdird[fleet]'")

from pyspark.testing import assertDataFrameEqual

from logdir.errors import ConfigError
from logdir.formats.own.inventory import Disk, Entry, render
from migrate.errors import MigrationError, OutputExistsError, SnapshotFormatError
from migrate.source.data_source import fleet_frame
from migrate.source.fleet import read_fleet
from migrate.source.snapshot import open_frame, read_snapshot, write_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    """One broker with two inventories, one of them not there."""
    folder = tmp_path / "in"
    folder.mkdir()
    disk = Disk(log_dir="/data/a", taken_at_ms=5, exact=True, status="ok", log_dirs=("/data/a",))
    entries = [Entry("live", "log-dir", f"t-{n}", topic="t", partition=n) for n in range(3)]
    (folder / "1.jsonl").write_bytes(b"".join(render(disk, entries)))
    file = folder / "fleet.yaml"
    file.write_text(
        "clusters: [{name: a, min.insync.replicas: 2, topics: {'t*': {min.insync.replicas: 1}},"
        " brokers: [{node_id: 1, inventories: ['*.jsonl', none.jsonl]}]}]"
    )
    return file


def test_snapshot_outlives_what_it_was_taken_from(spark: SparkSession, tmp_path: Path, fleet_file: Path) -> None:
    fleet = read_fleet(str(fleet_file))
    rows = fleet_frame(spark, fleet).collect()
    output = tmp_path / "snap [1]*{x}"
    scan = write_snapshot(spark, str(fleet_file), output)
    assert (scan.sources, scan.unread, scan.rows) == (2, 1, 5)
    shutil.rmtree(fleet_file.parent)
    moved = output.rename(tmp_path / "moved?[ab]")
    found, frame = open_frame(spark, str(moved))
    assert found == fleet
    assertDataFrameEqual(frame, rows)
    _, narrow = open_frame(spark, str(moved), columns=("sha256", "name"))
    assert narrow.columns == ["sha256", "name"]
    assert narrow.count() == 5


def test_fleet_file_opens_to_the_same_frame(spark: SparkSession, tmp_path: Path, fleet_file: Path) -> None:
    write_snapshot(spark, str(fleet_file), tmp_path / "snap")
    assertDataFrameEqual(open_frame(spark, str(fleet_file))[1], open_frame(spark, str(tmp_path / "snap"))[1])


def test_existing_directory_is_refused(spark: SparkSession, tmp_path: Path, fleet_file: Path) -> None:
    (tmp_path / "snap").mkdir()
    with pytest.raises(OutputExistsError):
        write_snapshot(spark, str(fleet_file), tmp_path / "snap")


def test_faulty_fleet_file_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("clusters: []")
    with pytest.raises(ConfigError):
        write_snapshot(spark, str(tmp_path / "fleet.yaml"), tmp_path / "snap")
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.yaml"]


def test_part_of_a_snapshot_is_refused(spark: SparkSession, tmp_path: Path, fleet_file: Path) -> None:
    whole = tmp_path / "whole"
    write_snapshot(spark, str(fleet_file), whole)
    files = list((whole / "rows").glob("*.parquet"))
    assert files
    row_file = f"rows/{files[0].name}"
    damages = (
        ("snapshot.json", None),
        ("snapshot.json", b"{}"),
        ("snapshot.json", b'{"snapshot":2}'),
        (row_file, None),
        (row_file, b"PAR1"),
    )
    for number, (name, instead) in enumerate(damages):
        snap = tmp_path / f"part{number}"
        shutil.copytree(whole, snap)
        (snap / name).unlink()
        if instead is not None:
            (snap / name).write_bytes(instead)
        with pytest.raises(SnapshotFormatError) as caught:
            read_snapshot(spark, snap)
        assert "\n" not in str(caught.value)
        assert isinstance(caught.value, MigrationError)
