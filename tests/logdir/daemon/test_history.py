"""history.jsonl: one line an event, rotated, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path

from logdir.daemon.history import History


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_event_is_a_line(tmp_path: Path) -> None:
    history = History(str(tmp_path), now_ms=lambda: 7)
    history.add("captured", path="pay-0.\n-delete", undo_until_ms=None)
    history.add("state", state="RUNNING")
    assert lines(tmp_path / "history.jsonl") == [
        {"at_ms": 7, "event": "captured", "path": "pay-0.\n-delete", "undo_until_ms": None},
        {"at_ms": 7, "event": "state", "state": "RUNNING"},
    ]
    assert [one["event"] for one in history.last()] == ["captured", "state"]


def test_five_files_are_kept_and_no_line_is_cut(tmp_path: Path) -> None:
    history = History(str(tmp_path), now_ms=lambda: 7, most_bytes=200)
    for number in range(60):
        history.add("state", state=f"{number:03}")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["history.jsonl", *(f"history.jsonl.{n}" for n in (1, 2, 3, 4))]
    kept = [one["state"] for name in reversed(names) for one in lines(tmp_path / name)]
    assert kept == [f"{number:03}" for number in range(60 - len(kept), 60)]
    assert all(path.stat().st_size <= 200 for path in tmp_path.iterdir())


def test_a_directory_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    history = History(str(tmp_path / "none"))
    history.add("state", state="RUNNING")
    assert history.dropped == 1
    assert [one["state"] for one in history.last()] == ["RUNNING"]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").symlink_to(tmp_path / "elsewhere")
    history = History(str(tmp_path))
    history.add("state", state="RUNNING")
    assert history.dropped == 1
    assert not (tmp_path / "elsewhere").exists()
