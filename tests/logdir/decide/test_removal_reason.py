"""Why a captured replica was removed, and which is due at once for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.cluster.image import AbsenceMeaning, Broker, Image, Partition, Source, Topic
from logdir.decide.refusal import Refusal
from logdir.decide.staged.deadline import begin
from logdir.decide.staged.pressure import oldest_first
from logdir.decide.staged.purge import Purge, PurgeRequest, plan_purge
from logdir.decide.staged.purge_recheck import PurgeRecheck
from logdir.decide.staged.removal_reason import KEPT, RemovalReason, removal_reason
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.observe.facts import LogDirFacts, ReplicaIndex
from logdir.reasons import Reason
from tests.logdir.decide.builders import (
    HOUR_MS,
    ID,
    MARKER,
    NOW,
    OTHER_ID,
    WALL_MS,
    assigning,
    facts,
    replica,
    staged_replicas,
)

DELETED = replace(
    MARKER,
    intent=Intent.CAPTURED,
    reason=Reason.CAPTURED,
    evidence=Removed(proof=Proof.BROKER_DELETED, as_of_ms=WALL_MS),
    path=f"orders-3.{'0' * 32}-delete",
)
STRAY = replace(DELETED, path=f"orders-3.{'0' * 32}-stray", delay_ms=None)
STALE = Problem("stale-disk", "/d2", "a disk that was never away", "a heartbeat 2 hours behind the other disks'")
LIVE = facts(replica(log_dir="/d2"), log_dir="/d2")
OLD = [replace(LIVE, quarantined=STALE), replace(LIVE, problem=STALE)]
"""Log dirs of which no live replica counts as a copy."""
ALIVE = {node: Broker(b"i" * 16, 1, is_fenced=node == 3) for node in (2, 3)}


def image(**changed: object) -> Image:
    """Return a metadata log that ends a second after the capture; it names nothing."""
    made = Image(
        source=Source.METADATA_LOG,
        origin="/m",
        node_id=1,
        cluster_id=MARKER.cluster_id,
        as_of_ms=WALL_MS + 1000,
        offset=100,
        absence_meaning=AbsenceMeaning.ABSENT,
        brokers=ALIVE,
    )
    return replace(made, **changed)  # type: ignore[arg-type]


def elsewhere(*, isr: tuple[int, ...] = (2,), **changed: object) -> Image:
    """Return a log in which the partition belongs to brokers 2 and 3."""
    topic = Topic("orders", bytes(ID), {3: Partition((2, 3), isr)})
    return image(topics={bytes(ID): topic}, names={"orders": bytes(ID)}, **changed)


def look(found: Image | None) -> PurgeRecheck:
    return PurgeRecheck(image=found, last_applied=None)


def reason(found: Image | None, *known: LogDirFacts, marker: ReplicaMarker = DELETED) -> str:
    return removal_reason(look(found), staged_replicas(marker), ReplicaIndex(known)).value


REMOVAL = {bytes(ID): Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS)}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "not-known-yet"),
        (image(removed=REMOVAL), "topic-removed"),
        # The topic is there, and its partition is not: that says nothing of a removal.
        (image(topics={bytes(ID): Topic("orders", bytes(ID), {})}, names={"orders": bytes(ID)}), "not-known-yet"),
        (image(removed=REMOVAL, as_of_ms=WALL_MS - HOUR_MS), "topic-removed"),
        (image(), "topic-removed"),
        (image(names={"orders": bytes(OTHER_ID)}), "topic-removed"),
        (image(as_of_ms=WALL_MS), "not-known-yet"),
        (image(source=Source.ZNODES), "not-known-yet"),
        (elsewhere(), "replica-moved-away"),
        (elsewhere(left={(bytes(ID), 3): REMOVAL[bytes(ID)]}), "replica-moved-away"),
        (elsewhere(as_of_ms=WALL_MS), "not-known-yet"),
        (elsewhere(isr=(3,)), "not-known-yet"),
        (elsewhere(isr=()), "not-known-yet"),
    ],
)
def test_reason_is_what_committed_metadata_shows(found: Image | None, expected: str) -> None:
    assert reason(found) == expected


def test_what_is_live_on_another_disk_has_moved() -> None:
    assert reason(None, LIVE) == "replica-moved-away"
    assert reason(None, facts(replica(log_dir="/d2", topic_id=OTHER_ID), log_dir="/d2")) == "not-known-yet"
    assert reason(None, facts(replica(log_dir="/d2", topic_id=None), log_dir="/d2")) == "not-known-yet"


@pytest.mark.parametrize("old", OLD, ids=["quarantined", "not all read"])
def test_a25_what_is_live_on_a_disk_that_is_quarantined_or_not_all_read_has_not_moved(old: LogDirFacts) -> None:
    assert reason(None, old) == "not-known-yet"
    assert reason(image(removed=REMOVAL), old) == "topic-removed"
    assert reason(elsewhere(), old) == "replica-moved-away"
    assert reason(None, old, facts(replica(log_dir="/d3"), log_dir="/d3")) == "replica-moved-away"


@pytest.mark.parametrize("old", OLD, ids=["quarantined", "not all read"])
def test_a25_what_was_captured_is_not_due_because_of_an_old_live_copy(old: LogDirFacts) -> None:
    assert isinstance(decide(None, facts=(LIVE,)), Purge)
    assert slug(decide(None, facts=(old,))) == "not-due"


@pytest.mark.parametrize("old", OLD, ids=["quarantined", "not all read"])
def test_a25_an_old_live_copy_lifts_no_assigned_here(old: LogDirFacts) -> None:
    due = replace(DELETED, delay_ms=0)
    assigned = assigning().image
    assert isinstance(decide(assigned, marker=due, facts=(LIVE,)), Purge)
    assert slug(decide(assigned, marker=due, facts=(old,))) == "assigned-here"


def test_without_an_id_nothing_is_known() -> None:
    assert reason(image(), marker=replace(DELETED, topic_id=None)) == "not-known-yet"


def decide(found: Image | None, marker: ReplicaMarker = DELETED, **asked: object) -> Purge | Refusal:
    base = PurgeRequest(now=NOW, heartbeats={"/d1": begin(NOW)}, look=look(found), kept_reasons=KEPT)
    plan = plan_purge(replace(base, **asked), [staged_replicas(marker)])  # type: ignore[arg-type]
    decided: list[Purge | Refusal] = [*plan.actions, *plan.refusals]
    assert len(decided) == 1
    return decided[0]


def slug(decided: Purge | Refusal) -> str:
    assert isinstance(decided, Refusal)
    return decided.problem.slug


def test_what_moved_away_is_due_at_once_and_what_was_deleted_is_not() -> None:
    decided = decide(elsewhere())
    assert isinstance(decided, Purge)
    assert decided.why == "captured for a reason that capture.reasons leaves out: it had moved away"
    assert slug(decide(image(removed=REMOVAL))) == "not-due"
    assert slug(decide(None)) == "not-due"


def test_only_the_daemon_and_only_what_it_captured_from_a_delete() -> None:
    assert slug(decide(elsewhere(), kept_reasons=None)) == "not-due"
    assert slug(decide(elsewhere(), kept_reasons=tuple(RemovalReason))) == "not-due"
    assert slug(decide(elsewhere(), marker=MARKER)) == "not-due"
    assert slug(decide(elsewhere(), marker=STRAY)) == "no-deadline"
    assert slug(decide(elsewhere(), marker=replace(DELETED, delay_ms=None))) == "no-deadline"


def test_a_removed_topic_goes_before_its_deadline_if_an_operator_says_so() -> None:
    for marker in (DELETED, STRAY, MARKER):
        decided = decide(image(removed=REMOVAL), marker=marker, is_topic_removed=True)
        assert isinstance(decided, Purge)
        assert decided.why == "its topic is removed, and an operator requests it"
    assert slug(decide(elsewhere(), is_topic_removed=True)) == "topic-not-removed"
    assert slug(decide(None, is_topic_removed=True)) == "topic-not-removed"


def test_under_pressure_the_oldest_capture_of_a_delete_goes_first_and_nothing_else_goes() -> None:
    old = staged_replicas(replace(DELETED, staged_at_ms=WALL_MS - 1), counter=2)
    new = staged_replicas(DELETED)
    others = [
        staged_replicas(STRAY, counter=3),
        staged_replicas(replace(DELETED, delay_ms=None), counter=4),
        staged_replicas(MARKER, counter=5),
        staged_replicas(replace(MARKER, reason=Reason.STOP_REPLICA), counter=6),
        staged_replicas(DELETED, counter=7, kind=Kind.PURGING),
        staged_replicas(DELETED, counter=8, kind=Kind.INCOMING),
    ]
    assert oldest_first([new, *others, old]) == (old, new)
