"""The demonstration finds what it sows."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from examples import demo
from tests.proof.claims import SOWN
from tests.proof.plugin import Recorder


def test_the_fleet_is_built_the_same_way_each_time_and_holds_every_seed(tmp_path: Path) -> None:
    demo.build(tmp_path)
    for seed in demo.SEEDS:
        if seed.slug != "disk-unread":
            assert (tmp_path / seed.folder / seed.log_dir / seed.entry).exists(), seed
    assert {seed.slug for seed in demo.SEEDS} == {
        "one-name-two-ids", "one-id-two-names", "replicas-differ-in-id", "partition-twice-on-broker",
        "id-in-two-clusters", "node-id-twice", "foreign-node-disk", "foreign-cluster-disk", "identity-broken",
        "metadata-file-broken", "missing-id", "leftover", "unknown-entry", "disk-unread",
    }  # fmt: skip


def test_somebody_elses_directory_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(SystemExit, match="expected a directory of the demonstration"):
        demo.main([str(tmp_path)], io.StringIO())
    assert (tmp_path / "precious").read_text() == "x"


@pytest.mark.spark
@pytest.mark.slow
def test_every_sown_conflict_is_printed_with_broker_and_path(
    spark: object, tmp_path: Path, record_proof: Recorder
) -> None:
    out = io.StringIO()
    top = tmp_path / "demo"
    assert demo.main([str(top)], out) == 0
    printed = out.getvalue().partition("sown conflicts")[2].splitlines()
    assert [line.strip() for line in printed if line.startswith("  ")] == [
        demo.line_of(seed, top).strip() for seed in demo.SEEDS
    ]
    assert (top / "plan" / "report.html").stat().st_size < 2 << 20
    record_proof(SOWN, {"conflicts": len(demo.SEEDS), "kinds": len({seed.slug for seed in demo.SEEDS})})
