"""What is staged, what is refused, and what a marker says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.decide.stage import StageRequest, plan_stage
from logdir.decide.staged.deadline import DelayPolicy, begin
from logdir.decide.staged.purge import PurgeRequest, plan_purge
from logdir.errors import Problem
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.formats.own import replica_marker
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints
from logdir.formats.own.staging_limit_file import Count
from logdir.observe.facts import LogDirFacts, Replica
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from tests.logdir.decide.builders import (
    HOUR_MS,
    ID,
    MARKER,
    NOT_ASSIGNED,
    NOW,
    OTHER_ID,
    WALL_MS,
    altered,
    facts,
    future,
    replica,
    staged_replicas,
)
from tests.whole_refusal import require_whole

OPERATOR = Removed(proof=Proof.OPERATOR, as_of_ms=WALL_MS)
ORDERS = replica()
OTHERS = tuple(replica(f"t-{number}") for number in range(20))
BROKEN = Problem("malformed-file", "/d1/log-start-offset-checkpoint", "two lines", "one")


def request(*paths: str, log_dir: str = "/d1", **changed: Any) -> StageRequest:
    made = StageRequest(
        selected=tuple((log_dir, path) for path in paths),
        reason=Reason.OPERATOR,
        evidence=OPERATOR,
        now=NOW,
        record=(),
        cluster=NOT_ASSIGNED,
    )
    return replace(made, **changed)


def why(asked: StageRequest, *disks: LogDirFacts) -> Why | None:
    plan = plan_stage(asked, disks)
    assert plan.actions == plan.waiting == ()
    (refusal,) = plan.refusals
    assert refusal.why is not None
    assert refusal.problem.line().startswith(f"{refusal.why.value}: /d")
    return refusal.why


def test_a_marker_says_everything() -> None:
    (action,) = plan_stage(request("orders-3"), [facts(ORDERS, *OTHERS)]).actions
    assert (action.log_dir, action.path) == ("/d1", "orders-3")
    assert action.marker == MARKER
    assert action.undo_until_ms == WALL_MS + 4 * HOUR_MS
    assert action.loses == "orders-3: 1000 bytes in 2 segments from offset 40"
    assert replica_marker.parse(replica_marker.render(action.marker)) == action.marker


def test_actions_come_by_log_dir_then_path_each_once() -> None:
    d2 = facts(replica("b-0", log_dir="/z2"), replica("a-1", log_dir="/z2"), *OTHERS, log_dir="/z2")
    d1 = facts(replica("c-0"), log_dir="/d1")
    asked = request(selected=(("/d1", "c-0"), ("/z2", "b-0"), ("/z2", "a-1"), ("/z2", "a-1")), is_confirmed=True)
    assert [action.path for action in plan_stage(asked, [d2, d1]).actions] == ["a-1", "b-0", "c-0"]


@pytest.mark.parametrize(
    ("found", "disks", "expected"),
    [
        (replica("__cluster_metadata-0", kind=Kind.METADATA), (), Why.METADATA_LOG),
        (replica("__consumer_offsets-0"), (), Why.TOPIC_PROTECTED),
        (ORDERS, (facts(future("orders-3"), log_dir="/d2"),), Why.FUTURE_REPLICA_EXISTS),
        (ORDERS, (facts(future("new-3", topic_id=ID), log_dir="/d2"),), Why.FUTURE_REPLICA_EXISTS),
        (replica(problems=("symlink",), inode=None), (), Why.NOT_A_PLAIN_DIRECTORY),
        (replica(problems=("unreadable",), inode=None), (), Why.REPLICA_UNREADABLE),
        (replica(problems=("mount-point", "unreadable"), inode=None), (), Why.NOT_A_PLAIN_DIRECTORY),
        (replica(inode=None), (), Why.CHANGED),
        (replica(unexpected_entries=("sub",)), (), Why.UNEXPECTED_ENTRY),
        (replica(kind=Kind.DELETE), (), Why.NOT_LIVE),
        (replica(topic=None), (), Why.TOPIC_NAME_UNKNOWN),
    ],
    ids=["metadata", "protected", "future", "future by id", "link", "unreadable", "mount", "not opened", "stranger",
         "not live", "no name"],
)  # fmt: skip
def test_refused(found: Replica, disks: tuple[LogDirFacts, ...], expected: Why) -> None:
    asked = request(found.path, protected=("__*",))
    assert why(asked, facts(found, *OTHERS), *disks) is expected


def problem_of(found: Replica) -> Problem:
    (refusal,) = plan_stage(request(found.path), [facts(found, *OTHERS)]).refusals
    return refusal.problem


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        (Kind.DELETE, "logdirctl capture keeps a -delete or -stray directory"),
        (
            Kind.FUTURE,
            "let the broker finish the move, or cancel it with kafka-reassign-partitions, then try again",
        ),
    ],
    ids=["delete", "future"],
)
def test_what_is_not_live_is_refused_with_the_command_that_takes_it(kind: Kind, fix: str) -> None:
    require_whole(
        problem_of(replica(kind=kind)),
        Why.NOT_LIVE,
        path="/d1/orders-3",
        expected="a live replica",
        found=f"a -{kind.value} directory",
        fix=fix,
    )


def test_a_replica_that_cannot_be_read_is_refused_with_whose_rights_are_needed() -> None:
    require_whole(
        problem_of(replica(problems=("unreadable",), inode=None)),
        Why.REPLICA_UNREADABLE,
        path="/d1/orders-3",
        expected="a directory of the log dir itself that can be read",
        found="a directory that cannot be read",
        fix="run as the broker's user, and look at the disk it lies on",
    )


def test_a_future_of_another_partition_or_topic_is_none_of_ours() -> None:
    d2 = facts(future("orders-4"), future("t-3"), log_dir="/d2")
    assert plan_stage(request("orders-3"), [facts(ORDERS, *OTHERS), d2]).actions


def test_what_is_not_there_is_refused() -> None:
    assert why(request("gone-0"), facts(*OTHERS)) is Why.NOT_FOUND
    assert why(request("t-0", log_dir="/d9"), facts(*OTHERS)) is Why.NOT_FOUND


def test_a30_a_log_dir_whose_log_starts_cannot_be_kept_is_refused() -> None:
    assert why(request("orders-3"), facts(ORDERS, checkpoint_problem=BROKEN)) is Why.CHECKPOINT_UNREADABLE


@pytest.mark.parametrize(
    ("evidence", "is_held", "expected"),
    [
        (Present(as_of_ms=1), True, Why.ASSIGNED_HERE),
        (Unknown(), True, Why.NO_EVIDENCE),
        (Absent(as_of_ms=1), False, Why.REMOVAL_NOT_PROVEN),
        (Absent(as_of_ms=1), True, None),
        (OPERATOR, False, None),
    ],
    ids=["present", "unknown", "absent with deadline", "absent", "removed"],
)
def test_only_proof_of_removal_sets_a_deadline(evidence: Evidence, is_held: bool, expected: Why | None) -> None:
    asked = request("t-0", evidence=evidence, is_held=is_held, reason=Reason.ABSENT)
    if expected is not None:
        assert why(asked, facts(*OTHERS)) is expected
        return
    (action,) = plan_stage(asked, [facts(*OTHERS)]).actions
    assert (action.marker.delay_ms is None) is is_held
    assert (action.undo_until_ms is None) is is_held


@pytest.mark.parametrize(
    ("proof", "has_deadline"), [(Proof.FULL_REQUEST, False), (Proof.STOP_REPLICA, True), (Proof.METADATA_LOG, True)]
)
def test_a04_a_mismatch_has_a_deadline_only_on_the_stronger_proof(proof: Proof, has_deadline: bool) -> None:  # A4
    evidence = Removed(proof=proof, as_of_ms=1)
    asked = request("t-0", evidence=evidence, reason=Reason.TOPIC_ID_MISMATCH)
    (action,) = plan_stage(asked, [facts(*OTHERS)]).actions
    assert (action.marker.delay_ms is not None) is has_deadline


def test_a04_three_partitions_of_a_reminted_id_pass_the_staging_limit_and_are_never_purged() -> None:
    """Old tools give a live topic a new id on every broker: no tenth of it, and nobody's removal."""
    live = tuple(replica(f"orders-{number}", topic_id=ID, inode=number) for number in range(4))
    asked = request(
        *(f"orders-{number}" for number in range(3)),
        evidence=Removed(proof=Proof.FULL_REQUEST, as_of_ms=1),
        reason=Reason.TOPIC_ID_MISMATCH,
    )
    plan = plan_stage(asked, [facts(*live, *OTHERS, *(replica(f"u-{n}") for n in range(20)))])
    assert [action.marker.delay_ms for action in plan.actions] == [None] * 3
    items = [staged_replicas(action.marker) for action in plan.actions]
    years = 10 * 365 * 24 * HOUR_MS
    late = NOW._replace(boottime_ms=NOW.boottime_ms + years, wall_ms=WALL_MS + years)
    for early in (False, True):
        purge = plan_purge(PurgeRequest(now=late, heartbeats={"/d1": begin(NOW)}, is_early=early), items)
        assert purge.actions == ()
        assert {refusal.why for refusal in purge.refusals} == {Why.NO_DEADLINE}


