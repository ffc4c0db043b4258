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
from logdir.disk.root.open_log_dir import Site
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.errors import RefusedError, UnsupportedVersionError
from logdir.formats.own import heartbeat_file, own_json
from tests.builders import log_dir

NOW = Instant(boot_id="one", boottime_ms=1000, wall_ms=1_800_000_000_000, is_synchronised=True)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    disk, top = HostDisk(), str(log_dir(tmp_path / "d1"))
    init(disk, plan_init(disk, top, fs_type="ext4"), made_at_ms=0, reserve_bytes=8192)
    with open_root(disk, top) as root:
        yield root.site


def path_of(site: Site) -> Path:
    return Path(site.work.path) / "heartbeat.json"


def test_begun_once_then_folded_forward(site: Site) -> None:
    assert heartbeat.read(site) is None
    first = heartbeat.begin(site, NOW)
    assert heartbeat.read(site) == first
    later = heartbeat.begin(site, NOW._replace(boottime_ms=9000))
    assert [boot.seen_ms for boot in later.boots] == [9000]
    other = heartbeat.beat(site, NOW._replace(boot_id="two", boottime_ms=5))
    assert other is not None
    assert [boot.boot_id for boot in other.boots] == ["one", "two"]
    assert heartbeat.read(site) == other
    owner, top = path_of(site).stat(), Path(site.log_dir).stat()
    assert (owner.st_uid, owner.st_gid) == (top.st_uid, top.st_gid)
    assert not [name for name in os.listdir(site.work.path) if name.endswith((".old", ".tmp"))]


@pytest.mark.parametrize("data", [None, b"", b"{}", b"x" * 300])
def test_one_that_is_lost_is_not_begun_again_in_passing(site: Site, data: bytes | None) -> None:
    if data is not None:
        path_of(site).write_bytes(data)
    assert heartbeat.beat(site, NOW) is None
    assert (path_of(site).read_bytes() if path_of(site).exists() else None) == data
    begun = heartbeat.begin(site, NOW)
    assert heartbeat.read(site) == begun


def test_one_of_a_newer_release_is_refused_and_left_alone(site: Site) -> None:
    newer = own_json.render("heartbeat", heartbeat_file.VERSION + 1, {"soul": 1})
    path_of(site).write_bytes(newer)
    for call in (heartbeat.beat, heartbeat.begin):
        with pytest.raises(UnsupportedVersionError):
            call(site, NOW)
    assert path_of(site).read_bytes() == newer


def test_a_directory_in_its_place_is_refused(site: Site) -> None:
    path_of(site).mkdir()
    with pytest.raises((RefusedError, OSError)):
        heartbeat.begin(site, NOW)
    assert path_of(site).is_dir()
