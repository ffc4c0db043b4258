"""The reserve is given up on a full disk and put back when there is room."""

from __future__ import annotations

import errno
import os
import zlib
from pathlib import Path

import pytest

from logdir.disk.kernel.calls import Owner, Space
from logdir.disk.kernel.failure import give_up_reserve
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.root.reserve import content, has_room, is_full_size, put_back, put_reserve, refill_reserve, spare_names

OWNER = Owner(0, 0, 0o640)


def test_it_cannot_be_stored_in_fewer_bytes() -> None:
    data = content(1 << 16, "/d1")
    assert len(zlib.compress(data)) > len(data) * 0.99
    assert data != content(1 << 16, "/d2")


def test_no_work_root_has_less_than_4_mib_and_64_inodes_for_the_day_the_disk_is_full(tmp_path: Path) -> None:
    with HostDisk().open_top(str(tmp_path)) as root:
        put_reserve(root, OWNER._replace(uid=os.geteuid(), gid=os.getegid()))
    assert (tmp_path / "reserve").stat().st_size == 4_194_304
    assert len(spare_names(4_194_304)) == 64


def test_it_is_given_up_and_put_back(tmp_path: Path) -> None:
    with HostDisk().open_top(str(tmp_path)) as root:
        owner = root.own_stat().owner.for_file()
        put_reserve(root, owner, 10_000)
        assert is_full_size(root, 10_000)
        assert give_up_reserve(root)
        assert not give_up_reserve(root)
        assert (tmp_path / "reserve").stat().st_blocks == 0
        assert refill_reserve(root, owner, 10_000)
        assert (tmp_path / "reserve").read_bytes() == content(10_000, str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["reserve"]


def test_what_a_full_disk_took_is_not_left_out_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HostDisk().open_top(str(tmp_path)) as work:
        owner = work.own_stat().owner.for_file()
        put_reserve(work, owner, 10_000)
        assert put_back(work, owner, 10_000) is None
        give_up_reserve(work)
        with monkeypatch.context() as full:
            full.setattr(HostDirectory, "space", lambda self: Space(49, 100, 1000, 100))
            problem = put_back(work, owner, 10_000)
        assert problem is not None
        assert (problem.slug, problem.expected, problem.found) == (
            "reserve-spent",
            "4 MiB",
            "0 bytes, and less than 5 % of its disk free",
        )
        with monkeypatch.context() as denied:
            denied.setattr(HostDirectory, "write", _denied)
            problem = put_back(work, owner, 10_000)
        assert problem is not None
        assert (problem.slug, problem.found) == ("reserve-spent", "Permission denied")
        assert (tmp_path / "reserve").stat().st_size == 0
        assert put_back(work, owner, 10_000) is None
        assert (tmp_path / "reserve").stat().st_size == 10_000


def _denied(directory: HostDirectory, name: str, data: bytes, owner: Owner, mtime_ns: int | None = None) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


@pytest.mark.parametrize(("free", "enough"), [(49, False), (50, True), (1000, True), (0, False)])
def test_it_is_taken_again_when_a_twentieth_is_free(free: int, enough: bool) -> None:
    assert has_room(Space(free, 1, 1000)) is enough
