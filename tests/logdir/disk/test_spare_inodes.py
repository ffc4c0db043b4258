"""Files that are kept for their inodes: made with a work root, given up one by one where no inode is free.

Spec: design §3.2, §3.4; attacks A10.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from logdir.disk.kernel.calls import Owner, Space
from logdir.disk.kernel.failure import give_up_inode, with_reserve
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.root import reserve
from logdir.disk.root.init import init
from logdir.disk.root.plan import plan_init
from logdir.disk.root.removal import remove_root
from logdir.disk.root.reserve import put_inodes, spare_names
from logdir.errors import WorkRootConflictError
from logdir.formats.own.replica_marker import Checkpoints
from tests.builders import log_dir, partition
from tests.crash import starts
from tests.crash.enumerate import explore, explore_failures
from tests.crash.model import ModelHost
from tests.crash.recording import Acks, record
from tests.crash.starts import A_BY_ID, LOG_STARTS, POINTS, A, B, staged, start
from tests.crash.steps import Course, Steps, course_of, recover_all, replica_of
from tests.logdir.disk import work_root_crash as roots
from tests.logdir.disk.test_work_root_crash import _cut

FILE = Owner(0, 0, 0o644)
PER_INODE = 64 << 10
NOBODY_SAYS = "nobody says this"


# Made, and taken away.


def made(path: Path, reserve_bytes: int) -> Path:
    disk = HostDisk()
    init(disk, plan_init(disk, str(path), fs_type="ext4"), made_at_ms=5, reserve_bytes=reserve_bytes)
    return path.with_name(f"{path.name}.logdird")


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    path = log_dir(tmp_path / "d1")
    partition(path / "a-0")
    return path


def test_init_makes_them_beside_the_reserve_and_makes_again_what_was_given_up(d1: Path) -> None:
    root = made(d1, 3 * PER_INODE)
    spare = root / "spare-inodes"
    assert sorted(os.listdir(spare)) == list(spare_names(3 * PER_INODE)) == ["0", "1", "2"]
    assert {path.stat().st_size for path in spare.iterdir()} == {0}
    with HostDisk().open_top(str(root)) as work:
        assert give_up_inode(work)
        assert sorted(os.listdir(spare)) == ["0", "1"]
    made(d1, 3 * PER_INODE)
    assert sorted(os.listdir(spare)) == ["0", "1", "2"]


def test_a_root_of_an_older_release_gets_them_and_one_with_a_small_reserve_none(d1: Path) -> None:
    root = made(d1, 8192)
    assert not (root / "spare-inodes").exists()
    with HostDisk().open_top(str(root)) as work:
        assert not give_up_inode(work)
    made(d1, 2 * PER_INODE)
    assert sorted(os.listdir(root / "spare-inodes")) == ["0", "1"]


def test_they_go_with_the_root_and_a_strangers_file_among_them_stays(d1: Path) -> None:
    root = made(d1, 2 * PER_INODE)
    unexpected_entries = {"5": b"not empty", "note": b""}
    for name, data in unexpected_entries.items():
        (root / "spare-inodes" / name).write_bytes(data)
    with pytest.raises(WorkRootConflictError, match=r"2 entries, spare-inodes/5"):
        remove_root(HostDisk(), str(d1))
    with HostDisk().open_top(str(root)) as work:
        while give_up_inode(work):
            pass
    assert {path.name: path.read_bytes() for path in (root / "spare-inodes").iterdir()} == unexpected_entries
    for name in unexpected_entries:
        (root / "spare-inodes" / name).unlink()
    remove_root(HostDisk(), str(d1))
    assert os.listdir(d1.parent) == ["d1"]


def test_no_more_are_made_than_as_many_as_are_left_for_others() -> None:
    host = _starved(ModelHost.with_disks("/d0"), 6)
    with host.open_top("/d0") as top:
        top.make("spare-inodes", Owner(0, 0, 0o755))
        assert put_inodes(top, FILE, 64 * PER_INODE) == 2
        assert top.space().free_inodes == 3


@pytest.mark.parametrize("shape", roots.SHAPES)
def test_a_making_cut_off_anywhere_is_finished_by_making_it_again(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve, "_BYTES_PER_INODE", roots.RESERVE_BYTES)
    calls, states = _cut(roots.start(shape).world(), shape, roots.make, check=True)
    assert calls > 20
    assert states > 2 * calls


def test_a_removal_cut_off_anywhere_is_finished_by_removing_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve, "_BYTES_PER_INODE", roots.RESERVE_BYTES)
    host = roots.start("beside")
    roots.make(host, "beside")
    world = host.world()
    settled = world._replace(volumes=(world.volumes[0].durable(),), generation=1)
    assert _cut(settled, "beside", roots.remove, check=False)[0] >= 10


# Given up.


def _starved(host: ModelHost, free: int = 0) -> ModelHost:
    """Return the same host with so many free inodes."""
    world = host.world()
    volumes = tuple(v._replace(capacity_inodes=len(list(v.tree())) + free) for v in world.volumes)
    return ModelHost(world._replace(volumes=volumes))


def _root(spares: int) -> ModelHost:
    host = ModelHost.with_disks("/d0")
    host.plant("/d0/reserve", b"room")
    for name in range(spares):
        host.plant(f"/d0/spare-inodes/{name}")
    return host


def test_where_no_inode_is_free_one_is_given_up_and_the_room_is_kept() -> None:
    host = _starved(_root(2))
    with host.open_top("/d0") as top:
        with_reserve(top, lambda: top.write("marker", b"1", FILE))
        assert [made.call.name for made in host.records] == ["write", "unlink", "write"]
        with_reserve(top, lambda: top.write("another", b"1", FILE))
        with pytest.raises(OSError, match="No space"):
            with_reserve(top, lambda: top.write("third", b"1", FILE))
        assert top.stat("reserve").size_bytes == 0


@pytest.mark.parametrize("late", range(9))
def test_no_inode_counts_as_free_before_the_file_system_says_so(
    d1: Path, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    """XFS frees it a moment later: it is waited for twice as long each time, an eighth of a second in all."""
    work = made(d1, PER_INODE)
    free = iter([0] * late + [1] * 9)
    slept: list[float] = []
    monkeypatch.setattr(HostDirectory, "space", lambda self: Space(1, next(free), 1, 1))
    # Its own clock alone: a Spark session of this process has threads that sleep.
    monkeypatch.setattr("logdir.disk.kernel.failure.time", SimpleNamespace(sleep=slept.append))
    with HostDisk().open_top(str(work)) as root:
        assert give_up_inode(root)
    assert slept == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064][:late]


def test_where_bytes_are_short_no_inode_is_given_up() -> None:
    host = _root(2)
    world = host.world()
    host = ModelHost(world._replace(volumes=(world.volumes[0]._replace(capacity_bytes=4),)))
    with host.open_top("/d0") as top:
        with_reserve(top, lambda: top.write("marker", b"1234", FILE))
        with pytest.raises(OSError, match="No space"):
            with_reserve(top, lambda: top.write("another", b"1234", FILE))
        assert sorted(top.open("spare-inodes").names()) == ["0", "1"]


def test_where_both_are_short_both_are_given_up() -> None:
    host = _starved(_root(1))
    world = host.world()
    host = ModelHost(world._replace(volumes=(world.volumes[0]._replace(capacity_bytes=4),)))
    with host.open_top("/d0") as top:
        with_reserve(top, lambda: top.write("marker", b"1234", FILE))
        assert [made.call.name for made in host.records] == ["write", "unlink", "write", "truncate", "write"]


def test_what_another_thread_has_given_up_meanwhile_is_room_for_this_one_too(d1: Path) -> None:
    """Two calls meet a full disk at the same time; the second finds the reserve empty, and the room that it made."""
    both = threading.Barrier(2)
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        if len(calls) <= 2:
            both.wait(10)
            raise OSError(errno.ENOSPC, "No space left on device")

    work = made(d1, 1 << 20)
    with HostDisk().open_top(str(work)) as root, ThreadPoolExecutor(2) as pool:
        for ended in [pool.submit(with_reserve, root, call) for _ in range(2)]:
            ended.result(20)
    assert len(calls) == 4


def test_a_quota_may_be_one_of_inodes() -> None:
    host = _root(1)
    full = iter([OSError(errno.EDQUOT, "quota"), None])

    def call() -> None:
        if error := next(full):
            raise error

    with host.open_top("/d0") as top:
        with_reserve(top, call)
        assert top.open("spare-inodes").names() == []
        assert top.stat("reserve").size_bytes == 4


# Crashed, with no inode free.


def _operation(
    name: str, host: Callable[[], ModelHost], do: Callable[[Steps], None], course: tuple[str, ...]
) -> Course:
    spares = 4
    with mock.patch.multiple(reserve, _BYTES_PER_INODE=8), mock.patch.object(starts, "_RESERVE_BYTES", 8 * spares):
        built = host()
    part = A_BY_ID if "id" in name else A
    work = "/d0/kafka" if part.is_by_id else "/d0/kafka.logdird"
    files: dict[str, tuple[bytes | None, bytes | None, str]] = {
        f"{work}/spare-inodes/{number}": (b"", None, NOBODY_SAYS) for number in range(spares)
    }
    if name.startswith("restore"):
        entry = f"{part.topic} {part.partition}"
        files[f"/d0/kafka/{LOG_STARTS}"] = (POINTS, f"0\n2\nother 0 5\n{entry} 3\n".encode(), f"{part.key} reached 1")
    prefix = part.path.rpartition("/")[0]
    return course_of(
        name,
        _starved(built),
        do,
        replica_of(part, *course, is_staged=course[0] == "staged"),
        files=files,
        directories=frozenset({f"/d0/kafka/{prefix}"} if prefix else ()),
    )


def _without_prefix() -> ModelHost:
    host = staged(A_BY_ID, points=Checkpoints(log_start=3))
    with host.open_top("/d0/kafka") as top:
        top.remove(A_BY_ID.path.rpartition("/")[0])
    return starts.settled(host)


OPERATIONS: dict[str, Callable[[], Course]] = {
    "stage": lambda: _operation("stage", lambda: start(A), lambda s: s.stage(A), ("live", "staged")),
    "restore": lambda: _operation(
        "restore", lambda: staged(A, points=Checkpoints(log_start=3)), lambda s: s.restore(A), ("staged", "live")
    ),
    "restore by id": lambda: _operation(
        "restore by id", _without_prefix, lambda s: s.restore(A_BY_ID), ("staged", "live")
    ),
    "hold": lambda: _operation("hold", lambda: staged(A), lambda s: s.hold(A), ("staged", "held")),
    "purge": lambda: _operation("purge", lambda: staged(A), lambda s: s.purge(A), ("staged", "claimed", "gone")),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a10_with_no_inode_free_it_is_done_and_survives_every_crash(name: str) -> None:
    one = OPERATIONS[name]()
    recording = record(one.start.world(), one.run)
    assert recording.error == ""
    assert recording.acks.said[-1].endswith(f"reached {len(one.expected.replicas[0].course) - 1}")
    given_up = [made.call for made in recording.records if "/spare-inodes/" in made.call.path]
    assert bool(given_up) == (name != "purge")
    assert not [made.call for made in recording.records if made.call.path.endswith("/reserve")]
    result = explore(one.start, one.run, recover_all, one.judge, ("K", "J", "B", "P", "F"), operation=name)
    assert not result.violations, str(result)
    assert result.states > 20


def test_a10_with_no_inode_free_and_none_kept_it_is_undone() -> None:
    with mock.patch.object(starts, "_RESERVE_BYTES", 32):
        host = _starved(start(A, B))
    one = course_of("stage 2", host, lambda s: s.stage(A, B), *(replica_of(p, "live", "staged") for p in (A, B)))
    acks = Acks()
    one.run(ModelHost(one.start.world()), acks)
    assert acks.said == ("d0/a-0 refused 1", "d0/b-1 refused 1")
    result = explore_failures(one.start, one.run, recover_all, one.judge, (errno.EIO, errno.ENOSPC))
    assert not result.violations, str(result)
