"""What is taken back, and everything that speaks against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from logdir.cluster.image import Partition, Topic
from logdir.decide.image.still_assigned import ClusterState
from logdir.decide.staged.own_marker import refuse_foreign
from logdir.decide.staged.restore import RestoreKind, RestoreRequest, live_path, plan_restore
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints, Intent
from logdir.names import DirForm, name_for, render_id_dir
from logdir.observe.facts import LogDirFacts
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from tests.logdir.decide.builders import (
    ID,
    MARKER,
    OTHER_ID,
    WALL_MS,
    altered,
    assigning,
    facts,
    future,
    replica,
    staged_replicas,
)
from tests.whole_refusal import require_whole

STAGED = staged_replicas()
TOPIC_REMOVED = replace(MARKER, reason=Reason.TOPIC_REMOVED, evidence=Removed(proof=Proof.METADATA_LOG, as_of_ms=1))
BY_ID = render_id_dir(ID, 3)
IN_OTHER_LAYOUT = altered(replica(), log_dir="/d2", path=BY_ID, topic=None)
CLOSED = Problem("stale-disk", "/d1", "a disk that was here", "one hours behind", "look at it")
DEAD = LogDirFacts(log_dir="/d2", problem=Problem("log-dir-offline", "/d2", "a log dir", "io-error"))


def request(*names: str, log_dir: str = "/d1", **changed: Any) -> RestoreRequest:
    selected = tuple((log_dir, name) for name in names or (STAGED.name,))
    return replace(RestoreRequest(selected=selected, cluster=assigning(), is_even_if_unknown=True), **changed)


def why(asked: RestoreRequest, *disks: LogDirFacts) -> Why | None:
    plan = plan_restore(asked, disks)
    assert plan.actions == ()
    (refusal,) = plan.refusals
    assert " /d1/" in refusal.problem.line()
    return refusal.why


def test_it_goes_back_to_where_it_was_and_says_its_kind_first() -> None:
    (action,) = plan_restore(request(), [facts(replica("t-0"), staged=(STAGED,))]).actions
    assert (action.log_dir, action.name, action.path) == ("/d1", f"{ID}_3", "orders-3")
    assert action.marker == MARKER
    assert action.checkpoints == MARKER.checkpoints
    assert action.kind is RestoreKind.RENAME
    assert action.detail.startswith("rename: it is assigned here at offset 100")


@pytest.mark.parametrize(
    ("clean", "trusts", "drops"),
    [(True, True, False), (True, False, False), (False, True, True), (False, False, False)],
)
def test_a36_indexes_are_dropped_only_where_a_broker_would_trust_zeros(clean: bool, trusts: bool, drops: bool) -> None:
    item = staged_replicas(replace(MARKER, clean=clean))
    (action,) = plan_restore(request(), [facts(staged=(item,), has_clean_marker=trusts)]).actions
    assert action.drop_last_indexes is drops


def test_a33_the_local_part_of_a_tiered_log_is_said_to_be_that() -> None:
    item = staged_replicas(replace(MARKER, tiered=True))
    (action,) = plan_restore(request(), [facts(staged=(item,))]).actions
    assert "local part only" in action.detail


@pytest.mark.parametrize(
    "disks",
    [
        (facts(replica("orders-3", topic_id=OTHER_ID), staged=(STAGED,)),),
        (facts(staged=(STAGED,)), facts(replica("orders-3", log_dir="/d2", topic_id=None), log_dir="/d2")),
        (facts(staged=(STAGED,)), facts(replica("new-3", log_dir="/d2", topic_id=ID), log_dir="/d2")),
        (facts(staged=(STAGED,)), facts(IN_OTHER_LAYOUT, log_dir="/d2")),
        (facts(staged=(STAGED,)), facts(replica(problems=("symlink",), topic_id=None, inode=None), log_dir="/d2")),
    ],
    ids=["same name here", "same name there", "same id there", "other layout", "a link"],
)
def test_a15_a_live_twin_on_any_disk_refuses(disks: tuple[LogDirFacts, ...]) -> None:  # A15
    assert why(request(), *disks) is Why.LIVE_REPLICA_EXISTS


def test_a15_a_live_twin_is_found_by_the_id_in_the_marker_where_the_staged_name_has_none() -> None:
    item = staged_replicas(topic_id=None, name="orders-3")
    twin = facts(replica("new-3", log_dir="/d2", topic_id=ID), log_dir="/d2")
    assert why(request(item.name), facts(staged=(item,)), twin) is Why.LIVE_REPLICA_EXISTS


def test_a_live_neighbour_is_no_twin() -> None:
    d2 = facts(replica("orders-4", log_dir="/d2"), replica("t-3", log_dir="/d2"), log_dir="/d2")
    assert plan_restore(request(), [facts(staged=(STAGED,)), d2]).actions


def test_a15_a_log_dir_that_cannot_be_read_refuses() -> None:
    assert why(request(), facts(staged=(STAGED,)), DEAD) is Why.LOG_DIR_UNREADABLE
    assert why(request("nothing_0"), facts(), DEAD) is Why.LOG_DIR_UNREADABLE


@pytest.mark.parametrize("there", [future("orders-3", topic_id=None), future("new-3", topic_id=ID)])
def test_a13_a_future_on_any_disk_refuses(there: Any) -> None:  # A13
    assert why(request(), facts(staged=(STAGED,)), facts(there, log_dir="/d2")) is Why.FUTURE_REPLICA_EXISTS


def test_a_copy_on_its_way_in_refuses() -> None:
    coming = staged_replicas(log_dir="/d2", kind=Kind.INCOMING)
    assert why(request(), facts(staged=(STAGED,)), facts(log_dir="/d2", staged=(coming,))) is Why.INCOMING


@pytest.mark.parametrize(
    ("path", "layout", "command"),
    [(BY_ID, "topic-name", "logdirctl staged export"), ("orders-3", "topic-id", "logdirctl layout rollback")],
    ids=["by id", "by name"],
)
def test_one_of_the_other_layout_has_a_way_back_that_there_is(path: str, layout: str, command: str) -> None:
    disks = [facts(staged=(staged_replicas(replace(MARKER, path=path)),), layout=layout)]
    asked = RestoreRequest(selected=(("/d1", staged_replicas().name),), cluster=assigning(), is_even_if_unknown=True)
    (refusal,) = plan_restore(asked, disks).refusals
    assert (refusal.why, command in refusal.problem.fix) == (Why.LAYOUT_DIFFERS, True)


@pytest.mark.parametrize(
    ("path", "others", "expected"),
    [
        (BY_ID, ["topic-name"], Why.LAYOUT_DIFFERS),
        ("orders-3", ["topic-id"], Why.LAYOUT_DIFFERS),
        (BY_ID, ["topic-id"], None),
        (BY_ID, ["empty"], None),
        ("orders-3", ["empty", "topic-name"], None),
    ],
    ids=str,
)
def test_a_log_dir_without_replicas_has_the_layout_of_the_others(
    path: str, others: list[str], expected: Why | None
) -> None:
    """A stock broker does not start beside a topic-id directory, the last of a layout that was rolled back."""
    disks = [facts(staged=(staged_replicas(replace(MARKER, path=path)),), layout="empty")]
    disks += [facts(log_dir=f"/d{number}", layout=layout) for number, layout in enumerate(others, 2)]
    if expected is None:
        assert plan_restore(request(), disks).actions
    else:
        assert why(request(), *disks) is expected
        (refusal,) = plan_restore(request(), disks).refusals
        assert refusal.problem.expected == f"the {others[0]} layout, that of the other log dirs"


@pytest.mark.parametrize(
    ("intent", "start", "end", "written"),
    [
        (Intent.STAGED, 500, 500, 500),
        (Intent.STAGED, 501, 500, None),
        (Intent.STAGED, 7, None, 7),
        (Intent.CAPTURED, 7, None, None),
        (Intent.CAPTURED, 7, 8, 7),
        (Intent.CAPTURED, 0, None, 0),
        (Intent.STAGED, None, None, None),
    ],
)
def test_a30_no_log_start_is_written_behind_the_end_of_the_log(
    intent: Intent, start: int | None, end: int | None, written: int | None
) -> None:
    """A broker that finds one removes every segment of that log."""
    path = "orders-3" if intent is Intent.STAGED else f"orders-3.{'0' * 32}-delete"
    points = Checkpoints(recovery_point=3, log_start=start)
    marker = replace(MARKER, intent=intent, path=path, checkpoints=points)
    ends = {} if start is None else {("/d1", STAGED.name): end}
    asked = request(log_ends=ends, cluster=assigning(as_of_ms=WALL_MS + 1))
    (action,) = plan_restore(asked, [facts(staged=(staged_replicas(marker),))]).actions
    assert action.checkpoints == Checkpoints(recovery_point=3, log_start=written)
    assert ("no log start is written" in action.detail) is (start != written)


@pytest.mark.parametrize(
    ("changed", "disk", "expected"),
    [
        ({"cluster_id": "other"}, {}, Why.FOREIGN_MARKER),
        ({"node_id": 2}, {}, Why.FOREIGN_MARKER),
        ({"directory_id": "AAAAAAAAAAAAAAAAAAAAAA"}, {}, Why.FOREIGN_MARKER),
        ({}, {"directory_id": None}, Why.FOREIGN_MARKER),
        ({"directory_id": None}, {}, None),
        ({"path": "payments-3"}, {}, Why.FOREIGN_MARKER),
        ({"path": "orders-4"}, {}, Why.FOREIGN_MARKER),
        ({"path": "../orders-3"}, {}, Why.FOREIGN_MARKER),
        ({"path": render_id_dir(OTHER_ID, 3)}, {"layout": "topic-id"}, Why.FOREIGN_MARKER),
        ({"path": BY_ID}, {"layout": "topic-id"}, None),
        ({"path": BY_ID}, {"layout": "topic-name"}, Why.LAYOUT_DIFFERS),
        ({}, {"layout": "topic-id"}, Why.LAYOUT_DIFFERS),
        ({}, {"layout": "mixed"}, Why.LAYOUT_DIFFERS),
        ({"intent": Intent.INCOMING}, {}, Why.INCOMING),
        ({"topic": "__cluster_metadata", "path": "__cluster_metadata-3"}, {}, Why.METADATA_LOG),
    ],
    ids=str,
)
def test_a25_a_marker_must_be_of_this_host_log_dir_and_name(
    changed: dict[str, Any], disk: dict[str, Any], expected: Why | None
) -> None:  # A25
    disks = [facts(staged=(staged_replicas(replace(MARKER, **changed)),), **disk)]
    if expected is None:
        assert plan_restore(request(), disks).actions
    else:
        assert why(request(), *disks) is expected


def test_a25_a_copied_directory_does_not_speak_for_itself() -> None:
    assert why(request(), facts(staged=(staged_replicas(inode=78),))) is Why.FOREIGN_MARKER


def test_what_is_held_or_not_there_or_being_purged_is_refused() -> None:
    held = staged_replicas(marker=MARKER, problem=Problem("marker-unusable", "/d1/x", "a marker", "a torn one"))
    assert why(request(), facts(staged=(held,))) is Why.MARKER_UNUSABLE
    assert why(request(), facts(staged=(replace(held, marker=None),))) is Why.MARKER_UNUSABLE
    (refusal,) = plan_restore(request("nothing_0"), [facts(staged=(STAGED,))]).refusals
    require_whole(
        refusal.problem,
        Why.NOT_FOUND,
        path="/d1/deleting/nothing_0",
        expected="a staged replica",
        found="no such directory",
        fix="logdirctl staged ls lists those of every log dir",
    )
    purging = staged_replicas(kind=Kind.PURGING)
    assert why(request(purging.name), facts(staged=(purging,))) is Why.PURGING


def test_of_two_staged_copies_the_operator_chooses() -> None:
    second = staged_replicas(replace(MARKER, birth_inode=78), log_dir="/d2", counter=2)
    disks = facts(staged=(STAGED,)), facts(log_dir="/d2", staged=(second,))
    assert why(request(), *disks) is Why.AMBIGUOUS
    assert len(plan_restore(request(is_choice=True), disks).actions) == 1
    both = (("/d1", STAGED.name), ("/d2", second.name))
    plan = plan_restore(request(selected=both, is_choice=True), disks)
    assert plan.actions == ()
    assert [refusal.why for refusal in plan.refusals] == [Why.AMBIGUOUS, Why.AMBIGUOUS]


def test_two_of_one_name_with_different_ids_cannot_both_go_back() -> None:
    other = staged_replicas(replace(MARKER, topic_id=OTHER_ID, birth_inode=78))
    disks = [facts(staged=(STAGED, other))]
    assert len(plan_restore(request(), disks).actions) == 1
    plan = plan_restore(request(STAGED.name, other.name, cluster=ClusterState()), disks)
    assert [refusal.why for refusal in plan.refusals] == [Why.AMBIGUOUS, Why.AMBIGUOUS]


def test_a_captured_directory_lives_under_its_plain_name() -> None:
    captured = replace(MARKER, path=f"orders-3.{'a' * 32}-delete", intent=Intent.CAPTURED)
    assert live_path(captured) == "orders-3"
    assert live_path(replace(MARKER, path=f"orders-3.{'a' * 32}-future")) is None


LONG = "o" * 230
CUT = name_for(LONG, 3, DirForm.DELETE, "a" * 32)
"""What Kafka makes of it: 255 characters, of which 213 are the topic's."""


