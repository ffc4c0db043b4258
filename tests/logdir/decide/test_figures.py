"""Figures as design and attacks give them, in numbers: a rule may not be judged by the constant it goes by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.clock import Instant
from logdir.cluster.image import Broker, Image, Source
from logdir.decide.image.still_assigned import ClusterState
from logdir.decide.image.trust import HostContext, check_image
from logdir.decide.refusal import is_protected
from logdir.decide.staged.deadline import DelayPolicy, NotYet, beat, begin, due, elapsed_ms
from logdir.decide.staged.restore import RestoreRequest, plan_restore
from logdir.decide.staging_limit import LimitExceeded, StagingVolume, WithinLimit, judge, recent
from logdir.evidence import Proof, Removed
from logdir.formats.own import controller_file
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.formats.own.staging_limit_file import Count
from logdir.refusal_slug import Why
from tests.logdir.decide.builders import CLUSTER, MARKER, NOW, WALL_MS, facts, staged_replicas

MINUTE_MS = 60_000


def count(age_ms: int, partitions: int, topics: int = 5) -> Count:
    return Count(instant_ms=WALL_MS - age_ms, partitions=partitions, topics=topics)


def volume(partitions: int, live: int) -> StagingVolume:
    removed = Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS)
    return StagingVolume(partitions=partitions, topics=5, live=live, whole_topics=(), evidence=removed)


# The staging limit: 10 % within 24 hours.


@pytest.mark.parametrize("age_ms", [39_600_000, 43_200_000, 82_800_000, 86_399_999], ids=["11 h", "12 h", "23 h", "24"])
def test_no_staging_of_the_last_24_hours_is_forgotten(age_ms: int) -> None:
    record = (count(age_ms, 100),)
    assert recent(record, NOW) == record
    assert isinstance(judge(volume(1, live=900), record, NOW), LimitExceeded)


def test_a_staging_is_not_counted_for_longer_than_24_hours() -> None:
    assert recent((count(86_400_000, 100),), NOW) == ()


@pytest.mark.parametrize(("uptime_ms", "is_dated"), [(899_999, False), (900_000, True)])
def test_no_staging_is_dated_or_forgotten_in_the_first_15_minutes_of_uptime(uptime_ms: int, is_dated: bool) -> None:
    now = NOW._replace(boottime_ms=uptime_ms)
    record = (count(2 * 86_400_000, 100),)
    assert recent(record, now) == (() if is_dated else record)
    verdict = judge(volume(1, live=1000), (), now)
    assert isinstance(verdict, WithinLimit)
    assert [one.instant_ms for one in verdict.record] == [WALL_MS if is_dated else 0]


def test_no_partition_more_than_a_tenth_goes_unasked() -> None:
    assert isinstance(judge(volume(100, live=1000), (), NOW), WithinLimit)
    assert isinstance(judge(volume(101, live=1000), (), NOW), LimitExceeded)


def test_an_overfull_record_forgets_nothing_before_its_24_hours() -> None:
    """The file holds 1,000 counts: the oldest are put together, under the instant of the youngest of them."""
    old, younger = count(86_399_000, 40), count(3_600_000, 50)
    record = (old, younger, *(count(3_599_000 - number, 1) for number in range(998)))
    verdict = judge(volume(1, live=100_000), record, NOW)
    assert isinstance(verdict, WithinLimit)
    assert len(verdict.record) == 1000
    # A minute later the oldest alone would be forgotten; together they count for as long as the younger one.
    soon = NOW._replace(wall_ms=WALL_MS + MINUTE_MS, boottime_ms=NOW.boottime_ms + MINUTE_MS)
    assert sum(one.partitions for one in recent(verdict.record, soon)) == 40 + 50 + 998 + 1
    assert verdict.record[0] == Count(instant_ms=younger.instant_ms, partitions=90, topics=10)


def test_an_overfull_record_dates_nothing_that_had_no_instant() -> None:
    record = (Count(instant_ms=0, partitions=7, topics=1), *(count(5_000 - number, 1) for number in range(999)))
    verdict = judge(volume(1, live=100_000), record, NOW._replace(is_synchronised=False))
    assert isinstance(verdict, WithinLimit)
    assert verdict.record[0].instant_ms == 0
    assert sum(one.partitions for one in verdict.record) == 7 + 999 + 1


# Deadlines: 4 hours, 15 minutes, 5 minutes, 32 seconds.


def at(boottime_ms: int, wall_ms: int, *, boot: str = "boot-2", synchronised: bool = True) -> Instant:
    return Instant(boot_id=boot, boottime_ms=boottime_ms, wall_ms=wall_ms, is_synchronised=synchronised)


def kept(start: Instant, for_ms: int) -> Heartbeat:
    """Return the heartbeat of a clock that is synchronised from one moment on, for so long."""
    end = start._replace(boottime_ms=start.boottime_ms + for_ms, wall_ms=start.wall_ms + for_ms)
    return beat(begin(start), end)


STAGED = at(10_000_000, WALL_MS, boot="boot-1")


def counted(heartbeat: Heartbeat, now: Instant) -> int:
    return elapsed_ms("boot-1", STAGED.boottime_ms, heartbeat, now)


def after_a_gap(heartbeat: Heartbeat, gap_ms: int, *, synchronised_at_ms: int, until_ms: int) -> int:
    """Return what is counted since ``STAGED`` when the machine was off, and its clock kept from a moment on."""
    off_ms = heartbeat.wall_ms + gap_ms
    heartbeat = beat(heartbeat, at(0, off_ms, synchronised=synchronised_at_ms == 0))
    for boottime_ms in sorted({*range(0, until_ms, MINUTE_MS), synchronised_at_ms, until_ms}):
        now = at(boottime_ms, off_ms + boottime_ms, synchronised=boottime_ms >= synchronised_at_ms)
        heartbeat = beat(heartbeat, now)
    return counted(heartbeat, now)


def test_a_gap_is_never_credited_without_32_seconds_of_doubt() -> None:
    """Of up to 16 s at each of its two ends."""
    found = after_a_gap(kept(STAGED, 3_600_000), 7_200_000, synchronised_at_ms=0, until_ms=900_000)
    assert found == 3_600_000 + (7_200_000 - 32_000) + 900_000


def test_a_clock_that_is_out_of_step_by_more_than_32_seconds_is_not_steady() -> None:
    start = kept(STAGED, 3_600_000)
    last = start.boots[-1].seen_ms
    for away_ms, since_ms in ((32_000, STAGED.boottime_ms), (32_001, last + 1000), (-32_001, last + 1000)):
        jumped = beat(start, at(last + 1000, start.wall_ms + 1000 + away_ms, boot="boot-1"))
        assert jumped.steady is not None
        assert jumped.steady.boottime_ms == since_ms


@pytest.mark.parametrize(("steady_ms", "credited_ms"), [(299_999, 0), (300_000, 7_200_000 - 32_000)])
def test_no_gap_is_credited_whose_clock_was_steady_for_less_than_5_minutes_before_it(
    steady_ms: int, credited_ms: int
) -> None:
    found = after_a_gap(kept(STAGED, steady_ms), 7_200_000, synchronised_at_ms=0, until_ms=900_000)
    assert found == steady_ms + credited_ms + 900_000


@pytest.mark.parametrize(("at_ms", "credited_ms"), [(1_199_999, 0), (1_200_000, 7_200_000 - 32_000)])
def test_no_gap_is_credited_whose_clock_is_steady_for_less_than_5_minutes_after_it(
    at_ms: int, credited_ms: int
) -> None:
    found = after_a_gap(kept(STAGED, 3_600_000), 7_200_000, synchronised_at_ms=900_000, until_ms=at_ms)
    assert found == 3_600_000 + credited_ms + at_ms


@pytest.mark.parametrize(("at_ms", "credited_ms"), [(899_999, 0), (900_000, 7_200_000 - 32_000)])
def test_no_gap_is_credited_in_the_first_15_minutes_of_uptime(at_ms: int, credited_ms: int) -> None:
    found = after_a_gap(kept(STAGED, 3_600_000), 7_200_000, synchronised_at_ms=0, until_ms=at_ms)
    assert found == 3_600_000 + credited_ms + at_ms


def test_nothing_goes_before_its_four_hours() -> None:
    marker = replace(MARKER, delay_ms=DelayPolicy().delay_ms("orders"), boot_id="boot-1", boottime_ms=0)
    heartbeat = begin(at(0, WALL_MS, boot="boot-1"))
    almost = due(marker, heartbeat, at(14_399_999, WALL_MS, boot="boot-1"))
    assert isinstance(almost, NotYet)
    assert almost.remaining_ms == 1


# The age of metadata: 10 minutes, beside a running broker.


@pytest.mark.parametrize(("age_ms", "is_used"), [(600_000, True), (600_001, False), (5_999_999, False)])
def test_metadata_older_than_10_minutes_is_not_used_beside_a_running_broker(age_ms: int, is_used: bool) -> None:
    image = Image(
        source=Source.ZNODES,
        origin="/z",
        node_id=1,
        cluster_id=CLUSTER,
        as_of_ms=WALL_MS - age_ms,
        brokers={1: Broker(incarnation=bytes(16), epoch=1)},
    )
    host_context = HostContext(last_applied=controller_file.begin(CLUSTER, 1), is_broker_running=True)
    found = check_image(image, [facts()], host_context, WALL_MS)
    assert (found is None) is is_used, found


# What is protected, and what cannot be both.


@pytest.mark.parametrize(
    ("topic", "glob", "is_it"),
    [
        ("Orders", "Orders*", True),
        ("orders", "Orders*", False),
        ("ORDERS", "orders", False),
        ("Payments-EU", "*-EU", True),
        ("Payments-eu", "*-EU", False),
    ],
)
def test_a_glob_with_capitals_does_not_protect_another_topic_nor_fail_its_own(
    topic: str, glob: str, is_it: bool
) -> None:
    """Topic names differ in capitals: ``Orders`` and ``orders`` are two topics."""
    assert is_protected(topic, ("nothing", glob)) is is_it


def test_two_staged_copies_of_one_id_under_two_names_are_not_both_restored() -> None:
    """A broker stops over an id and partition that is there twice, whatever the names are."""
    renamed = replace(MARKER, topic="renamed", path=f"renamed-{MARKER.partition}", birth_inode=78)
    first, second = staged_replicas(), staged_replicas(renamed, log_dir="/d2")
    disks = [facts(staged=(first,)), facts(staged=(second,), log_dir="/d2")]
    both = (("/d1", first.name), ("/d2", second.name))
    for is_choice in (False, True):
        plan = plan_restore(
            RestoreRequest(selected=both, cluster=ClusterState(), is_choice=is_choice, is_even_if_unknown=True), disks
        )
        assert plan.actions == ()
        assert [one.why for one in plan.refusals] == [Why.AMBIGUOUS, Why.AMBIGUOUS]
