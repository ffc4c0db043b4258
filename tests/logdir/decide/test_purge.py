"""What may go for good: what is due, what an operator staged and says twice, and nothing else."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from logdir.clock import Instant
from logdir.cluster.image import Broker, Image, Partition, Source, Topic
from logdir.decide.refusal import Refusal
from logdir.decide.staged.deadline import begin
from logdir.decide.staged.purge import (
    MOST_BYTES,
    MOST_FILES,
    MOST_PARTITIONS,
    ClaimLimit,
    Purge,
    PurgeCost,
    PurgeRequest,
    claim_limit_of,
    fits,
    plan_purge,
)
from logdir.decide.staged.purge_recheck import PurgeRecheck, against_purge
from logdir.errors import Problem
from logdir.evidence import Absent, Present, Proof, Removed, Unknown
from logdir.formats.own import controller_file
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import BY_HAND, Intent, ReplicaMarker
from logdir.observe.facts import ReplicaIndex
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from tests.logdir.decide.builders import HOUR_MS, MARKER, NOW, WALL_MS, assigning, staged_replicas

LATER = NOW._replace(boottime_ms=NOW.boottime_ms + 4 * HOUR_MS, wall_ms=WALL_MS + 4 * HOUR_MS)
BEAT = begin(NOW)
REMOVED = replace(MARKER, reason=Reason.TOPIC_REMOVED, evidence=Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS))
HELD = replace(MARKER, delay_ms=None)
NEWER = Image(
    source=Source.METADATA_LOG, origin="/m", node_id=1, cluster_id=MARKER.cluster_id, as_of_ms=WALL_MS + HOUR_MS
)
"""An hour after the staging, and names nothing."""
LOOK = PurgeRecheck(image=NEWER, last_applied=controller_file.begin(MARKER.cluster_id, 1))
ABSENT = replace(REMOVED, evidence=Absent(as_of_ms=WALL_MS), delay_ms=None)


def decide(marker: ReplicaMarker, **asked: object) -> Purge | Refusal:
    base = PurgeRequest(now=NOW, heartbeats={"/d1": BEAT}, look=LOOK)
    plan = plan_purge(replace(base, **asked), [staged_replicas(marker)])  # type: ignore[arg-type]
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
        assert "--even-if-early" not in refused.problem.fix


def test_what_goes_before_its_deadline_is_not_waited_for() -> None:
    item = staged_replicas(MARKER)
    asked = PurgeRequest(now=NOW, heartbeats={"/d1": BEAT}, look=LOOK)
    assert plan_purge(asked, [item]).next_due_ms is not None
    early = plan_purge(replace(asked, is_early=True), [item])
    assert (len(early.actions), early.next_due_ms) == (1, None)


@pytest.mark.parametrize(("log_bytes", "says"), [(None, "unknown"), (0, " 0 bytes"), (1234, " 1234 bytes")])
@pytest.mark.parametrize("kind", [Kind.STAGED, Kind.PURGING])
def test_no_size_is_made_up_or_left_out_of_what_goes_for_good(kind: Kind, log_bytes: int | None, says: str) -> None:
    item = staged_replicas(MARKER, kind=kind, log_bytes=log_bytes)
    plan = plan_purge(PurgeRequest(now=LATER, heartbeats={"/d1": BEAT}, look=LOOK), [item])
    assert says in plan.actions[0].loses
    assert "None" not in plan.actions[0].loses


@pytest.mark.parametrize("marker", [HELD, ABSENT])
def test_what_has_no_deadline_waits_until_that_is_named_too(marker: ReplicaMarker) -> None:
    for asked in ({}, {"now": LATER}, {"is_early": True}, {"includes_held": True}):
        refused = decide(marker, **asked)
        assert isinstance(refused, Refusal)
        assert refused.why is Why.NO_DEADLINE
    assert isinstance(decide(marker, is_early=True, includes_held=True), Purge)


def test_a_lost_heartbeat_holds_what_is_due() -> None:
    refused = decide(REMOVED, now=LATER, heartbeats={"/d1": None})
    assert isinstance(refused, Refusal)
    assert refused.why is Why.DEADLINE_UNKNOWN
    assert "heartbeat" in refused.problem.found
    # What names the heartbeat is no word for what has no deadline, and the other way round.
    assert "logdirctl init" in refused.problem.fix
    assert "--include-held" not in refused.problem.fix
    held = decide(HELD, now=LATER)
    assert isinstance(held, Refusal)
    assert "--even-if-early --include-held" in held.problem.fix
    assert isinstance(decide(REMOVED, now=LATER, heartbeats={}), Refusal)


def test_what_has_no_marker_or_is_on_its_way_in_never_goes() -> None:
    request = PurgeRequest(now=LATER, heartbeats={"/d1": BEAT}, is_early=True, includes_held=True)
    items = [
        replace(staged_replicas(), marker=None),
        replace(staged_replicas(), kind=Kind.INCOMING),
        replace(staged_replicas(replace(MARKER, intent=Intent.CAPTURED)), kind=Kind.INCOMING),
        staged_replicas(replace(MARKER, intent=Intent.INCOMING)),
    ]
    plan = plan_purge(request, items)
    assert plan.actions == ()
    assert [(one.why, one.problem.fix) for one in plan.refusals] == [
        (Why.MARKER_UNUSABLE, BY_HAND),
        (Why.INCOMING, "finish the capture or adoption that makes the copy"),
        (Why.INCOMING, "logdirctl staged export copies the part that was captured; no command removes it"),
        (Why.INCOMING, BY_HAND),
    ]


def test_a25_nothing_of_a_closed_disk_is_removed_not_even_what_was_claimed() -> None:
    quarantined = Problem("stale-disk", "/d1", "a disk that was here", "one hours behind", "look at it")
    request = PurgeRequest(
        now=LATER,
        heartbeats={"/d1": BEAT},
        is_early=True,
        includes_held=True,
        quarantined={"/d1": quarantined},
        look=LOOK,
    )
    items = [staged_replicas(REMOVED), staged_replicas(HELD), staged_replicas(kind=Kind.PURGING)]
    plan = plan_purge(request, items)
    assert plan.actions == ()
    assert [refusal.why for refusal in plan.refusals] == [None] * 3
    assert {refusal.problem.slug for refusal in plan.refusals} == {"stale-disk"}
    assert len(plan_purge(replace(request, quarantined={"/d2": quarantined}), items).actions) == 3


def test_a_claimed_one_is_finished() -> None:
    plan = plan_purge(PurgeRequest(now=NOW, heartbeats={}), [staged_replicas(kind=Kind.PURGING)])
    (action,) = plan.actions
    assert (action.marker, action.name.endswith(".purging")) == (None, True)


def test_a02_its_time_alone_is_not_enough_the_cluster_is_asked_once_more() -> None:
    """Where it says what it said before the staging, or nothing at all, what it had removed stays."""
    nothing = PurgeRecheck(image=None, last_applied=LOOK.last_applied)
    before = replace(LOOK, image=replace(NEWER, as_of_ms=WALL_MS))
    for look in (nothing, before):
        refused = decide(REMOVED, now=LATER, look=look)
        assert isinstance(refused, Refusal)
        assert refused.why is Why.NO_EVIDENCE
    # Metadata of the very millisecond of its staging is none of after it.
    same = decide(REMOVED, now=LATER, look=before)
    assert isinstance(same, Refusal)
    assert same.problem.found == "metadata of before its staging"
    assert isinstance(decide(MARKER, now=LATER, look=nothing), Purge)


def test_a28_what_a_full_request_left_out_waits_while_another_is_wanted() -> None:
    assert LOOK.last_applied is not None
    left_out = replace(REMOVED, reason=Reason.ABSENT, evidence=Removed(proof=Proof.FULL_REQUEST, as_of_ms=WALL_MS))
    refused = decide(left_out, now=LATER)
    assert isinstance(refused, Refusal)
    assert "a request may have been missed" in refused.problem.found
    listed = replace(LOOK.last_applied, is_full_wanted=False)
    assert isinstance(decide(left_out, now=LATER, look=replace(LOOK, last_applied=listed)), Purge)


@pytest.mark.parametrize("asked", [{"now": LATER}, {"is_early": True}, {"is_early": True, "includes_held": True}])
def test_a43_what_is_wanted_again_is_never_removed_whoever_asks(asked: dict[str, object]) -> None:
    assert MARKER.topic_id is not None
    topic = Topic(MARKER.topic, bytes(MARKER.topic_id), {MARKER.partition: Partition((1, 2), (1, 2))})
    wanted = replace(NEWER, topics={topic.topic_id: topic}, names={topic.name: topic.topic_id})
    for marker in (MARKER, REMOVED, HELD):
        refused = decide(marker, look=replace(LOOK, image=wanted), **asked)
        assert isinstance(refused, Refusal)
        assert isinstance(decide(marker, look=replace(LOOK, image=None, aged=wanted), **asked), Refusal)
    # Also of one that is too old to prove anything.
    assert isinstance(decide(MARKER, now=LATER, look=replace(LOOK, image=None, aged=NEWER)), Purge)
    assert isinstance(refused := decide(MARKER, now=LATER, look=replace(LOOK, image=None, aged=wanted)), Refusal)
    assert refused.why is Why.STILL_ASSIGNED  # an operator staged it, and may have meant to
    assert isinstance(refused := decide(REMOVED, now=LATER, look=replace(LOOK, image=wanted)), Refusal)
    assert refused.why is Why.ASSIGNED_HERE


def test_a43_while_an_image_is_behind_nothing_is_removed() -> None:
    held = Problem("refused", "/m", "an image at epoch 5", "epoch 4", "wait")
    refused = decide(MARKER, now=LATER, look=replace(LOOK, held=held))
    assert isinstance(refused, Refusal)
    assert refused.problem == held


def batches(room: ClaimLimit, loads: list[PurgeCost]) -> list[int]:
    """Return how many are claimed at a time."""
    counts: list[int] = []
    taken = PurgeCost(0, 0, 0)
    for load in loads:
        if not fits(room, taken, load):
            counts.append(taken.partitions)
            taken = PurgeCost(0, 0, 0)
        taken = taken.plus(load)
    return [*counts, taken.partitions]


@pytest.mark.parametrize(
    ("rates", "load", "counts"),
    [
        ((100, 0), PurgeCost(1, 30, 1), [3, 3, 1]),
        ((100, 0), PurgeCost(1, 100, 1), [1] * 7),
        ((100, 0), PurgeCost(1, 1 << 40, 1), [1] * 7),
        ((0, 10), PurgeCost(1, 1 << 20, 5), [2, 2, 2, 1]),
        ((0, 10), PurgeCost(1, 0, 11), [1] * 7),
        ((100, 10), PurgeCost(1, 50, 3), [2, 2, 2, 1]),
        ((100, 10), PurgeCost(1, 20, 4), [2, 2, 2, 1]),
        ((100, 100), PurgeCost(1, 0, 0), [7]),
        ((0, 0), PurgeCost(1, 1, 1), [7]),
    ],
)
def test_no_more_is_claimed_than_goes_in_about_a_second_but_one_always(
    rates: tuple[int, int], load: PurgeCost, counts: list[int]
) -> None:
    assert batches(claim_limit_of(*rates), [load] * 7) == counts


def test_however_fast_it_may_go_there_is_a_limit_in_each_way() -> None:
    for rates in ((0, 0), (1 << 60, 1 << 40)):
        assert (
            claim_limit_of(*rates)
            == ClaimLimit(MOST_PARTITIONS, MOST_BYTES, MOST_FILES)
            == ClaimLimit(1024, 17_179_869_184, 20_000)
        )
    for load in (PurgeCost(1, 0, 1), PurgeCost(1, 1 << 30, 1), PurgeCost(1, 0, 1000)):
        most = min(MOST_PARTITIONS, MOST_BYTES // max(load.size_bytes, 1), MOST_FILES // load.files)
        assert batches(claim_limit_of(0, 0), [load] * (2 * most))[0] == most < 2 * most


FLAGS = ("--even-if-early", "--include-held", "--even-if-last", "--even-if-assigned")
SAID = [
    frozenset(some)
    for count in range(5)
    for some in itertools.combinations(FLAGS, count)
    if "--include-held" not in some or "--even-if-early" in some
]
SHARED = replace(MARKER, evidence=Removed(proof=Proof.IN_SYNC_ELSEWHERE, as_of_ms=WALL_MS))
STOPPED = replace(REMOVED, evidence=Removed(proof=Proof.STOP_REPLICA, as_of_ms=WALL_MS))
MARKERS = {
    "not assigned": MARKER,
    "not assigned, held": HELD,
    "in sync elsewhere": SHARED,
    "in sync elsewhere, held": replace(SHARED, delay_ms=None),
    "last": replace(MARKER, evidence=Present(as_of_ms=WALL_MS), delay_ms=None),
    "unknown": replace(MARKER, evidence=Unknown(), delay_ms=None),
    "removed": REMOVED,
    "stopped": STOPPED,
    "mere absence": ABSENT,
}
ASSIGNING = assigning(as_of_ms=WALL_MS + HOUR_MS, brokers={2: Broker(bytes(16), 1, is_fenced=False)}).image
LOOKS = {
    "not assigned now": LOOK,
    "assigned now": replace(LOOK, image=ASSIGNING),
    "no log": replace(LOOK, image=None, blind=Problem("refused", "/m", "a metadata log", "none", "mount its disk")),
    "behind": replace(LOOK, held=Problem("refused", "/m", "newer metadata", "older", "wait")),
}


def said(marker: ReplicaMarker, look: PurgeRecheck, now: Instant, flags: frozenset[str]) -> Purge | Refusal:
    is_early, is_last = "--even-if-early" in flags, "--even-if-last" in flags
    return decide(
        marker,
        now=now,
        is_early=is_early,
        includes_held="--include-held" in flags,
        look=replace(
            look,
            is_named=is_early or is_last,
            is_even_if_last=is_last,
            is_even_if_assigned="--even-if-assigned" in flags,
        ),
    )


@pytest.mark.parametrize("now", [NOW, LATER], ids=["not due", "due"])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("marker", MARKERS.values(), ids=MARKERS)
def test_no_override_is_named_that_does_not_lift_a_refusal_and_none_that_does_is_left_out(
    marker: ReplicaMarker, look: PurgeRecheck, now: Instant
) -> None:
    first = said(marker, look, now, frozenset())
    if isinstance(first, Purge):
        return
    named = frozenset(re.findall(r"--(?:even-if-[a-z]+|include-held)", first.problem.fix))
    lifting = [flags for flags in SAID if isinstance(said(marker, look, now, flags), Purge)]
    if not lifting:
        assert named == frozenset(), first
    else:
        assert named == min(lifting, key=len), first


@pytest.mark.parametrize(("fix", "first"), [("mount its disk", "mount its disk"), ("", "name another source")])
def test_what_makes_the_log_readable_again_is_named_before_what_lifts_the_refusal(fix: str, first: str) -> None:
    blind = Problem("refused", "/m", "a metadata log", "none", fix)
    refused = decide(MARKER, now=LATER, look=replace(LOOK, image=None, blind=blind))
    assert isinstance(refused, Refusal)
    assert refused.problem.fix.startswith(first)


@pytest.mark.parametrize("is_named", [False, True])
def test_without_metadata_nothing_whose_marker_is_not_known_goes_unless_it_is_named(is_named: bool) -> None:
    blind = Problem("config-error", "/m", "a metadata log", "none")
    look = replace(LOOK, image=None, blind=blind, is_named=is_named)
    refusal = against_purge(look, replace(staged_replicas(), marker=None), ReplicaIndex(()))
    assert (None if refusal is None else refusal.problem) == (None if is_named else blind)


def test_a50_a_snapshot_from_before_its_removal_keeps_no_captured_replica_from_a_nearly_full_disk() -> None:
    captured = replace(MARKER, intent=Intent.CAPTURED, reason=Reason.CAPTURED)
    assert ASSIGNING is not None
    old = replace(ASSIGNING, source=Source.METADATA_LOG, offset=5)
    end = replace(NEWER, offset=9)
    assigned_again = replace(old, offset=9)
    look = replace(LOOK, image=None, aged=old, latest=(end,), is_named=True)

    def against(one: PurgeRecheck) -> Refusal | None:
        return against_purge(one, staged_replicas(captured), ReplicaIndex(()))

    kept = against(look)  # A deadline can wait for the next snapshot.
    assert kept is not None
    assert kept.why is Why.ASSIGNED_HERE
    assert against(replace(look, is_latest_alone=True)) is None
    still = against(replace(look, latest=(assigned_again,), is_latest_alone=True))
    assert still is not None
    assert still.why is Why.ASSIGNED_HERE