@pytest.mark.parametrize(
    ("topic", "path", "expected"),
    [
        (LONG, CUT, f"{LONG}-3"),
        (LONG[:213], CUT, None),
        (LONG[:214], CUT, f"{LONG[:214]}-3"),
        (f"{LONG[:213]}x", CUT, f"{LONG[:213]}x-3"),
        (f"x{LONG}", CUT, None),
        (LONG[:212], CUT, None),
        (f"{LONG[:213]}/..", CUT, None),
        (LONG + LONG, CUT, None),
        (LONG[:213], name_for(LONG[:213], 3, DirForm.STRAY, "a" * 32), f"{LONG[:213]}-3"),
        (LONG[:214], name_for(LONG, 3, DirForm.STRAY, "a" * 32), None),
    ],
    ids=["told", "cut", "told, one more", "told, another", "another", "shorter", "illegal", "too long", "not cut",
         "cut stray"],
)  # fmt: skip
def test_a17_of_a_name_kafka_cut_only_a_topic_told_whole_is_the_topic(
    topic: str, path: str, expected: str | None
) -> None:
    assert live_path(replace(MARKER, topic=topic, path=path, intent=Intent.CAPTURED)) == expected


def test_a17_a_capture_of_which_nobody_knows_the_topic_never_gets_a_live_name() -> None:
    marker = replace(MARKER, topic=LONG[:213], path=CUT, intent=Intent.CAPTURED, reason=Reason.CAPTURED, delay_ms=None)
    disks = [facts(staged=(staged_replicas(marker),))]
    for asked in (request(), request(cluster=ClusterState()), request(is_choice=True)):
        assert why(asked, *disks) is Why.TOPIC_NAME_UNKNOWN
    told = replace(marker, topic=LONG)
    there = {bytes(ID): Topic(LONG, bytes(ID), {3: Partition((1,), (1,))})}
    known = assigning(topics=there, names={LONG: bytes(ID)}, as_of_ms=WALL_MS + 1)  # assigned again since
    (action,) = plan_restore(request(cluster=known), [facts(staged=(staged_replicas(told),))]).actions
    assert action.path == f"{LONG}-3"


