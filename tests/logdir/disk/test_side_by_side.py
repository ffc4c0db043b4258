"""One call for each of several items, a few at a time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from logdir.disk.side_by_side import for_each


@pytest.fixture(autouse=True)
def nobody_works_afterwards() -> Iterator[None]:
    before = set(threading.enumerate())  # what other tests left at work is none of ours
    yield
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_each_is_called_once_so_many_at_a_time(at_once: int) -> None:
    done: Counter[int] = Counter()
    now: set[int] = set()
    most = 0
    together = threading.Barrier(at_once)  # is passed only if that many are under way

    def call(item: int) -> None:
        nonlocal most
        now.add(item)
        most = max(most, len(now))
        together.wait(timeout=60)
        now.discard(item)
        done[item] += 1

    for_each(range(10 * at_once), call, at_once)
    assert done == Counter(range(10 * at_once))
    assert most == at_once


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_the_first_error_ends_it_for_all(at_once: int, kind: type[BaseException]) -> None:
    begun: list[int] = []

    def call(item: int) -> None:
        begun.append(item)
        if item == 4:
            raise kind("here")
        time.sleep(0.05)

    with pytest.raises(kind, match="here"):
        for_each(range(50), call, at_once)
    assert begun == list(range(len(begun)))
    assert 5 <= len(begun) <= 4 + 2 * at_once


def test_of_nothing_nothing_is_called() -> None:
    for_each([], pytest.fail, 2)


def test_where_no_thread_may_be_made_it_is_done_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    for_each(range(9), done.append, 3)
    assert done == list(range(9))
