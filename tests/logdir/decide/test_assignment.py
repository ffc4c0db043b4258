"""What is known of a replica's assignment, and what a stage, a restore and a purge make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.cluster.image import AbsenceMeaning, Broker, Image, Partition, Source, Topic
from logdir.decide.image.still_assigned import Assigned, ClusterState, assignment_of
from logdir.decide.stage import StagePlan, StageRequest, plan_stage
from logdir.decide.staged.deadline import begin
from logdir.decide.staged.purge import PurgePlan, PurgeRequest, plan_purge
from logdir.decide.staged.purge_recheck import PurgeRecheck
from logdir.decide.staged.restore import RestoreRequest, plan_restore
from logdir.errors import Problem
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.formats.own import replica_marker
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.observe.facts import Replica
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from tests.logdir.decide.builders import (
    CLUSTER,
    HOUR_MS,
    ID,
    MARKER,
    NOT_ASSIGNED,
    NOW,
    OTHER_ID,
    WALL_MS,
    assigning,
    facts,
    replica,
    staged_replicas,
)

MINUTE_MS = 60 * 1000
BLIND = ClusterState(blind=Problem("config-error", "__cluster_metadata-0", "a metadata log", "none"))
SHARED = replace(MARKER, evidence=Removed(proof=Proof.IN_SYNC_ELSEWHERE, as_of_ms=WALL_MS))
LAST = replace(MARKER, evidence=Present(as_of_ms=WALL_MS), delay_ms=None)
NOBODY_KNEW = replace(MARKER, evidence=Unknown(), delay_ms=None)
REMOVED = replace(MARKER, reason=Reason.TOPIC_REMOVED, evidence=Removed(proof=Proof.METADATA_LOG, as_of_ms=1))
GONE = {bytes(ID): Removed(proof=Proof.METADATA_LOG, as_of_ms=1)}


def nothing(**changed: Any) -> ClusterState:
    """Return what is known of a cluster that has no topic ``orders`` (any more)."""
    return assigning(topics={}, names={}, **changed)


def stage(cluster: ClusterState, found: Replica | None = None, **changed: Any) -> StagePlan:
    asked = StageRequest(
        selected=(("/d1", "orders-3"),),
        reason=Reason.OPERATOR,
        evidence=Removed(proof=Proof.OPERATOR, as_of_ms=WALL_MS),
        now=NOW,
        record=(),
        cluster=cluster,
    )
    return plan_stage(replace(asked, **changed), [facts(found or replica(), *(replica(f"t-{n}") for n in range(20)))])


# Stage.


@pytest.mark.parametrize("isr", [(1,), ()], ids=["alone", "nobody"])
def test_a48_the_only_in_sync_replica_is_staged_only_on_a_word_of_its_own_and_never_gets_a_deadline(
    isr: tuple[int, ...],
) -> None:
    cluster = assigning(isr=isr)
    (refusal,) = stage(cluster, is_even_if_unknown=True, is_confirmed=True).refusals
    assert (refusal.why, refusal.problem.slug) == (Why.LAST_IN_SYNC, "last-in-sync")
    assert "empty replica" in refusal.problem.fix
    assert "--even-if-last" in refusal.problem.fix
    (action,) = stage(cluster, is_even_if_last=True).actions
    assert action.marker.delay_ms is None
    assert action.marker.evidence == Present(as_of_ms=WALL_MS)
    assert "empty replica" in action.loses
    assert replica_marker.parse(replica_marker.render(action.marker)) == action.marker


@pytest.mark.parametrize(
    "cluster",
    [
        BLIND,
        ClusterState(),
        nothing(),
        assigning(source=Source.ZNODES, isr=()),
        assigning(absence_meaning=AbsenceMeaning.NOTHING, topics={}, names={}),
        nothing(source=Source.ZNODES, as_of_ms=WALL_MS + 24 * HOUR_MS),
    ],
    ids=["no log", "nothing", "a young directory", "no ISR", "a request", "a dump"],
)
def test_a48_where_nobody_knows_it_is_staged_only_on_a_word_of_its_own_and_never_gets_a_deadline(
    cluster: ClusterState,
) -> None:
    (refusal,) = stage(cluster, is_even_if_last=True, is_confirmed=True).refusals
    assert (refusal.why, refusal.problem.slug) == (Why.ASSIGNMENT_UNKNOWN, "assignment-unknown")
    assert "--even-if-unknown" in refusal.problem.fix
    (action,) = stage(cluster, is_even_if_unknown=True).actions
    assert (action.marker.delay_ms, action.marker.evidence) == (None, Unknown())
    assert "next start" in action.loses


def test_a48_with_another_broker_in_the_isr_it_has_a_deadline_and_says_what_the_next_start_does() -> None:
    answers = {2: Broker(b"i" * 16, 1, is_fenced=False)}
    (action,) = stage(assigning(isr=(1, 2), brokers=answers)).actions
    assert action.marker.evidence == Removed(proof=Proof.IN_SYNC_ELSEWHERE, as_of_ms=WALL_MS)
    assert action.marker.delay_ms == 4 * HOUR_MS
    assert "replicates it again" in action.loses
    assert "node 2" in action.loses


@pytest.mark.parametrize(
    "brokers",
    [{}, {2: Broker(b"i" * 16, 1, is_fenced=True)}],
    ids=["not registered", "fenced"],
)
def test_a48_a_broker_that_does_not_answer_is_no_other_one_in_sync(brokers: dict[int, Broker]) -> None:
    assert stage(assigning(isr=(1, 2), brokers=brokers)).refusals[0].why is Why.LAST_IN_SYNC
    # Of a dump nobody says who is registered.
    (action,) = stage(assigning(isr=(1, 2), source=Source.ZNODES)).actions
    assert action.marker.evidence == Removed(proof=Proof.IN_SYNC_ELSEWHERE, as_of_ms=WALL_MS)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a48_an_own_log_that_cannot_be_read_to_its_end_may_say_anything(is_damaged: bool) -> None:
    answers = {2: Broker(b"i" * 16, 1, is_fenced=False)}
    source = assigning(isr=(1, 2), brokers=answers)
    beside = ClusterState(blind=Problem("malformed-file", "/own", "a log", "none"))
    if is_damaged:
        ended = Problem("malformed-file", "/own", "a batch", "none")
        beside = assigning(isr=(1, 2), brokers=answers, offset=200, ended=ended)
    assert stage(source).refusals == ()
    assert stage(replace(source, beside=(beside,))).refusals[0].why is Why.ASSIGNMENT_UNKNOWN


def test_a48_the_end_of_the_log_counts_for_the_isr_and_either_for_the_assignment() -> None:
    shrunk, wide = assigning(isr=(1,)), assigning(isr=(1, 2))
    assert stage(replace(wide, latest=shrunk.image)).refusals[0].why is Why.LAST_IN_SYNC
    gone = nothing(removed=GONE)
    assert stage(replace(shrunk, latest=gone.image)).refusals[0].why is Why.LAST_IN_SYNC
    assert stage(replace(gone, latest=gone.image)).actions[0].marker.evidence == MARKER.evidence


def test_a01_a_log_that_does_not_name_a_replica_speaks_only_of_an_older_directory() -> None:
    where = ("/d1", "orders-3")
    for birth_ms, expected in (
        (WALL_MS - 10 * MINUTE_MS, Why.ASSIGNMENT_UNKNOWN),
        (WALL_MS - 10 * MINUTE_MS - 1, None),
    ):
        plan = stage(nothing(), births={where: birth_ms})
        assert [one.why for one in plan.refusals] == ([] if expected is None else [expected])


def test_a01_no_dump_is_surely_younger_than_a_directory() -> None:
    """The time of its file is the latest at which it can have been taken."""
    old = {("/d1", "orders-3"): WALL_MS - 24 * HOUR_MS}
    (refusal,) = stage(nothing(source=Source.ZNODES), births=old).refusals
    assert refusal.why is Why.ASSIGNMENT_UNKNOWN
    assert stage(nothing(), births=old).actions


def test_an_automatic_reason_asks_for_no_word_of_an_operator() -> None:
    (action,) = stage(assigning(isr=(1,)), reason=Reason.STOP_REPLICA).actions
    assert action.marker.delay_ms == 4 * HOUR_MS


# Restore.


@pytest.mark.parametrize(
    ("cluster", "marker", "expected"),
    [
        (assigning(), MARKER, Assigned.HERE),
        (assigning(), REMOVED, Assigned.HERE),
        (assigning(as_of_ms=2), replace(REMOVED, reason=Reason.REPLICA_MOVED_AWAY), Assigned.HERE),
        # Of before that removal, or of nobody knows when.
        (assigning(as_of_ms=1), REMOVED, Assigned.GONE),
        (assigning(as_of_ms=1), replace(REMOVED, reason=Reason.REPLICA_MOVED_AWAY), Assigned.NOT_HERE),
        (assigning(source=Source.ZNODES), REMOVED, Assigned.GONE),
        (assigning(is_current=False), MARKER, Assigned.UNKNOWN),
        (assigning(is_current=False), REMOVED, Assigned.UNKNOWN),
        (BLIND, MARKER, Assigned.UNKNOWN),
        (BLIND, NOBODY_KNEW, Assigned.UNKNOWN),
        (BLIND, REMOVED, Assigned.GONE),
        (BLIND, replace(MARKER, intent=Intent.CAPTURED), Assigned.GONE),
        (BLIND, replace(REMOVED, reason=Reason.REPLICA_MOVED_AWAY), Assigned.NOT_HERE),
        (BLIND, replace(MARKER, reason=Reason.ABSENT, evidence=Absent(as_of_ms=1), delay_ms=None), Assigned.UNKNOWN),
        (nothing(), MARKER, Assigned.GONE),
        (nothing(is_current=False), MARKER, Assigned.UNKNOWN),
        (nothing(is_current=False, removed=GONE), MARKER, Assigned.GONE),
        (assigning(replicas=(2, 3), isr=(2, 3)), MARKER, Assigned.NOT_HERE),
        (assigning(replicas=(2, 3), isr=(2, 3), is_current=False), MARKER, Assigned.UNKNOWN),
        (assigning(), replace(MARKER, topic_id=OTHER_ID), Assigned.GONE),
        (assigning(source=Source.ZNODES, topics={}, names={}), MARKER, Assigned.UNKNOWN),
    ],
)
def test_a47_what_is_known_of_an_assignment(cluster: ClusterState, marker: ReplicaMarker, expected: Assigned) -> None:
    assert assignment_of(cluster, staged_replicas(marker)).state is expected


@pytest.mark.parametrize(
    ("cluster", "beside", "expected"),
    [
        (BLIND, nothing(is_current=False, removed=GONE), Assigned.GONE),
        (assigning(), nothing(is_current=False, removed=GONE), Assigned.GONE),
        (assigning(is_current=False), nothing(), Assigned.GONE),
        (assigning(is_current=False), assigning(replicas=(2, 3), isr=(2, 3)), Assigned.NOT_HERE),
        (BLIND, assigning(), Assigned.UNKNOWN),
        (assigning(), nothing(is_current=False), Assigned.HERE),
        (assigning(), BLIND, Assigned.HERE),
        (BLIND, ClusterState(seen=nothing(removed=GONE).image), Assigned.GONE),
        (BLIND, ClusterState(latest=nothing(removed=GONE).image), Assigned.UNKNOWN),
    ],
    ids=["removed", "removed, though assigned", "no such topic", "elsewhere", "assigned", "knows less", "knows nothing",
         "removed, not to be followed", "removed, not known to be committed"],
)  # fmt: skip
def test_a47_a_log_that_was_not_asked_takes_away_and_never_gives(
    cluster: ClusterState, beside: ClusterState, expected: Assigned
) -> None:
    assert assignment_of(replace(cluster, beside=(beside,)), staged_replicas()).state is expected


def restored(cluster: ClusterState, marker: ReplicaMarker = MARKER, *, even: bool = False) -> Any:
    item = staged_replicas(marker)
    request = RestoreRequest(selected=(("/d1", item.name),), cluster=cluster, is_even_if_unknown=even)
    plan = plan_restore(request, [facts(staged=(item,))])
    return plan.actions[0] if plan.actions else plan.refusals[0]


def test_a47_what_is_not_known_to_be_assigned_is_renamed_back_only_on_a_word_of_its_own() -> None:
    cluster = assigning(is_current=False)
    refusal = restored(cluster)
    assert (refusal.why, refusal.problem.slug) == (Why.ASSIGNMENT_UNKNOWN, "assignment-unknown")
    assert "not known since offset 100" in refusal.problem.found
    for text in ("-stray", "about a minute", "3.6", "3.7", "--even-if-unknown"):
        assert text in refusal.problem.fix
    action = restored(cluster, even=True)
    assert action.path == "orders-3"
    assert action.detail.startswith("rename")
    for text in ("not known since offset 100", "-stray", "about a minute"):
        assert text in action.detail


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize(
    ("cluster", "marker"),
    [(nothing(), MARKER), (nothing(is_current=False, removed=GONE), MARKER), (BLIND, REMOVED)],
    ids=["no such topic", "its removal is committed", "it was gone when it was staged"],
)
def test_a47_a16_what_is_known_to_be_gone_is_never_renamed_back(
    cluster: ClusterState, marker: ReplicaMarker, even: bool
) -> None:
    refusal = restored(cluster, marker, even=even)
    assert (refusal.why, refusal.problem.slug) == (Why.TOPIC_GONE, "topic-gone")
    for text in ("adopt", "export", "follower restored alone truncates"):
        assert text in refusal.problem.fix
    assert "--even-" not in refusal.problem.line()


def test_a47_what_belongs_to_other_nodes_now_is_exported_and_never_renamed_back() -> None:
    for even in (False, True):
        refusal = restored(assigning(replicas=(2, 3), isr=(2, 3)), even=even)
        assert (refusal.why, refusal.problem.slug) == (Why.NOT_ASSIGNED_HERE, "not-assigned-here")
        assert "export" in refusal.problem.fix


def test_a02_a_removal_that_may_not_be_committed_is_told_and_is_no_proof() -> None:
    cluster = replace(assigning(is_current=False), latest=nothing(removed=GONE).image)
    assert restored(cluster).why is Why.ASSIGNMENT_UNKNOWN
    without = ClusterState(latest=nothing(removed=GONE).image, known_offset=0)
    refusal = restored(without)
    assert "not known since offset 0" in refusal.problem.found
    assert "not known to be committed" in refusal.problem.found


@pytest.mark.parametrize(
    ("latest", "is_said"),
    [
        (assigning(), True),
        (assigning(replicas=(2, 3), isr=(1, 2)), False),
        (assigning(replicas=(2, 3), isr=(2, 3)), False),
        (nothing(), False),
    ],
    ids=["here", "elsewhere, in sync here", "elsewhere", "no such topic"],
)
def test_no_end_of_a_local_log_is_said_to_assign_here_what_it_does_not(latest: ClusterState, is_said: bool) -> None:
    refusal = restored(ClusterState(latest=latest.image, known_offset=0))
    assert refusal.why is Why.ASSIGNMENT_UNKNOWN
    assert ("assigns it here" in refusal.problem.found) is is_said
    assert ("offset 100" in refusal.problem.found) is is_said


def test_a01_a_leaving_that_is_older_than_the_directory_does_not_speak_of_it() -> None:
    """It may have come back behind a tail that was lost."""
    where = ("/d1", "orders-3")
    left = nothing(left={(bytes(ID), 3): Removed(proof=Proof.METADATA_LOG, as_of_ms=WALL_MS)})
    for birth_ms, expected in (
        (WALL_MS - 10 * MINUTE_MS, Why.ASSIGNMENT_UNKNOWN),
        (WALL_MS - 10 * MINUTE_MS - 1, None),
    ):
        plan = stage(left, births={where: birth_ms})
        assert [one.why for one in plan.refusals] == ([] if expected is None else [expected])
    assert stage(left, births={}).refusals[0].why is Why.ASSIGNMENT_UNKNOWN
    # A topic id never comes back.
    assert stage(nothing(removed=GONE), births={where: WALL_MS}).refusals == ()


# Purge.


def image_of(isr: tuple[int, ...], *, minutes: int = 11, **changed: Any) -> Image:
    """Return an image so many minutes newer than the staging."""
    found = assigning(isr=isr, as_of_ms=WALL_MS + minutes * MINUTE_MS, **changed).image
    assert found is not None
    answering = {node: Broker(b"i" * 16, 1, is_fenced=False) for node in (1, 2, 3)}
    return replace(found, brokers=answering)


def purge(marker: ReplicaMarker, image: Image | None, *, is_live: bool, **said: Any) -> PurgePlan:
    item = staged_replicas(marker)
    disks = [facts(*((replica(),) if is_live else ()), staged=(item,))]
    years = 10 * 365 * 24 * HOUR_MS
    late = NOW._replace(boottime_ms=NOW.boottime_ms + years, wall_ms=WALL_MS + years)
    flags = {name: said.pop(name) for name in ("is_early", "includes_held") if name in said}
    look = PurgeRecheck(image=image, last_applied=None, **said)
    request = PurgeRequest(now=late, heartbeats={"/d1": begin(NOW)}, look=look, facts=disks, **flags)
    return plan_purge(request, [item])


def test_a48_what_the_own_log_assigns_beyond_what_is_committed_is_not_purged_for_lack_of_a_word() -> None:
    """The newest snapshot is of before the topic; the topic stands in the tail."""
    silent = nothing(as_of_ms=WALL_MS + HOUR_MS, offset=50).image
    tail = image_of((1, 2), offset=60)
    assert refused_by(purge(SHARED, silent, is_live=False, latest=(tail,))) == "still-assigned"
    assert refused_by(purge(MARKER, silent, is_live=False, latest=(tail,))) == "still-assigned"
    # A log that ends before what is known to be committed was left behind.
    assert refused_by(purge(SHARED, silent, is_live=False, latest=(replace(tail, offset=40),))) is None


def test_a48_a_tail_that_is_not_committed_lets_nothing_go() -> None:
    """It says what would let a copy go; nothing that is committed does."""
    silent = nothing(as_of_ms=WALL_MS + HOUR_MS, offset=50, absence_meaning=AbsenceMeaning.NOTHING).image
    tail = image_of((1, 2), minutes=60, offset=60)
    assert refused_by(purge(SHARED, tail, is_live=True)) is None
    assert refused_by(purge(SHARED, silent, is_live=True, latest=(tail,))) == "still-assigned"
    assert refused_by(purge(SHARED, None, is_live=True, latest=(tail,), is_named=True)) == "still-assigned"
    elsewhere = image_of((2, 3), minutes=60, offset=60)
    for image in (silent, None):
        plan = purge(SHARED, image, is_live=False, latest=(elsewhere,), is_named=True, is_even_if_assigned=True)
        assert refused_by(plan) == "still-assigned"


def test_a46_a_tail_that_is_not_committed_keeps_what_it_shows_to_be_the_last() -> None:
    shared = image_of((1, 2), minutes=60, offset=50)
    shrunk = image_of((2,), minutes=61, offset=60)
    fenced = replace(shrunk, brokers={2: Broker(b"i" * 16, 1, is_fenced=True)})
    assert refused_by(purge(SHARED, shared, is_live=True)) is None
    assert refused_by(purge(SHARED, shared, is_live=True, latest=(fenced,))) == "still-assigned"
    elsewhere = assigning(replicas=(2, 3), isr=(2, 3), as_of_ms=WALL_MS + HOUR_MS, offset=50).image
    assert elsewhere is not None
    answers = replace(elsewhere, brokers={2: Broker(b"i" * 16, 1, is_fenced=False)})
    nobody = replace(elsewhere, brokers={}, offset=60)
    for marker in (MARKER, SHARED, replace(MARKER, reason=Reason.TOPIC_REMOVED)):
        assert refused_by(purge(marker, answers, is_live=False)) is None
        assert refused_by(purge(marker, answers, is_live=False, latest=(nobody,))) == "last-copy"


def test_a48_news_is_of_after_what_was_known_when_it_was_staged() -> None:
    """The clock of the broker was behind that of its controller."""
    late = replace(SHARED, evidence=Removed(proof=Proof.IN_SYNC_ELSEWHERE, as_of_ms=WALL_MS + 20 * MINUTE_MS))
    gone = {minutes: nothing(as_of_ms=WALL_MS + minutes * MINUTE_MS).image for minutes in (29, 31)}
    assert refused_by(purge(late, gone[29], is_live=False)) == "still-assigned"
    assert refused_by(purge(late, gone[31], is_live=False)) is None


@pytest.mark.parametrize(("source", "expected"), [(Source.METADATA_LOG, "still-assigned"), (Source.ZNODES, None)])
def test_a48_a_log_names_only_brokers_that_answer(source: Source, expected: str | None) -> None:
    """Node 2 is in the ISR and not registered; of a dump nobody says who is."""
    found = replace(image_of((1, 2), source=source), brokers={})
    assert refused_by(purge(SHARED, found, is_live=False, is_even_if_assigned=True)) == expected


def test_a46_what_an_operator_staged_stays_while_none_of_the_others_answers() -> None:
    found = image_of((2,))
    elsewhere = replace(
        found,
        topics={
            key: topic._replace(partitions={n: one._replace(replicas=(2,)) for n, one in topic.partitions.items()})
            for key, topic in found.topics.items()
        },
    )
    fenced = replace(
        elsewhere, brokers={node: one._replace(is_fenced=node == 2) for node, one in found.brokers.items()}
    )
    assert refused_by(purge(SHARED, elsewhere, is_live=False)) is None
    assert refused_by(purge(SHARED, fenced, is_live=False)) == "last-copy"
    assert refused_by(purge(SHARED, fenced, is_live=True)) is None


def refused_by(plan: PurgePlan) -> str | None:
    assert len(plan.actions) + len(plan.refusals) == 1
    return plan.refusals[0].problem.slug if plan.refusals else None


@pytest.mark.parametrize(
    ("marker", "image", "is_live", "expected"),
    [
        (SHARED, image_of((1, 2)), True, None),
        (SHARED, image_of((1,)), True, None),
        (SHARED, image_of((1, 2)), False, "still-assigned"),
        (SHARED, image_of((2,)), True, "still-assigned"),
        (SHARED, image_of((1, 2), minutes=10), True, "still-assigned"),
        (SHARED, image_of((1, 2), source=Source.ZNODES), True, "still-assigned"),
        (REMOVED, nothing(source=Source.ZNODES, as_of_ms=WALL_MS + HOUR_MS).image, False, "no-evidence"),
        (SHARED, None, True, "still-assigned"),
        (MARKER, image_of((1, 2)), True, "still-assigned"),
        (MARKER, None, True, None),
        (SHARED, nothing(as_of_ms=WALL_MS + 11 * MINUTE_MS).image, False, None),
        (SHARED, nothing(as_of_ms=WALL_MS + 9 * MINUTE_MS).image, False, "still-assigned"),
        (SHARED, nothing(as_of_ms=WALL_MS - HOUR_MS).image, False, "still-assigned"),
        (SHARED, nothing(source=Source.ZNODES, as_of_ms=WALL_MS + HOUR_MS).image, False, "still-assigned"),
    ],
    ids=["in sync here", "in sync here alone", "not live", "not in sync", "the ISR of before", "a dump",
         "a dump without it", "no log",
         "nobody else was in sync", "not assigned", "not assigned any more", "not named soon after the staging",
         "not named by an older log", "not named by a dump"],
)  # fmt: skip
def test_a48_what_is_still_assigned_goes_only_once_a_live_replica_of_it_is_in_the_isr(
    marker: ReplicaMarker, image: Image | None, is_live: bool, expected: str | None
) -> None:
    assert refused_by(purge(marker, image, is_live=is_live)) == expected
    assert refused_by(purge(marker, image, is_live=is_live, is_early=True)) == expected


@pytest.mark.parametrize("marker", [SHARED, MARKER])
def test_a48_what_another_broker_has_in_sync_goes_on_a_word_of_its_own(marker: ReplicaMarker) -> None:
    there = image_of((2, 3))
    plan = purge(marker, there, is_live=False)
    assert refused_by(plan) == "still-assigned"
    assert "--even-if-assigned" in plan.refusals[0].problem.fix
    assert refused_by(purge(marker, there, is_live=False, is_even_if_assigned=True)) is None
    fenced = replace(there, brokers={node: Broker(b"i" * 16, 1, is_fenced=True) for node in (2, 3)})
    for image in (fenced, image_of((1,)), image_of(())):
        plan = purge(marker, image, is_live=False, is_even_if_assigned=True)
        assert refused_by(plan) == "still-assigned"
        # A word that changes nothing is not proposed, and no node is named that does not hold it.
        assert "--even-if-assigned" not in plan.refusals[0].problem.fix
        assert "in the ISR of" not in plan.refusals[0].problem.found


@pytest.mark.parametrize("marker", [LAST, NOBODY_KNEW])
@pytest.mark.parametrize("image", [None, image_of((1, 2)), image_of((2,)), NOT_ASSIGNED.image])
def test_a48_what_was_staged_as_the_last_waits_for_a_word_of_its_own(
    marker: ReplicaMarker, image: Image | None
) -> None:
    for said in ({}, {"is_early": True, "includes_held": True}, {"is_even_if_assigned": True}):
        plan = purge(marker, image, is_live=True, **said)
        assert refused_by(plan) == "kept-for-last"
        assert f"staged purge {ID}_3 --even-if-last" in plan.refusals[0].problem.fix
    assert refused_by(purge(marker, image, is_live=False, is_even_if_last=True)) is None


def test_a48_of_another_id_or_in_a_link_a_live_directory_is_no_replica_of_it() -> None:
    item = staged_replicas(SHARED)
    for there in (replica(topic_id=OTHER_ID), replica(problems=("symlink",), inode=None)):
        look = PurgeRecheck(image=image_of((1, 2)), last_applied=None)
        late = NOW._replace(boottime_ms=NOW.boottime_ms + 5 * HOUR_MS)
        disks = [facts(there, staged=(item,))]
        request = PurgeRequest(now=late, heartbeats={"/d1": begin(NOW)}, look=look, facts=disks)
        assert refused_by(plan_purge(request, [item])) == "still-assigned"


@pytest.mark.parametrize("evidence", [Present(as_of_ms=1), Unknown()])
def test_a48_no_marker_holds_a_deadline_beside_such_evidence(evidence: Evidence) -> None:
    with pytest.raises(ValueError, match="proof of removal"):
        replace(MARKER, evidence=evidence)


def test_a47_by_name_alone_nothing_is_known_of_a_topic_that_was_made_again() -> None:
    topic = Topic("orders", bytes(16), {3: Partition((1, 2), (1, 2))})
    image = Image(
        source=Source.ZNODES, origin="/z", node_id=1, cluster_id=CLUSTER, as_of_ms=WALL_MS, without_id={"orders": topic}
    )
    bare = replace(MARKER, topic_id=None)
    for cluster in (ClusterState(image=image, is_current=True), ClusterState(image=image), assigning()):
        assert assignment_of(cluster, staged_replicas(bare)).state is Assigned.UNKNOWN


def test_a47_one_that_left_is_not_assigned_here_while_it_is_still_in_the_isr() -> None:
    cluster = assigning(replicas=(2, 3), isr=(1, 2), as_of_ms=WALL_MS + HOUR_MS)
    assert assignment_of(cluster, staged_replicas()).state is Assigned.NOT_HERE


def test_a47_of_a_staged_name_without_an_id_the_marker_says_which_topic_it_is() -> None:
    item = staged_replicas(MARKER, topic_id=None)
    gone = nothing(is_current=False, removed=GONE)
    assert assignment_of(gone, item).state is Assigned.GONE
    assert assignment_of(gone, replace(item, marker=None)).state is Assigned.UNKNOWN


def test_a48_a_newer_own_log_overrules_only_by_what_it_says_and_never_that_it_is_the_last() -> None:
    answers = {2: Broker(b"i" * 16, 1, is_fenced=False)}
    wide, newer = assigning(isr=(1, 2), brokers=answers), assigning(isr=(1, 2), brokers=answers, offset=200)
    assert stage(replace(wide, beside=(nothing(offset=200),))).refusals == ()
    assert stage(replace(assigning(isr=(1,)), beside=(newer,))).refusals[0].why is Why.LAST_IN_SYNC
