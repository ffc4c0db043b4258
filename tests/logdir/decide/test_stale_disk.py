"""Which disks were away: hours behind their siblings, however the clocks went meanwhile."""

from __future__ import annotations

import pytest

from logdir.clock import Instant
from logdir.decide.staged.deadline import beat, begin
from logdir.decide.stale_disk import RETURNED_MS, returned
from logdir.formats.own.heartbeat_file import Heartbeat
from tests.logdir.decide.builders import HOUR_MS, NOW, WALL_MS

DAY_MS = 24 * HOUR_MS


def later(then: Instant, ms: int, *, boot: str = "") -> Instant:
    """Return an instant so much later; in another boot if one is named, ten minutes after its start."""
    booted = {"boot_id": boot, "boottime_ms": 10 * 60 * 1000} if boot else {"boottime_ms": then.boottime_ms + ms}
    return then._replace(wall_ms=then.wall_ms + ms, **booted)


def both(heartbeat: Heartbeat, *instants: Instant) -> Heartbeat:
    for instant in instants:
        heartbeat = beat(heartbeat, instant)
    return heartbeat


FIRST = begin(NOW)


@pytest.mark.parametrize(
    ("missed", "is_returned"),
    [
        ((later(NOW, RETURNED_MS),), True),
        ((later(NOW, RETURNED_MS - 1),), False),
        ((later(NOW, DAY_MS, boot="boot-2"),), True),
        ((later(NOW, 5 * 60 * 1000, boot="boot-2"),), False),
        ((later(NOW, DAY_MS, boot="b"), later(NOW, 2 * DAY_MS, boot="c")), True),
        ((later(NOW, DAY_MS)._replace(wall_ms=0),), True),
        ((later(NOW, DAY_MS, boot="b")._replace(wall_ms=0, boottime_ms=DAY_MS),), True),
    ],
    ids=[
        "an hour",
        "less",
        "a reboot a day later",
        "a quick reboot",
        "two reboots",
        "no wall clock",
        "nor after a boot",
    ],
)
def test_a25_a_disk_that_missed_this_was_away(missed: tuple[Instant, ...], is_returned: bool) -> None:
    found = returned({"/d1": both(FIRST, *missed), "/d2": FIRST, "/d3": both(FIRST, *missed)})
    assert set(found) == ({"/d2"} if is_returned else set())
    assert all(behind >= RETURNED_MS for behind in found.values())


def test_a25_a_snapshot_put_back_is_behind_and_says_how_far() -> None:
    instants = [later(NOW, hours * HOUR_MS) for hours in range(1, 9)]
    assert returned({"/d1": both(FIRST, *instants), "/d2": both(FIRST, *instants[:3])}) == {"/d2": 5 * HOUR_MS}


def test_a25_disks_folded_forward_together_are_never_behind() -> None:
    one, two = FIRST, begin(later(NOW, -DAY_MS, boot="boot-0"))
    two = beat(two, NOW)
    for number, instant in enumerate(
        (later(NOW, HOUR_MS), later(NOW, DAY_MS, boot="b"), later(NOW, 2, boot="c")._replace(wall_ms=7), NOW)
    ):
        one, two = beat(one, instant), beat(two, instant)
        assert returned({"/d1": one, "/d2": two}) == {}, number


def test_a25_a_disk_made_later_is_no_sibling_to_be_behind_of_once_all_are_folded() -> None:
    new = later(NOW, 30 * DAY_MS, boot="boot-9")
    assert returned({"/d1": FIRST, "/d2": begin(new)}) == {"/d1": 30 * DAY_MS}
    assert returned({"/d1": beat(FIRST, new), "/d2": begin(new)}) == {}


def test_a_container_with_one_boot_id_for_ever_blames_the_one_that_missed_it() -> None:
    again = NOW._replace(boottime_ms=60_000, wall_ms=WALL_MS + 9 * HOUR_MS)
    assert set(returned({"/d1": both(FIRST, again), "/d2": FIRST})) == {"/d2"}


def test_a_heartbeat_that_is_lost_says_nothing_and_one_disk_has_no_siblings() -> None:
    ahead = beat(FIRST, later(NOW, DAY_MS))
    assert returned({"/d1": ahead, "/d2": None}) == {}
    assert returned({"/d1": FIRST}) == {}
    assert returned({}) == {}


def test_a25_of_two_disks_of_one_boot_the_one_seen_later_is_not_behind_whatever_the_wall_clock_says() -> None:
    ahead = beat(FIRST, later(NOW, 10 * 60 * 1000)._replace(wall_ms=WALL_MS - DAY_MS))
    assert returned({"/d1": ahead, "/d2": FIRST}) == {}


def test_a25_a_disk_that_saw_a_boot_after_the_last_one_of_another_is_not_behind_it() -> None:
    before, one, two = (later(NOW, -DAY_MS, boot="boot-0"), NOW, later(NOW, 5 * 60 * 1000, boot="b"))
    three = later(NOW, 10 * 60 * 1000, boot="c")._replace(wall_ms=7)
    mine, other = both(begin(one), two, three), both(begin(before), one, two)
    assert len(mine.boots) == len(other.boots) == 3
    assert "/d1" not in returned({"/d1": mine, "/d2": other})


def test_a25_a_disk_with_more_boots_is_not_behind_a_sibling_made_with_it_that_went_elsewhere() -> None:
    mine = both(FIRST, later(NOW, HOUR_MS, boot="b"), later(NOW, 2 * HOUR_MS, boot="c"))
    other = both(FIRST, later(NOW, 9 * HOUR_MS, boot="d"))
    assert "/d1" not in returned({"/d1": mine, "/d2": other})


def test_a25_a_disk_with_more_boots_is_behind_one_made_later_that_is_used_alone() -> None:
    mine = both(FIRST, later(NOW, HOUR_MS, boot="b"))
    assert returned({"/d1": mine, "/d2": begin(later(NOW, DAY_MS, boot="d"))}) == {"/d1": DAY_MS - HOUR_MS}
