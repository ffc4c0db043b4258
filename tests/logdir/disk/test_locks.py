"""Kafka's lock and ours conflict with whoever else holds them, say who that is, and notice a file that was replaced."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from logdir.disk import lock_holder, locks
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.locks import KafkaLock, OwnerLock
from logdir.disk.root.work_root import OWNER_LOCK_TEXT
from logdir.errors import (
    DiskError,
    LockHeldError,
    LogDirReplacedError,
    LogDirSuspectError,
    NoWorkRootError,
    RefusedError,
    WorkRootOwnedError,
)
from logdir.refusal_slug import Why
from tests.builders import log_dir
from tests.whole_refusal import require_whole

Holder = Callable[[str, Path], AbstractContextManager[int]]


@contextmanager
def held_by_child(kind: str, path: Path) -> Iterator[int]:
    """Yield the pid of a process that holds the lock."""
    script = Path(__file__).with_name("lock_holder.py")
    with subprocess.Popen(
        [sys.executable, "-S", str(script), kind, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        try:
            yield child.pid
        finally:
            child.stdin.close()
            child.wait(10)


@pytest.fixture
def top(tmp_path: Path) -> Iterator[HostDirectory]:
    with HostDisk().open_top(str(log_dir(tmp_path / "d1"))) as directory:
        yield directory


def test_a_missing_lock_is_made_with_owner_and_mode_of_the_log_dir_and_stays(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "d1")
    path.chmod(0o750)
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    with HostDisk().open_top(str(path)) as directory:
        KafkaLock.take(directory).release()
    found, parent = (path / ".lock").stat(), path.stat()
    assert found.st_mode & 0o7777 == 0o640
    assert (found.st_uid, found.st_gid, found.st_size) == (parent.st_uid, parent.st_gid, 0)


def test_a_lock_that_is_there_keeps_its_owner_and_mode(top: HostDirectory) -> None:
    path = Path(top.path, ".lock")
    path.touch()
    path.chmod(0o600)
    inode = path.stat().st_ino
    with KafkaLock.take(top) as lock:
        assert lock.still_held()
    assert (path.stat().st_ino, path.stat().st_mode & 0o7777) == (inode, 0o600)


@pytest.mark.parametrize("kind", ["posix", "ofd"])
def test_another_process_that_holds_it_is_named(top: HostDirectory, kind: str) -> None:
    with held_by_child(kind, Path(top.path, ".lock")) as pid:
        with pytest.raises(
            LockHeldError, match=rf"^lock-held: {top.path}/\.lock: .*found pid {pid} \(python"
        ) as raised:
            KafkaLock.take(top)
        assert "stop the broker" in str(raised.value)
    KafkaLock.take(top).release()


def test_a_refused_attempt_does_not_take_the_lock_of_the_holder(top: HostDirectory) -> None:
    with held_by_child("posix", Path(top.path, ".lock")):
        for _ in range(3):
            with pytest.raises(LockHeldError):
                KafkaLock.take(top)


def test_a32_a_pid_of_another_namespace_is_said_to_be_outside(
    top: HostDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = top.open_lock(".lock", top.own_stat().owner.for_file())
    for pid in (0, -1):
        answer = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, pid)
        monkeypatch.setattr("logdir.disk.locks.fcntl.fcntl", lambda *_, answer=answer: answer)
        assert lock_holder.holder(descriptor) == "a process outside this container"
    os.close(descriptor)


def test_a32_a_broker_that_is_the_first_process_of_its_container_is_named(
    top: HostDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = top.open_lock(".lock", top.own_stat().owner.for_file())
    answer = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 1)
    monkeypatch.setattr("logdir.disk.locks.fcntl.fcntl", lambda *_: answer)
    found = lock_holder.holder(descriptor)
    os.close(descriptor)
    assert found is not None
    assert re.match(r"pid 1\b", found)


def test_a_process_that_ends_while_the_holder_is_looked_for_hides_it_from_nobody(
    top: HostDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [Path("/proc/2000000001"), Path("/proc/2000000002")]
    listed = Path.glob
    monkeypatch.setattr(Path, "glob", lambda path, pattern: [*gone, *listed(path, pattern)])
    with (
        held_by_child("ofd", Path(top.path, ".lock")) as pid,
        pytest.raises(LockHeldError, match=rf"found pid {pid} "),
    ):
        KafkaLock.take(top)


@pytest.mark.parametrize(("start", "length"), [(0, 1), (1 << 40, 1), (0, 0)])
def test_a_lock_of_any_byte_of_the_file_keeps_us_out(top: HostDirectory, start: int, length: int) -> None:
    """The JVM locks all bytes there can be; the first alone, or one far behind, are no less somebody's."""
    descriptor = os.open(f"{top.path}/.lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0))
    with pytest.raises(LockHeldError):
        KafkaLock.take(top)
    os.close(descriptor)
    KafkaLock.take(top).release()


def test_a_lock_is_held_too_where_standard_input_was_closed(top: HostDirectory) -> None:
    """Its descriptor is 0 then."""
    descriptor, kept = top.open_lock(".lock", top.own_stat().owner.for_file()), os.dup(0)
    os.dup2(descriptor, 0)
    try:
        lock = KafkaLock(top, 0)
        assert lock.still_held()
        lock.release()
        assert not lock.still_held()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(0)
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(descriptor)


@pytest.mark.root
def test_a32_a_broker_in_another_container_is_noticed_and_said_to_be_outside(top: HostDirectory) -> None:
    """Really: the one who asks lives in a pid namespace in which the holder has no number."""
    code = (
        "import sys\n"
        "from logdir.disk.kernel.host import HostDisk\n"
        "from logdir.disk.locks import KafkaLock\n"
        "from logdir.errors import LockHeldError\n"
        "try:\n"
        "    KafkaLock.take(HostDisk().open_top(sys.argv[1]))\n"
        "except LockHeldError as error:\n"
        "    print(error)\n"
    )
    inside = ("unshare", "--pid", "--fork", "--mount", "--mount-proc")
    argv = (*inside, sys.executable, "-c", code, top.path)
    if subprocess.run((*inside, "true"), capture_output=True, check=False).returncode:
        pytest.skip("needs root and unshare (util-linux): makes a pid namespace")
    with held_by_child("posix", Path(top.path, ".lock")):
        done = subprocess.run(argv, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert "a process outside this container" in done.stdout


def test_kafka_and_others_are_kept_out_while_we_hold_it(top: HostDirectory) -> None:
    path = Path(top.path, ".lock")
    attempt = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with KafkaLock.take(top):
        # Opened and closed in this process: a POSIX lock would be gone now.
        path.read_bytes()
        assert subprocess.run([sys.executable, "-S", "-c", attempt, path], stderr=subprocess.DEVNULL).returncode == 1
    assert subprocess.run([sys.executable, "-S", "-c", attempt, path]).returncode == 0


def test_a_program_we_start_does_not_inherit_it(top: HostDirectory) -> None:
    lock = KafkaLock.take(top)
    with subprocess.Popen(["sleep", "30"], close_fds=False) as child:
        lock.release()
        KafkaLock.take(top).release()
        child.kill()


def test_a31_a_lock_unlinked_between_opening_and_locking_is_noticed(
    top: HostDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(top.path, ".lock")
    path.touch()
    real, opened = HostDirectory.open_lock, []

    def open_then_unlink(self: HostDirectory, name: str, owner: object = None) -> int:
        descriptor = real(self, name, owner)  # type: ignore[arg-type]
        opened.append(os.fstat(descriptor).st_ino)
        if len(opened) == 1:
            path.unlink()  # what a broker of 3.8 or newer does when it stops
        return descriptor

    monkeypatch.setattr(HostDirectory, "open_lock", open_then_unlink)
    with KafkaLock.take(top) as lock:
        assert len(opened) == 2
        assert lock.still_held()
        assert path.stat().st_ino == opened[1]


def test_a_lock_replaced_again_and_again_is_refused(top: HostDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    real = HostDirectory.open_lock

    def open_then_unlink(self: HostDirectory, name: str, owner: object = None) -> int:
        descriptor = real(self, name, owner)  # type: ignore[arg-type]
        Path(self.path, name).unlink()
        return descriptor

    monkeypatch.setattr(HostDirectory, "open_lock", open_then_unlink)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RefusedError) as raised:
        KafkaLock.take(top)
    require_whole(
        raised.value,
        Why.LOCK_FILE_REPLACED,
        path=f"{top.path}/.lock",
        expected="a lock file that keeps its name",
        found="a file that was replaced at every attempt to lock it",
        fix="find the process that replaces it, then run the command again",
    )
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("replaced", [False, True], ids=["unlinked", "replaced"])
def test_a31_a_lock_whose_file_goes_while_held_is_held_no_more(top: HostDirectory, replaced: bool) -> None:
    path = Path(top.path, ".lock")
    with KafkaLock.take(top) as lock:
        path.unlink()
        if replaced:
            path.touch()
        assert not lock.still_held()
        with pytest.raises(LogDirReplacedError, match=r"\.lock"):
            lock.require_held()


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("meta.properties")], ids=["dir", "link"])
def test_what_is_no_regular_file_is_not_locked(top: HostDirectory, make: Callable[[Path], None]) -> None:
    make(Path(top.path, ".lock"))
    with pytest.raises(OSError, match=r"directory|symbolic|regular"):
        KafkaLock.take(top)


def _with_owner_lock(path: Path) -> Path:
    path.mkdir()
    (path / "owner.lock").write_bytes(OWNER_LOCK_TEXT)
    return path


def test_a19_the_owner_is_named_to_a_second_one(tmp_path: Path) -> None:
    with HostDisk().open_top(str(_with_owner_lock(tmp_path / "w"))) as root:
        with OwnerLock.take(root) as lock:
            assert lock.still_held()
            assert (tmp_path / "w" / "owner.lock").read_text().split() == [str(os.getpid())]
            with pytest.raises(WorkRootOwnedError, match=rf"found pid {os.getpid()} \("):
                OwnerLock.take(root)
        OwnerLock.take(root).release()


def test_the_pid_of_an_owner_overwrites_a_longer_one_and_needs_no_room(tmp_path: Path) -> None:
    path = _with_owner_lock(tmp_path / "w") / "owner.lock"
    path.write_bytes(b"12345678901234567890\n")
    with HostDisk().open_top(str(tmp_path / "w")) as root:
        OwnerLock.take(root).release()
    assert path.read_bytes() == str(os.getpid()).encode().ljust(20) + b"\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_the_pid_of_an_owner_is_for_people_and_no_full_disk_keeps_it_from_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(descriptor: int, text: bytes) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks, "note_in_lock", fail)
    with HostDisk().open_top(str(_with_owner_lock(tmp_path / "w"))) as root:
        before = sorted(os.listdir("/proc/self/fd"))
        if number == errno.EIO:
            with pytest.raises(OSError, match=os.strerror(number)):
                OwnerLock.take(root)
        else:
            OwnerLock.take(root).release()
        assert sorted(os.listdir("/proc/self/fd")) == before


def test_the_owner_lock_is_never_made(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with HostDisk().open_top(str(tmp_path / "w")) as root, pytest.raises(NoWorkRootError, match="logdirctl init"):
        OwnerLock.take(root)
    assert list((tmp_path / "w").iterdir()) == []


@pytest.mark.parametrize(
    ("state", "is_killed", "is_hanging"), [("D", True, True), ("D", False, False), ("S", True, False)]
)
def test_a_lock_of_a_killed_process_that_hangs_is_no_brokers(
    top: HostDirectory, state: str, is_killed: bool, is_hanging: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that was given up holds its locks until its disk answers (design §2 law 6)."""
    (Path(top.path) / "owner.lock").write_bytes(OWNER_LOCK_TEXT)
    with held_by_child("ofd", Path(top.path, ".lock")) as pid, held_by_child("ofd", Path(top.path, "owner.lock")):
        # No test can let a process sleep in the kernel without rights; tests/hung does.
        monkeypatch.setattr(lock_holder, "_state", lambda pid: (state, 0, is_killed))
        for module in (locks, lock_holder):
            monkeypatch.setattr(module, "ENDING_MS", 0)
        for take in (KafkaLock.take, OwnerLock.take):
            with pytest.raises(DiskError) as raised:
                take(top)
            assert isinstance(raised.value, LogDirSuspectError) == is_hanging
            if is_hanging:
                assert raised.value.path == top.path
                assert "killed" in str(raised.value.found)
        if is_hanging:
            with pytest.raises(LogDirSuspectError, match=f"pid {pid} "):
                lock_holder.is_locked(top.path)
        else:
            assert lock_holder.is_locked(top.path) is True


@pytest.mark.parametrize(("noted", "is_hanging"), [(b"4711", True), (b"4712", False), (b"", False), (b"x", False)])
def test_a_killed_owner_whose_files_may_not_be_seen_is_known_by_the_pid_it_noted(
    top: HostDirectory, noted: bytes, is_hanging: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``/proc/PID/fdinfo`` of another user namespace is denied; state and signals of a process anybody may read."""
    path = Path(top.path, "owner.lock")
    path.write_bytes(noted.ljust(len(OWNER_LOCK_TEXT) - 1) + b"\n")
    monkeypatch.setattr(lock_holder, "_pid_by_descriptor", lambda file: None)
    monkeypatch.setattr(lock_holder, "_state", lambda pid: ("D", 0, pid == 4711))
    monkeypatch.setattr(locks, "ENDING_MS", 0)
    with held_by_child("ofd", path), pytest.raises(LogDirSuspectError if is_hanging else WorkRootOwnedError) as raised:
        OwnerLock.take(top)
    assert ("pid 4711" in str(raised.value.found)) is is_hanging


def test_a_holder_that_cannot_be_looked_at_is_not_called_hanging(
    top: HostDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(pid: int) -> tuple[str, int, bool]:
        raise ProcessLookupError(errno.ESRCH, "gone")

    path = Path(top.path, ".lock")
    path.touch()
    with path.open("rb") as file:
        assert lock_holder.hanging_holder(file.fileno()) is None  # nobody holds it
        with held_by_child("ofd", path):
            assert lock_holder.hanging_holder(file.fileno()) is None
            monkeypatch.setattr(lock_holder, "_state", gone)
            assert lock_holder.hanging_holder(file.fileno()) is None


def test_a_killed_process_amid_a_sync_is_waited_for(top: HostDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps in the kernel as one that hangs does, and ends a moment later."""
    with held_by_child("ofd", Path(top.path, ".lock")) as pid:
        monkeypatch.setattr(lock_holder, "_state", lambda pid: ("D", 0, True))
        threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
        assert lock_holder.is_locked(top.path) is False
    with held_by_child("ofd", Path(top.path, ".lock")) as pid:
        threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
        KafkaLock.take(top).release()
