"""A small file on a real file system is replaced whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from logdir.disk.kernel import small_file
from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.kernel.small_file import MAX_BYTES, read_file, remove_file, replace_file
from logdir.errors import ReadOnlyDiskError, RefusedError
from logdir.refusal_slug import Why
from tests.logdir.disk.staged_rig import GID, UID, owner
from tests.whole_refusal import require_whole

NEW = Owner(UID, GID, 0o640)
FILE = "some-checkpoint"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / FILE).write_bytes(b"old")
    os.chown(tmp_path / FILE, UID, GID)
    (tmp_path / FILE).chmod(0o604)
    (tmp_path / "stranger").write_bytes(b"unknown")
    (tmp_path / "reserve").write_bytes(bytes(100))
    return tmp_path


def put(
    top: Path, data: bytes, before: bytes | None, name: str = FILE, *, keep: bool = True, disk: HostDisk | None = None
) -> None:
    with (disk or HostDisk()).open_top(str(top)) as directory:
        replace_file(directory, name, data, before=before, owner=NEW, work=directory, keep=keep)


def listing(top: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in top.iterdir()}


def test_a30_the_new_is_there_whole_and_the_old_kept(top: Path) -> None:
    before = listing(top)
    put(top, b"new", b"old")
    assert listing(top) == before | {FILE: b"new", f"{FILE}.old": b"old"}
    assert owner(top / FILE) == (UID, GID, 0o604)
    put(top, b"newer", b"new")
    assert listing(top) == before | {FILE: b"newer", f"{FILE}.old": b"new"}
    put(top, b"newest", b"newer", keep=False)
    assert listing(top) == before | {FILE: b"newest", f"{FILE}.old": b"new"}


def test_a_new_file_belongs_to_whom_it_is_to(top: Path) -> None:
    put(top, b"new", None, "made")
    assert (top / "made").read_bytes() == b"new"
    assert owner(top / "made") == (UID, GID, 0o640)
    assert not (top / "made.old").exists()


def test_what_is_already_there_is_not_written(top: Path) -> None:
    calls: list[Call] = []
    put(top, b"old", b"old", disk=HostDisk(calls.append))
    assert calls == []


@pytest.mark.parametrize("before", [None, b"older"])
def test_what_changed_since_the_plan_is_refused(before: bytes | None, top: Path) -> None:
    found = listing(top)
    with pytest.raises(RefusedError, match="run the command again"):
        put(top, b"new", before)
    assert listing(top) == found


@pytest.mark.parametrize("name", [FILE, f"{FILE}.tmp", f"{FILE}.old"])
def test_nothing_but_a_file_is_replaced(name: str, top: Path) -> None:
    (top / name).unlink(missing_ok=True)
    (top / name).symlink_to("stranger")
    with pytest.raises((RefusedError, OSError)) as caught:
        put(top, b"new", b"unknown" if name == FILE else b"old")
    assert name == FILE or "expected a regular file, found a symbolic link;" in str(caught.value)
    assert (top / name).is_symlink()
    assert (top / "stranger").read_bytes() == b"unknown"
    assert name == FILE or (top / FILE).read_bytes() == b"old"


def test_a_leftover_is_replaced(top: Path) -> None:
    (top / f"{FILE}.tmp").write_bytes(b"half")
    put(top, b"new", b"old")
    assert not (top / f"{FILE}.tmp").exists()
    assert (top / FILE).read_bytes() == b"new"


def test_what_does_not_read_back_never_gets_the_name(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = HostDirectory.read

    def flipped(directory: HostDirectory, name: str, limit: int) -> bytes:
        data = read(directory, name, limit)
        return data[:-1] + b"?" if name.endswith(".tmp") else data

    monkeypatch.setattr(HostDirectory, "read", flipped)
    with pytest.raises(RefusedError) as raised:
        put(top, b"new", b"old")
    require_whole(
        raised.value,
        Why.READ_BACK_DIFFERS,
        path=f"{top}/{FILE}.tmp",
        expected="the bytes just written",
        found="bytes that differ",
        fix="nothing was replaced; check the kernel log: the disk may fail",
    )
    assert (top / FILE).read_bytes() == b"old"


class Failing(HostDisk):
    """Fails the call of a number with an errno, and counts them."""

    def __init__(self, at: int, number: int) -> None:
        self.calls: list[Call] = []
        self._at, self._errno = at, number
        super().__init__(self._observe)

    def _observe(self, call: Call) -> None:
        self.calls.append(call)
        if len(self.calls) - 1 == self._at:
            raise OSError(self._errno, os.strerror(self._errno), call.path)


def test_no_error_at_any_call_leaves_half(top: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = Failing(-1, 0)
    put(top, b"new, and longer", b"old", disk=whole)
    assert [call.name for call in whole.calls] == ["write", "fsync", "link", "replace", "fsync-dir"]
    for at, call in enumerate(whole.calls):
        for number in (errno.EIO, errno.ENOSPC, errno.EACCES):
            path = tmp_path_factory.mktemp("again")
            (path / FILE).write_bytes(b"old")
            (path / "reserve").write_bytes(bytes(100))
            failing = Failing(at, number)
            is_sync = call.name.startswith("fsync")
            if number == errno.ENOSPC and not is_sync:
                put(path, b"new, and longer", b"old", disk=failing)
                assert [made.name for made in failing.calls].count("truncate") == 1
                assert (path / "reserve").stat().st_size == 0
                assert (path / FILE).read_bytes() == b"new, and longer"
                continue
            with pytest.raises(ReadOnlyDiskError if is_sync or number == errno.EIO else OSError):
                put(path, b"new, and longer", b"old", disk=failing)
            assert (path / FILE).read_bytes() == (b"new, and longer" if call.name == "fsync-dir" else b"old")
            if is_sync:
                assert len(failing.calls) == at + 1


def test_a_file_goes_and_nothing_is_no_error(top: Path) -> None:
    with HostDisk().open_top(str(top)) as directory:
        remove_file(directory, FILE)
        remove_file(directory, FILE)
        (top / "made").mkdir()
        with pytest.raises(RefusedError):
            remove_file(directory, "made")
    assert sorted(os.listdir(top)) == ["made", "reserve", "stranger"]


def test_what_is_too_large_is_not_read(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_BYTES >= 1 << 20
    monkeypatch.setattr(small_file, "MAX_BYTES", 3)
    with HostDisk().open_top(str(top)) as directory:
        assert read_file(directory, FILE) == b"old"
        assert read_file(directory, "nothing") is None
        with pytest.raises(RefusedError, match="at most 3 bytes"):
            read_file(directory, "stranger")
