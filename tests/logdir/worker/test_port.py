"""Ports with real workers: what they answer, and what becomes of one that does not."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import cast

import pytest

from logdir import clock
from logdir.errors import LogDirSuspectError, NoWorkRootError
from logdir.observe.mounts import identity_at
from logdir.service.metadata import list_lines
from logdir.service.metadata_dump import MetadataDumpRequest, dump_lines, end_of_dump
from logdir.worker import directory
from logdir.worker.directory import open_top
from logdir.worker.look import EVERY_LIVE, look_deep
from logdir.worker.operations import PurgeBatch, purge
from logdir.worker.port import LocalPort
from logdir.worker.reaping import Unreaped
from logdir.worker.remote import RemotePort, gather, overdue
from logdir.worker.start import close_all, run_apart, start
from logdir.worker.state import release_kafka_lock, take_kafka_lock
from logdir.worker.waiting import Asked, Overdue, Sent, Waiting
from tests.builders import log_dir
from tests.logdir.disk.staged_rig import make_log_dir, make_staged, opened, staged_marker
from tests.logdir.wire.golden_metadata import METADATA

HOME = Path(__file__).parents[3]
PATIENT_MS = 30_000
"""Longer than this machine is ever slow."""
_ENDS_S = 20.0

pytestmark = pytest.mark.usefixtures("workers")


@pytest.fixture(params=["copy", "interpreter"])
def beside(request: pytest.FixtureRequest) -> Iterator[str]:
    """Start workers as copies of this process; with a second thread they are new interpreters."""
    if request.param == "copy":
        yield "copy"
        return
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield "interpreter"
    done.set()
    thread.join()


@contextmanager
def ports(*log_dirs: Path, patience_ms: int = PATIENT_MS) -> Iterator[tuple[RemotePort, ...]]:
    started = start(map(str, log_dirs), patience_ms)
    try:
        yield tuple(port for port in started if isinstance(port, RemotePort))
    finally:
        for port in started:
            assert isinstance(port, RemotePort)
            if is_alive(port.pid):
                os.kill(port.pid, signal.SIGCONT)
        close_all(started)


def is_alive(pid: int) -> bool:
    """Whether there is such a process and it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int) -> bool:
    """Wait for the end of a process that may be nobody's child."""
    end = time.monotonic() + _ENDS_S
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(pid)


