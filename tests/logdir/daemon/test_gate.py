"""The gate's limit: it ends in time whatever it waits for, and waits for a daemon that is only passing."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logdir.daemon.faults import StoppingError, stopping_error
from logdir.daemon.socket import client, gate
from logdir.daemon.socket.client import DaemonUnreachableError
from logdir.daemon.socket.gate import GateTimedOutError, handed_over
from logdir.errors import LogDirError, Problem, RefusedError, WorkRootOwnedError
from logdir.refusal_slug import Why
from logdir.service.report.exit_status import AnsweredError, Exit, exit_for


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make its margin and the time between two tries short."""
    monkeypatch.setattr(gate, "_MARGIN_S", 0.05)
    monkeypatch.setattr(gate, "_AGAIN_S", 0.01)


def timed_out(run: Callable[[], object]) -> GateTimedOutError:
    with pytest.raises(GateTimedOutError) as raised:
        handed_over(run, 0.3)
    return raised.value


def test_what_does_not_end_is_ended_and_refused() -> None:
    error = timed_out(lambda: threading.Event().wait(600))
    assert exit_for(error) == Exit.REFUSED
    assert error.problem().line().startswith("gate-timed-out: handover: ")
    assert "within 0.3 s" in error.expected


def test_a_daemon_that_takes_the_request_and_does_not_answer_is_waited_for_no_longer(tmp_path: Path) -> None:
    """As one that is stopped by SIGSTOP: the kernel takes the connection."""
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        assert client.is_answering(path)
        timed_out(lambda: client.status(path))


@pytest.mark.parametrize(
    "error",
    [
        stopping_error(),
        AnsweredError((stopping_error().problem(),)),
        AnsweredError((Problem("daemon-busy", "control socket", "at most 64 clients", "one more"),)),
        AnsweredError((Problem("daemon-reopening", "/d1", "open log dirs", "others"),)),
        AnsweredError((Problem("log-dir-replaced", "/d1", "the directory that was opened", "another"),)),
        AnsweredError((Problem(Why.CONFIGURATION_CHANGED.value, "s.properties", "as before", "another"),)),
        WorkRootOwnedError("/d1", expected="no other logdird", found="one"),
        DaemonUnreachableError("/s", expected="a daemon", found="none"),
    ],
    ids=lambda error: f"{type(error).__name__} {error.slug}",
)
def test_what_passes_is_tried_again(error: LogDirError) -> None:
    left = [error, error]

    def run() -> str:
        if left:
            raise left.pop()
        return "done"

    if isinstance(error, StoppingError):  # Not an answer of a daemon: no command raises it by itself.
        with pytest.raises(StoppingError):
            handed_over(run, 30)
    else:
        assert handed_over(run, 30) == "done"
        assert not left


def test_what_does_not_pass_is_refused_at_once_and_what_never_passes_by_its_own_name() -> None:
    calls: list[int] = []

    def refuse(error: LogDirError) -> None:
        calls.append(1)
        raise error

    refused = RefusedError("/d1", why=Why.LOG_DIRS_INCOMPLETE, expected="all", found="one less", fix="repair it")
    for one in (refused, AnsweredError((refused.problem(),))):
        with pytest.raises(type(one)):
            handed_over(lambda: refuse(one), 30)  # noqa: B023 - called before the next one
    assert len(calls) == 2
    owned = WorkRootOwnedError("/d1", expected="no other logdird", found="one")
    with pytest.raises(WorkRootOwnedError):
        handed_over(lambda: refuse(owned), 0.3)
    assert len(calls) > 3


@pytest.fixture
def alarm() -> Iterator[list[int]]:
    """Have a timer of this process run, as another part of it may."""
    rung: list[int] = []
    handler = signal.signal(signal.SIGALRM, lambda number, at: rung.append(number))
    before = signal.setitimer(signal.ITIMER_REAL, 100)
    yield rung
    signal.setitimer(signal.ITIMER_REAL, *before)
    signal.signal(signal.SIGALRM, handler)


@pytest.mark.parametrize("is_over", [False, True])
def test_another_timer_of_the_process_goes_on_afterwards(alarm: list[int], *, is_over: bool) -> None:
    if is_over:
        timed_out(lambda: threading.Event().wait(600))
    else:
        assert handed_over(lambda: 7, 30) == 7
    left_s, _ = signal.getitimer(signal.ITIMER_REAL)
    assert 0 < left_s <= 100
    signal.raise_signal(signal.SIGALRM)
    assert alarm == [signal.SIGALRM]


def test_beside_the_main_thread_there_is_no_limit() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(handed_over(lambda: 7, 30)))
    thread.start()
    thread.join()
    assert found == [7]
