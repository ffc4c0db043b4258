"""One call for each of several items, a few at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.disk.kernel.fanout import for_each
from logdir.observe.awaited import is_getting_on

HOME = Path(__file__).parents[3]


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


_AWAITED = """
import signal, threading, time
from logdir.disk.kernel.fanout import for_each
from logdir.observe.awaited import is_getting_on
woken = []
signal.signal(signal.SIGALRM, lambda *_: woken.append(1))
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
begun = threading.Event()

def call(item):
    if threading.current_thread() is threading.main_thread():
        begun.wait()
    else:
        begun.set()
        time.sleep(1.5)

for_each(range(2), call, 2)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(woken) >= 5)
"""


def test_who_waits_for_a_thread_still_handles_signals() -> None:
    """A worker gives its signs of life so, and restarts interrupted calls."""
    done = subprocess.run([sys.executable, "-c", _AWAITED], cwd=HOME, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_thread_that_hangs_is_no_work() -> None:
    """A worker whose helper hangs in the kernel must not pass for one that is at work."""
    begun, ended = threading.Event(), threading.Event()
    found: list[bool] = []

    def look() -> None:
        begun.wait()
        time.sleep(0.5)
        is_getting_on()
        time.sleep(0.3)
        found.append(is_getting_on())
        ended.set()

    def call(item: int) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait()
        else:
            begun.set()
            ended.wait()

    looking = threading.Thread(target=look)
    looking.start()
    for_each(range(2), call, 2)
    looking.join()
    assert found == [False]
    assert is_getting_on()


def test_of_nothing_nothing_is_called() -> None:
    for_each([], pytest.fail, 2)


def test_where_no_thread_may_be_made_it_is_done_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    for_each(range(9), done.append, 3)
    assert done == list(range(9))


def test_an_interrupt_while_a_thread_is_started_ends_it_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    called: list[int] = []
    monkeypatch.setattr(threading.Thread, "start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        for_each(range(5), called.append, 2)
    assert called == []
