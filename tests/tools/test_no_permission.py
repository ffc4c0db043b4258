"""A missing right is never called a dead disk, by whatever command meets it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tools.ctl import ctl, ctl_without_rights, tree, two_disks
from tools.cli import Exit

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
    assert "no-permission: " in said.err
    assert "found Permission denied;" in said.err
    assert str(place) in said.err
    for word in ("log-dir-offline", "is the disk mounted", "--skip-log-dir", "kernel's log"):
        assert word not in said.err, said.err
    assert tree(tmp_path) == before


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
    for word in ("log-dir-offline", "is the disk mounted", "malformed", "kernel's log"):
        assert word not in said.err, said.err