def test_a25_a_closed_disk_is_looked_at_and_nothing_of_it_taken_back() -> None:
    there = facts(staged=(STAGED,), quarantined=CLOSED)
    plan = plan_restore(request(is_choice=True), [there])
    assert plan.actions == ()
    assert plan.refusals[0].why is None
    assert plan.refusals[0].problem == CLOSED._replace(path=STAGED.place)
    # What lives there keeps its name, and what another disk holds may come back.
    twin = facts(replica("orders-3", log_dir="/d2"), log_dir="/d2", quarantined=CLOSED)
    assert why(request(), facts(staged=(STAGED,)), twin) is Why.LIVE_REPLICA_EXISTS
    other = facts(replica("t-1", log_dir="/d2"), log_dir="/d2", quarantined=CLOSED)
    assert plan_restore(request(), [facts(staged=(STAGED,)), other]).actions


def test_without_an_id_the_name_is_all_there_is() -> None:
    bare = staged_replicas(replace(MARKER, topic_id=None))
    assert bare.name == "no-id.orders_3"
    assert why(request(bare.name, is_even_if_unknown=False), facts(staged=(bare,))) is Why.ASSIGNMENT_UNKNOWN
    (action,) = plan_restore(request(bare.name), [facts(staged=(bare,))]).actions
    assert action.path == "orders-3"


@pytest.mark.parametrize("other", [{"partition": 4}, {"topic_id": OTHER_ID}], ids=["partition", "id"])
def test_a25_a_marker_differs_from_the_name_by_the_id_or_the_partition_alone(other: dict[str, Any]) -> None:
    item = replace(STAGED, ref=replace(STAGED.ref, **other))
    assert refuse_foreign(facts(staged=(STAGED,)), STAGED, MARKER) is None
    refusal = refuse_foreign(facts(staged=(item,)), item, MARKER)
    assert refusal is not None
    assert refusal.why is Why.FOREIGN_MARKER
