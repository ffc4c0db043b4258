"""What may go for good: what is due, what an operator staged and says twice, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.decide.deadline import begin
from logdir.decide.purge import Purge, PurgeRequest, plan_purge
from logdir.decide.refusal import Refusal, Why
from logdir.errors import Problem
from logdir.evidence import Absent, Proof, Removed
from logdir.formats.inventory import Kind
from logdir.formats.replica_marker import Intent, ReplicaMarker
from logdir.reasons import Reason
from tests.logdir.decide.builders import HOUR_MS, MARKER, NOW, WALL_MS, set_aside

LATER = NOW._replace(boottime_ms=NOW.boottime_ms + 4 * HOUR_MS, wall_ms=WALL_MS + 4 * HOUR_MS)
BEAT = begin(NOW)
REMOVED = replace(MARKER, reason=Reason.TOPIC_REMOVED, evidence=Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS))
HELD = replace(MARKER, delay_ms=None)
ABSENT = replace(REMOVED, evidence=Absent(as_of_ms=WALL_MS), delay_ms=None)


def decide(marker: ReplicaMarker, **asked: object) -> Purge | Refusal:
    base = PurgeRequest(now=NOW, heartbeats={"/d1": BEAT})
    plan = plan_purge(replace(base, **asked), [set_aside(marker)])  # type: ignore[arg-type]
    decided: list[Purge | Refusal] = [*plan.actions, *plan.refusals]
    assert len(decided) == 1
    return decided[0]


@pytest.mark.parametrize("marker", [MARKER, REMOVED])
def test_due_goes_and_one_millisecond_before_it_does_not(marker: ReplicaMarker) -> None:
    assert isinstance(decide(marker, now=LATER), Purge)
    early = decide(marker, now=LATER._replace(boottime_ms=LATER.boottime_ms - 1))
    assert isinstance(early, Refusal)
    assert early.why is Why.NOT_DUE


def test_early_is_for_what_an_operator_staged_alone() -> None:
    mine = decide(MARKER, is_early=True)
    assert isinstance(mine, Purge)
    assert "for good" in mine.loses
    for other in (REMOVED, replace(MARKER, reason=Reason.CAPTURED), replace(REMOVED, reason=Reason.OPERATOR)):
        refused = decide(other, is_early=True, includes_held=True)
        assert isinstance(refused, Refusal)
        assert "--now" not in refused.problem.fix


@pytest.mark.parametrize("marker", [HELD, ABSENT])
def test_what_has_no_deadline_waits_until_that_is_named_too(marker: ReplicaMarker) -> None:
    for asked in ({}, {"now": LATER}, {"is_early": True}, {"includes_held": True}):
        refused = decide(marker, **asked)
        assert isinstance(refused, Refusal)
        assert refused.why is Why.HELD
    assert isinstance(decide(marker, is_early=True, includes_held=True), Purge)


def test_a_lost_heartbeat_holds_what_is_due() -> None:
    refused = decide(REMOVED, now=LATER, heartbeats={"/d1": None})
    assert isinstance(refused, Refusal)
    assert "heartbeat" in refused.problem.found
    assert isinstance(decide(REMOVED, now=LATER, heartbeats={}), Refusal)


def test_what_has_no_marker_or_is_on_its_way_in_never_goes() -> None:
    request = PurgeRequest(now=LATER, heartbeats={"/d1": BEAT}, is_early=True, includes_held=True)
    items = [
        replace(set_aside(), marker=None),
        replace(set_aside(), kind=Kind.INCOMING),
        set_aside(replace(MARKER, intent=Intent.INCOMING)),
    ]
    plan = plan_purge(request, items)
    assert plan.actions == ()
    assert [one.why for one in plan.refusals] == [Why.HELD, Why.ON_ITS_WAY, Why.ON_ITS_WAY]


def test_a25_nothing_of_a_closed_disk_is_removed_not_even_what_was_claimed() -> None:
    closed = Problem("returned", "/d1", "a disk that was here", "one hours behind", "look at it")
    request = PurgeRequest(
        now=LATER, heartbeats={"/d1": BEAT}, is_early=True, includes_held=True, closed={"/d1": closed}
    )
    items = [set_aside(REMOVED), set_aside(HELD), set_aside(kind=Kind.PURGING)]
    plan = plan_purge(request, items)
    assert plan.actions == ()
    assert [refusal.why for refusal in plan.refusals] == [Why.CLOSED] * 3
    assert len(plan_purge(replace(request, closed={"/d2": closed}), items).actions) == 3


def test_a_claimed_one_is_finished() -> None:
    plan = plan_purge(PurgeRequest(now=NOW, heartbeats={}), [set_aside(kind=Kind.PURGING)])
    (action,) = plan.actions
    assert (action.marker, action.name.endswith(".purging")) == (None, True)
