"""Operations in the turns of a thread of changes that the test plays: answers, ends and cancellation."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, cast

import pytest

from logdir.daemon.faults import StoppingError, stopping_error
from logdir.daemon.operations import MOST_WAITING, OperationState
from logdir.daemon.release import RELEASE, ReleaseRequest
from logdir.daemon.requests import Answer
from logdir.daemon.socket import reads as reading
from logdir.daemon.socket.body import Asked
from logdir.daemon.socket.operating import Operating
from logdir.daemon.socket.refusals import BusyError, NoSuchOperationError, OperationBegunError
from logdir.daemon.socket.running import Came
from logdir.daemon.work import Work
from logdir.errors import ConfigError, Problem
from logdir.service.batch.use_cases import spec_of
from logdir.service.report.exit_status import Exit
from logdir.service.report.result import ItemsResult
from logdir.service.report.staged import Selection
from logdir.service.report.use_case import Ran
from tests.logdir.daemon.rig import until

RAN = Ran(exit=Exit.PROBLEMS, problems=(), result=ItemsResult(applied=True, items=()), lines=("a line",))
HOLD = Asked(spec_of("staged hold"), Selection("pay"), True)


class Left:
    """In place of the reads of a daemon: remembers what they left."""

    def __init__(self) -> None:
        self.log_dirs: list[str] = []

    def leave(self, log_dir: str) -> None:
        self.log_dirs.append(log_dir)


class Turns:
    """A queue whose turns the test takes; also the work that it is done on."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Callable[[Any], Any], Answer]] = deque()
        self.is_stopping = False
        self.done: list[object] = []
        self.error: Exception | None = None

    def submit(self, what: str, run: Callable[[Work], Came]) -> Answer:
        if self.is_stopping:
            raise stopping_error()
        answer: Future[Any] = Future()
        self.waiting.append((run, answer))
        return answer

    def turn(self) -> None:
        """Do as the thread of changes does with the next request."""
        run, answer = self.waiting.popleft()
        assert answer.set_running_or_notify_cancel()
        try:
            answer.set_result(run(self))
        except BaseException as error:  # noqa: BLE001 - as there
            answer.set_exception(error)

    def run(self, spec: object, request: object, *, is_applied: bool) -> Came:
        if self.error is not None:
            raise self.error
        self.done.append(request)
        return RAN, ("a warning",)

    def release(self, request: object, *, is_applied: bool) -> Came:
        return self.run(None, request, is_applied=is_applied)


class Rig:
    def __init__(self) -> None:
        self.turns, self.left = Turns(), Left()
        self.operating = Operating(self.turns, cast(reading.Reads, self.left))

    def add(self, asked: Asked = HOLD, size: int = 10) -> str:
        return self.operating.add(asked, size).id

    def ended(self, identity: str) -> dict[str, Any]:
        """Wait for the answer of an operation, and return it."""
        until("it has ended", lambda: self.operating.find(identity).operation.ended_at_ms is not None)
        answer = self.operating.find(identity).answer
        assert answer is not None
        found: dict[str, Any] = json.loads(answer)
        return found

    def state(self, identity: str) -> OperationState:
        return self.operating.find(identity).operation.state


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    made.operating.start()
    assert made.operating.is_alive()
    yield made
    made.operating.stop()
    assert not made.operating.is_alive()


def test_an_operation_is_done_in_its_turn_and_its_answer_is_that_of_the_use_case(rig: Rig) -> None:
    one, two = rig.add(), rig.add()
    assert [found.state for found in rig.operating.all()] == [OperationState.QUEUED] * 2
    rig.turns.turn()
    answer = rig.ended(one)
    assert (rig.state(one), rig.state(two)) == (OperationState.DONE, OperationState.QUEUED)
    assert answer == {
        "command": "staged hold", "format": 1, "exit": 1, "problems": [], "result": {"applied": True, "items": []},
        "lines": ["a line"], "warnings": ["a warning"], "is_waiting": False, "next": "",
    }  # fmt: skip
    found = rig.operating.find(one).operation
    assert (found.use_case, found.applied, found.exit) == ("staged-hold", True, 1)
    assert rig.turns.done == [Selection("pay")]


def test_it_runs_while_its_turn_lasts(rig: Rig) -> None:
    one = rig.add()
    seen = []
    rig.turns.run = lambda *_, **__: (seen.append(rig.state(one)), (RAN, ()))[1]  # type: ignore[method-assign,func-returns-value]
    rig.turns.turn()
    rig.ended(one)
    assert seen == [OperationState.RUNNING]


