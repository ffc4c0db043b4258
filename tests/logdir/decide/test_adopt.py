"""Who adopts what: all replicas of a partition or none (A16)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.decide.adopt import AdoptPlan, NewTopic, Rescued, plan_adopt
from logdir.decide.refusal import Why
from logdir.evidence import Proof, Removed
from logdir.formats.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.reasons import Reason

OLD = TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw")
NEW = TopicId.parse("Sx1N2n2bQ6mQ1b8R3gXv7A")
MARKER = ReplicaMarker(
    intent=Intent.CAPTURED,
    cluster_id="c",
    node_id=1,
    directory_id=None,
    topic="t",
    topic_id=OLD,
    partition=0,
    birth_inode=1,
    path="t-0.0123456789abcdef0123456789abcdef-delete",
    reason=Reason.CAPTURED,
    evidence=Removed(proof=Proof.BROKER_DELETED, as_of_ms=1),
    staged_at_ms=1,
    delay_ms=None,
    boot_id="b",
    boottime_ms=1,
    clean=False,
)


def rescued(broker: int, partition: int = 0, *, log_end: int | None = 100, name: str = "") -> Rescued:
    marker = replace(MARKER, partition=partition)
    name = name or f"{OLD}_{partition}"
    return Rescued(node_id=broker, log_dir=f"/d{broker}", name=name, marker=marker, log_end=log_end)


def topic(**replicas: tuple[int, ...]) -> NewTopic:
    return NewTopic(topic="t", topic_id=NEW, replicas={int(name[1:]): brokers for name, brokers in replicas.items()})


def placed(plan: AdoptPlan) -> list[tuple[int, int]]:
    return [(action.partition, action.node_id) for action in plan.actions]


def whys(plan: AdoptPlan) -> set[Why]:
    return {refusal.why for refusal in plan.refusals}


def test_one_replica_is_adopted_where_its_files_are() -> None:
    plan = plan_adopt(topic(p0=(1,)), [rescued(1, log_end=None)])
    assert (placed(plan), plan.refusals, plan.stop, plan.start) == ([(0, 1)], (), (1,), (1,))
    assert plan.actions[0].topic_id == NEW
    assert any("replaced" in line for line in plan.says)


def test_a16_every_replica_is_named_and_all_its_brokers_are_stopped_first() -> None:
    plan = plan_adopt(topic(p0=(3, 1), p1=(1, 2), p2=(2,)), [rescued(1), rescued(3), rescued(2, 1), rescued(1, 1)])
    assert placed(plan) == [(0, 1), (0, 3), (1, 1), (1, 2)]
    assert (plan.stop, plan.start) == ((3, 2, 1), (1, 2, 3))
    assert any("partitions 2 stay" in line for line in plan.says)


def test_a16_a_replica_without_rescued_files_refuses_the_partition_and_no_other() -> None:
    plan = plan_adopt(topic(p0=(1, 2), p1=(1,)), [rescued(1), rescued(1, 1)])
    assert placed(plan) == [(1, 1)]
    (refusal,) = plan.refusals
    assert (refusal.why, refusal.path) == (Why.OTHER_CLASS, f"{OLD}_0")
    assert "only replica of partition 0 on broker 1" in refusal.problem.fix


@pytest.mark.parametrize(("one", "other", "best"), [(90, 100, 2), (100, 90, 1), (100, None, 1), (None, None, 1)])
def test_replicas_that_end_apart_are_refused_and_the_furthest_is_named(
    one: int | None, other: int | None, best: int
) -> None:
    plan = plan_adopt(topic(p0=(1, 2)), [rescued(1, log_end=one), rescued(2, log_end=other)])
    assert (plan.actions, len(plan.refusals), whys(plan)) == ((), 2, {Why.CHOICE})
    assert f"on broker {best}, adopt there" in plan.refusals[0].problem.fix
    assert (plan.stop, plan.says) == ((), ())


@pytest.mark.parametrize(
    ("one", "why"),
    [
        pytest.param(replace(rescued(1), is_partial=True), Why.HELD, id="a17 partial"),
        pytest.param(replace(rescued(1), marker=replace(MARKER, intent=Intent.INCOMING)), Why.HELD, id="on its way"),
        pytest.param(replace(rescued(1), marker=replace(MARKER, tiered=True)), Why.OTHER_CLASS, id="a33 tiered"),
        pytest.param(replace(rescued(1), marker=replace(MARKER, topic_id=NEW)), Why.OTHER_CLASS, id="its own id"),
        pytest.param(
            replace(rescued(1), marker=replace(MARKER, topic="__cluster_metadata")), Why.METADATA_LOG, id="metadata"
        ),
        pytest.param(rescued(1, 7), Why.NOT_THERE, id="no such partition"),
        pytest.param(rescued(2), Why.NOT_THERE, id="not on this broker"),
    ],
)
def test_what_cannot_be_adopted_is_refused_by_name(one: Rescued, why: Why) -> None:
    plan = plan_adopt(topic(p0=(1,)), [one])
    assert (plan.actions, [(r.why, r.path, r.log_dir) for r in plan.refusals]) == ((), [(why, one.name, one.log_dir)])


def test_two_directories_of_one_replica_are_a_choice() -> None:
    plan = plan_adopt(topic(p0=(1,)), [rescued(1), rescued(1, name=f"{OLD}_0.2")])
    assert (plan.actions, len(plan.refusals), whys(plan)) == ((), 2, {Why.CHOICE})


def test_files_of_two_topics_are_a_choice() -> None:
    other = rescued(1, 1)
    other = replace(other, marker=replace(other.marker, topic_id=TopicId.parse("7f0t7kV0TYqv8m3Jbq4pkA")))
    plan = plan_adopt(topic(p0=(1,), p1=(1,)), [rescued(1), other])
    assert (plan.actions, len(plan.refusals), whys(plan)) == ((), 2, {Why.CHOICE})
