"""Removal of a directory of links under ``incoming/``: files first, then the marker, each durable before the next."""

from __future__ import annotations

import os
from pathlib import Path

from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.replica.hardlink_dir import drop
from tests.logdir.disk.staged_rig import make_log_dir, opened


def test_a_directory_that_was_dropped_is_durably_gone(tmp_path: Path) -> None:
    top = make_log_dir(tmp_path / "kafka", "pay-0")
    links = Path(f"{top}.logdird", "incoming", "x_0")
    links.mkdir()
    (links / "replica.json").touch()
    segment = next((top / "pay-0").glob("*.log"))
    os.link(segment, links / segment.name)
    calls: list[Call] = []
    with opened(top, HostDisk(calls.append)) as open_dir:
        calls.clear()
        assert drop(open_dir, "x_0")
    assert not links.exists()
    assert segment.exists()
    assert [(call.name, Path(call.path).name) for call in calls] == [
        ("unlink", segment.name),
        ("fsync-dir", "x_0"),
        ("unlink", "replica.json"),
        ("rmdir", "x_0"),
        ("fsync-dir", "incoming"),
    ]
