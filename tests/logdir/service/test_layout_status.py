"""What a look at the layout concludes: which verb follows, and whether a broker can start."""

from __future__ import annotations

import pytest

from logdir.decide.layout.action import LayoutView, Replica
from logdir.disk.record.start_block import StartBlockState
from logdir.errors import Problem
from logdir.formats.own.layout_file import LayoutFile, LayoutState
from logdir.ids import TopicId
from logdir.replica_ref import ReplicaRef
from logdir.service.layout_status import BrokerStart, LayoutStatus, LogDirLayout, StatusNext, status
from logdir.service.log_dirs.request import BrokerRequest
from tests.builders import TOPIC_ID

_ID = TopicId.parse(TOPIC_ID)
_REF = ReplicaRef(topic="a", topic_id=_ID, partition=0)
NAME, UNDER_ID = Replica("a-0", _REF), Replica(f"eX/{TOPIC_ID}_0", _REF)


def one(
    log_dir: str = "/d1",
    *,
    state: LayoutState | None = None,
    start_block: StartBlockState = StartBlockState.NONE,
    replica: Replica = NAME,
    inside: bool = False,
) -> LogDirLayout:
    file = None if state is None else LayoutFile(state, "0" * 64, "c", 1)
    names = ("deleting",) if inside else ()
    seen = LayoutView(log_dir, "c", 1, file, (replica,), (), names)
    return LogDirLayout(log_dir=log_dir, seen=seen, start_block=start_block)


AWAY = LogDirLayout(log_dir="/d2", problem=Problem("log-dir-offline", "/d2", "a log dir that answers", "no such file"))
APPLIED = one(state=LayoutState.APPLIED, start_block=StartBlockState.SET, replica=UNDER_ID)
BACK = LayoutState.ROLLING_BACK


@pytest.mark.parametrize(
    ("found", "following", "start"),
    [
        ((one(),), StatusNext.INVENTORY, BrokerStart.FREE),
        ((one(), AWAY), StatusNext.INVENTORY, BrokerStart.UNKNOWN),
        ((APPLIED, AWAY), StatusNext.INVENTORY, BrokerStart.SET),
        ((), StatusNext.ROLLBACK, BrokerStart.UNKNOWN),
        ((APPLIED,), StatusNext.ROLLBACK, BrokerStart.SET),
        ((APPLIED, one("/d2")), StatusNext.ROLLBACK, BrokerStart.SET),
        ((one(replica=UNDER_ID),), StatusNext.ROLLBACK, BrokerStart.UNDER_IDS),
        ((one(state=LayoutState.FINAL, replica=UNDER_ID),), StatusNext.ROLLBACK, BrokerStart.UNDER_IDS),
        ((one(state=LayoutState.APPLYING),), StatusNext.ROLLBACK, BrokerStart.FREE),
        ((one(start_block=StartBlockState.PARTIAL),), StatusNext.ROLLBACK, BrokerStart.FREE),
        ((one(inside=True),), StatusNext.UNINSTALL, BrokerStart.INSIDE),
        ((one(inside=True, state=BACK, start_block=StartBlockState.SET),), StatusNext.UNINSTALL, BrokerStart.SET),
        ((one(inside=True, state=LayoutState.APPLYING),), StatusNext.ROLLBACK, BrokerStart.INSIDE),
        ((one(inside=True, replica=UNDER_ID),), StatusNext.ROLLBACK, BrokerStart.UNDER_IDS),
    ],
    ids=[
        "nothing", "one away", "applied, one away", "no log dir", "applied", "applied, another not begun",
        "layout.json lost", "final", "begun", "half a start block", "inside", "inside at the end of a way back",
        "inside, begun", "inside, under ids",
    ],
)  # fmt: skip
def test_a_look_says_what_follows_and_whether_a_broker_starts(
    found: tuple[LogDirLayout, ...], following: StatusNext, start: BrokerStart
) -> None:
    found_status = LayoutStatus(log_dirs=found)
    assert (found_status.next, found_status.start) == (following, start)


@pytest.mark.parametrize(
    ("states", "verb"),
    [
        (("applying", "applied"), "apply"),
        (("applied", "verified"), "verify"),
        (("applied",), "verify"),
        (("verified",), None),
        (("applied", None), None),
        (("applying", "rolling-back"), None),
        (("finalizing",), None),
        ((), None),
    ],
    ids=str,
)
def test_a_plan_goes_on_only_where_every_log_dir_is_on_its_way_there(
    states: tuple[str | None, ...], verb: str | None
) -> None:
    found = tuple(one(state=None if state is None else LayoutState(state)) for state in states)
    assert LayoutStatus(log_dirs=found).goes_on_with == verb


def test_a_log_dir_that_is_not_there_is_a_problem_and_no_error() -> None:
    (found,) = status(BrokerRequest(log_dirs="/nowhere/d1")).log_dirs
    assert (found.counts, found.layout, found.state, found.plan_sha256) == ((None, None, None), None, None, None)
    assert found.problem is not None
    assert found.problem.slug == "log-dir-offline"
