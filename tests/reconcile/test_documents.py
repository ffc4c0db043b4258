"""One document at a time: what is answered for each partition, and what is remembered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.decide.image.admission import Code
from logdir.formats.own.controller_file import RequestMark
from tests.reconcile.disk import disk, live
from tests.reconcile.stories import Broker, codes, given, staged, why
from tests.reconcile.universe import BOTH, OTHER, RIGHT, document, listed, stopped

A, B, A0, B0 = RIGHT["a"], RIGHT["b"], OTHER["a"], OTHER["b"]
FULL, INCREMENTAL = 2, 1


def broker(*more: Any) -> Broker:
    return Broker(disk(live("a", A), live("a", A, 1), live("b", B), live("b", B, 1), *more))


def at_epoch(leader_epoch: int, states: list[Any]) -> list[Any]:
    for topic in states:
        for part in topic["partitionStates"]:
            part["leaderEpoch"] = leader_epoch
    return states


TORN = {
    "a partition twice": listed(a=(A0, (0, 0)), b=(B, BOTH)),
    "a name with two ids": listed(a=(A0, (0,)), b=(B, BOTH)) + listed(a=(A, (1,))),
    "a name with an id and without": listed(a=(A0, (0,)), b=(B, BOTH)) + listed(a=("A" * 22, (1,))),
    "an id with two names": listed(a=(A0, (0,)), b=(B, BOTH), c=(A0, (7,))),
}


@pytest.mark.parametrize("states", TORN.values(), ids=TORN.keys())
def test_of_two_instructions_for_one_partition_neither_counts(states: list[Any]) -> None:
    one = broker()
    decided = one.receives(document(states, type=FULL, sequence=1))
    torn = [answer.code for answer in decided.answers if answer.item.ref.topic != "b"]
    assert torn == [Code.INVALID_REQUEST] * 2
    assert [answer.code for answer in decided.answers if answer.item.ref.topic == "b"] == [Code.NONE] * 2
    # What it says nothing of is neither wanted nor gone, and what it leaves out is not proven to be.
    assert staged(decided.plan) == []
    assert one.last_applied is not None
    assert one.last_applied.is_full_wanted
    one.receives(document(listed(b=(B, BOTH)), type=FULL, sequence=2))
    assert one.live() == ["b-0", "b-1"]


def test_a_torn_partition_is_not_judged_by_the_rest_of_its_topic() -> None:
    one = Broker(disk(live("a", A), live("a", A, 1), live("a", A, 2), live("b", B)))
    decided = one.receives(document(listed(a=(A0, (0, 0, 1)), b=(B, (0,))), type=FULL, sequence=1))
    assert codes(decided) == [42, 42, 103, 0]
    assert staged(decided.plan) == [("a-1", "topic-id-mismatch", False)]
    # The one that is left out is not proven to be gone; of the torn one nothing is said at all.
    assert why(decided.plan) == {"a-2": "removal-not-proven"}


def test_an_incremental_request_gives_ids_only_to_what_it_lists() -> None:
    one = broker()
    one.receives(document(listed(c=(A0, BOTH)), type=INCREMENTAL, sequence=1))
    one.facts = (disk(live("c", None), live("b", B)),)
    assert given(one.receives(document(listed(b=(B, (0,))), type=INCREMENTAL, sequence=2)).plan) == []
    assert given(one.receives(document(listed(c=(A0, (0,))), type=INCREMENTAL, sequence=3)).plan) == [("c-0", A0)]


def test_stop_replica_twice_for_one_partition_is_refused_for_both() -> None:
    one = broker()
    states = stopped(delete=True, a=(None, (0,))) + stopped(delete=False, a=(None, (0, 1)))
    decided = one.receives(document(states, api="StopReplica", sequence=1))
    assert codes(decided) == [42, 42, 0]
    assert staged(decided.plan) == []


def test_what_is_refused_here_is_answered_as_a_storage_error() -> None:
    """Somebody else's directory lies in one of the two that are to go: whoever asked is not told that it went."""
    one = Broker(disk(replace(live("a", A), unexpected_entries=("dir",)), live("a", A, 1), live("b", B)))
    decided = one.receives(document(stopped(delete=True, a=(None, BOTH)), api="StopReplica", sequence=1))
    assert codes(decided) == [56, 0]
    assert staged(decided.plan) == [("a-1", "stop-replica", True)]


def test_a_lower_leader_epoch_changes_nothing() -> None:
    one = broker()
    one.receives(document(at_epoch(5, listed(a=(A, (0,)))), type=INCREMENTAL, sequence=1))
    lower = at_epoch(4, listed(a=(A, (0,))))
    lower[0]["partitionStates"][0]["isr"] = [1]
    assert codes(one.receives(document(lower, type=INCREMENTAL, sequence=2))) == [11]
    assert one.known is not None
    topic = one.known.topic("a")
    assert topic is not None
    assert (topic.partitions[0].leader_epoch, topic.partitions[0].isr) == (5, (1, 2))
    assert codes(one.receives(document(lower, type=FULL, sequence=3))) == [11]
    assert one.known.topics[topic.topic_id].partitions[0].leader_epoch == 5
    # After a gap nothing is known that it could be measured by.
    assert codes(one.receives(document(lower, type=INCREMENTAL, sequence=9))) == [0]


