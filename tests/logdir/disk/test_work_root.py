"""Work roots on real directories: where one is made, found, opened, refused and taken away."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir.disk.kernel.file_system import fs_type_at, require_supported_fs
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.locks import OwnerLock
from logdir.disk.record.start_block import set_block
from logdir.disk.root.init import InitDone, init
from logdir.disk.root.plan import plan_init
from logdir.disk.root.removal import remove_root
from logdir.disk.root.true_root import open_true_root
from logdir.disk.root.work_root import open_root
from logdir.errors import (
    ForeignLogDirError,
    LogDirError,
    LogDirOfflineError,
    LogDirReplacedError,
    MalformedFileError,
    NoPermissionError,
    NotFormattedError,
    NoWorkRootError,
    RefusedError,
    WorkRootConflictError,
)
from logdir.formats.own import work_root_file
from logdir.formats.own.inventory import Kind
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.observe.scan import scan_log_dir
from logdir.paths import PROBE_IN_LOG_DIR
from logdir.refusal_slug import Why
from tests.builders import META, TOPIC_ID, log_dir, partition
from tests.whole_refusal import require_whole

INSIDE, BESIDE, IN_PLACE = WorkRootKind
HIDDEN = "__cluster_metadata-2147483647"
MADE = ["deleting", "incoming", "owner.lock", "probe", "reserve", "work-root.json"]
IS_ROOT = os.geteuid() == 0


def made(path: Path, requested: WorkRootKind | None = None, disk: HostDisk | None = None) -> InitDone:
    disk = disk or HostDisk()
    plan = plan_init(disk, str(path), requested=requested, fs_type="ext4")
    return init(disk, plan, made_at_ms=1_700_000_000_000, reserve_bytes=8192)


def listing(path: Path) -> list[str]:
    return sorted(os.listdir(path))


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    path = log_dir(tmp_path / "d1")
    partition(path / "a-0")
    return path


def test_auto_lies_beside_a_log_dir_a_stock_broker_uses(d1: Path) -> None:
    done = made(d1)
    assert (done.kind, done.path, done.passed) == (BESIDE, f"{d1}.logdird", ())
    assert listing(Path(done.path)) == MADE
    assert listing(d1) == ["a-0", "meta.properties"]


def test_auto_lies_inside_a_log_dir_in_the_topic_id_layout(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "d1")
    partition(path / TOPIC_ID[:2] / f"{TOPIC_ID}_0", topic_name="a")
    assert made(path).kind is INSIDE
    assert listing(path) == sorted([*MADE, TOPIC_ID[:2], "meta.properties"])
    assert not (tmp_path / "d1.logdird").exists()


def test_a_log_dir_in_both_layouts_is_one_a_broker_may_be_given_back(d1: Path) -> None:
    partition(d1 / TOPIC_ID[:2] / f"{TOPIC_ID}_1", topic_name="b")
    plan = plan_init(HostDisk(), str(d1), fs_type="xfs")
    assert (plan.layout, [c.kind for c in plan.candidates]) == ("mixed", [BESIDE, IN_PLACE])


def test_a_plan_changes_nothing(d1: Path) -> None:
    calls: list[Call] = []
    plan = plan_init(HostDisk(calls.append), str(d1), fs_type="xfs")
    assert [c.path for c in plan.candidates] == [f"{d1}.logdird", f"{d1}/{HIDDEN}"]
    assert calls == []


def test_a09_everything_made_has_owner_and_mode_of_the_log_dir(d1: Path) -> None:
    d1.chmod(0o750)
    if IS_ROOT:
        os.chown(d1, 1234, 2345)
    root = Path(made(d1).path)
    for path in (root, *root.iterdir()):
        found = path.stat()
        assert found.st_mode & 0o7777 == (0o750 if path.is_dir() else 0o640), path
        assert (found.st_uid, found.st_gid) == (d1.stat().st_uid, d1.stat().st_gid), path


def test_a10_the_reserve_is_really_written(d1: Path) -> None:
    disk = HostDisk()
    init(disk, plan_init(disk, str(d1), fs_type="ext4"), made_at_ms=0)
    found = Path(f"{d1}.logdird/reserve").stat()
    assert found.st_size == 4 * 1024 * 1024
    assert found.st_blocks * 512 >= found.st_size


def test_a10_no_pid_is_too_long_for_what_the_lock_has_room_for(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written over what is there, so that a full disk has room for it."""
    lock = Path(made(d1).path) / "owner.lock"
    assert lock.read_bytes() == b" " * 20 + b"\n"
    monkeypatch.setattr(os, "getpid", lambda: 2**63 - 1)
    with HostDisk().open_top(str(lock.parent)) as root:
        OwnerLock.take(root).release()
    assert lock.read_bytes() == b"9223372036854775807 \n"


