"""When a directory came to be: by its oldest file, and only where it can be read."""

from __future__ import annotations

import os
from pathlib import Path

from logdir.observe.birth import births


def made(path: Path, **times_ms: int) -> None:
    path.mkdir(parents=True)
    for name, time_ms in times_ms.items():
        (path / name).touch()
        os.utime(path / name, ns=(0, time_ms * 1_000_000))


def test_the_oldest_file_tells(tmp_path: Path) -> None:
    made(tmp_path / "t-0", log=2000, index=1500, metadata=1000)
    made(tmp_path / "ab" / "abc_0", log=3000)
    found = births(str(tmp_path), ["t-0", "ab/abc_0"])
    assert found == {(str(tmp_path), "t-0"): 1000, (str(tmp_path), "ab/abc_0"): 3000}


def test_an_empty_directory_counts_from_its_last_change(tmp_path: Path) -> None:
    made(tmp_path / "t-0")
    os.utime(tmp_path / "t-0", ns=(0, 7_000_000))
    assert births(str(tmp_path), ["t-0"]) == {(str(tmp_path), "t-0"): 7}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    made(tmp_path / "t-0", log=1)
    (tmp_path / "link-0").symlink_to(tmp_path / "t-0")
    (tmp_path / "file-0").touch()
    assert births(str(tmp_path), ["link-0", "file-0", "gone-0"]) == {}
    assert births(str(tmp_path / "none"), ["t-0"]) == {}
