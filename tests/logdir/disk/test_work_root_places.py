"""Where a work root can be and where it cannot: disks of their own, renames that cross, case that is folded (A5–A7)."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.kernel.in_use import in_use
from logdir.disk.locks import KafkaLock, OwnerLock
from logdir.disk.root.init import InitDone, init
from logdir.disk.root.plan import layout_of, plan_init
from logdir.disk.root.work_root import open_root
from logdir.errors import RefusedError
from logdir.formats.own import work_root_file
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.refusal_slug import Why
from tests.builders import CLUSTER, DIRECTORY, META, TOPIC_ID, log_dir, partition
from tests.crash.model import ModelHost
from tests.logdir.disk.staged_rig import make_log_dir
from tests.whole_refusal import require_whole

INSIDE, BESIDE, IN_PLACE = WorkRootKind
HIDDEN = "__cluster_metadata-2147483647"
IS_ROOT = os.geteuid() == 0


def made(disk: HostDisk | ModelHost, path: str, *, unsupported_fs: bool = False) -> InitDone:
    plan = plan_init(disk, path, fs_type="ext4", unsupported_fs=unsupported_fs)
    return init(disk, plan, made_at_ms=5, reserve_bytes=64)


def model(*mounts: str, log_dir: str, folds_case: bool = False) -> ModelHost:
    host = ModelHost.with_disks(*mounts)
    host.plant(f"{log_dir}/meta.properties", META.format(node=1, directory=DIRECTORY, cluster=CLUSTER).encode())
    host.plant(f"{log_dir}/a-0/{0:020}.log", b"data")
    world = host.world()
    volumes = tuple(volume.durable()._replace(folds_case=folds_case) for volume in world.volumes)
    return ModelHost(world._replace(volumes=volumes))


def paths(host: ModelHost) -> set[str]:
    return set(host.world().tree())


class Crossing(HostDisk):
    """Says of renames between two directories that they lie on two file systems, or of all that they cannot be."""

    def __init__(self, one: str, other: str = "", number: int = errno.EXDEV) -> None:
        self._between, self._errno = {one, other}, number
        super().__init__(self._observe)

    def _observe(self, call: Call) -> None:
        ends = {os.path.dirname(call.path), os.path.dirname(call.to)}
        if call.name == "rename" and (ends == self._between or "" in self._between):
            raise OSError(self._errno, os.strerror(self._errno), call.path)


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    path = log_dir(tmp_path / "d1")
    partition(path / "a-0")
    return path


def test_a05_a_log_dir_that_is_a_disk_of_its_own_gets_its_root_in_place() -> None:
    host = model("/d", "/d/kafka", log_dir="/d/kafka")
    before = paths(host)
    done = made(host, "/d/kafka")
    assert (done.kind, done.path) == (IN_PLACE, f"/d/kafka/{HIDDEN}")
    assert [(one.kind, "mount point of its own" in one.detail) for one in done.passed] == [(BESIDE, True)]
    assert {path for path in paths(host) - before if not path.startswith(f"/d/kafka/{HIDDEN}")} == set()
    with open_root(host, "/d/kafka") as root:
        root.prove()
    with pytest.raises(RefusedError, match="mount point of its own"):
        plan_init(model("/d", "/d/kafka", log_dir="/d/kafka"), "/d/kafka", requested=BESIDE, fs_type="ext4")


def test_a06_where_a_rename_beside_crosses_the_root_is_in_place_and_nothing_left(d1: Path) -> None:
    """As with a project quota on the log dir, a subvolume, a layer: one device, and no rename."""
    done = made(Crossing(f"{d1}.logdird", str(d1)), str(d1))
    assert done.kind is IN_PLACE
    ((kind, _, why),) = done.passed
    assert (kind, "cross-device" in why) == (BESIDE, True)
    assert os.listdir(d1.parent) == ["d1"]


def test_a06_a_root_to_which_no_rename_goes_any_more_is_refused_and_says_where(d1: Path) -> None:
    root = Path(made(HostDisk(), str(d1)).path)
    before = sorted(map(str, d1.parent.rglob("*")))
    with open_root(Crossing(f"{d1}.logdird", str(d1)), str(d1)) as opened:
        with pytest.raises(RefusedError) as raised:
            opened.prove()
        require_whole(
            raised.value,
            Why.MOUNTS_DIFFER,
            path=f"{root}/probe -> {d1}/__cluster_metadata-2147483646",
            expected="log dir and work root on one mount, in one subvolume or quota tree",
            found="Invalid cross-device link: one mount",
            fix="mount both through one mount point (systemd: one ReadWritePaths above both), or logdirctl init "
            "--work-root in-place",
        )
    assert sorted(map(str, d1.parent.rglob("*"))) == before


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
def test_a07_a_file_system_that_cannot_rename_without_replacing_is_refused(d1: Path, number: int) -> None:
    root = Path(made(HostDisk(), str(d1)).path)
    with open_root(Crossing("", number=number), str(d1)) as opened:
        with pytest.raises(RefusedError, match=r"^unsupported-file-system: .*RENAME_NOREPLACE"):
            opened.prove()
        assert (root / "probe").is_dir()


def test_a07_a_disk_that_folds_case_is_refused_and_left_as_it_was() -> None:
    """Two topic ids that differ in case alone would be one directory."""
    host = model("/d", log_dir="/d/kafka", folds_case=True)
    before = host.world().digest()
    with pytest.raises(
        RefusedError, match=r"^unsupported-file-system: .*differ in case.*folds case.*--even-on-unsupported-fs"
    ):
        made(host, "/d/kafka")
    assert host.world().digest() == before


def test_a07_it_is_taken_on_the_operators_word_which_is_kept() -> None:
    host = model("/d", log_dir="/d/kafka", folds_case=True)
    done = made(host, "/d/kafka", unsupported_fs=True)
    file = work_root_file.parse(host.world().files()[f"{done.path}/work-root.json"])
    assert file.unsupported_fs
    with open_root(host, "/d/kafka") as root:
        assert root.unsupported_fs
        root.prove()
    assert plan_init(host, "/d/kafka", fs_type="zfs", unsupported_fs=True).unsupported_fs


@pytest.mark.parametrize("kind", list(WorkRootKind), ids=lambda kind: kind.value)
def test_a07_at_a_start_a_directory_that_folds_case_by_now_is_refused_with_the_probe_at_home(
    kind: WorkRootKind,
) -> None:
    host = model("/d", log_dir="/d/kafka")
    plan = plan_init(host, "/d/kafka", requested=kind, fs_type="ext4")
    path = init(host, plan, made_at_ms=5, reserve_bytes=64).path
    world = host.world()
    volume = world.volumes[0].durable()._replace(folds_case=True)
    host = ModelHost(world._replace(volumes=(volume,)))
    with open_root(host, "/d/kafka") as root, pytest.raises(RefusedError, match="folds case"):
        root.prove()
    assert {one for one in paths(host) if one.endswith("/probe") or "2147483646" in one} == {f"{path}/probe"}


def test_a07_a_file_system_without_locks_of_descriptions_is_refused(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(made(HostDisk(), str(d1)).path)
    real = fcntl.fcntl

    def none(descriptor: int, command: int, *rest: Any) -> Any:
        if command == fcntl.F_OFD_SETLK:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real(descriptor, command, *rest)

    monkeypatch.setattr(fcntl, "fcntl", none)
    with HostDisk().open_top(str(root)) as work, pytest.raises(RefusedError, match="F_OFD_SETLK"):
        OwnerLock.take(work)
    with HostDisk().open_top(str(d1)) as top, pytest.raises(RefusedError, match="F_OFD_SETLK"):
        KafkaLock.take(top)


def test_a07_where_no_lease_is_given_a_file_counts_as_in_use(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then removed whole, and never truncated under somebody's hands."""
    with HostDisk().open_top(str(d1 / "a-0")) as directory:
        assert not in_use(directory, f"{0:020}.log")
        real = fcntl.fcntl

        def none(descriptor: int, command: int, *rest: int) -> int:
            if command == fcntl.F_SETLEASE:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            return int(real(descriptor, command, *rest))

        monkeypatch.setattr(fcntl, "fcntl", none)
        assert in_use(directory, f"{0:020}.log")


