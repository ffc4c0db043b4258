"""What is made carries the mode of its log dir before it has a name a broker could trip over (design law 9)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import HostDisk


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o2775])
def test_no_directory_is_made_with_another_mode_than_asked_for(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o027)
    try:
        with HostDisk().open_top(str(tmp_path)) as top:
            top.make("made", Owner(os.getuid(), os.getgid(), mode))
    finally:
        os.umask(before)
    found = (tmp_path / "made").stat()
    assert (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (mode, os.getuid(), os.getgid())
