"""What the *why* of ``staged ls`` says would change it does so when it is typed, read literally."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.tools.assignment_rig import STAGED, Cluster
from tests.tools.ctl import ctl, ctl_json, two_disks
from tools.cli.arguments import Exit

OVERRIDE = re.compile(r"--(?:even-[a-z-]+|include-held)")


def argv_of(why: str) -> list[str]:
    """Return the overrides that a text names, in its order."""
    return list(dict.fromkeys(OVERRIDE.findall(why)))


@pytest.mark.parametrize(
    ("staging", "is_here", "state", "named"),
    [
        (("--hold",), True, "held", ["--even-if-early", "--include-held", "--even-if-assigned"]),
        (("--hold",), False, "held", ["--even-if-early", "--include-held"]),
        (("--delay", "0s"), True, "held", ["--even-if-assigned"]),
        ((), True, "counting", ["--even-if-assigned", "--even-if-early"]),
    ],
)
def test_no_why_names_fewer_words_than_lift_it_nor_more(
    staging: tuple[str, ...], is_here: bool, state: str, named: list[str], tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path)
    if not is_here:
        cluster.found = {}
        shutil.rmtree(cluster.log.directory)
        cluster.log = type(cluster.log)(cluster.log.directory)
        cluster.write(cluster.log)
    assert cluster.stage(*staging, "--even-if-unknown").status == Exit.DONE
    item = cluster.item()
    words = argv_of(item["detail"])
    assert (item["state"], words) == (state, named)
    for left in words:
        fewer = [one for one in words if one != left]
        assert ctl("staged", "purge", STAGED, *cluster.named, *fewer).status != Exit.DONE, fewer
    assert ctl("staged", "purge", STAGED, *cluster.named, *words, "--apply").status == Exit.DONE
    assert cluster.rig.deleting() == []


@pytest.mark.parametrize("how", ["without a marker", "copied", "torn"])
def test_no_broken_one_is_listed_with_the_found_half_alone(how: str, tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay-0", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE
    (staged,) = Path(f"{disks[0]}.logdird/deleting").iterdir()
    if how == "copied":
        staged.rename(tmp_path / "original")  # which keeps its inode
        shutil.copytree(tmp_path / "original", staged)
    elif how == "torn":
        (staged / "replica.json").write_bytes(b"torn")
    else:
        (staged / "replica.json").unlink()
    _, listing = ctl_json("staged", "ls", *named)
    (item,) = listing["items"]
    said = ctl("staged", "ls", *named).out
    assert item["state"] == "broken"
    for text in (item["detail"], said):
        assert "expected " in text
        assert "found " in text
    # What a purge says of it is the same, with what to do.
    _, purge = ctl_json("staged", "purge", *named, "--apply")
    (kept,) = purge["items"]
    mismatch, _, fix = kept["detail"].rpartition("; ")
    assert fix
    for text in (item["detail"], said):
        assert kept["detail"].removeprefix(f"{staged}/replica.json: ") in " ".join(text.split()), (text, mismatch)
