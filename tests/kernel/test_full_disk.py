"""Disks on which not a byte or not an inode is free: everything goes on, and is made durable, out of what is kept.

Spec: issue "Build 6", (c); design §3.2, §3.4; attacks A10; reliability §7 row 21.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import log_dir, partition
from tests.crash.recording import Acks
from tests.crash.starts import OTHER_ID
from tests.kernel.cuts import Cut, Machine, Violation, recovered, roots_of, run_to, shortest
from tests.kernel.fullness import HOWS, MAKING, UNJUDGED, counts_inodes, fill, left
from tests.kernel.images import FILE_SYSTEMS, Images, Mounted
from tests.kernel.operations import kernel_operation
from tests.kernel.schedule import END, SEED, full_cuts
from tests.proof.claims import FULL_DISKS
from tests.proof.plugin import Recorder
from tests.tools.ctl import ctl, ctl_json
from tools.cli.arguments import Exit

pytestmark = pytest.mark.root
_SPENT = (Exit.DONE, Exit.PROBLEMS)
"""Problems: what is kept for that day is spent and cannot be put back yet, which is said."""


def test_a10_every_operation_is_done_on_a_full_disk_and_survives_a_power_cut_there(
    machine: Machine, record_proof: Recorder
) -> None:
    found = []
    kinds: Counter[str] = Counter()
    count = FULL_DISKS.count("runs")
    for cut in full_cuts(count, FILE_SYSTEMS):
        kinds[f"on {cut.file_system} without {cut.full}"] += 1
        outcome = machine.cut(cut)
        if outcome.messages:
            found.append(Violation(cut, outcome.messages, outcome.calls))
    assert not found, shortest(found)
    assert kinds.total() == count
    record_proof(FULL_DISKS, {"runs": count, **kinds}, seeds=SEED)


@pytest.fixture(params=[(kind, how) for kind in FILE_SYSTEMS for how in HOWS], ids=" without ".join)
def disk(request: pytest.FixtureRequest, images: Images) -> Iterator[tuple[Mounted, str]]:
    """A disk, and of what it is to be full."""
    kind, how = request.param
    if kind == "btrfs" and "inodes" in how:
        pytest.skip("btrfs has no end of inodes")
    mounted = images.mount(images.make(kind, *MAKING[kind]), kind)
    yield mounted, how
    images.forget(mounted)


def _files(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.iterdir()}


def test_a10_the_command_stages_restores_and_purges_where_nothing_is_free(disk: tuple[Mounted, str]) -> None:
    """From the first lock to the last sync: a broker that has stopped took its ``.lock`` away."""
    mounted, how = disk
    top = log_dir(mounted.path / "d1")
    for number in range(4):
        partition(top / f"pay-{number}")
        partition(top / f"log-{number}", topic_id=OTHER_ID)
    before = _files(top / "pay-0")
    named = ("--log-dirs", top)
    assert ctl("init", *named, "--apply").status == Exit.DONE
    root = mounted.path / "d1.logdird"
    assert len(os.listdir(root / "spare-inodes")) == (64 if counts_inodes(mounted.path) else 0)
    mounted.sync()
    fill(mounted.path, how)
    room = left(mounted.path)
    assert room.inodes == 0 or "inodes" not in how
    assert room.bytes <= 64 << 10 or "bytes" not in how
    status, result = ctl_json("stage", "pay", "--even-if-unknown", *named, "--apply", "--even-over-limit")
    assert (status in _SPENT, {item["state"] for item in result["items"]}) == (True, {"done"})
    assert not (top / "pay-0").exists()
    if how == "inodes":
        fill(mounted.path, how)
    status, result = ctl_json("staged", "restore", "pay", "--even-if-unknown", *named, "--apply")
    assert (status in _SPENT, {item["state"] for item in result["items"]}) == (True, {"done"})
    assert _files(top / "pay-0") == before
    staged = ctl("stage", "log", "--even-if-unknown", *named, "--apply", "--even-over-limit")
    assert (staged.status in _SPENT, "reserve-spent" in staged.err) == (True, staged.status == Exit.PROBLEMS)
    # Nor is anything kept any more: what is staged can still be purged, else nothing could ever be freed.
    os.truncate(root / "reserve", 0)
    for path in (root / "spare-inodes").iterdir():
        path.unlink()
    mounted.sync()
    fill(mounted.path, how)
    status, result = ctl_json("staged", "purge", "log", "--even-if-last", *named, "--apply")
    assert (status in _SPENT, {item["state"] for item in result["items"]}) == (True, {"done"})
    assert os.listdir(root / "deleting") == []


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a10_without_a_spare_inode_it_is_undone_and_all_is_as_it_was(machine: Machine, kind: str) -> None:
    """What the spare inodes are for: this is how it ends without them."""
    one = kernel_operation("stage 2")
    acks = Acks()
    with machine.mounted(one, kind, to_fill=True) as mounts:
        for path in (mounts["/d0"].path / "kafka.logdird" / "spare-inodes").iterdir():
            path.unlink()
        fill(mounts["/d0"].path, "inodes")
        _, error = run_to(one, roots_of(mounts), acks)
        assert (error, acks.said) == ("", ("d0/a-0 refused 1", "d0/b-1 refused 1"))
        start = machine.start(one, kind, to_fill=True).world
        assert recovered(one, start, roots_of(mounts), acks, left_out=UNJUDGED) == []


def test_a_cut_on_a_full_disk_is_said_and_read_again() -> None:
    cut = Cut("xfs", "flushed", "stage 1", 3, 1, "bytes and inodes")
    assert cut.render() == "xfs without bytes and inodes/flushed/3+1/stage 1"
    assert Cut.parse(cut.render()) == cut
    everything = list(full_cuts(END, FILE_SYSTEMS))
    assert len({(cut.file_system, cut.full, cut.operation) for cut in everything}) == len(everything)
    assert sum(cut.after == END for cut in everything) == len(everything) // 2