@pytest.mark.parametrize("kind", list(WorkRootKind), ids=lambda kind: kind.value)
def test_a_root_opens_proves_and_is_owned_once(d1: Path, kind: WorkRootKind) -> None:
    made(d1, kind)
    disk = HostDisk()
    with open_root(disk, str(d1) + "/") as root:
        assert (root.kind, root.open_dir.log_dir, root.open_dir.node_id) == (kind, str(d1), 1)
        assert root.open_dir.work.names() == listing(Path(root.open_dir.work.path))
        root.require_same(disk)
        root.prove()
        with disk.open_top(root.open_dir.work.path) as work, OwnerLock.take(work):
            root.prove()
        assert scan_log_dir(str(d1)).disk.problems == ()
        assert [e.name for e in scan_log_dir(str(d1)).entries if e.kind is Kind.UNKNOWN] == []


def test_init_again_changes_nothing(d1: Path) -> None:
    first = made(d1)
    before = {p: (p.stat().st_ino, p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in Path(first.path).glob("*.*")}
    second = made(d1, BESIDE)
    assert second == first
    assert before == {p: (p.stat().st_ino, p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in before}


def test_init_again_makes_what_is_missing(d1: Path) -> None:
    root = Path(made(d1).path)
    shutil.rmtree(root / "probe")
    shutil.rmtree(root / "incoming")
    (root / "reserve").unlink()
    (root / "owner.lock").unlink()
    (root / "deleting").chmod(0o700)
    assert made(d1).kind is BESIDE
    assert listing(root) == MADE
    assert (root / "deleting").stat().st_mode == d1.stat().st_mode


def test_what_is_staged_outlives_a_lost_file(d1: Path) -> None:
    root = Path(made(d1).path)
    partition(root / "deleting" / f"{TOPIC_ID}_0")
    (root / "work-root.json").unlink()
    with pytest.raises(NoWorkRootError, match=r"cut off.*logdirctl init"):
        open_root(HostDisk(), str(d1))
    made(d1)
    with open_root(HostDisk(), str(d1)) as opened:
        assert opened.open_dir.deleting.names() == [f"{TOPIC_ID}_0"]


@pytest.mark.parametrize("name", ["deleting", "incoming"])
def test_no_root_is_opened_that_lacks_a_directory(d1: Path, name: str) -> None:
    root = Path(made(d1).path)
    (root / name).rmdir()
    with pytest.raises(NoWorkRootError, match=r"deleting/ and incoming/, found one of them missing.*logdirctl init"):
        open_root(HostDisk(), str(d1))
    assert name not in listing(root)


@pytest.mark.parametrize("name", ["deleting", "incoming", "probe", "spare-inodes"])
def test_a_file_that_has_the_name_of_a_directory_of_ours_is_not_touched_and_no_other_place_is_taken(
    d1: Path, name: str
) -> None:
    root = d1.parent / "d1.logdird"
    root.mkdir()
    (root / name).write_text("mine")
    with pytest.raises(
        WorkRootConflictError, match=f"{name}: expected a directory or nothing, found a regular file; move"
    ):
        init(HostDisk(), plan_init(HostDisk(), str(d1), fs_type="ext4"), made_at_ms=5, reserve_bytes=1 << 16)
    assert (root / name).read_text() == "mine"
    assert "work-root.json" not in listing(root)
    assert HIDDEN not in listing(d1)


def test_another_kind_than_the_one_there_is_refused(d1: Path) -> None:
    made(d1)
    with pytest.raises(WorkRootConflictError, match=r"one in place .*, found a work root beside the log dir;"):
        plan_init(HostDisk(), str(d1), requested=IN_PLACE, fs_type="ext4")


def test_a25_two_whole_roots_are_refused(d1: Path) -> None:
    made(d1, IN_PLACE)
    (d1 / HIDDEN).rename(d1.parent / "kept")
    made(d1, BESIDE)
    (d1.parent / "kept").rename(d1 / HIDDEN)
    with pytest.raises(WorkRootConflictError, match="found one beside the log dir and one in place;"):
        open_root(HostDisk(), str(d1))


def test_a_root_renamed_to_the_place_of_another_kind_is_refused(d1: Path) -> None:
    Path(made(d1).path).rename(d1 / HIDDEN)
    with pytest.raises(WorkRootConflictError, match="expected one in place, found one beside the log dir;"):
        open_root(HostDisk(), str(d1))


@pytest.mark.parametrize(
    "make",
    [Path.touch, lambda p: p.symlink_to("/tmp"), lambda p: (p.mkdir(), (p / "mine").touch())],
    ids=["file", "link", "directory"],
)
def test_something_else_in_its_place_is_not_touched(d1: Path, make: Callable[[Path], object]) -> None:
    make(d1.parent / "d1.logdird")
    with pytest.raises(WorkRootConflictError, match="move it away"):
        plan_init(HostDisk(), str(d1), fs_type="ext4")


def test_a26_a_daemon_makes_no_root(d1: Path) -> None:
    calls: list[Call] = []
    with pytest.raises(NoWorkRootError, match="found no work root"):
        open_root(HostDisk(calls.append), str(d1))
    assert (calls, listing(d1.parent)) == ([], ["d1"])


@pytest.mark.parametrize(
    ("meta", "error"),
    [
        (META.format(node=2, directory="JEXY6aqzQY-32P5TStzaFg", cluster="MkU3OEVBNTcwNTJENDM2Qk"), ForeignLogDirError),
        (META.format(node=1, directory="AEXY6aqzQY-32P5TStzaFg", cluster="MkU3OEVBNTcwNTJENDM2Qk"), ForeignLogDirError),
        (META.format(node=1, directory="JEXY6aqzQY-32P5TStzaFg", cluster="other"), ForeignLogDirError),
        ("", NotFormattedError),
        ("version=1\nnode.id=x\ncluster.id=y\n", MalformedFileError),
    ],
    ids=["node", "directory", "cluster", "empty", "malformed"],
)
def test_a25_the_root_of_another_log_dir_is_foreign(d1: Path, meta: str, error: type[LogDirError]) -> None:
    made(d1)
    (d1 / "meta.properties").write_text(meta)
    with pytest.raises(error):
        open_root(HostDisk(), str(d1))
    with pytest.raises(error):
        made(d1)


def test_a25_a_root_of_another_node_is_foreign_behind_a_start_block_too(d1: Path) -> None:
    root = Path(made(d1).path)
    with open_true_root(HostDisk(), str(d1)) as found:
        set_block((found.open_dir,))
    file = root / "work-root.json"
    other = work_root_file.parse(file.read_bytes())
    file.write_bytes(work_root_file.render(other._replace(belongs=other.belongs._replace(node_id=2))))
    with pytest.raises(ForeignLogDirError):
        open_true_root(HostDisk(), str(d1))


def test_a25_the_disk_of_another_host_is_foreign(d1: Path) -> None:
    made(d1)
    open_root(HostDisk(), str(d1), cluster_id="MkU3OEVBNTcwNTJENDM2Qk", node_id=1).close()
    with pytest.raises(ForeignLogDirError, match=r"node\.id 7, found 1"):
        open_root(HostDisk(), str(d1), node_id=7)
    with pytest.raises(ForeignLogDirError, match=r"cluster\.id other"):
        open_root(HostDisk(), str(d1), cluster_id="other")


def test_a_directory_id_given_by_a_newer_broker_is_taken_over_by_init(d1: Path) -> None:
    whole = (d1 / "meta.properties").read_text()
    (d1 / "meta.properties").write_text("".join(x for x in whole.splitlines(True) if "directory.id" not in x))
    root = Path(made(d1).path)
    (d1 / "meta.properties").write_text(whole)
    open_root(HostDisk(), str(d1)).close()
    made(d1)
    file = work_root_file.parse((root / "work-root.json").read_bytes())
    assert (str(file.belongs.directory_id), file.made_at_ms) == ("JEXY6aqzQY-32P5TStzaFg", 1_700_000_000_000)
    assert listing(root) == MADE


def test_an_altered_work_root_file_is_refused(d1: Path) -> None:
    path = Path(made(d1).path) / "work-root.json"
    path.write_text(path.read_text().replace('"node_id":1', '"node_id":2'))
    with pytest.raises(MalformedFileError, match=r"work-root\.json"):
        open_root(HostDisk(), str(d1))


def test_a_log_dir_that_is_gone_or_a_link_is_refused(d1: Path) -> None:
    with pytest.raises(LogDirOfflineError, match="check that the disk is mounted"):
        open_root(HostDisk(), f"{d1}-gone")
    (d1.parent / "link").symlink_to(d1)
    with pytest.raises(RefusedError, match="a link"):
        open_root(HostDisk(), f"{d1.parent}/link/")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM], ids=errno.errorcode.get)
