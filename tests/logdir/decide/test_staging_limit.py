"""The staging limit: a tenth in 24 hours, one topic always, a whole topic only on proof."""

from __future__ import annotations

import pytest

from logdir.decide.staging_limit import (
    WINDOW_MS,
    LimitExceeded,
    StagingVolume,
    Verdict,
    WithinLimit,
    highest,
    judge,
    recent,
)
from logdir.evidence import Absent, Evidence, Proof, Removed
from logdir.formats.own import staging_limit_file
from logdir.formats.own.staging_limit_file import MAX_COUNTS, Count
from tests.logdir.decide.builders import HOUR_MS, NOW, WALL_MS

UNKEPT = NOW._replace(is_synchronised=False)


def proven(proof: Proof) -> Removed:
    return Removed(proof=proof, as_of_ms=WALL_MS)


def volume(
    partitions: int, *, topics: int = 5, live: int = 100, whole: tuple[str, ...] = (), **rest: Evidence
) -> StagingVolume:
    evidence = rest.get("evidence", proven(Proof.METADATA_LOG))
    return StagingVolume(partitions=partitions, topics=topics, live=live, whole_topics=whole, evidence=evidence)


def count(age_ms: int, partitions: int, topics: int = 5) -> Count:
    return Count(instant_ms=WALL_MS - age_ms, partitions=partitions, topics=topics)


def is_released(verdict: Verdict) -> bool:
    return isinstance(verdict, WithinLimit)


@pytest.mark.parametrize(("partitions", "goes"), [(10, True), (11, False)])
def test_a_tenth_goes(partitions: int, goes: bool) -> None:
    assert is_released(judge(volume(partitions), (), NOW)) is goes


def test_a38_nine_percent_an_hour_stops_at_the_second(  # A38
) -> None:
    first = judge(volume(9), (), NOW)
    assert isinstance(first, WithinLimit)
    hour_later = NOW._replace(wall_ms=WALL_MS + HOUR_MS)
    assert isinstance(judge(volume(9, live=91), first.record, hour_later), LimitExceeded)
    assert is_released(judge(volume(1, live=91), first.record, hour_later))
    day_later = NOW._replace(wall_ms=WALL_MS + WINDOW_MS)
    assert is_released(judge(volume(9, live=91), first.record, day_later))


def test_a38_one_topic_may_always_go_on_a_tiny_broker_but_not_two() -> None:
    assert is_released(judge(volume(3, topics=1, live=3), (), NOW))
    assert isinstance(judge(volume(3, topics=2, live=3), (), NOW), LimitExceeded)
    assert isinstance(judge(volume(1, topics=1, live=2), (count(HOUR_MS, 1, 1),), NOW), LimitExceeded)


@pytest.mark.parametrize("proof", list(Proof))
def test_a38_a_whole_topic_needs_the_stronger_proof(proof: Proof) -> None:
    strong = proof is not Proof.FULL_REQUEST
    assert is_released(judge(volume(1, whole=("orders",), evidence=proven(proof)), (), NOW)) is strong
    weak = judge(volume(1, whole=("orders",), evidence=Absent(as_of_ms=1)), (), NOW)
    assert isinstance(weak, LimitExceeded)
    assert "orders" in weak.problem.line()


def test_a_copy_of_something_live_is_not_counted() -> None:
    verdict = judge(volume(90, evidence=proven(Proof.PUBLISHED_COPY)), (), NOW)
    assert verdict == WithinLimit(record=())


def test_a_record_that_is_missing_holds_until_confirmed() -> None:
    assert judge(volume(1), None, NOW) != judge(volume(1), (), NOW)
    assert isinstance(judge(volume(1), None, NOW), LimitExceeded)
    confirmed = judge(volume(50, whole=("a",), evidence=Absent(as_of_ms=1)), None, NOW, is_confirmed=True)
    assert confirmed == WithinLimit(record=(Count(instant_ms=WALL_MS, partitions=50, topics=5),))


def test_the_highest_of_all_work_roots_wins() -> None:
    ours, theirs = (count(2, 5), count(1, 3)), (count(2, 5),)
    assert highest([theirs, ours]) == highest([ours, theirs]) == ours
    assert highest([(count(1, 3, 9),), (count(1, 4, 2),)]) == (count(1, 4, 9),)
    assert highest([(count(1, 3), count(1, 3)), (count(1, 3),)]) == (count(1, 3), count(1, 3))
    assert highest([ours, None]) is None
    assert highest([]) is None
    assert highest([()]) == ()


def test_nothing_is_forgotten_by_a_clock_nobody_keeps() -> None:
    record = (count(2 * WINDOW_MS, 10),)
    for unsure in (UNKEPT, NOW._replace(boottime_ms=1000), UNKEPT._replace(wall_ms=WALL_MS * 2)):
        assert recent(record, unsure) == record
        assert isinstance(judge(volume(10), record, unsure), LimitExceeded)
    assert recent(record, NOW) == ()


def test_what_was_counted_without_a_clock_begins_to_age_when_there_is_one() -> None:
    first = judge(volume(10), (), UNKEPT._replace(wall_ms=0))
    assert isinstance(first, WithinLimit)
    assert first.record == (Count(instant_ms=0, partitions=10, topics=5),)
    held = judge(volume(10, live=90), first.record, NOW)
    assert isinstance(held, LimitExceeded)
    assert held.record == (count(0, 10),)
    assert is_released(judge(volume(9, live=90), held.record, NOW._replace(wall_ms=WALL_MS + WINDOW_MS)))


def test_what_was_counted_in_the_future_counts_now() -> None:
    assert recent((count(-WINDOW_MS, 7),), NOW) == (count(0, 7),)


def test_a_record_always_fits_its_file() -> None:
    record: tuple[Count, ...] = ()
    for number in range(MAX_COUNTS + 50):
        verdict = judge(volume(1), record, NOW._replace(wall_ms=WALL_MS + number), is_confirmed=True)
        assert isinstance(verdict, WithinLimit)
        record = verdict.record
    assert len(record) == MAX_COUNTS
    assert sum(one.partitions for one in record) == MAX_COUNTS + 50
    assert staging_limit_file.parse(staging_limit_file.render(record)) == record
