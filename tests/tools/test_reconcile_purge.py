"""The look before a purge: what the cluster says by then, on real directories."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import CLUSTER, partition
from tests.logdir.cluster.log_dir import START_MS, LogDir, register, remove
from tests.reconcile.universe import document, listed
from tests.tools.cluster_log import cluster_log, topics_on
from tests.tools.ctl import ctl, ctl_json, held
from tests.tools.reconcile_rig import (
    GONE,
    PARTITIONS,
    PAY,
    Rig,
    age,
    gone_records,
    is_in,
    raw,
)
from tools.cli.arguments import Exit

LONE = "AAAAAAAAAAAAAAAAAAAAZQ"
"""Of a topic that the cluster does not have."""
EVERY = tuple(range(PARTITIONS))
FULL = 2
OLD_MS = 1_650_000_000_000


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def _old_removal(rig: Rig) -> LogDir:
    """Let its own log hold the removal of ``gone``, years ago."""
    log = rig.log()
    log.time_ms = OLD_MS
    log.append(remove(raw(GONE)))
    rig.snapshot(log)
    for path in log.directory.glob("*.log"):
        assert path.stat().st_size
    return log


def test_a02_what_the_log_removed_is_not_purged_on_the_same_word_again(rig: Rig) -> None:
    log = _old_removal(rig)
    assert rig.reconcile("metadata:", "--delay-ms", 0, "--apply").status == Exit.DONE
    said = ctl("staged", "purge", *rig.named, "--apply")
    assert rig.deleting() == [f"{GONE}_0", f"{GONE}_1"], said
    status, result = ctl_json("staged", "purge", GONE, *rig.named, "--apply")
    assert (status, [item["problem"]["slug"] for item in result["items"]]) == (Exit.REFUSED, ["no-evidence"] * 2)
    # The broker ran again, and heard nothing else.
    log.time_ms = START_MS
    rig.snapshot(log)
    assert ctl("staged", "purge", *rig.named, "--apply").status == Exit.DONE
    assert rig.deleting() == []


def test_a43_what_is_wanted_again_is_not_purged_and_loses_its_deadline(rig: Rig) -> None:
    log = _old_removal(rig)
    assert rig.reconcile("metadata:", "--delay-ms", 0, "--apply").status == Exit.DONE
    log.time_ms = START_MS
    log.append(*gone_records())
    rig.snapshot(log, *gone_records())
    status, result = ctl_json("staged", "purge", GONE, *rig.named, "--apply")
    assert (status, [item["problem"]["slug"] for item in result["items"]]) == (Exit.REFUSED, ["assigned-here"] * 2)
    status, result = ctl_json("reconcile", "--from", "metadata:", *rig.named, "--apply")
    assert (status, [(i["action"], i["path"], i["state"]) for i in result["items"]]) == (
        Exit.DONE,
        [("hold", f"deleting/{GONE}_0", "done"), ("hold", f"deleting/{GONE}_1", "done")],
    )
    assert "staged restore" in result["items"][0]["detail"]
    assert [rig.marker(f"{GONE}_{number}")["delay_ms"] for number in (0, 1)] == [None, None]
    assert ctl("staged", "restore", GONE, *rig.named, "--even-if-unknown", "--apply").status == Exit.DONE
    assert "gone-0" in rig.live()


def test_a43_nothing_is_purged_while_the_log_is_behind(rig: Rig) -> None:
    """Nor what an operator staged, by name and early: what was put back may want it."""
    assert rig.with_removal().reconcile("metadata:", "--delay-ms", 0, "--apply").status == Exit.DONE
    age(partition(rig.disks[1] / "lone-0", topic_id=LONE))
    assert ctl("stage", "lone", *rig.named, "--delay-ms", 0, "--even-over-limit", "--apply").status == Exit.DONE
    for path in (rig.disks[0] / "__cluster_metadata-0").iterdir():
        path.unlink()
    rig.log().snapshot(register(1))
    said = ctl("staged", "purge", GONE, *rig.named, "--even-if-early", "--include-held", "--apply")
    assert (said.status, "older, or rolled back" in said.err) == (Exit.REFUSED, True)
    for words in ((), ("lone",), ("lone", "--even-if-early", "--even-if-last")):
        said = ctl("staged", "purge", *words, *rig.named, "--apply")
        assert (said.status != Exit.DONE, "older, or rolled back" in said.err) == (True, True), said
    assert len(rig.deleting()) == 3


def test_no_log_of_another_cluster_is_passed_over_in_silence_by_a_purge(rig: Rig) -> None:
    assert rig.with_removal().reconcile("metadata:", "--delay-ms", 0, "--apply").status == Exit.DONE
    other = rig.folder / "other"
    rig.snapshot(rig.log(other))
    text = (rig.disks[0] / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace(CLUSTER, "A" * 22))
    said = ctl("staged", "purge", "--from", f"metadata:{other}", *rig.named, "--apply")
    assert (said.status != Exit.DONE, "cluster of the log dirs" in said.err) == (True, True), said
    assert len(rig.deleting()) == 2


def test_a43_what_a_snapshot_too_old_to_prove_anything_wants_is_not_purged_either(rig: Rig) -> None:
    """Beside a running broker, whose newest snapshot is no proof any more."""
    log = rig.log()
    log.time_ms = OLD_MS
    source = rig.document(document(listed(pay=(PAY, EVERY)), type=FULL, sequence=1))
    assert rig.reconcile(source, "--delay-ms", 0, "--apply", "--even-over-limit").status == Exit.DONE
    rig.snapshot(log, *gone_records())
    purging = ("staged", "purge", GONE, *rig.named, "--apply")
    (rig.disks[1] / ".lock").touch()
    with held(rig.disks[1] / ".lock"):
        status, result = ctl_json(*purging)
        assert (status, [item["problem"]["slug"] for item in result["items"]]) == (Exit.REFUSED, ["assigned-here"] * 2)
        log.append(remove(raw(GONE)))
        rig.snapshot(log)
        assert ctl(*purging).status == Exit.DONE
    assert rig.deleting() == []


def _away(rig: Rig) -> None:
    """Let the disk of the metadata log be away."""
    rig.disks[0].rename(rig.folder / "away")


def _cut_off(rig: Rig) -> None:
    for path in (rig.disks[0] / "__cluster_metadata-0").glob("*.checkpoint"):
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")


def _removed(rig: Rig) -> None:
    shutil.rmtree(rig.disks[0] / "__cluster_metadata-0")


@pytest.mark.parametrize("damage", [_away, _cut_off, _removed])
def test_a43_while_the_log_cannot_be_read_nothing_goes_that_is_not_named(
    rig: Rig, damage: Callable[[Rig], None]
) -> None:
    """Also what an operator staged: the log would say whether it is wanted again, or was put back."""
    assert rig.with_removal().reconcile("metadata:", "--delay-ms", 0, "--apply").status == Exit.DONE
    age(partition(rig.disks[1] / "lone-0", topic_id=LONE))
    assert ctl("stage", "lone", *rig.named, "--delay-ms", 0, "--even-over-limit", "--apply").status == Exit.DONE
    damage(rig)
    flags = ("--skip-log-dir", rig.disks[0]) if damage is _away else ()
    said = ctl("staged", "purge", *rig.named, *flags, "--apply")
    assert is_in(rig.disks[1], f"{LONE}_0"), said
    assert "__cluster_metadata-0" in said.err
    # Named with --even-if-early, it goes: an operator knows.
    _, result = ctl_json("staged", "purge", "lone", *rig.named, *flags, "--even-if-early", "--apply")
    assert [item["state"] for item in result["items"]] == ["done"]
    assert not is_in(rig.disks[1], f"{LONE}_0")


@pytest.mark.parametrize("roles", ["broker", ""])
def test_a_broker_says_whether_it_has_a_log_at_all(rig: Rig, roles: str) -> None:
    log = cluster_log(rig.folder / "cluster", topics_on(rig.disks), (2, 3))
    source = ("--from", f"metadata:{log.directory}")
    assert ctl("stage", "pay-1", *source, *rig.named, "--delay-ms", 0, "--apply").status == Exit.DONE
    conf = rig.folder / "server.properties"
    conf.write_text(f"log.dirs={rig.disks[0]},{rig.disks[1]}\nprocess.roles={roles}\n")
    ctl("staged", "purge", "--server-properties", conf, "--apply")
    assert is_in(rig.disks[1], f"{PAY}_1") is (roles == "broker")


@pytest.mark.parametrize(
    "flags",
    [("--from", "request:/r"), ("--from", "nowhere"), ("--from", "metadata:/nowhere"), ("--high-watermark", 5),
     ("--leader-epoch", 5), ("--from", "znodes:/nowhere")],
)  # fmt: skip
def test_a_purge_that_names_no_source_goes_no_further(flags: tuple[object, ...], rig: Rig) -> None:
    assert rig.with_removal().reconcile("metadata:", "--delay-ms", 0, "--apply").status == Exit.DONE
    said = ctl("staged", "purge", *rig.named, *flags, "--apply")
    assert (said.status, said.err.count("\n")) == (Exit.USAGE, 1), said
    assert len(rig.deleting()) == 2


def test_the_next_line_of_a_purge_says_how_far_the_log_is_committed(rig: Rig) -> None:
    log = _old_removal(rig)
    assert rig.reconcile("metadata:", "--delay-ms", 0, "--apply").status == Exit.DONE
    log.time_ms = START_MS
    rig.snapshot(log)
    for told in ("--high-watermark 0 --leader-epoch 1", "--high-watermark 7 --leader-epoch 1"):
        said = ctl("staged", "purge", GONE, *rig.named, *told.split())
        assert said.status == Exit.DONE, said
        (line,) = (line for line in said.out.splitlines() if line.startswith("next: "))
        assert line.startswith("next: logdirctl staged purge ")
        assert line.endswith(f" {told} --apply")
