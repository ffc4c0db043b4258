"""Kafka's locks of all log dirs of a broker are held together, all or none, by ports in this process and by workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from logdir.disk import locks
from logdir.disk.kernel.host import HostDisk
from logdir.disk.locks import KafkaLock
from logdir.errors import LockHeldError, LogDirOfflineError, LogDirReplacedError, RefusedError, shown
from logdir.refusal_slug import Why
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.kafka_locks import HeldLocks, hold_all
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.worker.remote import RemotePort
from logdir.worker.start import close_all, placed, start
from tests.builders import log_dir
from tests.logdir.disk.test_locks import held_by_child
from tests.logdir.worker.test_port import stopped
from tests.whole_refusal import require_whole

Hold = Callable[..., AbstractContextManager[HeldLocks]]


@pytest.fixture
def dirs(tmp_path: Path) -> list[str]:
    return [str(log_dir(tmp_path / name)) for name in ("d1", "d2", "d3")]


@pytest.fixture(params=["in this process", "workers"])
def held(request: pytest.FixtureRequest) -> Hold:
    """Hold the locks of some log dirs through ports."""

    @contextmanager
    def hold(log_dirs: Sequence[str], without: Sequence[str] = ()) -> Iterator[HeldLocks]:
        with placed(is_here=request.param != "workers"):
            ports = start(log_dirs, 10_000)
        try:
            broker = BrokerPorts(named=BrokerConfig(tuple(log_dirs), None), ports=ports, patience_ms=10_000)
            with hold_all(broker, without=without, now_boottime_ms=0) as found:
                yield found
        finally:
            close_all(ports)

    return hold


def _is_free(path: str) -> bool:
    with HostDisk().open_top(path) as directory:
        try:
            KafkaLock.take(directory).release()
        except LockHeldError:
            return False
        return True


def test_all_locks_are_held_at_once_and_none_afterwards(dirs: list[str], held: Hold) -> None:
    with held(list(reversed(dirs))) as batch:
        assert batch.log_dirs == tuple(dirs)
        assert not any(map(_is_free, dirs))
        batch.require_held()
    assert all(map(_is_free, dirs))
    assert all(Path(path, ".lock").is_file() for path in dirs)


def test_a22_one_that_is_held_releases_all(dirs: list[str], held: Hold) -> None:
    with held_by_child("posix", Path(dirs[2], ".lock")) as pid:
        with pytest.raises(LockHeldError, match=rf"{dirs[2]}/\.lock.*pid {pid}"), held(dirs):
            pytest.fail("held")
        assert _is_free(dirs[0])
        assert _is_free(dirs[1])


def test_a23_a_log_dir_that_does_not_answer_is_refused_unless_named(
    dirs: list[str], held: Hold, tmp_path: Path
) -> None:
    gone = str(tmp_path / "gone")
    words = rf"{gone}.*No such file.*--skip-log-dir"
    with pytest.raises(LogDirOfflineError, match=words) as raised, held([*dirs, gone]):
        pytest.fail("held")
    assert raised.value.found == "No such file or directory"
    assert all(map(_is_free, dirs))
    with held([*dirs, gone], [gone]) as batch:
        assert batch.log_dirs == tuple(dirs)
    assert not Path(gone).exists()


def test_a23_a_log_dir_whose_lock_does_not_answer_is_refused_unless_named(dirs: list[str], held: Hold) -> None:
    Path(dirs[1], ".lock").mkdir()
    with pytest.raises(LogDirOfflineError, match=dirs[1]), held(dirs):
        pytest.fail("held")
    with held(dirs, [dirs[1]]) as batch:
        assert batch.log_dirs == (dirs[0], dirs[2])


def test_a23_a_running_broker_is_seen_in_a_log_dir_said_to_have_failed(dirs: list[str], held: Hold) -> None:
    with held_by_child("posix", Path(dirs[1], ".lock")), pytest.raises(LockHeldError), held(dirs, [dirs[1]]):
        pytest.fail("held")


def test_a23_without_any_log_dir_nothing_says_that_no_broker_runs(held: Hold, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    with pytest.raises(RefusedError, match="at least one log dir"), held([gone], [gone]):
        pytest.fail("held")


def test_two_paths_to_one_log_dir_are_refused(dirs: list[str], held: Hold) -> None:
    other = f"{Path(dirs[0]).parent}/../{Path(dirs[0]).parent.name}/d1"
    # The second path meets the lock of the first.
    with pytest.raises(LockHeldError, match=r"d1/\.lock"), held([*dirs, other]):
        pytest.fail("held")
    assert all(map(_is_free, dirs))


def test_two_paths_to_one_log_dir_are_refused_by_name_where_both_locks_are_granted(
    dirs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system may grant a lock that is held: the directories are compared, too."""
    monkeypatch.setattr(locks, "_try_lock", lambda *_: True)
    other = f"{Path(dirs[0]).parent}/./d1"
    with placed(is_here=True):
        ports = start([*dirs, other], 10_000)
    broker = BrokerPorts(named=BrokerConfig((*dirs, other), None), ports=ports, patience_ms=10_000)
    try:
        with pytest.raises(RefusedError) as raised, hold_all(broker, without=(), now_boottime_ms=0):
            pytest.fail("held")
    finally:
        close_all(ports)
    require_whole(
        raised.value,
        Why.DUPLICATE_LOG_DIR,
        path=dirs[0],
        expected="log dirs that are different directories",
        found=shown(f"the same directory as {other}"),
        fix="list the directory once",
    )


def test_a31_a_lock_that_goes_during_a_batch_ends_it(dirs: list[str], held: Hold) -> None:
    with held(dirs) as batch:
        Path(dirs[1], ".lock").unlink()
        with pytest.raises(LogDirReplacedError, match=dirs[1]):
            batch.require_held()


def test_a22_a_batch_ends_after_two_seconds(dirs: list[str]) -> None:
    batch = HeldLocks((), 10_000)
    assert [batch.expired(now) for now in (10_000, 11_999, 12_000, 99_999)] == [False, False, True, True]


def test_what_was_released_is_held_no_more(dirs: list[str], held: Hold) -> None:
    with held(dirs) as batch:
        batch.release()
        assert batch.expired(0)
        with pytest.raises(RefusedError, match="were released"):
            batch.require_held()
        assert all(map(_is_free, dirs))


def test_locks_do_not_leak_descriptors(dirs: list[str], held: Hold) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with held(dirs):
            pass
        with ExitStack() as stack:
            stack.enter_context(held_by_child("ofd", Path(dirs[2], ".lock")))
            with pytest.raises(LockHeldError):
                stack.enter_context(held(dirs))
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.slow
def test_a22_a_log_dir_that_hangs_while_locks_are_asked_for_lets_no_change_begin(dirs: list[str]) -> None:
    """Those of the others are released after two seconds: a broker may run by the time it is given up."""
    with placed(is_here=False):
        ports = start(dirs, 3_000)
    try:
        broker = BrokerPorts(named=BrokerConfig(tuple(dirs), None), ports=ports, patience_ms=3_000)
        with hold_all(broker, without=(), now_boottime_ms=0) as batch:
            batch.require_held()
            silent = ports[1]
            assert isinstance(silent, RemotePort)
            stopped(silent)
            with pytest.raises(RefusedError) as caught:
                batch.require_held()
            assert caught.value.slug == Why.LOG_DIR_SUSPECT.value
            assert [_is_free(path) for path in (dirs[0], dirs[2])] == [True, True]
            with pytest.raises(RefusedError):
                batch.require_unreleased()
    finally:
        close_all(ports)
