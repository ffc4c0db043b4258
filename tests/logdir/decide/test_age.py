"""The age of a staged replica: never more than is certain without *at least*, and none where the clocks disagree."""

from __future__ import annotations

import pytest

from logdir.clock import Instant
from logdir.decide.staged.age import age_of, words
from logdir.decide.staged.deadline import beat, begin
from logdir.formats.own.heartbeat_file import Heartbeat
from tests.logdir.decide.builders import HOUR_MS, MARKER, NOW
from tests.logdir.decide.test_deadline import DAY_MS, MINUTE_MS, STEADY, beats, booted, later


def shown(heartbeat: Heartbeat | None, now: Instant) -> str:
    return words(age_of(MARKER, heartbeat, now))


@pytest.mark.parametrize("wall_ms", [0, -DAY_MS, 40 * DAY_MS])
def test_within_one_boot_the_wall_clock_does_not_count(wall_ms: int) -> None:
    now = later(NOW, 26 * HOUR_MS + 1, wall_ms=wall_ms, synchronised=False)
    assert shown(STEADY, now) == "26 h"


def test_a_gap_that_was_credited_counts() -> None:
    known, now = beats(beat(STEADY, booted(NOW, 3 * DAY_MS)), booted(NOW, 3 * DAY_MS), 21)
    assert shown(known, now) == "3 d"


def test_what_only_the_wall_clock_counts_is_more_than_is_certain() -> None:
    start = booted(NOW, 3 * DAY_MS)
    known = beat(STEADY, start._replace(is_synchronised=False))
    assert shown(known, later(start, 2 * HOUR_MS)) == "at least 2 h"
    assert shown(known, later(start, 2 * HOUR_MS, synchronised=False)) == "at least 2 h"


def test_a_short_reboot_changes_nothing_in_the_short_form() -> None:
    start = booted(NOW, 2 * MINUTE_MS)
    known = beat(STEADY, start)
    assert shown(known, later(start, 5 * HOUR_MS)) == "5 h"
    # Without a clock that is right nothing shows how long the host was down.
    assert shown(known, later(start, 5 * HOUR_MS, synchronised=False)) == "at least 5 h"


def test_clocks_that_contradict_each_other_give_no_age() -> None:
    start = booted(NOW, -DAY_MS)  # The wall clock was wrong then, or is now.
    assert shown(STEADY, later(start, HOUR_MS)) == "?"
    assert shown(STEADY, later(NOW, -1)) == "?"  # Staged later than now, in the same boot.


def test_without_a_heartbeat_the_age_is_not_known() -> None:
    assert shown(None, later(NOW, HOUR_MS)) == "?"


def test_a_boot_id_that_repeats_may_be_of_an_earlier_boot() -> None:
    """A container host with one id for ever: boot time began again."""
    again = booted(NOW, HOUR_MS, NOW.boot_id)
    now = later(again, 7 * HOUR_MS, synchronised=False)
    assert shown(beat(STEADY, again), now) == "at least 2 h"


def test_a_marker_of_a_boot_that_no_heartbeat_has_counts_this_boot_alone() -> None:
    start = booted(NOW, DAY_MS)
    now = later(start, 3 * HOUR_MS, synchronised=False)
    assert shown(begin(start), now) == "at least 3 h"
    assert shown(begin(now), now) == "at least 0 s"  # What was before the first heartbeat is not certain.
