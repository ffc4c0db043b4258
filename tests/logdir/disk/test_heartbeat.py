"""Heartbeats on a real work root: begun once, folded forward, never begun again in passing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.clock import Instant
from logdir.disk.kernel.host import HostDisk
from logdir.disk.record import heartbeat
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.errors import RefusedError, UnsupportedVersionError
from logdir.formats.own import heartbeat_file, own_json
from tests.builders import log_dir

NOW = Instant(boot_id="one", boottime_ms=1000, wall_ms=1_800_000_000_000, is_synchronised=True)


@pytest.fixture
def open_dir(tmp_path: Path) -> Iterator[OpenLogDir]:
    disk, top = HostDisk(), str(log_dir(tmp_path / "d1"))
    init(disk, plan_init(disk, top, fs_type="ext4"), made_at_ms=0, reserve_bytes=8192)
    with open_root(disk, top) as root:
        yield root.open_dir


def path_of(open_dir: OpenLogDir) -> Path:
    return Path(open_dir.work.path) / "heartbeat.json"


def test_begun_once_then_folded_forward(open_dir: OpenLogDir) -> None:
    assert heartbeat.read(open_dir) is None
    first = heartbeat.begin(open_dir, NOW)
    assert heartbeat.read(open_dir) == first
    later = heartbeat.begin(open_dir, NOW._replace(boottime_ms=9000))
    assert [boot.seen_ms for boot in later.boots] == [9000]
    other = heartbeat.beat(open_dir, NOW._replace(boot_id="two", boottime_ms=5))
    assert other is not None
    assert [boot.boot_id for boot in other.boots] == ["one", "two"]
    assert heartbeat.read(open_dir) == other
    owner, top = path_of(open_dir).stat(), Path(open_dir.log_dir).stat()
    assert (owner.st_uid, owner.st_gid) == (top.st_uid, top.st_gid)
    assert not [name for name in os.listdir(open_dir.work.path) if name.endswith((".old", ".tmp"))]


@pytest.mark.parametrize("data", [None, b"", b"{}", b"x" * 300])
def test_one_that_is_lost_is_not_begun_again_in_passing(open_dir: OpenLogDir, data: bytes | None) -> None:
    if data is not None:
        path_of(open_dir).write_bytes(data)
    assert heartbeat.beat(open_dir, NOW) is None
    assert (path_of(open_dir).read_bytes() if path_of(open_dir).exists() else None) == data
    begun = heartbeat.begin(open_dir, NOW)
    assert heartbeat.read(open_dir) == begun


def test_one_of_a_newer_release_is_refused_and_left_alone(open_dir: OpenLogDir) -> None:
    newer = own_json.render("heartbeat", heartbeat_file.VERSION + 1, {"soul": 1})
    path_of(open_dir).write_bytes(newer)
    for call in (heartbeat.beat, heartbeat.begin):
        with pytest.raises(UnsupportedVersionError):
            call(open_dir, NOW)
    assert path_of(open_dir).read_bytes() == newer


def test_a_directory_in_its_place_is_refused(open_dir: OpenLogDir) -> None:
    path_of(open_dir).mkdir()
    with pytest.raises((RefusedError, OSError)):
        heartbeat.begin(open_dir, NOW)
    assert path_of(open_dir).is_dir()
