"""The threads that answer clients: one for each, kept for the next one, and none is left after a while."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from logdir.daemon.socket.thread_pool import MOST_IDLE, ThreadPool
from tests.logdir.daemon.rig import until


def threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "client"]


def test_a_thread_that_has_answered_answers_the_next_client() -> None:
    found: list[tuple[int, int]] = []
    pool = ThreadPool[int](lambda client: found.append((client, threading.get_ident())), idle_s=60)
    for number in range(20):
        until("one before it waits", lambda: number == 0 or pool._free == 1)  # noqa: B023
        pool.give(number)
        until("it is answered", lambda: len(found) == number + 1)  # noqa: B023
    assert [client for client, _ in found] == list(range(20))
    assert len({thread for _, thread in found}) == 1


def test_clients_at_the_same_time_have_a_thread_each_and_few_of_them_wait() -> None:
    met = threading.Barrier(3 * MOST_IDLE)
    pool = ThreadPool[int](lambda _: (met.wait(30), None)[1], idle_s=60)
    before = len(threads())
    for number in range(met.parties):
        pool.give(number)
    until("all others have ended", lambda: len(threads()) - before == MOST_IDLE)
    assert pool._free == MOST_IDLE


def test_of_a_pool_that_nobody_asks_no_thread_is_left() -> None:
    before = set(threads())
    pool = ThreadPool[int](lambda _: None, idle_s=0.05)
    for number in range(5):
        pool.give(number)
    until("all have ended", lambda: not set(threads()) - before)
    assert pool._free == 0
    pool.give(0)
    until("it has ended, too", lambda: not set(threads()) - before)


def test_no_client_is_lost_while_threads_end() -> None:
    """They wait no longer than it takes to ask again, so that many clients come as one ends."""
    found: Counter[int] = Counter()
    pool = ThreadPool[int](lambda client: found.update((client,)), idle_s=0.0)
    for number in range(3_000):
        pool.give(number)
    until("all are answered", lambda: len(found) == 3_000)
    assert set(found.values()) == {1}


def test_without_a_thread_it_is_an_error_and_the_next_client_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    pool = ThreadPool[int](found.append, idle_s=60)

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError):
            pool.give(1)
    pool.give(2)
    until("it is answered", lambda: found == [2])
