"""Work roots and mounts: where nothing can be renamed, it is noticed, named, and another place taken."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logdir.disk.kernel.host import HostDisk
from logdir.disk.root.init import InitDone, init
from logdir.disk.root.plan import plan_init
from logdir.disk.root.removal import remove_root
from logdir.disk.root.work_root import open_root
from logdir.errors import LogDirReplacedError, RefusedError
from logdir.formats.own.work_root_file import WorkRootKind
from tests.builders import log_dir, partition

BESIDE, IN_PLACE = WorkRootKind.BESIDE, WorkRootKind.IN_PLACE
HIDDEN = "__cluster_metadata-2147483647"
MADE = ["deleting", "incoming", "owner.lock", "probe", "reserve", "work-root.json"]
IS_ROOT = os.geteuid() == 0


def made(path: Path) -> InitDone:
    disk = HostDisk()
    return init(disk, plan_init(disk, str(path), fs_type="ext4"), made_at_ms=5, reserve_bytes=8192)


def listing(path: Path) -> list[str]:
    return sorted(os.listdir(path))


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    path = log_dir(tmp_path / "d1")
    partition(path / "a-0")
    return path


@pytest.fixture
def bind(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """Mount a directory on itself, until the end."""
    if not IS_ROOT:
        pytest.skip("needs root: mounts a directory on itself")
    mounted: list[Path] = []

    def mount(path: Path) -> None:
        found = subprocess.run(["mount", "--bind", path, path], capture_output=True, text=True)
        if found.returncode:
            pytest.skip(f"needs the right to mount: {found.stderr.strip()}")
        mounted.append(path)

    yield mount
    for path in reversed(mounted):
        subprocess.run(["umount", "-l", path], check=True)


@pytest.mark.root
def test_a05_a_log_dir_that_is_a_mount_root_gets_its_root_in_place(d1: Path, bind: Callable[[Path], None]) -> None:
    bind(d1)
    done = made(d1)
    assert (done.kind, done.path) == (IN_PLACE, f"{d1}/{HIDDEN}")
    assert [(c.kind, "mount point" in c.detail) for c in done.passed] == [(BESIDE, True)]
    assert listing(d1.parent) == ["d1"]
    with open_root(HostDisk(), str(d1)) as root:
        root.prove()
    remove_root(HostDisk(), str(d1))
    with pytest.raises(RefusedError, match="mount point of its own"):
        plan_init(HostDisk(), str(d1), requested=BESIDE, fs_type="ext4")


@pytest.mark.root
def test_a06_a_bind_mount_between_log_dir_and_root_is_named(d1: Path, bind: Callable[[Path], None]) -> None:
    root = Path(made(d1).path)
    bind(root)
    with open_root(HostDisk(), str(d1)) as opened:
        with pytest.raises(RefusedError, match=r"one mount.*mounts \d+ and \d+ of mountinfo.*ReadWritePaths"):
            opened.prove()
        assert opened.open_dir.work.names() == MADE


@pytest.mark.root
def test_a06_a_sibling_mounted_on_its_own_is_passed_over(d1: Path, bind: Callable[[Path], None]) -> None:
    (d1.parent / "d1.logdird").mkdir()
    bind(d1.parent / "d1.logdird")
    done = made(d1)
    assert done.kind is IN_PLACE
    assert listing(d1.parent / "d1.logdird") == []


@pytest.mark.root
def test_a26_a_mount_over_the_log_dir_is_noticed_before_a_batch(
    d1: Path, tmp_path: Path, bind: Callable[[Path], None]
) -> None:
    made(d1)
    disk = HostDisk()
    with open_root(disk, str(d1)) as opened:
        bind(d1)
        with pytest.raises(LogDirReplacedError, match=str(d1)):
            opened.require_same(disk)


@pytest.mark.root
def test_a26_a_disk_unmounted_under_open_descriptors_is_noticed_before_a_batch(
    d1: Path, bind: Callable[[Path], None]
) -> None:
    """Lazily: the descriptors still lead to it, the path to what lay under it."""
    bind(d1)
    made(d1)
    disk = HostDisk()
    with open_root(disk, str(d1)) as opened:
        opened.require_same(disk)
        subprocess.run(["umount", "-l", d1], check=True)
        assert opened.open_dir.top.names()
        with pytest.raises(LogDirReplacedError, match=str(d1)):
            opened.require_same(disk)
        # Another mount of the same disk is another one; the fixture takes it away.
        subprocess.run(["mount", "--bind", d1, d1], check=True)
        with pytest.raises(LogDirReplacedError, match=str(d1)):
            opened.require_same(disk)


@pytest.mark.root
def test_a05_a_parent_that_is_not_ours_to_write_means_in_place(tmp_path: Path) -> None:
    if not IS_ROOT:
        pytest.skip("needs root: becomes another user")
    path = log_dir(tmp_path / "d1")
    os.chown(path, 1234, 1234)
    os.chown(path / "meta.properties", 1234, 1234)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_mode & 0o005 != 0o005 and str(above).startswith("/tmp/"):
            above.chmod(above.stat().st_mode | 0o005)
    child = os.fork()
    if child == 0:
        code = 9
        try:
            os.setgid(1234)
            os.setuid(1234)
            done = made(path)
            code = 0 if (done.kind, len(done.passed)) == (IN_PLACE, 1) else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert listing(tmp_path) == ["d1"]
    assert json.loads((path / HIDDEN / "work-root.json").read_text())["kind"] == "in-place"
    assert (path / HIDDEN / "deleting").stat().st_uid == 1234
