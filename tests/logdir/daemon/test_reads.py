"""The use cases that only read, in the daemon: how many, for how long, what they leave out, what is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logdir import clock
from logdir.daemon.config import DaemonConfig
from logdir.daemon.faults import StoppingError
from logdir.daemon.release import released
from logdir.daemon.report.status import LogDirStatus, StatusResult, blank_status
from logdir.daemon.socket import reads as module
from logdir.daemon.socket.reads import Content, Reads
from logdir.daemon.socket.refusals import BusyError, ReadEndedError
from logdir.daemon.state import LogDirState
from logdir.errors import ConfigError, LogDirSuspectError, Problem
from logdir.service.reading.answering import Answered, Hanging
from logdir.service.reading.questions import LAYOUT_STATUS, STAGED_LS, LayoutStatusQuestion, Question, StagedLsQuestion
from logdir.worker.reaping import Orphan, children_of
from tests.logdir.daemon.rig import until
from tests.logdir.service.test_ports import children
from tests.tools.ctl import two_disks

QUESTION = LayoutStatusQuestion()


class Daemon:
    """The part of a daemon that reads need, on two log dirs."""

    def __init__(self, folder: Path) -> None:
        self.log_dirs = [str(one) for one in two_disks(folder)]
        properties = folder / "server.properties"
        properties.write_text(f"broker.id=1\nlog.dirs={','.join(self.log_dirs)}\n")
        self.config = DaemonConfig(
            name="b1",
            file=str(folder / "b1.yaml"),
            server_properties=str(properties),
            state_dir=str(folder / "state"),
            socket=str(folder / "s.sock"),
        )
        self.found: tuple[LogDirStatus, ...] = ()

    def status(self) -> StatusResult:
        return replace(blank_status("b1", "0"), log_dirs=self.found)


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    return Daemon(tmp_path)


@pytest.fixture
def reads(daemon: Daemon) -> Reads:
    return Reads(daemon)


@contextmanager
def asked(
    reads: Reads,
    question: Question = QUESTION,
    *,
    may_change: bool = True,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Iterator[Content]:
    reading = STAGED_LS if isinstance(question, StagedLsQuestion) else LAYOUT_STATUS
    with reads.answered(reading, question, may_change=may_change, is_wanted=is_wanted) as content:
        yield content


def answer(reads: Reads, question: Question = QUESTION, **more: Any) -> dict[str, Any]:
    with asked(reads, question, **more) as content:
        value: dict[str, Any] = json.loads(os.pread(content.file, content.size + 1, 0))
        return value


class Port:
    """In place of the process of a read: works until it is ended, or ends as the test says."""

    pid: int | None = None
    log_dir = "the process"
    is_suspect = True

    def __init__(self, between: Callable[[], None]) -> None:
        self.between = between
        self.arguments: tuple[Any, ...] = ()
        self.ends: Answered | BaseException | None = None

    def run(self, _: object, *arguments: Any) -> Answered:
        self.arguments = arguments
        while self.ends is None:
            self.between()
            threading.Event().wait(0.01)
        if isinstance(self.ends, BaseException):
            raise self.ends
        return self.ends

    def is_reaped(self) -> bool:
        return True


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> list[Port]:
    """Play the processes of reads; the test gets each as it is started."""
    started: list[Port] = []

    @contextmanager
    def aside(path: str, patience_ms: int, between: Callable[[], None]) -> Iterator[Port]:
        started.append(Port(between))
        yield started[-1]

    monkeypatch.setattr(module, "aside", aside)
    return started


class Reading:
    """A read in a thread of its own."""

    def __init__(self, reads: Reads, ports: list[Port], **more: Any) -> None:
        self.error: BaseException | None = None
        before = len(ports)

        def run() -> None:
            try:
                with asked(reads, **more):
                    pass
            except BaseException as error:  # noqa: BLE001 - the test looks at it
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        until("it works", lambda: len(ports) > before and bool(ports[-1].arguments))
        self.port = ports[-1]

    def end(self) -> BaseException | None:
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.error


def test_a_question_is_answered(daemon: Daemon, reads: Reads) -> None:
    found = answer(reads)
    assert (found["command"], found["exit"]) == ("layout status", 0)
    assert [item["log_dir"] for item in found["result"]["items"]] == daemon.log_dirs


def test_an_error_of_the_use_case_frees_its_place_and_its_file(reads: Reads) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(10):
        with pytest.raises(ConfigError), asked(reads, StagedLsQuestion(selector="")):
            pass
    assert os.listdir("/proc/self/fd") == before
    answer(reads)


def test_only_so_many_read_at_a_time_and_the_last_place_is_for_who_may_change(reads: Reads) -> None:
    with ExitStack() as taken:
        taken.enter_context(asked(reads, may_change=False))
        with (
            pytest.raises(BusyError, match="at most 1 use cases that only read at a time"),
            asked(reads, may_change=False),
        ):
            pass
        taken.enter_context(asked(reads))
        for may_change in (True, False):
            with pytest.raises(BusyError), asked(reads, may_change=may_change):
                pass
    answer(reads, may_change=False)


def test_what_the_daemon_knows_to_hang_or_has_let_go_is_left_out(daemon: Daemon, reads: Reads) -> None:
    why = Problem("log-dir-suspect", daemon.log_dirs[0], "an answer", "none", "look")
    states = (
        (LogDirState.SUSPECT, why),
        (LogDirState.SUSPECT, None),
        (LogDirState.OFFLINE, released(daemon.log_dirs[0])),
    )
    for state, problem in states:
        daemon.found = (
            LogDirStatus(log_dir=daemon.log_dirs[0], state=state, problem=problem),
            LogDirStatus(log_dir=daemon.log_dirs[1], state=LogDirState.ONLINE),
        )
        found = answer(reads)
        slug = "log-dir-suspect" if problem is None else problem.slug
        assert [(one["slug"], one["path"]) for one in found["problems"]] == [(slug, daemon.log_dirs[0])]
        assert [item["layout"] for item in found["result"]["items"]] == [None, "topic-name"]


def test_what_is_offline_for_another_reason_is_read_as_far_as_it_can_be(daemon: Daemon, reads: Reads) -> None:
    why = Problem("disk-read-only", daemon.log_dirs[0], "a disk", "one that is read-only", "remount it")
    daemon.found = tuple(
        LogDirStatus(log_dir=daemon.log_dirs[0], state=state, problem=why)
        for state in (LogDirState.OFFLINE, LogDirState.QUARANTINED, LogDirState.READ_ONLY)
    )
    assert answer(reads)["problems"] == []


def test_a_read_whose_client_has_left_is_ended(reads: Reads, ports: list[Port]) -> None:
    waits = [True]
    one = Reading(reads, ports, is_wanted=lambda: waits[0])
    waits[0] = False
    error = one.end()
    assert isinstance(error, StoppingError)
    assert "one that has left" in str(error)


def test_a_read_whose_time_is_over_is_ended(reads: Reads, ports: list[Port], monkeypatch: pytest.MonkeyPatch) -> None:
    now_ms = [0]
    monkeypatch.setattr(clock, "monotonic_ms", lambda: now_ms[0])
    one = Reading(reads, ports)
    now_ms[0] = 5 * 60 * 1000 - 1
    assert one.thread.is_alive()
    now_ms[0] += 1
    error = one.end()
    assert isinstance(error, ReadEndedError)
    assert "none within 300 s; name a selector" in str(error)


def test_a_disk_that_is_let_go_ends_every_read_and_the_next_one_leaves_it_out(
    daemon: Daemon, reads: Reads, ports: list[Port]
) -> None:
    one, two = Reading(reads, ports), Reading(reads, ports)
    daemon.found = (
        LogDirStatus(log_dir=daemon.log_dirs[0], state=LogDirState.OFFLINE, problem=released(daemon.log_dirs[0])),
    )
    reads.leave(daemon.log_dirs[0])
    for read in (one, two):
        error = read.end()
        assert isinstance(error, ReadEndedError)
        assert f"that {daemon.log_dirs[0]} is let go" in str(error)
    three = Reading(reads, ports)
    left_out = three.port.arguments[3]
    assert left_out == {daemon.log_dirs[0]: released(daemon.log_dirs[0])}
    three.port.ends = Answered(0, None, ())
    assert three.end() is None


def test_a_daemon_that_ends_ends_every_read_and_begins_no_other(reads: Reads, ports: list[Port]) -> None:
    one = Reading(reads, ports)
    reads.stop()
    assert isinstance(one.end(), StoppingError)
    with pytest.raises(StoppingError), asked(reads):
        pass


def test_a_process_that_ends_or_gives_no_sign_of_life_is_no_fault_of_a_log_dir(reads: Reads, ports: list[Port]) -> None:
    one = Reading(reads, ports)
    one.port.ends = LogDirSuspectError("the process", expected="an answer within 30 s", found="none")
    error = one.end()
    assert isinstance(error, ReadEndedError)
    assert error.found == "none"


def test_a_system_without_room_for_another_process_is_no_fault(reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise OSError(24, "Too many open files")

    for owner, name in ((module, "aside"), (os, "memfd_create")):
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, fail)
            with pytest.raises(ReadEndedError, match="Too many open files"), asked(reads):
                pass
    answer(reads)


@contextmanager
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def test_a40_of_a_log_dir_that_hangs_one_process_is_left_however_often_one_asks(
    daemon: Daemon, reads: Reads, ports: list[Port]
) -> None:
    with sleeping() as hung:
        one = Reading(reads, ports)
        one.port.ends = Answered(0, None, (Hanging(daemon.log_dirs[1], hung.pid),))
        assert one.end() is None
        for _ in range(3):
            again = Reading(reads, ports)
            left_out, hanging = again.port.arguments[3:5]
            assert left_out[daemon.log_dirs[1]].found == f"pid {hung.pid}, which hangs in the kernel"
            assert hanging == (Hanging(daemon.log_dirs[1], hung.pid),)
            again.port.ends = Answered(0, None, ())
            assert again.end() is None
        hung.kill()
        hung.wait()
        after = Reading(reads, ports)
        assert after.port.arguments[3:5] == ({}, ())
        after.port.ends = Answered(0, None, ())
        assert after.end() is None


def test_a40_while_something_is_left_of_a_read_that_was_ended_no_other_begins(
    reads: Reads, ports: list[Port], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = [True]
    with sleeping() as hung:
        one = Reading(reads, ports, is_wanted=lambda: waits[0])
        one.port.pid = os.getpid()
        with monkeypatch.context() as played:
            played.setattr(module, "children_of", lambda pid: (hung.pid,))
            played.setattr(os, "kill", lambda pid, number: None)
            waits[0] = False
            assert isinstance(one.end(), StoppingError)
        with pytest.raises(LogDirSuspectError, match=f"found pid {hung.pid}, which hangs"), asked(reads):
            pass
        hung.terminate()
        hung.wait()
        two = Reading(reads, ports)
        two.port.ends = Answered(0, None, ())
        assert two.end() is None


def test_an_orphan_is_known_until_it_ends() -> None:
    with sleeping() as process:
        orphan = Orphan("/d1", process.pid)
        assert not orphan.is_reaped()
        assert process.pid in children_of(os.getpid())
        process.kill()
        process.wait()
        assert orphan.is_reaped()
        assert orphan.is_reaped()
    assert Orphan("/d1", process.pid).is_reaped()
    assert process.pid not in children_of(os.getpid())
    assert children_of(process.pid) == ()


def test_an_orphan_that_has_become_a_child_is_reaped() -> None:
    """As in a container, where logdird has the pid 1: each read that is ended would leave its workers as zombies."""
    with sleeping() as process:
        orphan = Orphan("/d1", process.pid)
        process.kill()
        until("it has ended", orphan.is_reaped)
        assert not Path(f"/proc/{process.pid}").exists()
        assert process.pid not in children_of(os.getpid())


def test_in_processes_of_its_own_it_is_answered_and_leaves_none(workers: None, daemon: Daemon, reads: Reads) -> None:
    before = children()
    for question in (QUESTION, StagedLsQuestion()):
        found = answer(reads, question)
        assert found["command"] in ("layout status", "staged ls")
    until("its processes have ended", lambda: children() == before)


def test_a_read_that_is_ended_leaves_no_process(workers: None, reads: Reads) -> None:
    before, number = children(), os.listdir("/proc/self/fd")
    with pytest.raises(StoppingError, match="one that has left"), asked(reads, is_wanted=lambda: False):
        pass
    until("its processes have ended", lambda: children() == before)
    assert os.listdir("/proc/self/fd") == number
    answer(reads)  # And what is left of it keeps no other from its answer.


def test_what_a_read_has_only_just_started_ends_with_it() -> None:
    """Before a worker has asked the kernel to end it with its starter, nothing but a signal of ours ends it."""
    words = ["sh", "-c", "sleep 600 & echo $!; wait"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        started = int(starter.stdout.readline())
        (orphan,) = module.orphans_of([cast(Any, SimpleNamespace(pid=starter.pid))])
        starter.kill()
    assert orphan.pid == started
    until("it has ended", orphan.is_reaped)


def test_what_a_read_has_started_ends_before_it_is_said_that_it_has_ended(workers: None, reads: Reads) -> None:
    """Else a disk would be called free to be unmounted that a worker still has open."""
    before, seen, has_ended = children(), set[int](), threading.Event()

    def stop_a_worker() -> None:
        while not seen and not has_ended.is_set():
            for pid in (pid for one in children() - before for pid in children_of(int(one))):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)  # So that it is still there when the read is ended.
                    seen.add(pid)

    thread = threading.Thread(target=stop_a_worker, daemon=True)
    thread.start()
    for _ in range(20):  # A read may be over before it is caught.
        with suppress(StoppingError), asked(reads, StagedLsQuestion(), is_wanted=lambda: not seen):
            pass
        if seen:
            break
    has_ended.set()
    thread.join()
    assert seen
    assert [pid for pid in seen if Path(f"/proc/{pid}").exists() and is_alive(pid)] == []
    answer(reads)  # And none of them keeps the next one from its answer.


def is_alive(pid: int) -> bool:
    """Whether a process has not ended; one that has may not be reaped yet."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def test_its_process_yields_to_what_captures(workers: None, reads: Reads) -> None:
    before = children()
    found: list[int] = []

    def look() -> bool:
        found.extend(os.getpriority(os.PRIO_PROCESS, int(pid)) for pid in children() - before)
        return True

    with asked(reads, StagedLsQuestion(), is_wanted=look):
        pass
    assert found
    assert set(found) == {10}