@pytest.mark.parametrize(
    ("error", "exit_status", "slug"),
    [
        (ConfigError((Problem("config-error", "SELECTOR", "a", "b"),)), 2, "config-error"),
        (stopping_error(), 4, "daemon-stopping"),
        (ValueError("a fault"), 5, "internal-error"),
    ],
)
def test_one_that_an_error_ends_has_failed_with_its_line(
    rig: Rig, error: Exception, exit_status: int, slug: str
) -> None:
    one = rig.add()
    rig.turns.error = error
    rig.turns.turn()
    answer = rig.ended(one)
    assert (rig.state(one), answer["exit"], answer["result"]) == (OperationState.FAILED, exit_status, {})
    assert [problem["slug"] for problem in answer["problems"]] == [slug]


def test_one_that_is_refused_before_its_turn_has_failed(rig: Rig) -> None:
    one = rig.add()
    _, answer = rig.turns.waiting.popleft()
    assert answer.set_running_or_notify_cancel()
    answer.set_exception(stopping_error())
    assert rig.ended(one)["problems"][0]["slug"] == "daemon-stopping"
    found = rig.operating.find(one).operation
    assert (found.state, found.begun_at_ms) == (OperationState.FAILED, None)


def test_one_that_is_cancelled_before_its_turn_is_not_done(rig: Rig) -> None:
    one, two = rig.add(), rig.add()
    assert rig.operating.cancel(one).state is OperationState.CANCELLED
    assert rig.operating.cancel(one).state is OperationState.CANCELLED
    rig.turns.turn()
    rig.turns.turn()
    rig.ended(two)
    assert rig.turns.done == [Selection("pay")]
    assert (rig.state(one), rig.operating.find(one).answer) == (OperationState.CANCELLED, None)


def test_one_that_has_begun_is_not_cancelled(rig: Rig) -> None:
    one = rig.add()
    refused: list[OperationBegunError] = []

    def run(*_: object, **__: object) -> Came:
        with pytest.raises(OperationBegunError, match="one that runs") as found:
            rig.operating.cancel(one)
        refused.append(found.value)
        return RAN, ()

    rig.turns.run = run  # type: ignore[method-assign]
    rig.turns.turn()
    rig.ended(one)
    assert len(refused) == 1
    with pytest.raises(
        OperationBegunError, match=f"one that is done; nothing was cancelled: GET /v1/operations/{one} "
    ):
        rig.operating.cancel(one)


def test_a_race_of_its_turn_and_its_cancellation_ends_in_one_of_both(rig: Rig) -> None:
    outcomes = set()
    for _ in range(200):
        one, done = rig.add(), len(rig.turns.done)
        both = threading.Barrier(2)
        cancelled: list[bool] = []

        def cancel(one: str = one, both: threading.Barrier = both, cancelled: list[bool] = cancelled) -> None:
            both.wait()
            try:
                rig.operating.cancel(one)
            except OperationBegunError:
                cancelled.append(False)
            else:
                cancelled.append(True)

        thread = threading.Thread(target=cancel)
        thread.start()
        both.wait()
        rig.turns.turn()
        thread.join()
        is_done = len(rig.turns.done) > done
        assert cancelled == [not is_done]
        outcomes.add(is_done)
    assert outcomes


def test_of_an_id_that_is_not_known_it_says_where_to_look(rig: Rig) -> None:
    for ask in (rig.operating.find, rig.operating.cancel):
        with pytest.raises(
            NoSuchOperationError, match="until a restart; ask what is so on the disks: logdirctl staged ls"
        ):
            ask("0-1")


def test_a_daemon_that_ends_takes_none_and_remembers_none(rig: Rig) -> None:
    rig.turns.is_stopping = True
    with pytest.raises(StoppingError):
        rig.add()
    assert rig.operating.all() == ()


def test_no_more_wait_than_there_is_room_for(rig: Rig) -> None:
    for _ in range(MOST_WAITING):
        rig.add()
    with pytest.raises(BusyError, match="at most 1000 that wait"):
        rig.add()
    assert len(rig.operating.all()) == 1000
    rig.turns.turn()
    rig.add()


def test_a_request_that_is_cancelled_is_let_go_although_its_turn_is_still_to_come(rig: Rig) -> None:
    one = rig.add(HOLD._replace(request=Selection("large")))
    rig.operating.cancel(one)
    assert rig.operating._asked == {}


def test_a_disk_that_was_let_go_is_left_by_the_reads_before_the_operation_is_done(rig: Rig) -> None:
    release = Asked(RELEASE, ReleaseRequest(log_dir="/d1"), True)
    planned, failed, done = rig.add(release._replace(is_applied=False)), rig.add(release), rig.add(release)
    rig.turns.turn()
    rig.ended(planned)
    rig.turns.error = stopping_error()
    rig.turns.turn()
    rig.ended(failed)
    assert rig.left.log_dirs == []
    rig.turns.error = None
    rig.turns.turn()
    rig.ended(done)
    assert rig.left.log_dirs == ["/d1"]


def test_two_daemons_give_no_id_twice() -> None:
    assert Rig().add() != Rig().add()
