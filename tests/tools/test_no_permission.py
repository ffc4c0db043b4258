"""A missing right is never called a dead disk, by whatever command meets it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import log_dir, partition
from tests.tools.assignment_rig import Cluster
from tests.tools.ctl import ctl, ctl_without_rights, tree, two_disks
from tools.cli.arguments import Exit

COMMANDS = {
    "stage": ("stage", "pay-1", "--even-if-unknown", "--even-over-limit"),
    "restore": ("staged", "restore", "pay-0", "--even-if-unknown"),
    "hold": ("staged", "hold", "pay-0"),
    "purge": ("staged", "purge"),
    "export": ("staged", "export", "pay-0"),
    "reconcile": ("reconcile", "--from", "metadata:"),
    "init": ("init",),
    "uninstall": ("uninstall",),
    "layout rollback": ("layout", "rollback"),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner: root gives it one")
@pytest.mark.parametrize("is_root", [False, True], ids=["log dir", "work root"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_missing_right_is_called_a_dead_disk(command: str, is_root: bool, tmp_path: Path) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay-0", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE
    place = Path(f"{disks[1]}.logdird") if is_root else disks[1]
    place.chmod(0o700)
    os.chown(place, 65534, 65534)
    (tmp_path / "out").mkdir()
    out = ("-o", tmp_path / "out") if command == "export" else ()
    before = tree(tmp_path)
    said = ctl_without_rights(*COMMANDS[command], *out, *named, "--apply")
    assert said.status == Exit.REFUSED, said
    assert str(place) in said.err
    assert tree(tmp_path) == before
    if not is_root:
        # Root becomes the owner of the log dirs before it changes any, and these have two.
        assert "owners-differ: " in said.err
        return
    assert "no-permission: " in said.err
    assert "found Permission denied;" in said.err
    for word in ("log-dir-offline", "is the disk mounted", "disk is mounted", "--skip-log-dir", "kernel's log"):
        assert word not in said.err, said.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner: root gives it one")
@pytest.mark.parametrize("command", [("staged", "ls"), ("describe",), ("inventory",)], ids=" ".join)
def test_no_missing_right_to_meta_properties_is_called_a_dead_disk_or_a_broken_file(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    place = disks[1] / "meta.properties"
    place.chmod(0o600)
    os.chown(place, 65534, 65534)
    said = ctl_without_rights(*command, *named)
    assert said.status == Exit.PROBLEMS, said
    assert "no-permission: " in said.err
    assert str(disks[1]) in said.err
    for word in ("log-dir-offline", "is the disk mounted", "disk is mounted", "malformed", "kernel's log"):
        assert word not in said.err, said.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner: root gives it one")
@pytest.mark.parametrize("place", ["{}/..", "{}.logdird/deleting", "{}.logdird"])
@pytest.mark.parametrize("words", [(), ("--restore", "--even-if-unknown")], ids=["", "restore"])
def test_no_work_root_goes_where_another_one_may_not_be_taken_away(
    words: tuple[str, ...], place: str, tmp_path: Path
) -> None:
    """All go or none: the first one would be gone before the second says no."""
    disks = log_dir(tmp_path / "a/d1"), log_dir(tmp_path / "b/d2", directory="AAAAAAAAAAAAAAAAAAAABA")
    for disk in disks:
        partition(disk / f"pay-{disk.name[1]}")
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    if words:
        assert ctl("stage", "pay-2", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE
    os.chown(place.format(disks[1]), 65534, 65534)
    Path(place.format(disks[1])).chmod(0o755)
    roots = [sorted(os.listdir(f"{disk}.logdird")) for disk in disks]
    for apply in ((), ("--apply",)):
        said = ctl_without_rights("uninstall", *words, *named, *apply)
        # With --restore there is something to do, and it is done.
        assert said.status in ((Exit.PROBLEMS, Exit.REFUSED) if words else (Exit.REFUSED,)), said
        assert "found Permission denied; run as the owner" in said.err
        assert [sorted(os.listdir(f"{disk}.logdird")) for disk in disks] == roots


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner: root gives it one")
@pytest.mark.parametrize("command", [("staged", "ls"), ("stage", "pay-1")], ids=" ".join)
def test_no_missing_right_to_the_metadata_log_asks_for_a_mount(command: tuple[str, ...], tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.stage().status == Exit.DONE
    cluster.log.directory.chmod(0o700)
    os.chown(cluster.log.directory, 65534, 65534)
    said = ctl_without_rights(*command, *cluster.named)
    assert "Permission denied" in said.err + said.out
    assert command[0] == "staged" or "run as the owner" in said.err, said
    assert "mount the disk" not in said.err + said.out, said
