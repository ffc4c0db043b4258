"""A file that gets a second name between its claim and its removal keeps its bytes under that name (A17)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logdir.disk.replica.purge import Listing, claim_all, remove_all
from tests.logdir.disk.staged_rig import make_log_dir, make_staged, opened, staged_marker
from tests.logdir.disk.test_purge import deleting, nobody

EIGHT_MIB = 8 * 1024 * 1024


@pytest.mark.parametrize("size", [EIGHT_MIB + 1, 3 * EIGHT_MIB, 1000], ids=["two steps", "three steps", "small"])
def test_a17_a_hard_link_made_between_claim_and_truncation_loses_no_byte(tmp_path: Path, size: int) -> None:
    made = make_log_dir(tmp_path / "d1", "a-0")
    log = made / "a-0" / "00000000000000000000.log"
    with log.open("wb") as file:
        file.truncate(size)
    with opened(made) as open_dir:
        make_staged(open_dir, "a-0")
        (name,) = os.listdir(deleting(made))
        seen: dict[str, Listing] = {}
        claim_all(open_dir, {name: staged_marker(deleting(made) / name)}, seen=seen)
        (claimed,) = seen
        other = tmp_path / "captured.log"
        # Of the directory that was listed at the claim nothing changes: only the count of names of the file.
        os.link(deleting(made) / claimed / log.name, other)
        remove_all(open_dir, [claimed], in_use=nobody, seen=seen)
    assert os.listdir(deleting(made)) == []
    assert (other.stat().st_size, other.stat().st_nlink) == (size, 1)
