"""The store of operations: their states, and what is forgotten when there is no more room."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from logdir.daemon.operations import Operation, Operations, OperationState

ANSWER = b'{"exit":0}'
SMALL = 10
"""Bytes of ``ANSWER``."""


def store(**limits: int) -> Operations:
    return Operations("1f", **limits)


def added(operations: Operations, *, size: int = 1, at_ms: int = 1) -> str:
    made = operations.add("staged-hold", is_applied=True, request_bytes=size, now_ms=at_ms)
    assert made is not None
    return made.id


def done(operations: Operations, identity: str, *, answer: bytes = ANSWER, at_ms: int = 3) -> None:
    assert operations.begin(identity, 2)
    operations.end(identity, at_ms, exit_status=0, answer=answer, is_done=True)


def state(operations: Operations, identity: str) -> OperationState | None:
    found = operations.get(identity)
    return None if found is None else found.state


def test_an_operation_waits_runs_and_is_done() -> None:
    operations = store()
    one = added(operations, at_ms=10)
    queued = Operation(id=one, use_case="staged-hold", applied=True, state=OperationState.QUEUED, queued_at_ms=10)
    assert operations.get(one) == queued
    assert operations.begin(one, 20)
    assert (state(operations, one), operations.answer(one)) == (OperationState.RUNNING, None)
    operations.end(one, 30, exit_status=1, answer=ANSWER, is_done=True)
    found = operations.get(one)
    assert found is not None
    assert (found.state, found.begun_at_ms, found.ended_at_ms, found.exit) == (OperationState.DONE, 20, 30, 1)
    assert (operations.answer(one), found.is_answer_left_out) == (ANSWER, False)


def test_one_that_an_error_ends_has_failed_whether_it_had_begun_or_not() -> None:
    operations = store()
    one, two = added(operations), added(operations)
    assert operations.begin(one, 2)
    for identity in (one, two):
        operations.end(identity, 3, exit_status=4, answer=ANSWER, is_done=False)
        assert (state(operations, identity), operations.answer(identity)) == (OperationState.FAILED, ANSWER)
    found = operations.get(two)
    assert found is not None
    assert found.begun_at_ms is None


def test_one_that_was_cancelled_is_not_begun_and_its_end_changes_nothing() -> None:
    operations = store()
    one = added(operations)
    assert operations.cancel(one, 5)
    assert operations.cancel(one, 6)  # A second time changes nothing.
    assert not operations.begin(one, 7)
    operations.end(one, 8, exit_status=4, answer=ANSWER, is_done=False)
    found = operations.get(one)
    assert found is not None
    assert (found.state, found.begun_at_ms, found.ended_at_ms) == (OperationState.CANCELLED, None, 5)
    assert (found.exit, operations.answer(one)) == (None, None)


def test_what_has_begun_is_not_cancelled() -> None:
    operations = store()
    one, two, three = added(operations), added(operations), added(operations)
    for identity in (one, two, three):
        assert operations.begin(identity, 2)
    operations.end(two, 3, exit_status=0, answer=ANSWER, is_done=True)
    operations.end(three, 3, exit_status=4, answer=ANSWER, is_done=False)
    before = operations.all()
    assert [operations.cancel(identity, 4) for identity in (one, two, three)] == [False] * 3
    assert operations.all() == before


def test_of_an_id_that_is_not_known_nothing_is_so() -> None:
    operations = store()
    assert operations.get("1f-1") is None
    assert operations.answer("1f-1") is None
    assert not operations.cancel("1f-1", 1)
    assert not operations.begin("1f-1", 1)
    operations.end("1f-1", 1, exit_status=0, answer=ANSWER, is_done=True)
    operations.forget("1f-1")
    assert operations.all() == ()


@pytest.mark.parametrize("order", list(itertools.permutations(("begin", "cancel", "end", "fail"))))
def test_whatever_comes_in_whatever_order_a_state_that_is_final_stays(order: tuple[str, ...]) -> None:
    operations = store()
    one = added(operations)
    events: dict[str, Callable[[], object]] = {
        "begin": lambda: operations.begin(one, 2),
        "cancel": lambda: operations.cancel(one, 3),
        "end": lambda: operations.end(one, 4, exit_status=0, answer=ANSWER, is_done=True),
        "fail": lambda: operations.end(one, 5, exit_status=4, answer=ANSWER, is_done=False),
    }
    final = (OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED)
    ended: Operation | None = None
    for event in order:
        events[event]()
        found = operations.get(one)
        assert found is not None
        if ended is not None:
            assert found == ended
        elif found.state in final:
            ended = found
            assert (found.ended_at_ms is not None, found.exit is None) == (
                True,
                found.state is OperationState.CANCELLED,
            )
    assert ended is not None


def test_no_id_is_given_twice_and_each_begins_with_the_word() -> None:
    operations = store(most_ended=1)
    found = []
    for _ in range(20):
        found.append(added(operations))
        done(operations, found[-1])
    assert len(set(found)) == 20
    assert all(identity.startswith("1f-") for identity in found)
    assert Operations("2a").get(found[-1]) is None


def test_only_so_many_wait_and_one_that_was_cancelled_counts_until_its_turn() -> None:
    operations = store(most_waiting=2)
    one, two = added(operations), added(operations)
    assert operations.add("stage", is_applied=False, request_bytes=0, now_ms=1) is None
    assert operations.cancel(one, 2)
    # Its request still lies in the queue.
    assert operations.add("stage", is_applied=False, request_bytes=0, now_ms=1) is None
    assert not operations.begin(one, 3)
    three = added(operations)
    done(operations, two)
    added(operations)
    assert {two, three} < {found.id for found in operations.all()}


def test_only_so_many_bytes_wait_and_one_request_may_have_all_of_them() -> None:
    operations = store(most_waiting_bytes=100)
    one = added(operations, size=100)
    assert operations.add("stage", is_applied=False, request_bytes=1, now_ms=1) is None
    assert operations.begin(one, 2)
    assert operations.add("stage", is_applied=False, request_bytes=101, now_ms=1) is None
    two = added(operations, size=60)
    added(operations, size=40)
    operations.end(two, 3, exit_status=4, answer=b"", is_done=False)  # Refused before its turn.
    added(operations, size=60)
    assert operations.add("stage", is_applied=False, request_bytes=1, now_ms=1) is None


def test_what_could_not_be_queued_is_forgotten_and_takes_no_room() -> None:
    operations = store(most_waiting=1)
    one = added(operations)
    operations.forget(one)
    assert operations.get(one) is None
    added(operations)


def test_the_oldest_that_have_ended_are_forgotten_and_none_that_waits_or_runs() -> None:
    operations = store(most_ended=2)
    waits, runs = added(operations), added(operations)
    assert operations.begin(runs, 2)
    ended = [added(operations) for _ in range(4)]
    for identity in ended[:3]:
        done(operations, identity)
    assert operations.cancel(ended[3], 4)
    assert [found.id for found in operations.all()] == [waits, runs, *ended[2:]]
    assert [operations.answer(identity) for identity in ended] == [None, None, ANSWER, None]
    # The one that runs ends last, and is the newest.
    operations.end(runs, 5, exit_status=0, answer=ANSWER, is_done=True)
    assert [found.id for found in operations.all()] == [waits, runs, ended[3]]


def test_one_that_was_cancelled_and_forgotten_is_not_begun() -> None:
    operations = store(most_ended=1)
    one, two = added(operations), added(operations)
    assert operations.cancel(one, 2)
    assert operations.cancel(two, 2)
    assert operations.get(one) is None
    assert not operations.begin(one, 3)


def test_the_oldest_answers_go_first_and_the_operations_stay_with_their_exit() -> None:
    operations = store(most_answer_bytes=2 * SMALL)
    found = [added(operations) for _ in range(3)]
    for identity in found:
        done(operations, identity)
    assert [operations.answer(identity) for identity in found] == [None, ANSWER, ANSWER]
    states = [(one.state, one.exit, one.is_answer_left_out) for one in operations.all()]
    assert states == [
        (OperationState.DONE, 0, True),
        (OperationState.DONE, 0, False),
        (OperationState.DONE, 0, False),
    ]


def test_an_answer_that_is_larger_than_all_the_room_is_not_kept_and_takes_none() -> None:
    operations = store(most_answer_bytes=2 * SMALL)
    one, two, three = added(operations), added(operations), added(operations)
    done(operations, one)
    done(operations, two, answer=b"x" * (2 * SMALL + 1))
    assert (operations.answer(one), operations.answer(two)) == (ANSWER, None)
    found = operations.get(two)
    assert found is not None
    assert (found.state, found.is_answer_left_out) == (OperationState.DONE, True)
    done(operations, three, answer=b"x" * 2 * SMALL)
    assert (operations.answer(one), operations.answer(three)) == (None, b"x" * 2 * SMALL)


def test_the_room_of_what_is_forgotten_is_free_again() -> None:
    operations = store(most_ended=1, most_answer_bytes=SMALL)
    for _ in range(50):
        one = added(operations)
        done(operations, one)
        assert operations.answer(one) == ANSWER
    assert len(operations.all()) == 1
