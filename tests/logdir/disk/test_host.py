"""What a call of the kernel may leave: no open descriptor, no file anybody may open too early, no success unproved."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from logdir.disk.kernel import host, libc
from logdir.disk.kernel.calls import Directory, Owner
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.lock_holder import is_locked
from logdir.disk.root.work_root import locate

MINE = Owner(os.geteuid(), os.getegid(), 0o644)
WIDE = MINE._replace(mode=0o777)


def _entered(top: HostDirectory) -> None:
    with top.open("d") as inner:
        inner.names()


def _asked_for_its_lock(top: HostDirectory) -> None:
    top.write(".lock", b"", MINE)
    assert is_locked(top.path) is False


CALLS: dict[str, Callable[[HostDirectory], object]] = {
    "make": lambda top: top.make("made", MINE._replace(mode=0o755)),
    "make, taken": lambda top: top.make("d", MINE),
    "write": lambda top: top.write("made", b"data", MINE),
    "write, taken": lambda top: top.write("f", b"data", MINE),
    "read": lambda top: top.read("f", 100),
    "read, of no file": lambda top: top.read("d", 100),
    "open": lambda top: top.open("d").close(),
    "open, with": _entered,
    "truncate": lambda top: top.truncate("f", 1),
    "truncate, longer": lambda top: top.truncate("f", 1000),
    "adopt": lambda top: top.adopt("f", MINE._replace(mode=0o600)),
    "sync a file": lambda top: top.sync_file("f"),
    "a lock that is taken meanwhile": lambda top: os.close(top.open_lock(".lock", MINE)),
    "locate": lambda top: locate(HostDisk(), top.path, top),
    "who holds the lock": _asked_for_its_lock,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "f").write_bytes(b"0123456789")
    (tmp_path / "d").mkdir()
    (tmp_path.with_name(f"{tmp_path.name}.logdird")).mkdir()
    return tmp_path


def _open_below(path: Path) -> list[str]:
    """Return what this process has open there, or beside it."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own
            found.append(str(Path("/proc/self/fd", descriptor).readlink()))
    return [one for one in found if one.startswith(str(path))]


@pytest.mark.parametrize("name", CALLS)
def test_no_call_leaves_a_descriptor_open(path: Path, name: str) -> None:
    """A daemon makes a million of them."""
    with HostDisk().open_top(str(path)) as top:
        with suppress(OSError):
            CALLS[name](top)
        assert _open_below(path) == [str(path)]


