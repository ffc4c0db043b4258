"""Row 23 of the reliability targets: components swapped for links while we work, and nothing outside is touched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.seeded.patched import copy, run
from tests.crash.swaps import sentinel
from tests.crash.swaps.assault import attack
from tests.logdir.disk.rescue import quick_path
from tests.operations import functions
from tests.operations.seeded import Change, call, named, without
from tests.proof.claims import SWAPS
from tests.proof.plugin import Recorder

SEED = 23


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another mount, where that may be had: of its own for root, else as the machine has them."""
    path = tmp_path / "elsewhere"
    path.mkdir()
    is_mounted = (
        os.geteuid() == 0
        and not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", path], capture_output=True).returncode
    )
    try:
        yield path
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.timeout(3600)
def test_r23_symlink_and_swap_races_touch_nothing_outside(
    tmp_path: Path, elsewhere: Path, record_proof: Recorder
) -> None:
    wanted = SWAPS.count("operations")
    with quick_path(tmp_path) as base:
        trees = [base / "sentinel", elsewhere / "sentinel"]
        report = attack(base, wanted, SEED, trees)
        mounts = len({tree.stat().st_dev for tree in trees})
    print(report.totals())
    assert list(dict.fromkeys(report.escapes)) == []
    assert report.faults == []
    # It was an attack, and work was done under it.
    assert report.swaps > wanted / 10
    assert report.swaps_at_any_time > wanted / 10
    assert sum(report.refused.values()) > wanted / 10
    assert sum(report.done.values()) > wanted / 10
    assert len(report.done) >= 8
    counts = {
        "operations": report.operations,
        "operations done": sum(report.done.values()),
        "swaps before a call": report.swaps,
        "swaps at any time": report.swaps_at_any_time,
        "mounts": mounts,
    }
    record_proof(SWAPS, counts, seeds=SEED, violations=len(report.escapes))


FOLLOWING = {
    "directories": Change(functions.OPEN_DIRECTORY, without("O_NOFOLLOW")),
    "files read": Change(functions.OPEN_FILE, without("O_NOFOLLOW")),
    "files truncated": Change(functions.TRUNCATE, without("O_NOFOLLOW")),
    "lock files": Change(functions.OPEN_LOCK, without("O_NOFOLLOW")),
    "files linked": Change(functions.LINK, named(call("link", of="os"), follow_symlinks=True)),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FOLLOWING)
def test_r23_a_link_that_is_followed_is_noticed(what: str, tmp_path: Path) -> None:
    copy(tmp_path, (FOLLOWING[what],))
    done = run(tmp_path, "tests.crash.swaps", "4000", "--seed", str(SEED))
    assert done.returncode == 1, done.stdout + done.stderr
    assert " 0 escapes" not in done.stdout


def test_the_watch_and_the_snapshot_tell_what_is_touched(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    sentinel.make(tree)
    before = sentinel.snapshot(tree)
    with sentinel.watched([tree]) as watch:
        assert list(watch.heard()) == []
        os.close(os.open(tree / "reserve", os.O_WRONLY))
        assert any(word.startswith("opened for writing") for word in watch.heard())
        assert sentinel.snapshot(tree) == before
        (tree / "reserve").chmod((tree / "reserve").stat().st_mode)
        assert any(word.startswith("attributes changed") for word in watch.heard())
    assert sentinel.snapshot(tree) != before
