"""The observer of the soak: what an operator restored is not called early, and what goes by itself is."""

from __future__ import annotations

import json
from pathlib import Path

from tests.kafka.soak.disk import MARKER, work_of
from tests.kafka.soak.observer import Observer

KEY = "0m6In3WKT-uVKwnFbR0Z7w_1"


def _staged(log_dir: Path, delay_ms: int | None) -> Path:
    path = Path(work_of(log_dir), "deleting", KEY)
    path.mkdir(parents=True)
    (path / MARKER).write_text(json.dumps({"staged_at_ms": 4_000_000_000_000, "delay_ms": delay_ms}))
    return path


def test_what_was_restored_just_before_it_is_kept_again_is_not_early(tmp_path: Path) -> None:
    log_dir = tmp_path / "d1"
    observer = Observer([log_dir])
    path = _staged(log_dir, None)
    observer.look()
    observer.let_go([KEY])
    path.rename(tmp_path / "restored")
    observer.keep([KEY])
    observer.look()
    assert observer.early() == []
    _staged(log_dir, None)
    observer.look()
    path.rename(tmp_path / "lost")
    observer.look()
    assert observer.early() == [f"early: {path} was held, and went"]


def test_what_goes_before_its_deadline_is_early_however_often_it_was_let_go(tmp_path: Path) -> None:
    log_dir = tmp_path / "d1"
    observer = Observer([log_dir])
    observer.let_go([KEY])
    observer.keep([KEY])
    observer.let_go([KEY])
    path = _staged(log_dir, 1000)
    observer.look()
    path.rename(tmp_path / "restored")
    observer.look()
    assert observer.early() == []
    observer.keep([KEY])
    _staged(log_dir, 1000)
    observer.look()
    path.rename(tmp_path / "lost")
    observer.look()
    (line,) = observer.early()
    assert line.startswith(f"early: {path} went ")
    assert line.endswith(" ms before its deadline")