def test_a_directory_whose_descriptor_is_0_is_not_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a daemon that was started without a standard input the first that is opened is 0."""
    closed: list[int] = []
    monkeypatch.setattr(os, "close", closed.append)
    directory = HostDirectory(0, "/d", HostDisk())
    directory.close()
    directory.close()
    assert closed == [0]


@pytest.mark.parametrize("limit", [0, 3, 9])
def test_no_more_is_read_of_a_file_than_one_byte_over_the_limit(path: Path, limit: int) -> None:
    with HostDisk().open_top(str(path)) as top:
        assert top.read("f", limit) == b"0123456789"[: limit + 1]


@pytest.mark.parametrize("is_named", [False, True], ids=["without a name", "by its name"])
@pytest.mark.parametrize("what", ["directory", "file", "lock"])
def test_a09_nobody_else_may_open_what_is_not_given_away_yet(
    path: Path, monkeypatch: pytest.MonkeyPatch, what: str, is_named: bool
) -> None:
    seen: list[int] = []
    real_give, real_open = host._give, os.open

    def give(descriptor: int, owner: Owner) -> None:
        seen.append(os.fstat(descriptor).st_mode & 0o7777)
        real_give(descriptor, owner)

    def opens(name: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if is_named and flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), name)
        return real_open(name, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(host, "_give", give)
    monkeypatch.setattr(os, "open", opens)
    before = os.umask(0)
    try:
        with HostDisk().open_top(str(path)) as top:
            match what:
                case "directory":
                    top.make("made", WIDE)
                case "file":
                    top.write("made", b"data", WIDE)
                case _:
                    os.close(top.open_lock("made", WIDE))
    finally:
        os.umask(before)
    assert seen == [0o700 if what == "directory" else 0o600]
    assert (path / "made").stat().st_mode & 0o7777 == 0o777


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS, errno.EMFILE])
def test_a09_no_file_gets_its_name_first_because_one_without_a_name_failed(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Only where the file system makes none: of a disk that fails or is full it is not tried in another way."""
    real = os.open

    def opens(name: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(number, os.strerror(number), name)
        return real(name, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opens)
    with HostDisk().open_top(str(path)) as top:
        for call in (lambda: top.write("made", b"data", MINE), lambda: top.open_lock("made", MINE)):
            with pytest.raises(OSError, match="made") as raised:
                call()
            assert raised.value.errno == number
    assert sorted(os.listdir(path)) == ["d", "f"]


class _Libc:
    """The C library, with a ``syncfs`` that fails."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def syncfs(self, descriptor: int) -> int:
        ctypes.set_errno(errno.EIO)
        return -1


@pytest.mark.parametrize("what", ["file", "files", "directory", "disk"])
def test_no_sync_that_the_kernel_refused_is_called_done_or_forgotten(
    path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    monkeypatch.setattr(libc, "_LIBC", _Libc(libc._LIBC))
    disk = HostDisk()
    with disk.open_top(str(path)) as top:
        files, several = lambda: top.sync_file("f"), lambda: top.sync_files(["f", "f"])
        call = {"file": files, "files": several, "directory": top.sync, "disk": top.sync_disk}[what]
        with pytest.raises(OSError, match="Input/output error"):
            call()
    assert disk.failed == {path.stat().st_dev: f"{path}: Input/output error"}


def test_many_files_are_synced_in_order_and_closed_again(path: Path) -> None:
    names = [f"{number:03}" for number in range(150)]
    for name in names:
        (path / name).write_bytes(b"data")
    calls: list[Call] = []
    with HostDisk(calls.append).open_top(str(path)) as top:
        top.identity()
        before = os.listdir("/proc/self/fd")
        top.sync_files(names)
        assert os.listdir("/proc/self/fd") == before
        assert [(call.name, os.path.basename(call.path)) for call in calls] == [("fsync", name) for name in names]
        with pytest.raises(FileNotFoundError, match="none"):
            top.sync_files(["000", "none"])
        assert os.listdir("/proc/self/fd") == before


def test_the_whole_file_is_asked_to_be_written_back_without_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int, int, int]] = []

    def called(descriptor: int, offset: ctypes.c_int64, count: ctypes.c_int64, flags: int) -> int:
        calls.append((str(Path(f"/proc/self/fd/{descriptor}").readlink()), offset.value, count.value, flags))
        return -1

    monkeypatch.setattr(libc._LIBC, "sync_file_range", called)
    (path / "f").write_bytes(b"data")
    with HostDisk().open_top(str(path)) as top:
        top.start_writeback("f")
    assert calls == [(str(path / "f"), 0, 0, 2)]


def test_a_file_that_cannot_be_written_back_is_left_to_its_sync() -> None:
    libc.start_writeback(-1)


def test_a_file_system_that_has_shut_down_is_not_believed_that_entries_are_durable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XFS says yes to the sync of a directory then, and no to a look at it."""
    disk = HostDisk()
    with disk.open_top(str(path)) as top:
        top.identity()

        def fails(descriptor: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as down:
            down.setattr(os, "fstat", fails)
            with pytest.raises(OSError, match="Input/output error"):
                top.sync()
    assert disk.failed == {path.stat().st_dev: f"{path}: Input/output error"}


def test_no_second_name_is_given_to_what_a_link_leads_to(path: Path) -> None:
    (path / "l").symlink_to("f")
    with HostDisk().open_top(str(path)) as top:
        top.link("l", top, "m")
    assert (path / "m").is_symlink()
    assert (path / "f").stat().st_nlink == 1


@pytest.mark.parametrize("name", ["", ".", "d1", "./d1"])
def test_nothing_is_opened_relative_to_where_a_process_happens_to_be(name: str) -> None:
    with pytest.raises(ValueError, match="not an absolute path"):
        HostDisk().open_top(name)


def test_no_call_takes_the_directory_of_another_kind_of_disk(path: Path) -> None:
    foreign = cast(Directory, object())
    with HostDisk().open_top(str(path)) as top:
        for call in (top.rename, top.link):
            with pytest.raises(TypeError, match="one kind of disk"):
                call("f", foreign, "g")
    assert sorted(os.listdir(path)) == ["d", "f"]


@pytest.mark.parametrize(
    ("flags", "expected"), [(os.ST_RDONLY, errno.EROFS), (0, errno.EACCES)], ids=["read-only", "no right"]
)
def test_what_may_not_be_changed_says_why(
    flags: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(os.statvfs(tmp_path))
    found[8] = flags
    with HostDisk().open_top(str(tmp_path)) as top:
        top.require_changeable()
        monkeypatch.setattr(os, "access", lambda *_args, **_named: False)
        monkeypatch.setattr(os, "fstatvfs", lambda _descriptor: os.statvfs_result(found))
        with pytest.raises(OSError, match=os.strerror(expected)) as said:
            top.require_changeable()
    assert (said.value.errno, said.value.filename) == (expected, str(tmp_path))


def test_a_directory_that_was_closed_lists_no_other_directory(path: Path) -> None:
    """To the kernel, a descriptor of -1 may mean the working directory."""
    with HostDisk().open_top(str(path)) as top:
        pass
    for look in (top.names, top.types, top.identity):
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)) as caught:
            look()
        assert (caught.value.errno, caught.value.filename) == (errno.EBADF, str(path))


@pytest.mark.parametrize("listing", ["names", "types"])
def test_a_directory_that_threads_list_at_a_time_is_whole_in_every_listing(tmp_path: Path, listing: str) -> None:
    names = [f"{n:04}" for n in range(400)]
    for name in names:
        (tmp_path / name).touch()
    with HostDisk().open_top(str(tmp_path)) as top, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: list(getattr(top, listing)()), range(400)))
    assert [one for one in found if one != names] == []


def test_one_directory_is_listed_by_one_thread_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two listings of one descriptor share its position, and each would see a part of the names."""
    inside, most, list_names = [0], [0], os.listdir

    def slow(descriptor: int) -> list[str]:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        inside[0] -= 1
        return list_names(descriptor)

    monkeypatch.setattr(os, "listdir", slow)
    with HostDisk().open_top(str(tmp_path)) as top, ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: top.names(), range(4))) == [[]] * 4
    assert most == [1]
