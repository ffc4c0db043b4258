"""Deadlines, case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.clock import Instant
from logdir.decide.staged.deadline import (
    CLOCK_ERROR_MS,
    DEFAULT_DELAY_MS,
    UPTIME_BEFORE_CREDIT_MS,
    DelayPolicy,
    Due,
    Held,
    NotYet,
    beat,
    begin,
    check_delay,
    check_policy,
    check_typed_delay,
    due,
    elapsed_ms,
)
from logdir.formats.duration import Duration
from logdir.formats.own.heartbeat_file import MAX_BOOTS, Heartbeat
from logdir.formats.own.replica_marker import Intent
from tests.logdir.decide.builders import HOUR_MS, MARKER, NOW, WALL_MS

MINUTE_MS = 60 * 1000
DAY_MS = 24 * HOUR_MS


def later(then: Instant, ms: int, *, wall_ms: int | None = None, synchronised: bool = True) -> Instant:
    return then._replace(
        boottime_ms=then.boottime_ms + ms,
        wall_ms=then.wall_ms + (ms if wall_ms is None else wall_ms),
        is_synchronised=synchronised,
    )


def booted(then: Instant, gap_ms: int, boot_id: str = "boot-2", *, synchronised: bool = True) -> Instant:
    """The moment a boot starts, so long after another moment."""
    return Instant(boot_id=boot_id, boottime_ms=0, wall_ms=then.wall_ms + gap_ms, is_synchronised=synchronised)


def beats(heartbeat: Heartbeat, start: Instant, minutes: int) -> tuple[Heartbeat, Instant]:
    """Beat at a moment, and each minute after it."""
    now, heartbeat = start, beat(heartbeat, start)
    for _ in range(minutes):
        now = later(now, MINUTE_MS, synchronised=start.is_synchronised)
        heartbeat = beat(heartbeat, now)
    return heartbeat, now


STEADY, _ = beats(begin(later(NOW, -10 * MINUTE_MS)), later(NOW, -10 * MINUTE_MS), 10)
"""A heartbeat that ends at ``NOW``."""


def test_the_default_is_four_hours() -> None:
    assert DelayPolicy().delay_ms("any") == DEFAULT_DELAY_MS == 14_400_000


def test_of_several_patterns_the_longest_delay_counts() -> None:
    policy = DelayPolicy(default_ms=0, patterns=(("orders*", 2 * HOUR_MS), ("*", HOUR_MS), ("Orders", DAY_MS)))
    assert policy.delay_ms("orders") == 2 * HOUR_MS
    assert policy.delay_ms("x") == HOUR_MS


@pytest.mark.parametrize(
    ("delay_ms", "asks"),
    [(0, False), (1, True), (14_400, True), (86_399, True), (86_400, False), (14_400_000, False), (-1, True)],
)
def test_a_delay_that_looks_like_seconds_draws_a_question(delay_ms: int, asks: bool) -> None:
    problem = check_delay(delay_ms)
    assert (problem is not None) is asks
    if problem is not None and delay_ms > 0:
        assert "milliseconds?" in problem.line()
        # What it would be, if seconds were meant.
        assert f"{delay_ms}000" in problem.fix


def test_every_pattern_is_asked_about() -> None:
    problems = check_policy(DelayPolicy(default_ms=14_400, patterns=(("a*", 5), ("b", DAY_MS))))
    assert [problem.path for problem in problems] == ["delete.topic.delay.ms", "delete.topic.delay.ms of a*"]


@pytest.mark.parametrize(
    ("marker", "heartbeat", "word"),
    [
        (replace(MARKER, delay_ms=None), STEADY, "no deadline"),
        (replace(MARKER, intent=Intent.INCOMING), STEADY, "an incoming replica"),
        (MARKER, None, "heartbeat"),
    ],
    ids=["no deadline", "incoming", "no heartbeat"],
)
def test_held(marker: object, heartbeat: Heartbeat | None, word: str) -> None:
    verdict = due(marker, heartbeat, later(NOW, 100 * DAY_MS))  # type: ignore[arg-type] # of the table
    assert isinstance(verdict, Held)
    assert word in verdict.why


def test_a24_within_a_boot_only_boot_time_counts() -> None:
    almost = later(NOW, 4 * HOUR_MS - 1, wall_ms=10 * 365 * DAY_MS)
    assert due(MARKER, STEADY, almost) == NotYet(remaining_ms=1, at_earliest_wall_ms=almost.wall_ms + 1)
    assert due(MARKER, STEADY, later(NOW, 4 * HOUR_MS, wall_ms=-10 * 365 * DAY_MS)) == Due(elapsed_ms=4 * HOUR_MS)


def test_a24_a_gap_is_credited_once_after_a_quarter_of_an_hour() -> None:
    start = booted(NOW, HOUR_MS)
    heartbeat, now = beats(STEADY, start, 14)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == 14 * MINUTE_MS
    heartbeat, now = beats(heartbeat, now, 1)
    assert now.boottime_ms == UPTIME_BEFORE_CREDIT_MS
    credited = HOUR_MS - CLOCK_ERROR_MS
    assert heartbeat.boots[-1].credited_ms == credited
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == credited + 15 * MINUTE_MS
    heartbeat, now = beats(heartbeat, later(now, 0, wall_ms=DAY_MS), 30)
    assert heartbeat.boots[-1].credited_ms == credited


def test_a24_a_gap_is_not_credited_by_a_clock_nobody_keeps() -> None:
    heartbeat, now = beats(STEADY, booted(NOW, HOUR_MS, synchronised=False), 60)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == 60 * MINUTE_MS
    # But as soon as somebody keeps it.
    heartbeat, now = beats(heartbeat, now._replace(is_synchronised=True), 6)
    assert heartbeat.boots[-1].credited_ms == HOUR_MS - CLOCK_ERROR_MS


def test_a_gap_is_not_credited_if_the_boot_before_had_no_steady_clock() -> None:
    heartbeat = beat(begin(NOW), NOW._replace(is_synchronised=False))
    heartbeat, now = beats(heartbeat, booted(NOW, HOUR_MS), 60)
    assert heartbeat.boots[-1].credited_ms == 0
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == 60 * MINUTE_MS


def test_a24_a_clock_that_just_jumped_credits_nothing_however_often_it_is_asked() -> None:
    heartbeat, now = beats(STEADY, booted(NOW, HOUR_MS, synchronised=False), 60)
    jumped = later(now, MINUTE_MS, wall_ms=10 * 365 * DAY_MS)
    for _ in range(100):
        heartbeat = beat(heartbeat, jumped)
    assert isinstance(due(MARKER, heartbeat, jumped), NotYet)
    assert heartbeat.boots[-1].credited_ms == 0


def test_staged_after_the_last_beat_of_its_boot() -> None:
    staged = replace(MARKER, boottime_ms=NOW.boottime_ms + 50_000)
    heartbeat, now = beats(STEADY, booted(NOW, HOUR_MS), 20)
    expected = HOUR_MS + 20 * MINUTE_MS - 50_000 - CLOCK_ERROR_MS
    assert elapsed_ms(staged.boot_id, staged.boottime_ms, heartbeat, now) == expected


def test_staged_in_a_boot_no_heartbeat_names_counts_from_the_present_one() -> None:
    heartbeat, now = beats(STEADY, booted(NOW, HOUR_MS), 20)
    assert elapsed_ms("between", 0, heartbeat, now) == 20 * MINUTE_MS


def test_a_heartbeat_begun_again_counts_less_never_more() -> None:
    heartbeat, now = beats(begin(booted(NOW, HOUR_MS)), booted(NOW, HOUR_MS), 60)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == 60 * MINUTE_MS


def test_boot_time_that_runs_backwards_counts_nothing_twice() -> None:
    # The machine was put back to what it was two hours before; the disk was not.
    back = later(NOW, -2 * HOUR_MS, wall_ms=0, synchronised=False)
    heartbeat = beat(STEADY, back)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, back) <= 0
    heartbeat, now = beats(heartbeat, back, 121)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == MINUTE_MS
    # What is staged in the second pass has not waited since the first.
    assert elapsed_ms(MARKER.boot_id, now.boottime_ms, heartbeat, now) == 0


def test_a_boot_id_used_again_counts_nothing_twice() -> None:
    heartbeat, now = beats(STEADY, booted(NOW, 0, synchronised=False), 60)
    again = Instant(boot_id=NOW.boot_id, boottime_ms=HOUR_MS, wall_ms=now.wall_ms, is_synchronised=False)
    heartbeat = beat(heartbeat, again)
    # Staged one hour ago in boot-2; the other boot's hour may lie before that.
    assert elapsed_ms("boot-2", 0, heartbeat, again) == HOUR_MS
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, again) <= HOUR_MS


def test_what_waits_since_an_earlier_boot_loses_nothing_when_boot_time_runs_backwards() -> None:
    heartbeat, now = beats(STEADY, booted(NOW, 0, synchronised=False), 120)
    heartbeat, now = beats(heartbeat, now._replace(boottime_ms=HOUR_MS), 10)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == 120 * MINUTE_MS


def test_staged_in_a_boot_whose_id_was_used_before_counts_from_the_last_of_that_id() -> None:
    heartbeat, now = beats(STEADY, booted(NOW, 0, synchronised=False), 60)
    again = Instant(
        boot_id=NOW.boot_id, boottime_ms=NOW.boottime_ms + HOUR_MS, wall_ms=now.wall_ms, is_synchronised=False
    )
    heartbeat = beat(heartbeat, again)
    staged_ms = again.boottime_ms
    heartbeat, now = beats(heartbeat, again, 5)
    assert elapsed_ms(NOW.boot_id, staged_ms, heartbeat, now) == 5 * MINUTE_MS
    heartbeat, now = beats(heartbeat, booted(now, 0, "boot-3", synchronised=False), 7)
    assert elapsed_ms(NOW.boot_id, staged_ms, heartbeat, now) == 12 * MINUTE_MS


def test_a_gap_between_two_boots_of_one_id_is_credited() -> None:
    heartbeat, _ = beats(STEADY, booted(NOW, HOUR_MS, NOW.boot_id), 20)
    assert [boot.boot_id for boot in heartbeat.boots] == [NOW.boot_id] * 2
    assert heartbeat.boots[-1].credited_ms == HOUR_MS - CLOCK_ERROR_MS


def test_a_host_with_one_boot_id_for_ever_purges_in_the_end() -> None:
    heartbeat, start = STEADY, NOW
    now = start
    for _ in range(30):
        start = Instant(boot_id=NOW.boot_id, boottime_ms=0, wall_ms=now.wall_ms, is_synchronised=False)
        heartbeat, now = beats(heartbeat, start, 20)
    assert isinstance(due(MARKER, heartbeat, now), NotYet)
    heartbeat, now = beats(heartbeat, now, 9 * 60)
    assert isinstance(due(MARKER, heartbeat, now), Due)


def test_the_list_of_boots_is_bounded() -> None:
    heartbeat = STEADY
    for number in range(MAX_BOOTS + 5):
        heartbeat = beat(heartbeat, booted(NOW, number, f"b{number}"))
    assert len(heartbeat.boots) == MAX_BOOTS
    last = booted(NOW, 0, f"b{MAX_BOOTS + 4}")
    assert elapsed_ms(MARKER.boot_id, 0, heartbeat, later(last, HOUR_MS)) == HOUR_MS


def test_a_wall_clock_before_the_epoch_is_no_wall_clock() -> None:
    heartbeat = beat(STEADY, later(NOW, 1, wall_ms=-2 * WALL_MS))
    assert heartbeat.wall_ms == 0
    assert heartbeat.steady is None


def test_a25_time_before_the_first_heartbeat_of_a_boot_does_not_count_the_disk_may_have_been_elsewhere() -> None:
    # Staged an hour ago; then its disk came into a host that has been up for thirty days.
    there = later(booted(NOW, HOUR_MS), 30 * DAY_MS, wall_ms=0)
    assert due(MARKER, STEADY, there) == NotYet(
        remaining_ms=4 * HOUR_MS, at_earliest_wall_ms=there.wall_ms + 4 * HOUR_MS
    )
    heartbeat, now = beats(STEADY, there, 1)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == MINUTE_MS
    # Both clocks are right: the hour on the way is credited, as after a reboot.
    heartbeat, now = beats(heartbeat, now, 9)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == 10 * MINUTE_MS + HOUR_MS - CLOCK_ERROR_MS
    heartbeat, now = beats(heartbeat, now, 3 * 60)
    assert isinstance(due(MARKER, heartbeat, now), Due)


def test_a25_nor_where_the_heartbeat_is_begun_again_there() -> None:
    there = later(booted(NOW, HOUR_MS), 30 * DAY_MS, wall_ms=0)
    heartbeat, now = beats(begin(there), there, 60)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == HOUR_MS


def test_a25_a_gap_that_may_lie_before_a_staging_is_not_counted_for_it() -> None:
    # Captured in a boot without a heartbeat, just before its disk came into a host that has been up for thirty days.
    there = later(booted(NOW, 65 * HOUR_MS), 30 * DAY_MS, wall_ms=0)
    heartbeat, now = beats(STEADY, there, 60)
    assert heartbeat.boots[-1].credited_ms == 65 * HOUR_MS - CLOCK_ERROR_MS
    assert elapsed_ms("between", 0, heartbeat, now) == HOUR_MS


def test_a24_time_of_an_id_that_repeats_is_taken_off_once() -> None:
    heartbeat, now = beats(STEADY, booted(NOW, HOUR_MS, synchronised=False), 60)
    # A machine put back to what it was, seen first when it had run for longer than the one before.
    again = now._replace(boottime_ms=0)
    heartbeat, now = beats(beat(heartbeat, later(again, 0)), later(again, 0), 0)
    heartbeat, now = beats(heartbeat, now._replace(boot_id="boot-3", boottime_ms=0), 1)
    heartbeat, now = beats(heartbeat, now._replace(boot_id="boot-2", boottime_ms=90 * MINUTE_MS), 5)
    assert elapsed_ms(MARKER.boot_id, MARKER.boottime_ms, heartbeat, now) == (60 + 1 + 5) * MINUTE_MS


def test_no_time_is_credited_to_the_first_boot_of_a_heartbeat() -> None:
    assert [(boot.credited_ms, boot.from_ms) for boot in begin(NOW).boots] == [(0, NOW.boottime_ms)]


@pytest.mark.parametrize("has_unit", [True, False])
def test_a_typed_delay_below_0_is_refused_with_a_unit_too(has_unit: bool) -> None:
    assert check_typed_delay(Duration(-1, has_unit), "--delay") is not None
