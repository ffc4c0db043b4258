"""What may be captured, for how long it is kept, and what nobody captures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdir.decide.capture import CaptureRequest, CaptureRoom, plan_capture
from logdir.decide.staged.deadline import DelayPolicy
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, Replica
from logdir.refusal_slug import Why
from tests.logdir.decide.builders import HOUR_MS, altered, facts, replica
from tests.whole_refusal import require_whole

DELETE = replica(f"orders-3.{'0' * 32}-delete", kind=Kind.DELETE)
STRAY = replica(f"orders-4.{'0' * 32}-stray", kind=Kind.STRAY)
LONG = "o" * 213
CUT = replica(f"{LONG}-3.{'0' * 32}-delete", kind=Kind.DELETE, topic=LONG)
ROOM = CaptureRoom(free_bytes=10, total_bytes=100, free_inodes=10, total_inodes=100)
DELAYS = DelayPolicy(default_ms=4 * HOUR_MS, patterns=(("ord*", 5 * HOUR_MS),))


def decide(
    *there: Replica, room: CaptureRoom | None = ROOM, is_held: bool = False, one: LogDirFacts | None = None
) -> tuple[list[tuple[str, int | None]], list[tuple[str, Why | None]]]:
    request = CaptureRequest(
        selected=tuple((item.log_dir, item.path) for item in there), delays=DELAYS, is_held=is_held
    )
    plan = plan_capture(request, [one or facts(*there)], {} if room is None else {"/d1": room})
    return (
        [(action.replica.path, action.delay_ms) for action in plan.actions],
        [(refusal.path, refusal.why) for refusal in plan.refusals],
    )


def test_what_a_broker_removes_comes_first_and_gets_the_delay_of_its_topic() -> None:
    assert decide(STRAY, DELETE) == ([(DELETE.path, 18_000_000), (STRAY.path, None)], [])


@pytest.mark.parametrize("item", [STRAY, CUT], ids=["stray", "cut name"])
def test_what_nobody_may_name_for_sure_or_no_broker_removes_is_held(item: Replica) -> None:
    assert decide(item) == ([(item.path, None)], [])


def test_held_where_that_is_asked() -> None:
    assert decide(DELETE, is_held=True) == ([(DELETE.path, None)], [])


@pytest.mark.parametrize(
    ("room", "is_enough"),
    [
        (ROOM, True),
        (replace(ROOM, free_bytes=9), False),
        (replace(ROOM, free_inodes=9), False),
        (replace(ROOM, free_inodes=0, total_inodes=0), True),
    ],
    ids=["a tenth", "less bytes", "less inodes", "inodes as needed"],
)
def test_a17_nothing_is_captured_on_a_disk_with_less_than_a_tenth_free(room: CaptureRoom, is_enough: bool) -> None:
    done, refused = decide(DELETE, room=room)
    assert [path for path, _ in done] == ([DELETE.path] if is_enough else [])
    assert refused == ([] if is_enough else [(DELETE.path, Why.LOW_SPACE)])


def test_a17_a_disk_with_too_little_free_is_refused_in_figures() -> None:
    request = CaptureRequest(selected=(("/d1", DELETE.path),), delays=DELAYS)
    (refusal,) = plan_capture(request, [facts(DELETE)], {"/d1": replace(ROOM, free_bytes=9)}).refusals
    require_whole(
        refusal.problem,
        Why.LOW_SPACE,
        path=f"/d1/{DELETE.path}",
        expected="at least 10 % of the bytes of its disk free",
        found="9 of 100",
        fix="free space first: what is captured keeps the space that its broker would free",
    )


def test_a_directory_that_its_broker_has_removed_meanwhile_is_refused() -> None:
    request = CaptureRequest(selected=(("/d1", DELETE.path),), delays=DELAYS)
    (refusal,) = plan_capture(request, [facts()], {"/d1": ROOM}).refusals
    require_whole(
        refusal.problem,
        Why.NOT_FOUND,
        path=f"/d1/{DELETE.path}",
        expected="a -delete or -stray directory",
        found="no such directory: its broker has removed it, or taken it back",
        fix="logdirctl describe lists the replicas on all disks",
    )


@pytest.mark.parametrize(
    ("item", "one", "why"),
    [
        (altered(DELETE, topic="__cluster_metadata"), None, Why.METADATA_LOG),
        (replace(DELETE, unexpected_entries=("sub",)), None, Why.UNEXPECTED_ENTRY),
        (replace(DELETE, problems=("symlink",)), None, Why.NOT_A_PLAIN_DIRECTORY),
        (DELETE, facts(DELETE, quarantined=Problem("sync-failed", "/d1", "a sync", "a failed one")), None),
        (DELETE, facts(DELETE, cluster_id=None, node_id=None), Why.NOT_FORMATTED),
        (DELETE, facts(), Why.NOT_FOUND),
    ],
    ids=["metadata log", "sub-directory", "link", "closed", "not formatted", "gone"],
)
def test_what_is_not_captured(item: Replica, one: LogDirFacts | None, why: Why | None) -> None:
    assert decide(item, one=one) == ([], [(item.path, why)])


def test_nothing_is_captured_without_a_work_root() -> None:
    assert decide(DELETE, room=None) == ([], [(DELETE.path, Why.NO_WORK_ROOT)])


STALE = Problem("stale-disk", "/d1", "a disk that was never away", "a heartbeat 2 hours behind the other disks'")


def test_a25_a_disk_quarantined_only_as_stale_gets_captures() -> None:
    assert decide(DELETE, STRAY, one=facts(DELETE, STRAY, quarantined=STALE)) == (
        [(DELETE.path, 18_000_000), (STRAY.path, None)],
        [],
    )


@pytest.mark.parametrize("slug", ["sync-failed", "disk-read-only", "log-dir-offline", "changed-since-plan"])
def test_a25_a_disk_quarantined_for_anything_else_gets_none(slug: str) -> None:
    assert decide(DELETE, one=facts(DELETE, quarantined=STALE._replace(slug=slug))) == ([], [(DELETE.path, None)])


def test_a25_a_stale_disk_gets_no_capture_that_is_refused_on_any_disk() -> None:
    stale = facts(DELETE, quarantined=STALE)
    assert decide(DELETE, one=stale, room=None) == ([], [(DELETE.path, Why.NO_WORK_ROOT)])
    assert decide(DELETE, one=stale, room=replace(ROOM, free_bytes=9)) == ([], [(DELETE.path, Why.LOW_SPACE)])
