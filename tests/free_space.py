"""Free space as tests see it: at least half of the disk of temporary files, however full it is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

_BLOCKS, _FREE, _AVAILABLE = 2, 3, 4
_FILES, _FILES_FREE, _FILES_AVAILABLE = 5, 6, 7

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

    A capture is refused below ``staged.min.free`` (10 %), so that what a test shows would depend on its machine. Disks
    that tests mount, and fill, are told as they are.
    """
    real, disk = os.fstatvfs, Path(tempfile.gettempdir()).stat().st_dev

    def told(descriptor: int) -> os.statvfs_result:
        seen = real(descriptor)
        if os.fstat(descriptor).st_dev != disk:
            return seen
        found = list(seen)
        for total, free in ((_BLOCKS, (_FREE, _AVAILABLE)), (_FILES, (_FILES_FREE, _FILES_AVAILABLE))):
            for one in free:
                found[one] = max(found[one], found[total] // 2)
        return os.statvfs_result((*found, seen.f_fsid))

    with mock.patch.object(os, "fstatvfs", told):
        yield