def test_a_log_dir_one_may_not_open_is_never_called_a_dead_disk(
    d1: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(disk: HostDisk, path: str) -> HostDirectory:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(HostDisk, "open_top", refuse)
    with pytest.raises(NoPermissionError, match="run as the owner of the log dirs"):
        open_root(HostDisk(), str(d1))


@pytest.mark.parametrize("replaced", ["", ".logdird", ".logdird/deleting", ".logdird/incoming"])
def test_a26_a_directory_replaced_behind_our_back_is_noticed(d1: Path, replaced: str) -> None:
    made(d1)
    disk = HostDisk()
    with open_root(disk, str(d1)) as root:
        path = Path(f"{d1}{replaced}")
        path.rename(d1.parent / "aside")
        with pytest.raises(LogDirReplacedError, match=str(path)):
            root.require_same(disk)
        path.mkdir()
        if replaced == ".logdird":
            (path / "deleting").mkdir()
            (path / "incoming").mkdir()
        with pytest.raises(LogDirReplacedError):
            root.require_same(disk)


@pytest.mark.parametrize("fs_type", ["nfs4", "overlay", "fuse.sshfs", "zfs", "vfat", None])
def test_a07_other_file_systems_are_read_only_to_us(d1: Path, fs_type: str | None) -> None:
    with pytest.raises(RefusedError) as raised:
        plan_init(HostDisk(), str(d1), fs_type=fs_type)
    require_whole(
        raised.value,
        Why.UNSUPPORTED_FILE_SYSTEM,
        path=str(d1),
        expected="one of the file systems ext4, xfs, btrfs, tmpfs",
        found=fs_type or "a file system of unknown type",
        fix="logdird only reads there; logdirctl init --even-on-unsupported-fs allows changes, at your own risk",
    )
    require_supported_fs(str(d1), fs_type, unsupported_fs=True)


def test_the_file_system_of_a_path_is_named(d1: Path) -> None:
    assert fs_type_at("/proc") == "proc"
    assert fs_type_at(str(d1))


@pytest.mark.parametrize("place", [f"../d1/{PROBE_IN_LOG_DIR}", "deleting/probe", "incoming/probe"])
def test_a_probe_left_on_its_way_comes_home(d1: Path, place: str) -> None:
    root = Path(made(d1).path)
    (root / "probe").rename(root / place)
    assert [e.name for e in scan_log_dir(str(d1)).entries if e.kind is Kind.UNKNOWN] == []
    with open_root(HostDisk(), str(d1)) as opened:
        opened.prove()
    assert listing(root) == MADE
    (root / "probe").rename(root / place)
    made(d1)
    assert listing(root) == MADE
    assert listing(d1) == ["a-0", "meta.properties"]


def test_a_probe_that_is_gone_is_not_made_by_a_proof(d1: Path) -> None:
    (Path(made(d1).path) / "probe").rmdir()
    with open_root(HostDisk(), str(d1)) as opened, pytest.raises(NoWorkRootError, match="logdirctl init"):
        opened.prove()


def test_a05_a_proof_goes_from_the_log_dir_to_both_places_and_never_under_a_name_a_broker_reads(d1: Path) -> None:
    made(d1)
    calls: list[Call] = []
    with open_root(HostDisk(calls.append), str(d1)) as opened:
        opened.prove()
    assert [(Path(c.path).parent.name, Path(c.to).parent.name) for c in calls] == [
        ("d1.logdird", "d1"),
        ("d1", "deleting"),
        ("deleting", "incoming"),
        ("incoming", "d1.logdird"),
    ]
    assert {Path(c.to).name for c in calls if Path(c.to).parent == d1} == {"__cluster_metadata-2147483646"}


@pytest.mark.parametrize("kind", list(WorkRootKind), ids=lambda kind: kind.value)
def test_an_empty_root_is_taken_away(d1: Path, kind: WorkRootKind) -> None:
    made(d1, kind)
    for name in ("heartbeat.json", "work-root.json.tmp"):
        (Path(made(d1).path) / name).write_text("{}")
    assert remove_root(HostDisk(), str(d1)) == (kind,)
    assert listing(d1) == ["a-0", "meta.properties"]
    assert listing(d1.parent) == ["d1"]
    assert remove_root(HostDisk(), str(d1)) == ()


@pytest.mark.parametrize("what", ["deleting/x", "incoming/x", "layout.json", "start-block.json", "mine"])
def test_a_root_that_holds_anything_of_worth_stays(d1: Path, what: str) -> None:
    root = Path(made(d1).path)
    (root / what).write_text("x")
    with pytest.raises(WorkRootConflictError, match=f"found .*{what}"):
        remove_root(HostDisk(), str(d1))
    assert listing(root) == sorted({*MADE, what.partition("/")[0]})


@pytest.mark.parametrize("place", ["deleting", "incoming"])
def test_a_root_that_holds_a_replica_stays_whole(d1: Path, place: str) -> None:
    root = Path(made(d1).path)
    replica = root / place / f"{TOPIC_ID}_0"
    replica.mkdir()
    with pytest.raises(WorkRootConflictError, match=f"found {place}/{TOPIC_ID}_0; restore or purge"):
        remove_root(HostDisk(), str(d1))
    assert listing(root) == sorted(MADE)
    assert replica.is_dir()


def test_what_a_killed_proof_left_in_the_probe_goes_with_it(d1: Path) -> None:
    root = Path(made(d1).path)
    (root / "probe").rename(root / "deleting" / "probe")
    os.link(d1 / "meta.properties", root / "deleting" / "probe" / "probe-link")
    assert remove_root(HostDisk(), str(d1)) == (BESIDE,)
    assert listing(d1.parent) == ["d1"]
