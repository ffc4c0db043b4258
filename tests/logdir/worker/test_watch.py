"""The watch process of a log dir: hints for what a broker renames, and for nothing else."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logdir.worker.watch import Watch, is_leaving, start_watch

UNIQUE = "0123456789abcdef0123456789abcdef"


@contextmanager
def watched(path: Path) -> Iterator[Watch]:
    watch = start_watch(str(path))
    try:
        yield watch
    finally:
        watch.close()


def heard(watch: Watch, seconds: float = 10.0) -> bytes | None:
    select.select([watch.connection], [], [], seconds)
    return watch.read()


@pytest.mark.parametrize(
    ("name", "expected"),
    [(f"t-0.{UNIQUE}-delete", True), (f"t-0.{UNIQUE}-stray", True), (f"t-0.{UNIQUE}-future", False), ("t-0", False)],
)
def test_names_that_a_broker_gives_before_a_removal(name: str, expected: bool) -> None:
    assert is_leaving(name) is expected


def test_a_directory_renamed_away_gives_a_hint(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-1").mkdir()
    with watched(tmp_path) as watch:
        assert heard(watch) == b"+"
        (tmp_path / "t-0").rename(tmp_path / f"t-0.{UNIQUE}-delete")
        assert heard(watch) == b"!"
        (tmp_path / "t-1").rename(tmp_path / f"t-1.{UNIQUE}-stray")
        assert heard(watch) == b"!"


def test_what_a_broker_does_all_day_gives_none(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    with watched(tmp_path) as watch:
        assert heard(watch) == b"+"
        (tmp_path / "new-0").mkdir()
        (tmp_path / "t-0" / f"x.{UNIQUE}-delete").mkdir()
        (tmp_path / "recovery-point-offset-checkpoint.tmp").write_text("0\n0\n")
        (tmp_path / "recovery-point-offset-checkpoint.tmp").rename(tmp_path / "recovery-point-offset-checkpoint")
        assert heard(watch, 0.5) == b""


def test_a_log_dir_that_is_not_there_is_named(tmp_path: Path) -> None:
    with watched(tmp_path / "none") as watch:
        assert heard(watch) == b"-No such file or directory"


def test_a_watch_that_was_killed_is_noticed(tmp_path: Path) -> None:
    with watched(tmp_path) as watch:
        assert heard(watch) == b"+"
        os.kill(watch.pid, 9)
        deadline = time.monotonic() + 10
        while (data := heard(watch)) == b"" and time.monotonic() < deadline:
            pass
        assert data is None
