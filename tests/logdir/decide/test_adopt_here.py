"""What one broker adopts, and what on its disks or in the cluster's word speaks against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.cluster.image import Image, Partition, Source, Topic
from logdir.decide.adopt_here import AdoptHerePlan, AdoptHereRequest, plan_adopt_here
from logdir.decide.image.still_assigned import ClusterState
from logdir.decide.staged.deadline import DelayPolicy
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from tests.logdir.decide.builders import (
    CLUSTER,
    HOUR_MS,
    ID,
    MARKER,
    NOW,
    WALL_MS,
    altered,
    facts,
    future,
    replica,
    staged_replicas,
)

NEW = TopicId.parse("Sx1N2n2bQ6mQ1b8R3gXv7A")
CAPTURED = replace(
    MARKER,
    intent=Intent.CAPTURED,
    path=f"orders-3.{'0' * 32}-delete",
    reason=Reason.CAPTURED,
    evidence=Removed(proof=Proof.BROKER_DELETED, as_of_ms=WALL_MS - 1),
)
STAGED = staged_replicas(CAPTURED)
LIVE = replica("orders-3", log_dir="/d2", topic_id=NEW, first_offset=0)
PLACE = "/d1", STAGED.path


def image(*topics: Topic, **changed: Any) -> Image:
    made = Image(
        source=Source.METADATA_LOG,
        origin="/m",
        node_id=1,
        cluster_id=CLUSTER,
        epoch=1,
        offset=100,
        as_of_ms=WALL_MS,
        topics={one.topic_id: one for one in topics},
        names={one.name: one.topic_id for one in topics},
        removed={bytes(ID): Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS)},
    )
    return replace(made, **changed)


def new_topic(replicas: tuple[int, ...] = (1,), name: str = "orders") -> Topic:
    return Topic(name, bytes(NEW), {3: Partition(replicas, replicas)})


def known(one: Image, *, is_current: bool = True) -> ClusterState:
    return ClusterState(image=one, latest=one, is_current=is_current, known_offset=one.offset, seen=one)


def decided(
    *,
    staged: StagedReplica = STAGED,
    live: tuple[Replica, ...] = (LIVE,),
    cluster: ClusterState | None = None,
    one: LogDirFacts | None = None,
    more: tuple[LogDirFacts, ...] = (),
    **changed: Any,
) -> AdoptHerePlan:
    request = AdoptHereRequest(
        selected=((staged.log_dir, staged.path),),
        as_topic="orders",
        cluster=known(image(new_topic())) if cluster is None else cluster,
        node_id=1,
        now=NOW,
        log_ends={PLACE: 100},
    )
    first = facts(staged=(staged,)) if one is None else one
    return plan_adopt_here(replace(request, **changed), (first, facts(*live, log_dir="/d2"), *more))


def refused(plan: AdoptHerePlan) -> tuple[Why | None, Problem]:
    assert plan.actions == ()
    (one,) = plan.refusals
    assert one.log_dir == "/d1"
    return one.why, one.problem


def test_what_is_replaced_is_staged_as_a_duplicate_with_a_deadline() -> None:
    plan = decided()
    (action,) = plan.actions
    assert plan.refusals == ()
    assert (action.place, action.path, action.topic_id, action.is_kept) == (PLACE, "orders-3", NEW, False)
    marker = action.present.marker
    assert (action.present.log_dir, action.present.path) == ("/d2", "orders-3")
    assert (marker.reason, marker.topic_id, marker.delay_ms) == (Reason.DUPLICATE, NEW, 4 * HOUR_MS)
    assert marker.evidence == Removed(proof=Proof.OPERATOR, as_of_ms=WALL_MS)
    assert action.present.undo_until_ms == WALL_MS + 4 * HOUR_MS
    assert "up to offset 100" in action.detail


def test_the_delay_of_what_is_replaced_is_the_operators() -> None:
    (action,) = decided(delays=DelayPolicy(default_ms=7)).actions
    assert action.present.marker.delay_ms == 7


def test_what_went_away_since_is_refused() -> None:
    why, _ = refused(decided(selected=(("/d1", f"deleting/{ID}_9"),)))
    assert why is Why.NOT_FOUND


def test_a_disk_that_is_not_read_or_may_not_be_changed_refuses_all() -> None:
    problem = Problem("log-dir-offline", "/d3", "a disk", "none")
    why, said = refused(decided(more=(facts(log_dir="/d3", problem=problem),)))
    assert (why, said.found) == (None, "/d3: none")
    assert said.slug == "log-dir-unreadable"
    why, said = refused(decided(more=(facts(log_dir="/d3", quarantined=problem),)))
    assert said == problem


@pytest.mark.parametrize(
    ("staged", "why"),
    [
        pytest.param(staged_replicas(CAPTURED, kind=Kind.PURGING), Why.PURGING, id="being purged"),
        pytest.param(staged_replicas(CAPTURED, kind=Kind.INCOMING), Why.PARTIAL_CAPTURE, id="a17 partial"),
        pytest.param(replace(staged_replicas(CAPTURED), marker=None), Why.MARKER_UNUSABLE, id="no marker"),
        pytest.param(staged_replicas(replace(CAPTURED, node_id=2)), Why.FOREIGN_MARKER, id="a25 another node"),
        pytest.param(staged_replicas(replace(CAPTURED, cluster_id="c")), Why.FOREIGN_MARKER, id="a25 another cluster"),
        pytest.param(staged_replicas(CAPTURED, inode=5), Why.FOREIGN_MARKER, id="a25 copied"),
        pytest.param(staged_replicas(replace(CAPTURED, tiered=True)), Why.RESTORE_KIND_DIFFERS, id="a33 tiered"),
        pytest.param(staged_replicas(replace(CAPTURED, partition=4)), Why.NOT_IN_TOPIC, id="no such partition"),
    ],
)
def test_what_is_staged_but_cannot_be_adopted_is_refused(staged: StagedReplica, why: Why) -> None:
    assert refused(decided(staged=staged, log_ends={}))[0] is why


def test_a_topic_that_had_remote_storage_is_refused() -> None:
    plan = decided(cluster=known(image(new_topic(), tiered=frozenset(("orders",)))))
    assert refused(plan)[0] is Why.RESTORE_KIND_DIFFERS


@pytest.mark.parametrize("layout", ["topic-id", "mixed"])
def test_a_log_dir_in_another_layout_is_refused(layout: str) -> None:
    why, problem = refused(decided(one=facts(staged=(STAGED,), layout=layout)))
    assert (why, problem.found) == (Why.LAYOUT_DIFFERS, f"the {layout} layout")


@pytest.mark.parametrize(
    ("live", "why"),
    [
        pytest.param((), Why.LIVE_REPLICA_MISSING, id="none"),
        pytest.param((altered(LIVE, topic_id=None),), Why.LIVE_REPLICA_MISSING, id="without an id"),
        pytest.param((LIVE, replica("orders-3", log_dir="/d2", topic_id=NEW)), Why.LIVE_REPLICA_MISSING, id="two"),
        pytest.param((replica("orders-3", log_dir="/d2"),), Why.LIVE_REPLICA_EXISTS, id="of the old id"),
        pytest.param(
            (LIVE, replica("other-3", log_dir="/d2", topic_id=ID)), Why.LIVE_REPLICA_EXISTS, id="the old id elsewhere"
        ),
        pytest.param((LIVE, future("orders-3", topic_id=NEW)), Why.FUTURE_REPLICA_EXISTS, id="a13 its future"),
        pytest.param(
            (LIVE, future("other-3", topic_id=ID)), Why.FUTURE_REPLICA_EXISTS, id="a13 a future of the old id"
        ),
        pytest.param((replace(LIVE, problems=("symlink",)),), Why.NOT_A_PLAIN_DIRECTORY, id="a44 a link"),
        pytest.param((replace(LIVE, unexpected_entries=("sub",)),), Why.UNEXPECTED_ENTRY, id="a sub-directory"),
    ],
)
def test_what_lies_live_must_be_the_one_replica_of_the_new_topic(live: tuple[Replica, ...], why: Why) -> None:
    assert refused(decided(live=live))[0] is why


def test_a47_what_is_not_known_is_refused_and_kept_if_the_operator_says_so() -> None:
    old = known(image(new_topic()), is_current=False)
    why, problem = refused(decided(cluster=old))
    assert why is Why.ASSIGNMENT_UNKNOWN
    assert "keeps the staged directory" in problem.fix
    (action,) = decided(cluster=old, is_even_if_unknown=True).actions
    assert action.is_kept
    assert "is kept" in action.detail


def test_a47_a_new_id_that_is_gone_by_now_is_refused_whatever_is_said() -> None:
    gone = image(removed={bytes(NEW): Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS)})
    cluster = replace(known(image(new_topic()), is_current=False), beside=(known(gone),))
    for is_even_if_unknown in (False, True):
        why, _ = refused(decided(cluster=cluster, is_even_if_unknown=is_even_if_unknown))
        assert why is Why.TOPIC_GONE


def test_a_current_image_without_the_topic_counts_before_a_newer_one() -> None:
    cluster = replace(known(image()), latest=image(new_topic()))
    why, problem = refused(decided(cluster=cluster))
    assert (why, problem.slug, problem.path) == (None, "topic-not-found", "/m")
    assert "kafka-topics --create" in problem.fix


def test_a_source_that_cannot_be_read_says_so() -> None:
    blind = Problem("config-error", "/own", "a metadata log, or --from", "none", "mount it")
    why, problem = refused(decided(cluster=ClusterState(blind=blind)))
    assert (why, problem.slug, problem.path, problem.fix) == (None, "assignment-unknown", "/own", "mount it")


def test_an_old_id_that_lives_on_is_not_adopted() -> None:
    old = Topic("was", bytes(ID), {3: Partition((1,), (1,))})
    marker = replace(CAPTURED, topic="was", evidence=Removed(proof=Proof.BROKER_DELETED, as_of_ms=WALL_MS - 1))
    staged = staged_replicas(marker)
    plan = decided(staged=staged, cluster=known(image(new_topic(), old, removed={})))
    why, problem = refused(plan)
    assert why is Why.STILL_ASSIGNED
    assert "logdirctl staged restore" in problem.fix
    elsewhere = old._replace(partitions={3: Partition((2,), (2,))})
    why, problem = refused(decided(staged=staged, cluster=known(image(new_topic(), elsewhere, removed={}))))
    assert why is Why.NOT_ASSIGNED_HERE
    assert "logdirctl staged export" in problem.fix


def test_a_replica_of_other_brokers_is_refused() -> None:
    why, problem = refused(decided(cluster=known(image(new_topic((2,))))))
    assert (why, problem.found) == (Why.NOT_IN_TOPIC, "replicas on 2")
