"""A directory of links under ``incoming/`` goes: its files before its marker, and each durably before it is said."""

from __future__ import annotations

import os
from pathlib import Path

from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.replica.hardlink_dir import drop
from tests.logdir.disk.staged_rig import make_log_dir, opened


def test_what_is_dropped_is_gone_for_good_when_it_is_said_to_be(tmp_path: Path) -> None:
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
