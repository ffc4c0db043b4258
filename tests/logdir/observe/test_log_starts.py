"""``log-start-offset-checkpoint`` is read again where it changed, and a file that is none has no entries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logdir.observe.log_starts import log_starts

NAME = "log-start-offset-checkpoint"


def test_it_is_read_once_until_it_changes(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("0\n2\npay 0 17\nx-y 12 3\n")
    found = log_starts(str(tmp_path), "")
    assert found.offsets == {"pay-0": 17, "x-y-12": 3}
    assert log_starts(str(tmp_path), found.stamp) == (found.stamp, None)
    # As Kafka replaces it: another file, of the same length, within one tick of a coarse clock.
    at_ns = (tmp_path / NAME).stat().st_mtime_ns
    (tmp_path / "new").write_text("0\n2\npay 0 18\nx-y 12 3\n")
    os.utime(tmp_path / "new", ns=(at_ns, at_ns))
    (tmp_path / "new").rename(tmp_path / NAME)
    assert log_starts(str(tmp_path), found.stamp).offsets == {"pay-0": 18, "x-y-12": 3}


@pytest.mark.parametrize("data", [None, b"0\n9\nt 0", b"\xff", b"7\n0\n"])
def test_what_is_no_such_file_has_no_entries(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / NAME).write_bytes(data)
    assert log_starts(str(tmp_path), "x") == ("", {})


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_nothing_but_a_file_of_the_log_dir_is_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / "elsewhere").write_text("0\n1\npay 0 17\n")
    place = tmp_path / "d1" / NAME
    place.parent.mkdir()
    match kind:
        case "link":
            place.symlink_to(tmp_path / "elsewhere")
        case "fifo":
            os.mkfifo(place)
        case _:
            place.mkdir()
    assert log_starts(str(place.parent), "") == ("", {})
    assert log_starts(str(tmp_path / "gone"), "") == ("", {})