@pytest.mark.parametrize(
    ("leader_epoch", "code", "goes"), [(4, 74, False), (5, 0, True), (6, 0, True), (-1, 0, True), (-2, 0, True)]
)
def test_stop_replica_of_an_older_leader_is_fenced(leader_epoch: int, code: int, goes: bool) -> None:
    """kafka-behaviour §4.3."""
    one = broker()
    one.receives(document(at_epoch(5, listed(a=(A, BOTH))), type=INCREMENTAL, sequence=1))
    stop = stopped(delete=True, leader_epoch=leader_epoch, a=(None, (0,)))
    decided = one.receives(document(stop, api="StopReplica", sequence=2))
    assert codes(decided) == [code]
    assert staged(decided.plan) == ([("a-0", "stop-replica", True)] if goes else [])


def test_stop_replica_by_name_means_the_id_the_name_has_now() -> None:
    one = Broker(disk(live("a", A0), live("a", A, 1), live("b", B)))
    one.receives(document(listed(a=(A, BOTH)), sequence=1))
    stop = document(stopped(delete=True, a=(None, BOTH)), api="StopReplica", sequence=2)
    assert staged(one.receives(stop).plan) == [("a-1", "stop-replica", True)]


def test_what_comes_back_after_a_stop_is_wanted() -> None:
    one = broker()
    one.receives(document(stopped(delete=True, a=(A, (0,))), api="StopReplica", form="kip", sequence=1))
    assert one.live() == ["a-1", "b-0", "b-1"]
    one.facts = broker().facts  # the broker got it back
    decided = one.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=2))
    assert decided.plan is not None
    assert decided.plan.actions == ()
    assert one.receives(document(listed(b=(B, (0,))), type=INCREMENTAL, sequence=3)).plan is not None
    assert one.live() == ["a-0", "a-1", "b-0", "b-1"]


def test_a_request_the_staging_limit_holds_is_not_used_up() -> None:
    one = broker()
    one.is_confirmed = False
    full = document(listed(a=(A, BOTH)), type=FULL, sequence=3)
    decided = one.receives(full)
    assert decided.plan is not None
    assert decided.plan.over_limit is not None
    assert [action.path for action in decided.plan.waiting] == ["b-0", "b-1"]
    assert (decided.plan.last_applied, one.last_applied and one.last_applied.requests) == (None, None)
    one.is_confirmed = True
    assert staged(one.receives(full).plan) == [("b-0", "absent", True), ("b-1", "absent", True)]
    assert one.last_applied is not None
    assert one.last_applied.requests == RequestMark(controller_epoch=5, sequence=3)
    assert one.last_applied.broker_epoch == 40


def test_a38_no_staging_goes_without_a_record_and_no_record_is_written_without_a_staging() -> None:
    one = broker()
    decided = one.receives(document(listed(a=(A, BOTH), b=(B, BOTH)), type=FULL, sequence=1))
    assert decided.plan is not None
    assert (staged(decided.plan), decided.plan.record) == ([], None)
    decided = one.receives(document(listed(a=(A, BOTH)), type=FULL, sequence=2))
    assert decided.plan is not None
    assert decided.plan.record is not None
    assert [(count.partitions, count.topics) for count in decided.plan.record] == [(2, 1)]


def test_the_same_again_is_answered_as_before() -> None:
    one = Broker(disk(live("a", A0), live("a", A, 1), live("b", B)))
    first = document(listed(a=(A, BOTH)), type=INCREMENTAL, sequence=1)
    assert codes(one.receives(first)) == [103, 0]
    assert codes(one.receives(first)) == [103, 0]
    assert one.receives(first).plan is None
    # A new one is answered by what lies on the disk now, not by what was staged for the last.
    assert codes(one.receives(document(listed(a=(A, BOTH)), type=INCREMENTAL, sequence=2))) == [0, 0]


def test_a_topic_that_gets_its_id_is_known_by_it_alone() -> None:
    one = broker()
    one.receives(document(listed(c=("A" * 22, BOTH)), sequence=1))
    assert one.known is not None
    assert set(one.known.without_id) == {"c"}
    one.receives(document(listed(c=(A0, BOTH)), sequence=2))
    assert (set(one.known.without_id), set(one.known.names)) == (set(), {"c"})
    # Said once more without it, it keeps it.
    one.receives(document(listed(c=("A" * 22, BOTH)), sequence=3))
    assert (set(one.known.without_id), str(one.known.topic_id("c"))) == (set(), A0)


def test_a_renamed_topic_is_a_conflict_and_never_staged() -> None:
    one = broker()
    decided = one.receives(document(listed(renamed=(A, BOTH), b=(B, BOTH)), type=FULL, sequence=1))
    assert (staged(decided.plan), why(decided.plan)) == ([], {"a-0": "id-conflict", "a-1": "id-conflict"})


@pytest.mark.parametrize("problem", ["symlink", "unreadable", "mount-point", "partition-metadata-broken"])
def test_no_id_is_given_to_what_is_not_ours_to_touch_or_broken(problem: str) -> None:
    one = Broker(disk(live("a", None, problems=(problem,)), live("b", B)))
    decided = one.receives(document(listed(a=(A, (0,))), type=INCREMENTAL, sequence=1))
    assert given(decided.plan) == []
    assert set(why(decided.plan)) == {"a-0"}


def test_protected_topics_stay() -> None:
    one = broker()
    one.options = {"protected": ("b*",)}
    decided = one.receives(document(listed(a=(A, BOTH)), type=FULL, sequence=1))
    assert (staged(decided.plan), set(why(decided.plan).values())) == ([], {"topic-protected"})


def test_the_first_broker_epoch_there_is_is_remembered() -> None:
    """Only -1 says that none is given; without it a StopReplica for another broker is not known to be that."""
    one = broker()
    one.receives(document(listed(a=(A, BOTH), b=(B, BOTH)), type=FULL, sequence=1, broker_epoch=0))
    assert one.last_applied is not None
    assert one.last_applied.broker_epoch == 0
