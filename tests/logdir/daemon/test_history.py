"""history.jsonl: one line an event, rotated, and never in the way."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from logdir.daemon.report.history import History


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_event_is_a_line(tmp_path: Path) -> None:
    history = History(str(tmp_path), now_ms=lambda: 7)
    history.add("captured", path="pay-0.\n-delete", undo_until_ms=None)
    history.add("state", state="RUNNING")
    assert history.close(30)
    assert lines(tmp_path / "history.jsonl") == [
        {"at_ms": 7, "event": "captured", "path": "pay-0.\n-delete", "undo_until_ms": None},
        {"at_ms": 7, "event": "state", "state": "RUNNING"},
    ]
    assert [one["event"] for one in history.last()] == ["captured", "state"]


def test_five_files_are_kept_and_no_line_is_cut(tmp_path: Path) -> None:
    history = History(str(tmp_path), now_ms=lambda: 7, most_bytes=200)
    for number in range(60):
        history.add("state", state=f"{number:03}")
    assert history.close(30)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["history.jsonl", *(f"history.jsonl.{n}" for n in (1, 2, 3, 4))]
    kept = [one["state"] for name in reversed(names) for one in lines(tmp_path / name)]
    assert kept == [f"{number:03}" for number in range(60 - len(kept), 60)]
    assert all(path.stat().st_size <= 200 for path in tmp_path.iterdir())


def test_a_directory_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    history = History(str(tmp_path / "none"))
    history.add("state", state="RUNNING")
    assert history.close(30)
    assert history.dropped == 1
    assert [one["state"] for one in history.last()] == ["RUNNING"]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").symlink_to(tmp_path / "elsewhere")
    history = History(str(tmp_path))
    history.add("state", state="RUNNING")
    assert history.close(30)
    assert history.dropped == 1
    assert not (tmp_path / "elsewhere").exists()


def test_a_disk_that_does_not_answer_delays_nobody_and_the_oldest_lines_are_dropped(tmp_path: Path) -> None:
    # The open of a FIFO hangs until there is a reader, as that of a file on a disk that does not answer.
    os.mkfifo(tmp_path / "history.jsonl")
    history = History(str(tmp_path), now_ms=lambda: 7, most_waiting=3)
    history.add("state", state="first")
    while history._waiting:
        pass  # The thread has taken the first line.
    for number in range(10):
        history.add("state", state=f"{number}")
    assert (history.dropped, history.last()[-1]["state"]) == (7, "9")
    assert not history.close(0.1)
    reader = os.open(tmp_path / "history.jsonl", os.O_RDONLY)
    assert history.close(30)
    found = [json.loads(line) for line in os.read(reader, 1 << 16).splitlines()]
    os.close(reader)
    assert [one.get("state", one.get("lines")) for one in found] == ["first", 7, "7", "8", "9"]
    assert found[1] == {"at_ms": 7, "event": "history-dropped", "lines": 7}


def test_what_could_not_be_written_is_told_of_once_it_can_be_again(tmp_path: Path) -> None:
    place = tmp_path / "state"
    history = History(str(place), now_ms=lambda: 7)
    history.add("state", state="lost")
    while not history.dropped:
        pass
    place.mkdir()
    history.add("state", state="kept")
    assert history.close(30)
    assert [(one["event"], one.get("lines")) for one in lines(place / "history.jsonl")] == [
        ("history-dropped", 1),
        ("state", None),
    ]


def test_an_error_that_no_rule_foresees_does_not_end_the_thread(tmp_path: Path) -> None:
    errors = [MemoryError()]

    def now_ms() -> int:
        if threading.current_thread().name == "history" and errors:
            raise errors.pop()
        return 7

    place = tmp_path / "state"
    history = History(str(place), now_ms=now_ms)
    history.add("state", state="lost")
    while not history.dropped:
        pass
    place.mkdir()
    history.add("state", state="lost, too")  # The line before it, with the number of those lost, meets the error.
    while errors:
        pass
    history.add("state", state="kept")
    assert history.close(30)
    assert [(one["event"], one.get("lines")) for one in lines(place / "history.jsonl")] == [
        ("history-dropped", 2),
        ("state", None),
    ]


def test_a_thread_that_cannot_be_started_is_started_with_a_later_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    history = History(str(tmp_path), now_ms=lambda: 7)
    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", fail)
        history.add("state", state="1")
    history.add("state", state="2")
    assert history.close(30)
    assert [one["state"] for one in lines(tmp_path / "history.jsonl")] == ["1", "2"]
