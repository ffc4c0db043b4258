"""Replicas that a purge was to remove and that are still there: why, and whose loss was logged."""

from __future__ import annotations

from logdir.daemon.faults import reloading_error
from logdir.daemon.purging.undone import Undone
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts
from logdir.service.report.result import ItemResult, ItemState
from tests.logdir.decide.builders import MARKER, facts, staged_replicas

STAGED, CLAIMED = staged_replicas(MARKER), staged_replicas(MARKER, kind=Kind.PURGING)
WHY = Problem("disk-error", STAGED.place, "a call that succeeds", "Operation not permitted", "remove the cause")
UNREAD = LogDirFacts(log_dir="/d1", problem=WHY)


def row(state: ItemState = ItemState.UNDONE, problem: Problem | None = WHY, *, is_claimed: bool = False) -> ItemResult:
    new_path = CLAIMED.path if is_claimed else None
    return ItemResult(log_dir="/d1", path=STAGED.path, state=state, problem=problem, new_path=new_path)


def test_a_problem_is_new_once() -> None:
    one = Undone()
    assert [one.note([row()]) for _ in range(3)] == [[WHY], [], []]
    other = Problem("disk-error", STAGED.place, "a call that succeeds", "No space left on device", "free space")
    assert (one.note([row(problem=other)]), one.problems) == ([other], (other,))


def test_what_is_done_or_stays_or_goes_on_has_no_problem() -> None:
    later = reloading_error("/etc/logdird/b1.yaml").problem()
    for after in (row(ItemState.DONE, None), row(ItemState.KEPT), row(problem=None), row(problem=later)):
        one = Undone()
        one.note([row()])
        assert (one.note([after]), one.problems) == ([], ())


def test_a_claimed_replica_whose_removal_failed_is_known_by_its_new_place() -> None:
    one = Undone()
    one.note([row(is_claimed=True)])
    assert one.failed == {("/d1", CLAIMED.path)}
    assert one.problems == (WHY,)
    one.note([row()])
    assert one.failed == {("/d1", CLAIMED.path)}


def test_of_what_an_operator_named_only_claimed_replicas_are_left_to_the_daemon() -> None:
    one = Undone()
    assert one.note_requested([row()]) == []
    assert one.note_requested([row(is_claimed=True)]) == [WHY]


def test_a_loss_counts_as_logged_as_long_as_its_replica_is_there() -> None:
    one = Undone()
    one.announced.add(("/d1", STAGED.path))
    one.note([row(problem=None, is_claimed=True)])
    assert one.announced == {("/d1", CLAIMED.path)}
    one.keep_only([facts(staged_replicas=(CLAIMED,))], ())
    one.keep_only([UNREAD], ())
    assert one.announced == {("/d1", CLAIMED.path)}
    one.keep_only([facts()], ())
    assert one.announced == set()


def test_what_is_gone_waits_no_more() -> None:
    one = Undone()
    one.note([row()])
    for there in (facts(staged_replicas=(STAGED,)), UNREAD):
        one.keep_only([there], ())
        assert one.problems == (WHY,)
    one.keep_only([facts()], ())
    assert one.problems == ()


def test_what_was_to_go_early_waits_until_its_disk_has_room_unless_it_is_claimed() -> None:
    one, claimed = Undone(), Undone()
    one.note([row()], is_early=True)
    claimed.note([row(is_claimed=True)], is_early=True)
    both = [facts(staged_replicas=(STAGED, CLAIMED))]
    one.keep_only(both, {"/d1"})
    assert one.problems == (WHY,)
    for undone in (one, claimed):
        undone.keep_only(both, ())
    assert [undone.problems for undone in (one, claimed)] == [(), (WHY,)]