@pytest.mark.parametrize("length", [239, 240, 249])
def test_a_topic_without_id_whose_name_does_not_fit_is_refused_by_name(length: int) -> None:
    topic = "t" * length
    found = replica(f"{topic}-0", topic_id=None)
    plan = plan_stage(request(f"{topic}-0"), [facts(found, *OTHERS)])
    if length == 239:
        assert len(plan.actions) == 1
    else:
        (refusal,) = plan.refusals
        assert (refusal.why, refusal.problem.slug) == (Why.NAME_TOO_LONG, "name-too-long")
    by_id = plan_stage(request(f"{topic}-0"), [facts(altered(found, topic_id=ID), *OTHERS)])
    assert len(by_id.actions) == 1


def test_a25_nothing_of_a_closed_disk_is_staged() -> None:
    quarantined = Problem("stale-disk", "/d1", "a disk that was here", "one hours behind", "look at it")
    d1, d2 = facts(ORDERS, *OTHERS, quarantined=quarantined), facts(replica("t-30", log_dir="/d2"), log_dir="/d2")
    asked = request(selected=(("/d1", "orders-3"), ("/d2", "t-30")), is_held=True, is_confirmed=True)
    plan = plan_stage(asked, [d1, d2])
    assert [action.path for action in plan.actions] == ["t-30"]
    assert [(one.why, one.problem) for one in plan.refusals] == [(None, quarantined._replace(path="/d1/orders-3"))]


