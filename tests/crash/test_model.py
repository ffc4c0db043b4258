"""The model disk behaves as the real one: the same calls give the same results, errnos and trees on both."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from logdir.disk.kernel.calls import Directory, Disk, Owner, Stat
from logdir.disk.kernel.host import Call, HostDisk
from logdir.observe.classify import Type
from tests.crash.model import Failure, Killed, ModelHost

UID, GID = os.getuid(), os.getgid()
FILE, FOLDER = Owner(UID, GID, 0o644), Owner(UID, GID, 0o755)
NAMES = ("a", "b", "c", "c", "f", "f", "g")
PLANTED_NS = 1_000_000_000
SEQUENCES = 400
CALLS = 30


def _kind(stat: Stat) -> tuple[object, ...]:
    """Return of a ``Stat`` what both disks must agree on."""
    if stat.type is Type.DIRECTORY:
        return (stat.type, stat.owner)
    mtime_ns = stat.mtime_ns if stat.mtime_ns < 2 * PLANTED_NS else None
    owner = stat.owner if stat.type is not Type.SYMLINK else None
    return (stat.type, stat.links, stat.size_bytes, mtime_ns, owner)


def _tree(directory: Directory, path: str = "") -> Iterator[tuple[object, ...]]:
    for name in directory.names():
        stat = directory.stat(name)
        yield (f"{path}/{name}", *_kind(stat))
        if stat.type is Type.FILE:
            yield (directory.read(name, 100),)
        elif stat.type is Type.DIRECTORY:
            with directory.open(name) as inner:
                yield from _tree(inner, f"{path}/{name}")


def _call(pool: list[Directory], rng: random.Random) -> object:
    """Make one call chosen by ``rng`` and return what is to be the same on both disks."""
    at, to = rng.choice(pool), rng.choice(pool)
    name, new = rng.choice(NAMES), rng.choice([*NAMES, "x" * 255, "y" * 256])
    data, size, mode = rng.randbytes(rng.randrange(4)), rng.randrange(-1, 3), rng.choice([0o600, 0o640, 0o755])
    mtime_ns = rng.choice([None, PLANTED_NS])

    def enter() -> list[str]:
        pool.append(at.open(name))
        return pool[-1].names()

    def changed(act: Callable[[], None]) -> Callable[[], list[str]]:
        def names() -> list[str]:
            act()
            return at.names()

        return names

    calls: list[Callable[[], object]] = [
        at.names,
        lambda: _kind(at.stat(name)),
        lambda: at.read(name, 1),
        lambda: at.identity() == to.identity(),
        lambda: _kind(at.own_stat()),
        enter,
        enter,
        changed(lambda: at.make(name, FOLDER._replace(mode=mode))),
        changed(lambda: at.make(name, FOLDER)),
        changed(lambda: at.write(name, data, FILE._replace(mode=mode), mtime_ns)),
        changed(lambda: at.write(name, data, FILE)),
        changed(lambda: at.rename(name, to, new)),
        changed(lambda: at.rename(name, to, new)),
        changed(lambda: at.replace(name, new)),
        changed(lambda: at.link(name, to, new)),
        changed(lambda: at.unlink(name)),
        changed(lambda: at.remove(name)),
        changed(lambda: at.truncate(name, size)),
        changed(lambda: at.adopt(name, FILE._replace(mode=mode))),
        changed(lambda: at.sync_file(name)),
        changed(at.sync),
        changed(at.sync_disk),
    ]
    act = rng.choice(calls)
    try:
        return act()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def _close(pool: list[Directory]) -> None:
    for directory in pool:
        directory.close()


def _play(disk: Disk, top: str, seed: int) -> list[object]:
    rng = random.Random(seed)
    said: list[object] = []
    with ExitStack() as stack:
        pool: list[Directory] = [disk.open_top(f"{top}/d1"), disk.open_top(f"{top}/d2")]
        stack.callback(_close, pool)
        for _ in range(CALLS):
            said.append(_call(pool, rng))
        for name in ("d1", "d2"):
            with disk.open_top(f"{top}/{name}") as directory:
                said.append(list(_tree(directory)))
    return said


def _start(top: Path) -> ModelHost:
    """Make the same start on both: two log dirs, a link and a pipe among their entries."""
    model = ModelHost.with_disks(str(top), uid=UID, gid=GID)
    for name in ("d1", "d2"):
        (top / name).mkdir(parents=True)
        (top / name).chmod(0o755)
        (top / name / "a").symlink_to("../target")
        os.mkfifo(top / name / "b")
        (top / name / "b").chmod(0o644)
        model.plant(f"{top}/{name}/a", b"../target", kind=Type.SYMLINK)
        model.plant(f"{top}/{name}/b", kind=Type.OTHER)
    (top / "d1" / "f").write_bytes(b"abc")
    (top / "d1" / "f").chmod(0o644)
    (top / "d1" / "c").mkdir()
    (top / "d1" / "c").chmod(0o755)
    model.plant(f"{top}/d1/f", b"abc")
    model.plant(f"{top}/d1/c", kind=Type.DIRECTORY)
    return model


@pytest.mark.parametrize("part", range(4))
def test_same_calls_give_the_same_on_the_real_disk(tmp_path: Path, part: int) -> None:
    seen = set()
    for seed in range(part * SEQUENCES // 4, (part + 1) * SEQUENCES // 4):
        top = tmp_path / str(seed)
        model = _start(top)
        told: list[Call] = []
        real = _play(HostDisk(told.append), str(top), seed)
        assert _play(model, str(top), seed) == real, f"seed {seed}"
        assert [record.call for record in model.records] == told, f"seed {seed}"
        seen |= {said for said in real if isinstance(said, str)}
    assert {"EEXIST", "ENOENT", "ENOTDIR", "ENOTEMPTY", "ELOOP", "EINVAL", "EISDIR", "EPERM"} <= seen


def test_two_disks_of_a_host_are_two_devices() -> None:
    host = ModelHost.with_disks("/d1", "/d2")
    host.plant("/d1/kafka/f", b"abc")
    host.plant("/d2/kafka/g", b"abc")
    with host.open_top("/d1/kafka") as one, host.open_top("/d2/kafka") as two:
        for call in (one.rename, one.link):
            with pytest.raises(OSError, match="cross-device") as caught:
                call("f", two, "f")
            assert caught.value.errno == errno.EXDEV
        assert one.identity().device != two.identity().device
    with pytest.raises(FileNotFoundError):
        host.open_top("/d3")


def test_a_mount_inside_a_disk_is_not_entered() -> None:
    host = ModelHost.with_disks("/d1", "/d1/inner")
    host._system("/d1").plant("/d1/inner", Type.DIRECTORY, b"", FOLDER, 0)
    with host.open_top("/d1") as top, pytest.raises(OSError, match="cross-device"):
        top.open("inner")


def _limited(capacity_bytes: int = 1 << 40, *, makes_unnamed: bool) -> ModelHost:
    world = ModelHost.with_disks("/d1", uid=UID, gid=GID).world()
    volume = world.volumes[0]._replace(capacity_bytes=capacity_bytes, makes_unnamed=makes_unnamed)
    return ModelHost(world._replace(volumes=(volume,)))


@pytest.mark.parametrize("makes_unnamed", [True, False])
def test_a_full_disk_takes_what_fits_and_gives_it_back(makes_unnamed: bool) -> None:
    host = _limited(10, makes_unnamed=makes_unnamed)
    with host.open_top("/d1") as top:
        top.write("reserve", b"12345678", FILE)
        with pytest.raises(OSError) as caught:
            top.write("f", b"1234", FILE)
        assert caught.value.errno == errno.ENOSPC
        if makes_unnamed:
            assert top.names() == ["reserve"]
            assert top.space().free_bytes == 2
        else:
            assert top.read("f", 10) == b"12"
            assert top.space().free_bytes == 0
            top.unlink("f")
        top.truncate("reserve", 0)
        top.write("g", b"123456", FILE)
        assert top.space()[:3] == (4, 1 << 20, 10)


def _three(host: ModelHost) -> list[str]:
    """Make three directories and return which could be made."""
    made = []
    with host.open_top("/d1") as top:
        for name in ("a", "b", "c"):
            with suppress(OSError):
                top.make(name, FOLDER)
                made.append(name)
        assert top.names() == made
    return made


@pytest.mark.parametrize(
    ("failure", "made"),
    [
        (Failure(1, errno.EROFS), ["a", "c"]),
        (Failure(1, errno.EROFS, for_ever=True), ["a"]),
        (Failure(0, errno.EROFS, name="fsync"), ["a", "b", "c"]),
        (Failure(2, errno.EROFS, name="mkdir"), ["a", "b"]),
    ],
    ids=["once", "for ever", "another call", "by name"],
)
def test_the_call_planned_fails(failure: Failure, made: list[str]) -> None:
    host = ModelHost.with_disks("/d1", uid=UID, gid=GID).fail(failure)
    assert _three(host) == made
    assert [record.errno for record in host.records if record.errno] == [errno.EROFS] * (3 - len(made))


@pytest.mark.parametrize("makes_unnamed", [True, False])
def test_a_short_write_leaves_nothing_or_half_a_file(makes_unnamed: bool) -> None:
    host = _limited(makes_unnamed=makes_unnamed).fail(Failure(0, errno.EIO, is_short=True))
    with host.open_top("/d1") as top:
        with pytest.raises(OSError, match="Input/output"):
            top.write("f", b"1234", FILE)
        assert top.names() == ([] if makes_unnamed else ["f"])
        assert makes_unnamed or top.read("f", 10) == b"12"


def test_a_failed_sync_is_said_once() -> None:
    host = ModelHost.with_disks("/d1", uid=UID, gid=GID).fail(Failure(0, name="fsync"))
    with host.open_top("/d1") as top:
        top.write("f", b"1234", FILE)
        with pytest.raises(OSError, match="Input/output"):
            top.sync_file("f")
        top.sync_file("f")
    assert [sync.failed for sync in host.systems[0].syncs] == [True, False]


def test_a_stopped_process_changes_nothing_more_even_in_finally() -> None:
    host = ModelHost.with_disks("/d1", uid=UID, gid=GID).kill(1)
    with host.open_top("/d1") as top:
        top.make("a", FOLDER)
        with pytest.raises(Killed):
            top.make("b", FOLDER)
        with pytest.raises(Killed):
            top.remove("a")
        assert top.names() == ["a"]
        assert len(host.records) == 1


def test_a_closed_directory_is_used_by_nobody(tmp_path: Path) -> None:
    for disk, path in ((HostDisk(), str(tmp_path)), (ModelHost.with_disks("/d1"), "/d1")):
        top = disk.open_top(path)
        top.close()
        top.close()
        calls: list[Callable[[], object]] = [partial(top.make, "a", FOLDER), partial(top.stat, "a")]
        for act in calls:
            with pytest.raises(OSError, match="Bad file descriptor"):
                act()


def test_a_read_only_disk_changes_nothing() -> None:
    host = ModelHost.with_disks("/d1", uid=UID, gid=GID)
    host.plant("/d1/f", b"abc")
    world = host.world()
    host = ModelHost(world._replace(volumes=(world.volumes[0]._replace(status="read-only"),)))
    with host.open_top("/d1") as top:
        calls: list[Callable[[], None]] = [
            partial(top.make, "a", FOLDER),
            partial(top.write, "b", b"", FILE),
            partial(top.unlink, "f"),
            partial(top.rename, "f", top, "g"),
            partial(top.truncate, "f", 0),
        ]
        for act in calls:
            with pytest.raises(OSError, match="Read-only"):
                act()
        assert top.names() == ["f"]
