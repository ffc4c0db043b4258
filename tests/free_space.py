"""Free space as tests see it: at least half of the disk of temporary files, however full it is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

_TOTAL_OF = {3: 2, 4: 2, 6: 5, 7: 5}
"""By field of ``os.statvfs_result`` with free or available blocks or inodes: the field with how many there are."""
LOW_FLOOR = "staged.min.free: 1\n"
"""For the configuration of a daemon that is a process of its own."""


def on_any_disk(more: str) -> str:
    """Return lines of the configuration of a daemon, and a low floor of free space unless they name one."""
    return more if "staged.min.free" in more else f"{LOW_FLOOR}{more}"


def require_room(folder: Path) -> None:
    """Skip a test that types a capture in a shell, which no configuration and no patch reaches, on a full disk."""
    found = os.statvfs(folder)
    if found.f_bavail * 10 < found.f_blocks:
        pytest.skip(f"needs 10 % of the disk of {folder} free: set TMPDIR to another one")


@contextmanager
def roomy() -> Iterator[None]:
    """Let :func:`os.fstatvfs` report at least half of the disk of temporary files as free, in this process.

    A capture is refused below ``staged.min.free`` (10 %): without this, tests would fail on a nearly full machine.
    Disks that tests mount and fill are reported as they are.
    """
    real, disk = os.fstatvfs, Path(tempfile.gettempdir()).stat().st_dev

    def reported(descriptor: int) -> os.statvfs_result:
        found = real(descriptor)
        if os.fstat(descriptor).st_dev != disk:
            return found
        fields = (max(value, found[_TOTAL_OF[at]] // 2) if at in _TOTAL_OF else value for at, value in enumerate(found))
        return os.statvfs_result((*fields, found.f_fsid))

    with mock.patch.object(os, "fstatvfs", reported):
        yield
