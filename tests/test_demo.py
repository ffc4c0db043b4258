"""The demonstration finds what it sows, and brings back what it deletes."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo, undo
from tests.logdir.daemon.as_user import as_user
from tests.proof.claims import SOWN
from tests.proof.plugin import Recorder
from tests.tools.ctl import HOME


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


RUN_STORY = """
import pathlib, sys
from examples import undo
folder = pathlib.Path(sys.argv[1])
undo.run(undo.TreeBroker(folder), folder / "undo", sys.stdout)
"""
STORY = """  1. logdird runs on the 2 log dirs of node 1
  2. topic orders is deleted: its broker renames 3 directories to -delete
  3. logdird has captured all of them after N s
  4. its broker has removed them: the log dirs hold no file of the topic
  5. logdirctl staged ls: 3 replicas, undo until INSTANT
  6. the topic is created again: empty, with another topic id; the broker stops
  7. logdirctl staged adopt gives 3 replicas their files back
  8. its COUNT records are there again
  9. the history of logdird: state, captured, request
 10. logdird has stopped, and leaves no process and no lock
"""


def without_times(text: str) -> str:
    """Return the story without what differs from run to run."""
    text = re.sub(r"after \d+\.\d s", "after N s", text)
    return re.sub(r"until 2\d{3}-\S+Z", "until INSTANT", text)


def test_a_deleted_topic_comes_back_in_ten_lines(tmp_path: Path) -> None:
    said = subprocess.run(
        as_user(sys.executable, "-c", RUN_STORY, str(tmp_path)), cwd=HOME, capture_output=True, text=True, check=False
    )
    assert (without_times(said.stdout), said.stderr, said.returncode) == (STORY.replace("COUNT", "12"), "", 0)
    assert all(len(line) <= 80 for line in said.stdout.splitlines())


def test_records_that_are_not_as_before_end_the_story(tmp_path: Path) -> None:
    broker = undo.TreeBroker(tmp_path)
    (segment,) = (tmp_path / "undo").glob("d?/orders-0/*.log")
    segment.write_bytes(segment.read_bytes()[:-1])
    with pytest.raises(SystemExit, match="expected the segments that were deleted, found others"):
        broker.records_back()


@pytest.mark.spark
@pytest.mark.slow
def test_every_sown_conflict_is_printed_with_broker_and_path(
    spark: object, tmp_path: Path, record_proof: Recorder
) -> None:
    out = io.StringIO()
    top = tmp_path / "demo"
    assert demo.main([str(top)], out) == 0
    printed = out.getvalue().partition("sown conflicts, as the plan found them:\n")[2].partition("\n\n")[0]
    assert [line.strip() for line in printed.splitlines()] == [demo.line_of(seed, top).strip() for seed in demo.SEEDS]
    assert (top / "plan" / "report.html").stat().st_size < 2 << 20
    record_proof(SOWN, {"conflicts": len(demo.SEEDS), "kinds": len({seed.slug for seed in demo.SEEDS})})
