"""The file of metrics: whole or not at all, gone with its daemon, and in nobody's way."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logdir import clock
from logdir.daemon.metrics.textfile import EVERY_MS, Textfile
from logdir.errors import Problem
from tests.logdir.daemon.rig import until

TEXT = b"# HELP logdird_info Always 1.\n# TYPE logdird_info gauge\nlogdird_info 1.0\n"


class Writer:
    """A textfile that is written as often as its thread can, and the problems that it found."""

    def __init__(self, text: Callable[[], bytes] = lambda: TEXT, every_ms: int = 5) -> None:
        self.failed: list[Problem] = []
        self.file = Textfile(text, self.failed.append, every_ms=every_ms)


@contextmanager
def writing(path: Path, text: Callable[[], bytes] = lambda: TEXT, every_ms: int = 5) -> Iterator[Writer]:
    made = Writer(text, every_ms)
    made.file.write_to(str(path))
    try:
        yield made
    finally:
        assert made.file.close(30)


def test_it_is_written_every_15_seconds() -> None:
    assert EVERY_MS == 15_000


def test_it_is_readable_by_all_whole_and_gone_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "b1.prom"
    before = os.umask(0o077)
    try:
        with writing(path):
            until("it is written", path.exists)
            assert path.read_bytes() == TEXT
            assert stat.S_IMODE(path.stat().st_mode) == 0o644
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


def test_each_writing_is_a_new_file_and_no_reader_sees_half_of_one(tmp_path: Path) -> None:
    path = tmp_path / "b1.prom"
    numbers = iter(range(1_000_000))
    with writing(path, lambda: TEXT + str(next(numbers)).encode() * 10_000 + b"\n"):
        until("it is written", path.exists)
        for _ in range(500):
            data = path.read_bytes()
            assert data.startswith(TEXT)
            assert data.endswith(b"\n")
        assert {name.name for name in tmp_path.iterdir()} <= {"b1.prom", "b1.prom.tmp"}
    assert list(tmp_path.iterdir()) == []


def test_without_a_path_no_thread_is_started() -> None:
    made = Writer()
    made.file.write_to(None)
    assert (made.file._thread, made.file.problems()) == (None, ())
    assert made.file.close(0)


def test_another_path_takes_the_place_of_the_first_and_none_ends_it(tmp_path: Path) -> None:
    one, other = tmp_path / "1.prom", tmp_path / "2.prom"
    with writing(one) as made:
        until("it is written", one.exists)
        made.file.write_to(str(other))
        until("it is written elsewhere", lambda: other.exists() and not one.exists())
        made.file.write_to(None)
        until("it is gone", lambda: not other.exists())
        assert made.file.problems() == ()
        made.file.write_to(str(one))
        until("it is written again", one.exists)


def test_what_a_killed_daemon_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "b1.prom"
    path.write_bytes(TEXT + b"old\n")
    (tmp_path / "b1.prom.tmp").write_bytes(b"half")
    with writing(path) as made:
        until("it is replaced", lambda: path.read_bytes() == TEXT)
        assert made.failed == []


STRANGERS: dict[str, Callable[[Path], object]] = {
    "another file": lambda path: path.write_bytes(b"# HELP node_x Of another exporter.\n"),
    "a directory": lambda path: path.mkdir(),
    "a FIFO": os.mkfifo,
    "a link": lambda path: path.symlink_to(path.with_name("elsewhere")),
}


@pytest.mark.parametrize("what", STRANGERS)
def test_what_is_no_file_of_ours_is_left_alone(tmp_path: Path, what: str) -> None:
    path = tmp_path / "b1.prom"
    STRANGERS[what](path)
    before = os.lstat(path)
    with writing(path) as made:
        until("it is named", lambda: bool(made.file.problems()))
        (problem,) = made.file.problems()
        assert (problem.slug, problem.path) == ("metrics-unwritten", str(path))
        assert problem.fix
    after = os.lstat(path)
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
    assert [one.name for one in tmp_path.iterdir()] == ["b1.prom"]


def test_a_problem_is_told_once_and_ends_when_it_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "none" / "b1.prom"
    tries: list[int] = []

    def text() -> bytes:
        tries.append(1)
        return TEXT

    with writing(path, text) as made:
        until("it is named", lambda: bool(made.file.problems()))
        before = len(tries)
        until("it was tried again", lambda: len(tries) > before + 5)
        assert [(one.slug, one.found) for one in made.failed] == [("metrics-unwritten", "No such file or directory")]
        path.parent.mkdir()
        until("it is written", path.exists)
        until("nothing waits", lambda: made.file.problems() == ())
        assert len(made.failed) == 1


def test_a_full_disk_leaves_the_former_file_and_no_half_of_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b1.prom"
    with writing(path) as made:
        until("it is written", path.exists)

        def full(descriptor: int, mode: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fchmod", full)
            until("it is named", lambda: bool(made.file.problems()))
            assert path.read_bytes() == TEXT
            until("no half is left", lambda: [one.name for one in tmp_path.iterdir()] == ["b1.prom"])
        until("it is written again", lambda: made.file.problems() == ())
        assert [one.found for one in made.failed] == ["No space left on device"]


def test_a_fault_of_ours_does_not_end_the_thread(tmp_path: Path) -> None:
    path = tmp_path / "b1.prom"
    faults = [ZeroDivisionError("division by zero")]

    def text() -> bytes:
        if faults:
            raise faults.pop()
        return TEXT

    with writing(path, text) as made:
        until("it is written after all", path.exists)
        assert [one.found for one in made.failed] == ["ZeroDivisionError: division by zero"]


def test_a_disk_that_does_not_answer_is_named_and_delays_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    made = Writer(lambda: TEXT if go_on.wait(30) else b"")
    made.file.write_to(str(tmp_path / "b1.prom"))
    until("the writing has begun", lambda: made.file._begun_ms is not None)
    assert made.file.problems() == ()
    now_ms = clock.monotonic_ms()
    with monkeypatch.context() as later:
        later.setattr(clock, "monotonic_ms", lambda: now_ms + 61_000)
        (problem,) = made.file.problems()
    assert (problem.slug, problem.found) == ("metrics-unwritten", "no answer of its disk for 60 s")
    made.file.write_to(str(tmp_path / "b2.prom"))  # Nobody waits for it.
    assert not made.file.close(0.05)
    go_on.set()
    assert made.file.close(30)
    assert list(tmp_path.iterdir()) == []