@pytest.fixture
def folding(tmp_path: Path) -> Iterator[Path]:
    """An ext4 whose new directories fold case, until the end."""
    if not IS_ROOT:
        pytest.skip("needs root: mounts a file system")
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("needs mkfs.ext4: apt install e2fsprogs")
    image, mount = tmp_path / "image", tmp_path / "mount"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    made = subprocess.run(["mkfs.ext4", "-q", "-O", "casefold", image], capture_output=True, text=True, check=False)
    mounted = subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True, text=True, check=False)
    if made.returncode or mounted.returncode:
        pytest.skip("needs loop devices and a kernel with CONFIG_UNICODE: modprobe loop")
    try:
        top = log_dir(mount / "kafka")
        shutil.rmtree(top)
        top.mkdir()
        subprocess.run(["chattr", "+F", top], check=True)
        (top / "meta.properties").write_text(META.format(node=1, directory=DIRECTORY, cluster=CLUSTER))
        yield top
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.root
def test_a07_an_ext4_that_folds_case_is_refused(folding: Path) -> None:
    before = sorted(os.listdir(folding.parent))
    with pytest.raises(RefusedError, match="folds case"):
        made(HostDisk(), str(folding))
    assert os.listdir(folding) == ["meta.properties"]
    assert sorted(os.listdir(folding.parent)) == before


def test_a_link_with_the_name_of_a_prefix_does_not_make_the_layout_topic_id(tmp_path: Path) -> None:
    top = make_log_dir(tmp_path / "linked")
    (top / TOPIC_ID[:2]).symlink_to(tmp_path)
    with HostDisk().open_top(str(top)) as directory:
        assert layout_of(directory) == "empty"
