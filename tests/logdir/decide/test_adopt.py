"""Who adopts what: all replicas of a partition or none (A16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from logdir.decide.adopt import AdoptPlan, AdoptRequest, StagedFiles, plan_adopt
from logdir.decide.new_topic import NewTopic
from logdir.ids import TopicId
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaRef

OLD = TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw")
NEW = TopicId.parse("Sx1N2n2bQ6mQ1b8R3gXv7A")
ALL = {1: True, 2: True, 3: True}
NOW_MS = 1_000


def staged(
    broker: int, partition: int = 0, *, topic: str = "t", topic_id: TopicId | None = OLD, **changed: Any
) -> StagedFiles:
    made = StagedFiles(
        node_id=broker,
        log_dir=f"/d{broker}",
        name=f"{OLD}_{partition}",
        ref=ReplicaRef(topic=topic, topic_id=topic_id, partition=partition),
        log_end=100,
    )
    return replace(made, **changed)


def topic(**replicas: tuple[int, ...]) -> NewTopic:
    return NewTopic(
        topic="t",
        topic_id=NEW,
        replicas={int(name[1:]): brokers for name, brokers in replicas.items()},
        reassigned=frozenset(),
        is_tiered=False,
    )


def planned(new: NewTopic, files: Sequence[StagedFiles], brokers: Mapping[int, bool] = ALL) -> AdoptPlan:
    return plan_adopt(AdoptRequest(topic=new, staged=tuple(files), brokers=brokers, now_ms=NOW_MS))


def placed(plan: AdoptPlan) -> list[tuple[int, int]]:
    return [(action.partition, action.node_id) for action in plan.actions]


def whys(plan: AdoptPlan) -> set[Why | None]:
    return {refusal.why for refusal in plan.refusals}


def test_one_replica_is_adopted_where_its_files_are() -> None:
    plan = planned(topic(p0=(1,)), [staged(1, log_end=None)])
    assert (placed(plan), plan.refusals, plan.stop, plan.start) == ([(0, 1)], (), (1,), (1,))
    assert plan.actions[0].place == ("/d1", f"deleting/{OLD}_0")
    assert any("replaced" in line for line in plan.notes)
    assert not any("stop brokers" in line for line in plan.notes)


def test_a16_every_replica_is_named_and_all_its_brokers_are_stopped_first() -> None:
    plan = planned(topic(p0=(3, 1), p1=(1, 2), p2=(2,)), [staged(1), staged(3), staged(2, 1), staged(1, 1)])
    assert placed(plan) == [(0, 1), (0, 3), (1, 1), (1, 2)]
    assert (plan.stop, plan.start) == ((3, 2, 1), (1, 2, 3))
    assert any("stop brokers 3, 2, 1 in this order" in line for line in plan.notes)
    assert any("partitions 2 are not adopted" in line for line in plan.notes)


def test_a16_a_replica_without_staged_files_refuses_the_partition_and_no_other() -> None:
    plan = planned(topic(p0=(1, 2), p1=(1,)), [staged(1), staged(1, 1)])
    assert placed(plan) == [(1, 1)]
    (refusal,) = plan.refusals
    assert (refusal.why, refusal.path) == (Why.STAGED_REPLICA_MISSING, f"deleting/{OLD}_0")
    assert "only replica of partition 0 on broker 1" in refusal.problem.fix


def test_a16_a_broker_without_a_listing_is_named_with_what_to_type_there() -> None:
    plan = planned(topic(p0=(1, 2, 3)), [staged(1), staged(2)], {1: True, 2: True})
    assert (plan.actions, whys(plan)) == ((), {Why.LISTING_MISSING})
    assert plan.refusals[0].problem.found == "no listing of broker 3"
    assert f"stop broker 3, run there: logdirctl staged ls {OLD} --json" in plan.refusals[0].problem.fix


def test_a16_a_broker_that_ran_when_it_was_listed_refuses() -> None:
    plan = planned(topic(p0=(1, 2)), [staged(1), staged(2)], {1: True, 2: False})
    assert (plan.actions, len(plan.refusals), whys(plan)) == ((), 2, {Why.REPLICA_BROKER_RUNNING})
    assert plan.refusals[0].problem.found == "broker 2 ran when its listing was made"


@pytest.mark.parametrize(("until_ms", "count"), [(None, 2), (1_001, 2), (1_000, 0), (999, 0)])
def test_what_a_purge_may_have_removed_by_now_refuses(until_ms: int | None, count: int) -> None:
    plan = planned(topic(p0=(1, 2)), [staged(1), staged(2, until_ms=until_ms)])
    assert len(plan.actions) == count
    if not count:
        assert f"logdirctl staged hold {OLD}_0 --apply" in plan.refusals[0].problem.fix
        assert "broker 2" in plan.refusals[0].problem.found


@pytest.mark.parametrize(("one", "other", "best"), [(90, 100, 2), (100, 90, 1), (100, None, 1), (None, None, 1)])
def test_replicas_that_end_apart_are_refused_and_the_furthest_is_named(
    one: int | None, other: int | None, best: int
) -> None:
    plan = planned(topic(p0=(1, 2)), [staged(1, log_end=one), staged(2, log_end=other)])
    assert (plan.actions, len(plan.refusals), whys(plan)) == ((), 2, {Why.LOG_ENDS_DIFFER})
    assert f"on broker {best}, adopt there" in plan.refusals[0].problem.fix
    assert (plan.stop, plan.notes) == ((), ())


@pytest.mark.parametrize(
    ("one", "why"),
    [
        pytest.param(staged(1, is_partial=True), Why.PARTIAL_CAPTURE, id="a17 partial"),
        pytest.param(staged(1, is_tiered=True), Why.RESTORE_KIND_DIFFERS, id="a33 tiered"),
        pytest.param(staged(1, topic_id=NEW), Why.RESTORE_KIND_DIFFERS, id="its own id"),
        pytest.param(staged(1, topic="__cluster_metadata"), Why.METADATA_LOG, id="metadata"),
        pytest.param(staged(1, 7), Why.NOT_IN_TOPIC, id="no such partition"),
        pytest.param(staged(2), Why.NOT_IN_TOPIC, id="not on this broker"),
    ],
)
def test_what_cannot_be_adopted_is_refused_by_name(one: StagedFiles, why: Why) -> None:
    plan = planned(topic(p0=(1,)), [one])
    assert plan.actions == ()
    assert [(r.why, r.path, r.log_dir) for r in plan.refusals] == [(why, f"deleting/{one.name}", one.log_dir)]


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (replace(topic(p0=(1,)), is_tiered=True), Why.RESTORE_KIND_DIFFERS),
        (replace(topic(p0=(1,)), reassigned=frozenset((0,))), Why.REASSIGNMENT_UNDER_WAY),
        (replace(topic(p0=(1,)), topic="__cluster_metadata"), Why.METADATA_LOG),
    ],
)
def test_a_topic_that_cannot_adopt_refuses(new: NewTopic, why: Why) -> None:
    plan = planned(new, [staged(1)])
    assert (plan.actions, whys(plan)) == ((), {why})


def test_what_another_broker_cannot_give_is_said_where_its_files_are_missed() -> None:
    plan = planned(topic(p0=(1, 2)), [staged(1), staged(2, is_partial=True)])
    found = {refusal.log_dir: refusal.problem.found for refusal in plan.refusals}
    assert found["/d1"] == "no staged files on 2; a partial capture on broker 2"


def test_two_directories_of_one_replica_are_a_choice() -> None:
    plan = planned(topic(p0=(1,)), [staged(1), staged(1, name=f"{OLD}_0.2")])
    assert (plan.actions, len(plan.refusals), whys(plan)) == ((), 2, {Why.AMBIGUOUS})


def test_files_of_two_topics_are_a_choice() -> None:
    other = staged(1, 1, topic_id=TopicId.parse("7f0t7kV0TYqv8m3Jbq4pkA"))
    plan = planned(topic(p0=(1,), p1=(1,)), [staged(1), other])
    assert (plan.actions, len(plan.refusals), whys(plan)) == ((), 2, {Why.AMBIGUOUS})


def test_files_of_the_new_topic_beside_those_of_the_old_one_are_no_choice() -> None:
    plan = planned(topic(p0=(1,)), [staged(1), staged(1, topic_id=NEW)])
    assert (placed(plan), len(plan.refusals)) == ([(0, 1)], 1)
    assert any(f"files of t (id {OLD})" in line for line in plan.notes)
