"""A replica that left this broker, and is assigned here again where a metadata log is not known to be committed.

The broker was down, its partition went to others, and a snapshot was taken. Then the partition came back, and its
replica here is the only one in sync: an image that ends at the snapshot does not show that.

Spec: design §4; attacks A2, A46.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.logdir.cluster.log_dir import LogDir, change, noop, register, topic
from tests.logdir.cluster.log_dir import partition as claimed
from tests.tools.ctl import ctl_json, tree
from tests.tools.reconcile_rig import PARTITIONS, PAY, Rig, gone_records, raw

STAGED = f"{PAY}_0"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def moved(rig: Rig, folder: Path | None = None) -> LogDir:
    """Write a log up to the snapshot behind the move of ``pay-0`` to other brokers; the own one, if nothing is said."""
    log = rig.log(folder)
    log.append(register(1, fenced=True), register(3))
    log.append(change(raw(PAY), 0, replicas=(2, 3), isr=(2, 3), leader=2))
    log.append(noop())
    log.snapshot(
        register(1, fenced=True),
        register(2),
        register(3),
        topic("pay", raw(PAY)),
        claimed(raw(PAY), 0, (2, 3)),
        *(claimed(raw(PAY), number, (1, 2)) for number in range(1, PARTITIONS)),
        *gone_records(),
    )
    return log


def copy_of(rig: Rig, log: LogDir) -> str:
    """Copy a log with the ``meta.properties`` beside it, as it is taken from another node; return it as a source."""
    folder = rig.folder / "copy"
    shutil.copytree(log.directory, folder / log.directory.name)
    shutil.copy(rig.disks[0] / "meta.properties", folder)
    return f"metadata:{folder}"


def come_back(log: LogDir) -> None:
    """Assign ``pay-0`` here again, until its replica here is the only one in sync."""
    log.append(register(1))
    log.append(change(raw(PAY), 0, replicas=(1, 2), isr=(2,), leader=2))
    log.append(change(raw(PAY), 0, isr=(1, 2)))
    log.append(change(raw(PAY), 0, isr=(1,), leader=1))
    log.append(register(1, fenced=True))


def problems(rig: Rig, source: str) -> list[tuple[str, str, str]]:
    """Apply a reconcile; return path, slug and cause of what is not done."""
    _, result = ctl_json("reconcile", "--from", source, *rig.named, "--apply")
    return [
        (item["path"], item["problem"]["slug"], item["problem"]["found"])
        for item in result["items"]
        if item["problem"] is not None
    ]


def require_kept(rig: Rig, source: str, found: str) -> None:
    """Fail unless neither command takes the replica for one that left."""
    _, strays = ctl_json("strays", "--from", source, *rig.named)
    assert [(one["path"], one["state"]) for one in strays["items"]] == [("pay-0", "unproven")]
    before = tree(rig.disks[0] / "pay-0")
    assert problems(rig, source) == [("pay-0", "removal-not-proven", found)]
    assert (tree(rig.disks[0] / "pay-0"), rig.deleting()) == (before, [])


@pytest.mark.parametrize("is_own", [True, False], ids=["own log", "copy"])
def test_a46_what_left_is_staged_where_no_log_goes_further(rig: Rig, *, is_own: bool) -> None:
    log = moved(rig, None if is_own else rig.folder / "elsewhere")
    source = "metadata:" if is_own else copy_of(rig, log)
    _, strays = ctl_json("strays", "--from", source, *rig.named)
    assert [(one["path"], one["state"]) for one in strays["items"]] == [("pay-0", "proven")]
    assert problems(rig, source) == []
    assert rig.deleting() == [STAGED]
    assert rig.marker(STAGED)["reason"] == "replica-moved-away"


@pytest.mark.parametrize("is_own", [True, False], ids=["own log", "copy"])
def test_a46_what_the_end_of_the_log_assigns_here_again_is_not_staged(rig: Rig, *, is_own: bool) -> None:
    log = moved(rig, None if is_own else rig.folder / "elsewhere")
    come_back(log)
    source = "metadata:" if is_own else copy_of(rig, log)
    path = log.directory if is_own else f"{source.removeprefix('metadata:')}/{log.directory.name}"
    require_kept(rig, source, f"{path} at its end, offset {log.offset}: it is assigned here again")


def test_a46_what_the_own_log_beside_a_copy_assigns_here_again_is_not_staged(rig: Rig) -> None:
    log = moved(rig)
    source = copy_of(rig, log)
    come_back(log)
    require_kept(rig, source, f"{log.directory} at its end, offset {log.offset}: it is assigned here again")


def test_a46_where_nobody_else_holds_it_by_the_end_of_the_log_it_is_not_staged(rig: Rig) -> None:
    log = moved(rig)
    log.append(register(2, fenced=True), register(3, fenced=True))
    assert [found[:2] for found in problems(rig, "metadata:")] == [("pay-0", "last-copy")]
    assert rig.deleting() == []


def test_a46_behind_damage_in_the_own_log_it_may_have_come_back(rig: Rig) -> None:
    log = moved(rig)
    source = copy_of(rig, log)
    whole = log.segment.stat().st_size
    come_back(log)
    data = bytearray(log.segment.read_bytes())
    data[whole + 70] ^= 1
    log.segment.write_bytes(data)
    for one in (source, "metadata:"):
        ((path, slug, found),) = problems(rig, one)
        assert (path, slug) == ("pay-0", "removal-not-proven")
        assert "expected checksum " in found
    assert rig.deleting() == []


def test_a46_an_own_log_that_cannot_be_read_may_assign_it_here_again(rig: Rig) -> None:
    log = moved(rig)
    source = copy_of(rig, log)
    for path in log.directory.iterdir():
        path.unlink()
    assert [found[:2] for found in problems(rig, source)] == [("pay-0", "removal-not-proven")]
    assert rig.deleting() == []


def test_a46_an_own_log_that_ends_before_the_copy_keeps_nothing(rig: Rig) -> None:
    """The broker was down: its own log assigns here what left it meanwhile."""
    own = rig.log()
    log = moved(rig, rig.folder / "elsewhere")
    assert own.offset < log.offset
    assert problems(rig, copy_of(rig, log)) == []
    assert rig.deleting() == [STAGED]


def test_what_is_removed_with_its_topic_needs_no_end_of_a_log(rig: Rig) -> None:
    """No topic id ever comes back, so that a damaged end hides nothing."""
    rig.with_removal()
    (path,) = rig.disks[0].glob("__cluster_metadata-0/*.log")
    with path.open("ab") as file:
        file.write(bytes(100))
    assert problems(rig, "metadata:") == []
    assert len(rig.deleting()) == 2


def test_a46_what_a_broker_renamed_is_no_proven_stray_either_where_it_came_back(rig: Rig) -> None:
    log = moved(rig)
    (rig.disks[0] / "pay-0").rename(rig.disks[0] / f"pay-0.{'0' * 32}-stray")
    for state in ("proven", "unproven"):
        _, strays = ctl_json("strays", "--from", "metadata:", *rig.named)
        assert [one["state"] for one in strays["items"]] == [state]
        come_back(log)
