"""A nearly full disk: captured replicas go oldest first, and only as many as bring the free space back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.builders import TOPIC_ID
from tests.kernel.images import Images
from tests.logdir.daemon.rig import Daemon, daemon, until

pytestmark = pytest.mark.root

_MIB = 1 << 20
_SIZE = 2 * _MIB
"""Bytes of one replica."""


def fill(path: Path, *, short_by: int) -> None:
    """Fill the disk with a file until free bytes are so many below a tenth."""
    told = os.statvfs(path.parent)
    room = told.f_bavail * told.f_frsize - told.f_blocks * told.f_frsize // 10
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room + short_by)
        os.fsync(file.fileno())


def free_share(path: Path) -> float:
    told = os.statvfs(path)
    return told.f_bavail / told.f_blocks


def captured(one: Daemon, count: int) -> list[Path]:
    """Delete so many replicas, one after the other, and wait until all are captured."""
    gone = []
    for number in range(count):
        path = one.make("pay", number)
        (path / f"{0:020}.log").write_bytes(bytes(_SIZE))
        gone.append(one.delete(path))
        until(f"pay-{number} is captured", lambda number=number: one.status().captured > number)  # type: ignore[misc]
    return gone


@contextmanager
def on_disk(images: Images, kind: str, megabytes: int, more: str = "") -> Iterator[tuple[Daemon, Path]]:
    """Start a daemon whose only log dir has a disk for itself; yield both. At the end it stops before the unmount."""
    mounted = images.mount(images.make(kind, megabytes), kind)
    try:
        with daemon(mounted.path / "b", disks=1, more=f"staged.min.free: 10\nsweep.interval.ms: 500\n{more}") as one:
            yield one, mounted.path
            assert one.stop() == 0
    finally:
        mounted.unmount()


def names(numbers: range) -> list[str]:
    return sorted(f"{TOPIC_ID}_{number}" for number in numbers)


@pytest.mark.parametrize(("kind", "megabytes"), [("ext4", 192), ("xfs", 320)])
def test_a14_a50_only_as_many_go_as_bring_the_floor_back(images: Images, kind: str, megabytes: int) -> None:
    with on_disk(images, kind, megabytes) as (one, disk):
        gone = captured(one, 40)
        for path in gone[:20]:
            one.remove(path)
        fill(disk / "other", short_by=5 * _MIB)
        until("enough is free again", lambda: one.status().purged > 0 and free_share(disk) >= 0.1)
        time.sleep(2)  # Nothing more goes.
        purged = one.status().purged
        assert purged in (2, 3)
        assert one.staged() == names(range(purged, 40))
        assert [event["path"] for event in one.events() if event["event"] == "purged"] == [
            f"deleting/{TOPIC_ID}_{number}" for number in range(purged)
        ]
        assert "replica.loss" in one.log


def test_a50_what_its_broker_still_has_stays_and_nothing_new_is_captured(images: Images) -> None:
    with on_disk(images, "ext4", 192) as (one, disk):
        gone = captured(one, 3)
        one.remove(gone[0])
        fill(disk / "other", short_by=5 * _MIB)
        until("the first went", lambda: one.status().purged == 1)
        late = one.delete(one.make("late"))
        until("it is not captured", lambda: any(event["event"] == "not-captured" for event in one.events()))
        status = one.status()
        assert (status.log_dirs[0].is_undo_off, status.purged) == (True, 1)
        assert one.staged() == names(range(1, 3))
        (disk / "other").unlink()
        until("it is captured", lambda: one.status().captured == 4)
        assert late.is_dir()


def test_hold_keeps_every_capture(images: Images) -> None:
    with on_disk(images, "ext4", 192, more="pressure: hold\n") as (one, disk):
        for path in captured(one, 3):
            one.remove(path)
        fill(disk / "other", short_by=5 * _MIB)
        until("undo is off", lambda: one.status().log_dirs[0].is_undo_off)
        time.sleep(2)
        assert (one.status().purged, len(one.staged())) == (0, 3)
