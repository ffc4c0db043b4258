"""The names of -delete and -stray directories, listed only when a log dir changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from logdir.observe.leaving import leaving

UNIQUE = "0123456789abcdef0123456789abcdef"


def aged(path: Path) -> None:
    old = time.time() - 60
    os.utime(path, (old, old))


def test_only_directories_that_a_broker_is_removing_are_listed(tmp_path: Path) -> None:
    for name in (
        f"pay-0.{UNIQUE}-delete",
        f"pay-1.{UNIQUE}-stray",
        f"pay-2.{UNIQUE}-future",
        "pay-3",
        "x-delete",
        "pay-4.0123-delete",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / f"pay-5.{UNIQUE}-delete").write_text("a file")
    (tmp_path / f"pay-6.{UNIQUE}-delete").symlink_to(tmp_path / "pay-3")
    assert leaving(str(tmp_path), None).names == (f"pay-0.{UNIQUE}-delete", f"pay-1.{UNIQUE}-stray")


def test_a_log_dir_that_did_not_change_is_not_listed_again(tmp_path: Path) -> None:
    (tmp_path / f"pay-0.{UNIQUE}-delete").mkdir()
    aged(tmp_path)
    first = leaving(str(tmp_path), None)
    assert first.names == (f"pay-0.{UNIQUE}-delete",)
    assert leaving(str(tmp_path), first.mtime_ns) == (first.mtime_ns, None, True)
    (tmp_path / f"pay-1.{UNIQUE}-delete").mkdir()
    assert leaving(str(tmp_path), first.mtime_ns).names == (f"pay-0.{UNIQUE}-delete", f"pay-1.{UNIQUE}-delete")


def test_a_young_time_of_change_is_never_trusted(tmp_path: Path) -> None:
    first = leaving(str(tmp_path), None)
    assert first.mtime_ns is None
    assert leaving(str(tmp_path), first.mtime_ns).names == ()


def test_a_log_dir_that_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    assert leaving(str(tmp_path / "none"), None) == (None, None, False)
    (tmp_path / "file").write_text("no directory")
    assert leaving(str(tmp_path / "file"), None) == (None, None, False)