def stopped(port: RemotePort) -> None:
    """Let a worker stand still, as one that hangs does."""
    os.kill(port.pid, signal.SIGSTOP)
    while Path(f"/proc/{port.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)


def is_free(log_dir: Path) -> bool:
    """Whether a broker could take Kafka's lock."""
    descriptor = os.open(log_dir / ".lock", os.O_RDWR)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_a_worker_answers_what_a_call_in_this_process_does(beside: str, tmp_path: Path) -> None:
    top = make_log_dir(tmp_path / "d1", "a-0", "b-0")
    local = LocalPort(str(top))
    with ports(top) as (port,):
        assert port.pid != os.getpid()
        assert port.run(identity_at, str(top)) == local.run(identity_at, str(top))
        assert port.run(look_deep, str(top), EVERY_LIVE) == local.run(look_deep, str(top), EVERY_LIVE)
        there, here = port.disk.open_top(str(top)), local.disk.open_top(str(top))
        with there, here:
            assert there.names() == here.names()
            assert there.types() == here.types()
            assert there.stat("a-0") == here.stat("a-0")
            assert there.read("meta.properties", 5) == here.read("meta.properties", 5)
            with there.open("a-0") as inner:
                assert sorted(inner.names()) == sorted(os.listdir(top / "a-0"))
        root = port.begin_root(is_start_block_allowed=False).result()
        own = local.begin_root(is_start_block_allowed=False).result()
        assert (root.kind, root.belongs, root.unsupported_fs) == (own.kind, own.belongs, own.unsupported_fs)
        assert (root.open_dir.log_dir, root.open_dir.owner, root.open_dir.work.path) == (
            *(own.open_dir.log_dir, own.open_dir.owner, own.open_dir.work.path),
        )
    local.close()


def test_a_worker_with_names_that_are_no_utf_8(beside: str, tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    name = os.fsdecode(b"\xff\xfe-0")
    (top / name).mkdir()
    with ports(top) as (port,), port.disk.open_top(str(top)) as there:
        assert name in there.names()
        there.rename(name, there, os.fsdecode(b"\xfd"))
    assert b"\xfd" in os.listdir(os.fsencode(top))


def test_an_error_of_a_worker_is_raised_here_in_its_words(beside: str, tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    local = LocalPort(str(top))
    with ports(top) as (port,):
        said = []
        for one in (port, local):
            with pytest.raises(NoWorkRootError) as caught:
                one.begin_root(is_start_block_allowed=False).result()
            said.append(str(caught.value))
        assert said[0] == said[1]
        assert not port.is_suspect


def test_an_error_of_the_kernel_names_both_files(beside: str, tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    with ports(top) as (port,), port.disk.open_top(str(top)) as there, LocalPort(str(top)).disk.open_top(str(top)) as h:
        said = []
        for one in (there, h):
            with pytest.raises(FileNotFoundError) as caught:
                one.rename("gone", one, "new")
            said.append((caught.value.errno, caught.value.strerror, caught.value.filename, caught.value.filename2))
        assert said[0] == said[1]
        with pytest.raises(FileNotFoundError) as caught:
            there.stat("gone")
        assert caught.value.filename2 is None
        with pytest.raises(NotADirectoryError):
            port.run_opened(open_top, str(top / "meta.properties"))


def test_a_fault_of_ours_in_a_worker_is_reported_here_and_the_worker_goes_on(beside: str, tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    with ports(top) as (port,):
        with pytest.raises(RuntimeError, match=f"{top}: KeyError: 999"):
            port.run_opened(directory.names, 999)
        assert port.run(identity_at, str(top)) is not None


def test_a_log_dir_that_is_asked_before_it_has_answered_is_given_up(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    with ports(top) as (port,):
        first = port.begin(identity_at, str(top))
        assert not port.is_idle
        second = port.begin(identity_at, str(top))  # who asked first was interrupted
        for pending in (first, second):
            with pytest.raises(LogDirSuspectError, match="the call was interrupted"):
                pending.result()
        assert port.is_suspect


def test_a_port_that_is_closed_while_its_worker_hangs_does_not_wait_as_long_as_it_is_patient(tmp_path: Path) -> None:
    (port,) = start([str(log_dir(tmp_path / "d"))], 600_000)
    assert isinstance(port, RemotePort)
    os.kill(port.pid, signal.SIGSTOP)
    port.begin(identity_at, port.log_dir)
    port.end()
    began = time.monotonic()
    port.close()
    assert time.monotonic() - began < 60
    assert not is_alive(port.pid)


def test_a_port_that_is_closed_before_the_answer_lets_its_worker_finish(tmp_path: Path) -> None:
    (port,) = start([str(log_dir(tmp_path / "d"))], PATIENT_MS)
    assert isinstance(port, RemotePort)
    sent = port.begin(identity_at, port.log_dir)
    port.end()
    port.close()
    assert sent.result() == identity_at(port.log_dir)
    assert not is_alive(port.pid)


def interrupted_before(tidy_up: Callable[[], None]) -> None:
    """Do what is done on the way out after Ctrl-C."""
    try:
        raise KeyboardInterrupt
    finally:
        tidy_up()


def test_what_an_interrupt_tidies_up_does_not_wait_as_long_as_a_port_is_patient(tmp_path: Path) -> None:
    """The disk begins to hang after the interrupt: between two calls, none of which it stopped."""
    (port,) = start([str(log_dir(tmp_path / "d"))], 600_000)
    assert isinstance(port, RemotePort)
    stopped(port)

    def tidy_up() -> None:
        with pytest.raises(LogDirSuspectError):
            port.run(identity_at, port.log_dir)
        port.close()

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted_before(tidy_up)
    assert time.monotonic() - began < 60
    assert not is_alive(port.pid)


def test_a_worker_that_does_not_end_after_an_interrupt_is_not_waited_for(tmp_path: Path) -> None:
    (port,) = start([str(log_dir(tmp_path / "d"))], 600_000)
    assert isinstance(port, RemotePort)
    stopped(port)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted_before(lambda: close_all((port,)))
    assert time.monotonic() - began < 60
    assert not is_alive(port.pid)


@pytest.mark.parametrize("when", ["idle", "asked"])
def test_a_worker_that_is_killed_leaves_its_log_dir_suspect(beside: str, when: str, tmp_path: Path) -> None:
    top, other = log_dir(tmp_path / "d1"), log_dir(tmp_path / "d2")
    with ports(top, other) as (port, healthy):
        if when == "asked":
            stopped(port)
            pending = port.begin(identity_at, str(top))
            os.kill(port.pid, signal.SIGKILL)
        else:
            os.kill(port.pid, signal.SIGKILL)
            assert ends(port.pid)
            pending = port.begin(identity_at, str(top))
        with pytest.raises(LogDirSuspectError) as caught:
            pending.result()
        assert caught.value.path == str(top)
        assert "its worker" in caught.value.found
        assert "identity_at" in caught.value.found
        assert port.is_suspect
        with pytest.raises(LogDirSuspectError) as again:
            port.run(identity_at, str(top))
        assert str(again.value) == str(caught.value)
        assert healthy.run(identity_at, str(other)) is not None


def test_a_worker_that_hangs_is_given_up_and_every_later_call_is_refused_at_once(beside: str, tmp_path: Path) -> None:
    top, other = log_dir(tmp_path / "d1"), log_dir(tmp_path / "d2")
    with ports(top, other, patience_ms=3000) as (port, healthy):
        assert port.run(identity_at, str(top)) is not None  # One that has not started yet is given longer.
        stopped(port)
        pendings = [one.begin(identity_at, one.log_dir) for one in (port, healthy)]
        gather(pendings)
        with pytest.raises(LogDirSuspectError) as caught:
            pendings[0].result()
        assert pendings[1].result() == identity_at(str(other))
        assert caught.value.path == str(top)
        assert caught.value.expected == "an answer within 3 s"
        assert ends(port.pid)
        for _ in range(100):
            with pytest.raises(LogDirSuspectError):
                port.run(identity_at, str(top))
        assert (port.is_suspect, port.is_idle, healthy.is_suspect) == (True, False, False)


@pytest.mark.slow
def test_a_slow_call_that_gets_on_is_not_given_up(beside: str, tmp_path: Path) -> None:
    top = make_log_dir(tmp_path / "d1", "a-0")
    with opened(top) as open_dir:
        staged = Path(str(make_staged(open_dir, "a-0").place)).name
        marker = staged_marker(Path(open_dir.deleting.path) / staged)
    with ports(top, patience_ms=1000) as (port,):
        port.begin_root(is_start_block_allowed=False).result()
        began = time.monotonic()
        done = port.run_at(purge, PurgeBatch((), {staged: marker}, 0, 2))
        assert time.monotonic() - began > 1.0, "it was not slower than the patience: the test shows nothing"
        assert done.error is None
        assert list(done.outcomes) == [staged]
        assert not port.is_suspect
    assert not (Path(f"{top}.logdird") / "deleting" / staged).exists()


def test_who_interrupts_a_wait_ends_the_worker(beside: str, tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")

    def interrupted(number: int, at: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupted)
    try:
        with ports(top) as (port,):
            stopped(port)
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                port.run(identity_at, str(top))
            timer.join()
            assert ends(port.pid)
            with pytest.raises(LogDirSuspectError, match="the call was interrupted"):
                port.run(identity_at, str(top))
    finally:
        signal.signal(signal.SIGUSR1, before)


STARTER = """
import sys, threading, time
from logdir.worker.start import start
from logdir.worker.state import take_kafka_lock
if sys.argv[1] == "interpreter":
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
kept = open(sys.argv[2] + "/meta.properties")
ports = start(sys.argv[2:], 30000)
for port in ports:
    port.run_opened(take_kafka_lock, port.log_dir)
print(*[port.pid for port in ports], flush=True)
time.sleep(600)
"""


def test_a_starter_that_is_killed_takes_its_workers_with_it_and_their_locks(beside: str, tmp_path: Path) -> None:
    tops = [log_dir(tmp_path / name) for name in ("d1", "d2")]
    command = [sys.executable, "-c", STARTER, beside, *map(str, tops)]
    starter = subprocess.Popen(command, cwd=HOME, stdout=subprocess.PIPE)
    try:
        assert starter.stdout is not None
        pids = [int(one) for one in starter.stdout.readline().split()]
        assert all(map(is_alive, pids))
        assert not any(map(is_free, tops))
        os.kill(pids[0], signal.SIGSTOP)
    finally:
        starter.kill()
        starter.wait()
    assert all(map(ends, pids))
    assert all(map(is_free, tops))
    assert starter.stdout.read() == b""
    starter.stdout.close()


def test_a_worker_has_no_file_of_its_starter_open(beside: str, tmp_path: Path) -> None:
    """One that hangs outlives its starter: whoever reads the starter's output must not wait for it."""
    tops = [log_dir(tmp_path / name) for name in ("d1", "d2")]
    reader, writer = os.pipe()
    high = os.dup2(writer, 200)
    os.set_inheritable(high, True)
    with ports(*tops) as started:
        for port in started:
            port.run(identity_at, port.log_dir)
            descriptors = Path(f"/proc/{port.pid}/fd")
            found = {int(one.name): str(one.readlink()) for one in descriptors.iterdir()}
            assert [found.pop(number) for number in range(3)] == ["/dev/null"] * 3
            (connection,) = found
            assert stat.S_ISSOCK((descriptors / str(connection)).stat().st_mode)
        os.close(writer)
        os.close(high)
        assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_port_that_is_closed_leaves_no_process_and_no_lock(beside: str, tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    with ports(top) as (port,):
        port.run_opened(take_kafka_lock, str(top))
        assert not is_free(top)
        port.run_opened(release_kafka_lock)
        assert is_free(top)
        port.run_opened(take_kafka_lock, str(top))
        port.close()
        assert is_free(top)
        with pytest.raises(ProcessLookupError):
            os.kill(port.pid, 0)
        port.close()


@pytest.mark.slow
def test_locks_that_should_be_free_are_released_while_one_worker_is_silent(tmp_path: Path) -> None:
    tops = [log_dir(tmp_path / name) for name in ("d1", "d2")]
    with ports(*tops, patience_ms=4000) as (silent, healthy):
        for port in (silent, healthy):
            port.run_opened(take_kafka_lock, port.log_dir)
        stopped(silent)
        freed: list[tuple[bool, bool]] = []

        def act() -> None:
            healthy.run_opened(release_kafka_lock)
            freed.append((is_free(tops[0]), is_free(tops[1])))

        with overdue((silent, healthy), Overdue(clock.monotonic_ms(), act)), pytest.raises(LogDirSuspectError):
            silent.run(identity_at, str(tops[0]))
        assert freed == [(False, True)]  # once, and the silent one keeps its own


def test_locks_are_not_released_while_the_worker_gets_on(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    with ports(top) as (port,):
        acted: list[None] = []
        with overdue((port,), Overdue(clock.monotonic_ms() + 60_000, lambda: acted.append(None))):
            port.run(identity_at, str(top))
        assert acted == []


def test_a_call_in_a_process_of_its_own(beside: str, tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    assert run_apart(str(top), PATIENT_MS, Unreaped(), look_deep, str(top), EVERY_LIVE) == look_deep(
        str(top), EVERY_LIVE
    )
    assert (
        subprocess.run(["ps", "--ppid", str(os.getpid()), "-o", "stat="], capture_output=True).stdout.count(b"Z") == 0
    )


GOLDEN = METADATA / "4.3.1-dynamic" / "00000000000000000000.log"
DUMPED = MetadataDumpRequest(files=("a.log",))


def big_log(folder: Path, times: int) -> str:
    """Return a segment whose dump is many parts."""
    path = folder / GOLDEN.name
    path.write_bytes(GOLDEN.read_bytes() * times)
    return str(path)


def test_what_a_call_yields_comes_in_parts_and_is_what_it_yields_here(beside: str, tmp_path: Path) -> None:
    path = big_log(tmp_path, 30)
    local = LocalPort(str(tmp_path))
    here = list(local.stream_opened(dump_lines, path, DUMPED))
    assert sum(map(len, here)) > 1 << 18  # more than a part, and than a socket holds
    with ports(tmp_path) as (port,):
        assert list(port.stream_opened(dump_lines, path, DUMPED)) == here
        there = port.run_opened(end_of_dump)
        assert there == local.run_opened(end_of_dump)
        assert there.gaps
        assert list(port.stream_opened(dump_lines, path, DUMPED)) == here  # and again


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_who_wants_no_more_of_a_stream_can_ask_for_something_else(
    beside: str, error: type[BaseException] | None, tmp_path: Path
) -> None:
    path = big_log(tmp_path, 400)
    with ports(tmp_path) as (port,):
        lines = port.stream_opened(dump_lines, path, DUMPED)
        assert isinstance(lines, Generator)
        next(lines)
        if error is None:
            lines.close()
        else:
            with pytest.raises(error):
                lines.throw(error)
        assert not port.is_suspect
        assert port.run(identity_at, str(tmp_path)) == identity_at(str(tmp_path))
        assert next(port.stream_opened(dump_lines, path, DUMPED)) == next(
            LocalPort(str(tmp_path)).stream_opened(dump_lines, path, DUMPED)
        )


def test_a_worker_that_hangs_amid_a_stream_is_given_up(beside: str, tmp_path: Path) -> None:
    path = big_log(tmp_path, 400)
    with ports(tmp_path, patience_ms=700) as (port,):
        lines = port.stream_opened(dump_lines, path, DUMPED)
        next(lines)
        stopped(port)
        with pytest.raises(LogDirSuspectError, match="dump_lines") as caught:
            list(lines)
        assert caught.value.path == str(tmp_path)
        assert port.is_suspect


def test_who_wants_no_more_of_a_worker_that_hangs_does_not_wait_for_it(beside: str, tmp_path: Path) -> None:
    path = big_log(tmp_path, 400)
    with ports(tmp_path) as (port,):
        lines = port.stream_opened(dump_lines, path, DUMPED)
        assert isinstance(lines, Generator)
        next(lines)
        stopped(port)
        lines.close()  # and not as long as the port is patient
        assert port.is_suspect


def test_an_error_amid_a_stream_is_raised_here(beside: str, tmp_path: Path) -> None:
    with ports(tmp_path) as (port,):
        with pytest.raises(RuntimeError, match="no metadata was read"):
            list(port.stream_opened(list_lines, "ls", ()))
        assert port.run(identity_at, str(tmp_path)) == identity_at(str(tmp_path))


def test_a_worker_that_finds_its_log_dir_suspect_is_believed(beside: str, tmp_path: Path) -> None:
    """As where a lock is held by a worker that was killed and hangs."""
    top = log_dir(tmp_path / "d1")
    with ports(top) as (port,):
        port.found_suspect(LogDirSuspectError(str(tmp_path / "d2"), expected="a", found="b"))
        assert port.run(identity_at, str(top)) == identity_at(str(top))  # that is of another log dir
        port.found_suspect(LogDirSuspectError(str(top), expected="a lock", found="pid 1"))
        assert port.is_suspect
        with pytest.raises(LogDirSuspectError, match="expected a lock, found pid 1"):
            port.run(identity_at, str(top))
        assert ends(port.pid)


@pytest.mark.slow
def test_a_worker_that_is_slow_to_start_is_no_log_dir_that_hangs(
    tmp_path: Path, beside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new interpreter that gets no time from a busy machine has touched no disk yet."""
    spawned = os.posix_spawn

    def slow(path: str, argv: list[str], *more: object, **options: object) -> int:
        code = argv[4]
        return spawned(path, [*argv[:4], f"import time; time.sleep(1); {code}", *argv[5:]], *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "posix_spawn", slow)
    made = log_dir(tmp_path / "d1")
    with ports(made, patience_ms=600) as (port,):
        assert identity_at(str(made)) == port.run(identity_at, str(made))
        assert not port.is_suspect
        os.kill(port.pid, signal.SIGSTOP)  # From now on only the timeout counts.
        began = time.monotonic()
        with pytest.raises(LogDirSuspectError):
            port.run(identity_at, str(made))
        assert time.monotonic() - began < 10


def test_an_answer_that_cannot_be_decoded_is_an_error_of_its_asker_alone() -> None:
    def decode(value: object) -> object:
        raise ValueError(f"not {value}")

    sent: Sent[object] = Sent(cast(Asked, SimpleNamespace(waiting=Waiting())), "look", decode)
    sent.take("result", 7)  # By whoever waits for another call.
    assert sent.is_over
    for _ in range(2):
        with pytest.raises(ValueError, match="not 7"):
            sent.result()


def test_an_end_that_is_asked_for_while_an_answer_is_decoded_is_for_both_and_the_call_is_over() -> None:
    def decode(value: object) -> object:
        raise KeyboardInterrupt

    sent: Sent[object] = Sent(cast(Asked, SimpleNamespace(waiting=Waiting())), "look", decode)
    with pytest.raises(KeyboardInterrupt):
        sent.take("result", 7)
    assert sent.is_over
