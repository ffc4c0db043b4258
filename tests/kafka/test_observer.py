"""The observer and the judge of the soak: what is early, what is lost, and what an operator may do.

What an operator restored is not called early, and what goes by itself is.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from logdir import clock
from logdir.daemon.looks import SLUG, Looks
from tests.kafka.soak.disk import MARKER, work_of
from tests.kafka.soak.gap import is_gap_over
from tests.kafka.soak.model import Judge, Log, Model, Place
from tests.kafka.soak.observer import Observer

TOPIC_ID = "0m6In3WKT-uVKwnFbR0Z7w"
KEY = f"{TOPIC_ID}_1"


def _staged(log_dir: Path, delay_ms: int | None, *, at_ms: int = 4_000_000_000_000) -> Path:
    path = Path(work_of(log_dir), "deleting", KEY)
    path.mkdir(parents=True)
    path.parent.with_name("incoming").mkdir(exist_ok=True)
    (path / MARKER).write_text(json.dumps({"staged_at_ms": at_ms, "delay_ms": delay_ms}))
    return path


def test_what_was_restored_just_before_it_is_kept_again_is_not_early(tmp_path: Path) -> None:
    log_dir = tmp_path / "d1"
    observer = Observer([log_dir])
    observer.expect(TOPIC_ID, None)
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
    assert observer.early() == [
        f"early: {path} was held, and went",
        f"early: {path} was to be kept until somebody asks, and went",
    ]


def test_what_goes_before_its_deadline_is_early_however_often_it_was_let_go(tmp_path: Path) -> None:
    log_dir = tmp_path / "d1"
    observer = Observer([log_dir])
    observer.expect(TOPIC_ID, 0)
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


@pytest.mark.parametrize(("delay_ms", "is_early"), [(0, False), (60_000, True)])
def test_what_goes_in_time_by_its_marker_may_be_early_by_the_clock_of_the_test(
    tmp_path: Path, delay_ms: int, is_early: bool
) -> None:
    log_dir = tmp_path / "d1"
    observer = Observer([log_dir])
    observer.expect(TOPIC_ID, delay_ms)
    path = _staged(log_dir, 1000, at_ms=1_000_000_000_000)
    observer.look()
    # A later removal of the same topic id does not keep what is staged already.
    observer.expect(TOPIC_ID, 0 if is_early else None)
    path.rename(tmp_path / "purged")
    observer.look()
    lines = observer.early()
    assert len(lines) == is_early, lines
    assert all(line.endswith(" ms before its delay had passed by the clock of the test") for line in lines)


def test_the_delay_of_a_capture_counts_from_its_copy_and_of_others_from_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boottime_ms = 0
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: boottime_ms * 1_000_000)
    for number, is_captured in enumerate((True, False)):
        boottime_ms = 10_000
        log_dir = tmp_path / f"d{number}"
        incoming = Path(work_of(log_dir), "incoming")
        path = _staged(log_dir, 1000, at_ms=1_000_000_000_000)
        path.rename(incoming / KEY)
        observer = Observer([log_dir])
        observer.expect(TOPIC_ID, 1000, is_captured=is_captured)
        boottime_ms = 10_900
        (incoming / KEY).rename(tmp_path / "begun")
        observer.look()
        (tmp_path / "begun").rename(incoming / KEY)
        boottime_ms = 10_930
        observer.look()
        (incoming / KEY).rename(path)
        boottime_ms = 11_500
        observer.look()
        path.rename(tmp_path / f"purged{number}")
        observer.look()
        assert len(observer.early()) == is_captured


def test_what_is_staged_though_nobody_asked_for_its_removal_is_said(tmp_path: Path) -> None:
    log_dir = tmp_path / "d1"
    observer = Observer([log_dir])
    path = _staged(log_dir, None)
    observer.look()
    assert observer.early() == [f"unasked: {path} was staged, and nobody asked for its removal"]


BEGAN_MS = 1_763_000_000_000
DELAY_MS = 8000


def _log() -> Log:
    log = Log("pay", TOPIC_ID, 1, "digest", 3, 0)
    log.place, log.since_ms, log.delay_ms, log.is_excused = Place.DELETED, BEGAN_MS, 1000, True
    return log


@pytest.mark.parametrize("is_named", [True, False])
def test_a_log_that_is_gone_uncaptured_is_a_loss_unless_the_daemon_names_it(tmp_path: Path, is_named: bool) -> None:
    model = Model(logs=[_log()])
    judge = Judge(model, Observer([tmp_path / "d1"]), lambda _: is_named)
    wrong = judge.judge([], [], is_settled=True)
    assert [line.partition(":")[0] for line in wrong] == ([] if is_named else ["unnamed"])
    assert (model.excused, len(model.logs)) == ((1, 0) if is_named else (0, 1))


@pytest.mark.parametrize(
    ("last_look_ms", "now_ms", "is_over"),
    [(-2000, 9000, True), (-2000, 7000, False), (9000, 20_000, False), (5000, 8000, False)],
    ids=["over it", "ended before", "began after", "too short to be named"],
)
def test_a_gap_that_the_daemon_names_is_one_over_the_removal_by_its_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_look_ms: int, now_ms: int, is_over: bool
) -> None:
    events: list[dict[str, object]] = []
    looks = Looks(str(tmp_path), lambda look, gaps: None)
    for at_ms in (last_look_ms, now_ms):
        monkeypatch.setattr(clock, "now_ms", lambda at_ms=at_ms: BEGAN_MS + at_ms)
        monkeypatch.setattr(clock, "boottime_ms", lambda at_ms=at_ms: 10**6 + at_ms)
        problem = looks.note("server.properties", DELAY_MS, is_running=True)
        if problem is not None:
            events.append({"event": SLUG, "detail": problem.found, "at_ms": BEGAN_MS + at_ms})
    assert any(is_gap_over(event, BEGAN_MS + DELAY_MS) for event in events) is is_over