def test_each_topic_has_its_delay() -> None:
    asked = request("t-0", delays=DelayPolicy(patterns=(("t*", 7 * HOUR_MS),)))
    (action,) = plan_stage(asked, [facts(*OTHERS)]).actions
    assert action.marker.delay_ms == 7 * HOUR_MS


@pytest.mark.parametrize(
    ("log_start", "first", "topics", "tiered"),
    [(40, 40, (), False), (39, 40, (), True), (None, 40, (), False), (40, 40, ("t",), True), (40, None, (), False)],
)
def test_a33_tiered_is_said(
    log_start: int | None, first: int | None, topics: tuple[str, ...], tiered: bool
) -> None:  # A33
    found = replica("t-0", checkpoints=Checkpoints(log_start=log_start), first_offset=first)
    asked = request("t-0", tiered_topics=frozenset(topics), is_confirmed=True)
    (action,) = plan_stage(asked, [facts(found)]).actions
    assert action.marker.tiered is tiered
    assert ("local part only" in action.loses) is tiered


@pytest.mark.parametrize("clean", [True, False])
def test_clean_is_what_the_log_dir_says(clean: bool) -> None:
    (action,) = plan_stage(request("t-0"), [facts(*OTHERS, has_clean_marker=clean)]).actions
    assert action.marker.clean is clean


def test_what_the_staging_limit_holds_waits_and_is_shown() -> None:
    plan = plan_stage(request("t-0", "orders-3"), [facts(ORDERS, *OTHERS[:5])])
    assert plan.actions == ()
    assert [action.path for action in plan.waiting] == ["orders-3", "t-0"]
    assert plan.over_limit is not None
    confirmed = plan_stage(request("t-0", "orders-3", is_confirmed=True), [facts(ORDERS, *OTHERS[:5])])
    assert len(confirmed.actions) == 2
    assert confirmed.record == (Count(instant_ms=WALL_MS, partitions=2, topics=2),)


def test_a_missing_record_holds() -> None:
    assert plan_stage(request("t-0", record=None), [facts(*OTHERS)]).over_limit is not None


def test_a38_a_whole_topic_is_one_with_no_replica_left_on_any_disk() -> None:
    weak = Removed(proof=Proof.FULL_REQUEST, as_of_ms=1)
    d1, d2 = facts(ORDERS, *OTHERS), facts(replica("orders-4", log_dir="/d2"), log_dir="/d2")
    asked = request("orders-3", evidence=weak, reason=Reason.ABSENT)
    assert plan_stage(asked, [d1]).over_limit is not None
    assert plan_stage(asked, [d1, d2]).actions


def test_nothing_to_do_writes_no_record() -> None:
    assert plan_stage(request("gone-0"), [facts(*OTHERS)]).record is None


def test_log_dirs_that_were_not_seen_are_named() -> None:
    gone = LogDirFacts(log_dir="/d2", problem=Problem("log-dir-offline", "/d2", "a log dir", "io-error"))
    assert plan_stage(request("t-0"), [facts(*OTHERS), gone]).unseen == (gone.problem,)


def test_another_id_of_the_same_name_is_kept_apart() -> None:
    (action,) = plan_stage(request("orders-3"), [facts(replica(topic_id=OTHER_ID), *OTHERS)]).actions
    assert action.marker.topic_id == OTHER_ID
