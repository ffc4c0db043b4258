"""A little of a metadata log is read, whatever lies there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logdir.observe.answering import touch


@pytest.fixture
def log(tmp_path: Path) -> Path:
    for number in range(6):
        (tmp_path / f"{number:020}.log").write_bytes(bytes(9000))
    return tmp_path


def test_the_newest_files_of_a_log_are_asked_for_and_no_more(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, read = os.open, []

    def opened(path: str, flags: int) -> int:
        read.append(path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", opened)
    touch(str(log))
    assert read == [f"{log}/{number:020}.log" for number in (3, 4, 5)]
    read.clear()
    touch(f"{log}/{0:020}.log")
    assert read == [f"{log}/{0:020}.log"]


def test_nothing_it_finds_is_an_error_or_waited_for(tmp_path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "full" / "directory").mkdir(parents=True)
    os.mkfifo(tmp_path / "full" / "fifo")
    for name in ("none", "empty", "full", "full/fifo", "full/directory"):
        touch(str(tmp_path / name))
    assert sorted(os.listdir("/proc/self/fd")) == before
