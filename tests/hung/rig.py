"""A broker, the second of whose log dirs is on a disk that can be let hang, and commands in processes of their own.

Three sick disks: a FUSE server that leaves requests unanswered; ext4 on a loop device whose image lies on such a
server, where a process sleeps so that no signal ends it; ext4 that is frozen. All mounts are made in the mount
namespace of this process, and the server ends with it; nothing is left, also where a test fails.

Not here: the server (``fuse``), what must hold.

Spec: design §2 laws 4, 6; fuse(4), loop(4), FIFREEZE.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.builders import log_dir, partition
from tests.hung.fuse import since_file
from tests.kernel.images import Images, Mounted, missing
from tests.tools.cluster_log import cluster_log, topics_on
from tests.tools.ctl import CODE, HOME, ctl, tree
from tests.tools.free_text import codes_in

TIMEOUT_S = 2
"""Of a disk; more than the second that a command may take besides, so that waiting for two in turn is too long."""
_SEEN_S = 0.2
"""The server looks at its control file twenty times a second."""
AT_MOST_S = 60
"""A command takes a second or two, and on a slow machine more."""
_GONE_S = 20.0
_A_SECOND = 1.0
"""Design: a command answers within its time-out and a second."""
_DIRECTORIES = ("JEXY6aqzQY-32P5TStzaFg", "AAAAAAAAAAAAAAAAAAAABA", "AAAAAAAAAAAAAAAAAAAACA", "AAAAAAAAAAAAAAAAAAAADA")
OLD, KEEP = "MkU3OEVBNTcwNTJENDM2Qg", "MkU3OEVBNTcwNTJENDM2QQ"


def lacking() -> str:
    """Say what this machine lacks; empty if nothing."""
    if reason := missing("ext4"):
        return reason
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "needs /dev/fuse: modprobe fuse"
    return ""


class Answering:
    """A mounted FUSE server, which answers until it is let hang."""

    def __init__(self, backing: Path, at: Path, control: Path) -> None:
        control.write_text("")
        at.mkdir(exist_ok=True)
        self._control, self._at = control, at
        command = [*before_all_others(), sys.executable, "-m", "tests.hung.fuse", *map(str, (backing, at, control))]
        self._server = subprocess.Popen(command, cwd=HOME, stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"mounted\n"

    def hang(self, *operations: str) -> None:
        """Answer these no more."""
        since_file(self._control).unlink(missing_ok=True)
        self._control.write_text(" ".join(operations))
        time.sleep(_SEEN_S)

    def hung_since(self) -> float:
        """Return when the first request was left unanswered, on ``time.monotonic``. Raises ``FileNotFoundError``."""
        return float(since_file(self._control).read_text())

    def go_on(self) -> None:
        """Answer all, also what waited."""
        self.hang()

    def close(self) -> None:
        """Unmount it; a server that does not end of it is killed, which breaks the connection."""
        self.go_on()
        command = ["umount", str(self._at)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            self._server.kill()
            subprocess.run(["umount", "-l", str(self._at)], check=False, capture_output=True)
        try:
            self._server.wait(5)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()


class Answer(NamedTuple):
    """What a command answered."""

    status: int
    result: dict[str, Any]
    problems: list[dict[str, str]]
    err: str
    seconds: float
    session: int
    """All its processes are of this one."""

    @property
    def suspects(self) -> list[str]:
        """Return the log dirs that are called suspect."""
        return [problem["path"] for problem in self.problems if problem["slug"] == "log-dir-suspect"]


class Running:
    """A command in a session of its own."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [*before_all_others(), sys.executable, "-c", CODE, *argv],
            cwd=HOME,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def session(self) -> int:
        """Return the number of its session."""
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def end(self, number: signal.Signals) -> None:
        """End the command, not its workers, and wait for the end of its output."""
        self._process.send_signal(number)
        try:
            self._process.communicate(timeout=AT_MOST_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.session, signal.SIGKILL)
            raise

    def text(self) -> tuple[int, str, str]:
        """Wait for its end; return status, output and errors. Raises ``subprocess.TimeoutExpired``."""
        try:
            out, err = self._process.communicate(timeout=AT_MOST_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.session, signal.SIGKILL)
            raise
        return self._process.returncode, out, err

    def answer(self) -> Answer:
        """Wait for its end, typed with ``--json``. Raises as ``text``."""
        status, out, err = self.text()
        seconds = time.monotonic() - self._began
        assert out.count("\n") == 1, (out, err)
        said = json.loads(out)
        assert said["exit"] == status
        assert not list(codes_in(said)), said
        return Answer(said["exit"], said["result"], said["problems"], err, seconds, self.session)


class LateError(AssertionError):
    """An answer came late. A busy machine may be why, so the test is run again: if it is late three times, it fails."""


@cache
def before_all_others() -> tuple[str, ...]:
    """Return the words that let a command and its workers, or a disk, have a core whenever they can use one: what it
    takes is then its own, whatever else this machine does. None where that is not allowed.
    """
    words = ("chrt", "--rr", "1")
    return words if subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0 else ()


def processes_of(session: int) -> dict[int, str]:
    """Return the processes of a session that have not ended, and the state of each."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session, *_ = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_session) == session and state not in "ZX":
            found[int(path.parent.name)] = state
    return found


def all_ended(*sessions: int) -> bool:
    """Wait until no process of some sessions is left."""
    end = time.monotonic() + _GONE_S
    while (left := any(map(processes_of, sessions))) and time.monotonic() < end:
        time.sleep(0.05)
    return not left


def require_asleep(session: int, call: str = "") -> None:
    """Assert that a process of a session sleeps in the kernel, killed by its command, and that no SIGKILL ends it.

    Args:
        session: The session.
        call: The function of the kernel in which it sleeps; empty: any.
    """
    asleep = _asleep(session)
    assert asleep, "no worker sleeps for good: the test shows nothing"
    # Another worker may wait for its disk, which answers, at this moment.
    there = [pid for pid, stack in asleep.items() if call in stack]
    assert there, f"it sleeps elsewhere than in {call}: {asleep}"
    assert all(map(_is_killed, there)), "its command has ended, and left it to go on once its disk answers"
    for pid in there:
        os.kill(pid, signal.SIGKILL)
    time.sleep(_SEEN_S)
    assert set(there) <= set(_asleep(session)), "SIGKILL ended it: the test shows nothing"


def _is_killed(pid: int) -> bool:
    """Whether a SIGKILL waits for a process: proc_pid_status(5)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(mask >> (signal.SIGKILL - 1) & 1 for mask in masks)


def _asleep(session: int) -> dict[int, str]:
    """Return the processes of a session that sleep in the kernel, and the kernel's functions they are in."""
    found = {}
    for pid, state in processes_of(session).items():
        if state == "D":
            try:
                found[pid] = Path(f"/proc/{pid}/stack").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def require_in_time(answer: Answer, timeout_s: float = TIMEOUT_S) -> None:
    """Require that a command beside a disk that hung answered within its time-out and a second; raises ``LateError``.

    Counted from its start: that of the interpreter is part of the second.

    Args:
        answer: Its answer.
        timeout_s: Its ``--disk-timeout``.
    """
    if answer.seconds > timeout_s + _A_SECOND:
        raise LateError(answer)


class Broker:
    """Log dirs with a live replica ``pay`` and a staged one, ``old``, that is due, on each."""

    def __init__(self, folder: Path, second: Path, count: int = 3, *, third: Path | None = None) -> None:
        """Make ``d1``, ``d3`` and, of four, ``d4`` in a folder, and ``d2``, which is to be sick, in ``second``.

        With ``third`` the third log dir is there, by the name of the second, so that their disks can change places.
        """
        self.folder = folder
        last = [folder / f"d{number + 1}" for number in range(2, count)]
        if third is not None:
            last[0] = third / "d2"
        self.disks = (folder / "d1", second / "d2", *last)
        for number, path in enumerate(self.disks):
            log_dir(path, directory=_DIRECTORIES[number])
            partition(path / f"pay-{number}", segments={0: 100, 7: 20})
            partition(path / f"old-{number}", topic_id=OLD)
            partition(path / f"keep-{number}", topic_id=KEEP)
        cluster_log(folder / "cluster", topics_on(self.disks), (2, 3))
        self.source = ("--from", f"metadata:{folder}/cluster/__cluster_metadata-0")
        for command in (
            ("init", "--apply"),
            ("stage", "old", "--apply", "--even-over-limit", "--delay-ms", "0", *self.source),
        ):
            said = ctl(*command, *self.named)
            assert said.status == 0, said

    @property
    def named(self) -> tuple[str, str]:
        """Return the words that name it."""
        return "--log-dirs", ",".join(map(str, self.disks))

    @property
    def sick(self) -> Path:
        """Return the log dir on the sick disk."""
        return self.disks[1]

    def moved(self, second: Path) -> None:
        """Have the second log dir at another mount point from now on."""
        self.disks = (self.disks[0], second / "d2", *self.disks[2:])

    def begin(self, *words: str) -> Running:
        """Type a command."""
        timeout = () if "--disk-timeout" in words else ("--disk-timeout", str(TIMEOUT_S))
        return Running((*words, *self.named, *timeout, "--json"))

    def sees(self, *words: str) -> Answer:
        """Type a command and wait for its answer."""
        return self.begin(*words).answer()

    def seen(self) -> dict[str, tuple[object, ...]]:
        """Return what lies on the sick disk."""
        return tree(self.sick, Path(f"{self.sick}.logdird"))


class Sick(NamedTuple):
    """A broker with a disk that can be let hang."""

    broker: Broker
    hang: Callable[..., None]
    go_on: Callable[[], None]
    before: dict[str, tuple[object, ...]]
    """What lay on the sick disk."""
    hung_since: Callable[[], float]
    """Returns when the first call began to hang, on ``time.monotonic``; where that cannot be seen, raises."""


def unseen() -> float:
    """Stand for an instant that cannot be seen. Raises ``NotImplementedError``."""
    raise NotImplementedError


@contextmanager
def on_fuse(folder: Path) -> Iterator[Sick]:
    """Put the second log dir on a FUSE server that shows it: for commands that read."""
    broker = Broker(folder, folder / "backing")
    server = Answering(folder / "backing", folder / "sick", folder / "control")
    try:
        broker.moved(folder / "sick")
        yield Sick(broker, server.hang, server.go_on, broker.seen(), server.hung_since)
    finally:
        server.close()


def forget(broker: Broker) -> None:
    """Drop the directories of the disk of ``on_loop`` from memory, while READ hangs: who lists one now hangs, too."""
    device = broker.sick.stat().st_dev
    name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
    flush = ("blockdev", "--flushbufs", f"/dev/{name}")
    subprocess.run(flush, check=True)
    image = os.open(broker.folder / "served" / "image", os.O_RDONLY)
    try:
        os.posix_fadvise(image, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(image)
    subprocess.run(flush, check=True)


def nothing(broker: Broker) -> None:
    """Leave a broker as it was made."""


@contextmanager
def on_loop(
    images: Images, folder: Path, prepare: Callable[[Broker], object] = nothing, *, count: int = 3
) -> Iterator[Sick]:
    """Put the second log dir on ext4 whose image lies on a FUSE server; nothing of it is in memory.

    Args:
        images: Makes it.
        folder: For all there is.
        prepare: Adds to what lies on the disks.
        count: How many log dirs there are.
    """
    backing = folder / "backing"
    backing.mkdir()
    image = images.make("ext4", 32)
    shutil.copyfile(image, backing / "image")
    image.unlink()
    server = Answering(backing, folder / "served", folder / "control")
    mounted: list[Mounted] = []
    try:
        mounted.append(Mounted(folder / "served" / "image", folder / "sick", "ext4"))
        broker = Broker(folder, folder / "sick", count)
        prepare(broker)
        before = broker.seen()
        mounted.pop().unmount()
        mounted.append(Mounted(folder / "served" / "image", folder / "sick", "ext4"))
        yield Sick(broker, server.hang, server.go_on, before, server.hung_since)
    finally:
        server.go_on()
        for one in mounted:
            _unmounted(one)
        server.close()


@contextmanager
def on_frozen(
    images: Images, folder: Path, prepare: Callable[[Broker], object] = nothing, *, count: int = 3
) -> Iterator[Sick]:
    """Put the second log dir on ext4 that can be frozen: every change hangs, what is read is answered."""
    mounted = images.mount(images.make("ext4", 32), "ext4")
    is_frozen = False

    def hang() -> None:
        nonlocal is_frozen
        mounted.freeze()
        is_frozen = True

    def go_on() -> None:
        nonlocal is_frozen
        if is_frozen:
            mounted.thaw()
        is_frozen = False

    try:
        broker = Broker(folder, mounted.path, count)
        prepare(broker)
        yield Sick(broker, hang, go_on, broker.seen(), unseen)
    finally:
        go_on()
        _unmounted(mounted)


@contextmanager
def on_served(folder: Path, prepare: Callable[[Broker], object], *names: str) -> Iterator[Sick]:
    """Let some files of the second log dir and its work root, and nothing else, lie on a FUSE server.

    Args:
        folder: For all there is.
        prepare: Adds to what lies on the disks.
        names: Names of these files, each of which is there.
    """
    served = folder / "served"
    (folder / "second").mkdir()
    broker = Broker(folder, folder / "second")
    prepare(broker)
    before = broker.seen()
    places: dict[Path, Path] = {}
    for top in (broker.sick, Path(f"{broker.sick}.logdird")):
        for path in [path for path in top.rglob("*") if path.name in names]:
            place = Path(str(len(places)), path.name)
            (served / place).parent.mkdir(parents=True)
            subprocess.run(["cp", "-a", str(path), str(served / place)], check=True)
            places[path] = place
    assert {path.name for path in places} == set(names), places
    server = Answering(served, folder / "served-at", folder / "served-control")
    try:
        for path, place in places.items():
            subprocess.run(["mount", "--bind", str(folder / "served-at" / place), str(path)], check=True)
        yield Sick(broker, server.hang, server.go_on, before, server.hung_since)
    finally:
        server.go_on()
        for path in places:
            subprocess.run(["umount", "-l", str(path)], check=False, capture_output=True)
        server.close()


@contextmanager
def on_lock(folder: Path, prepare: Callable[[Broker], object] = nothing) -> Iterator[Sick]:
    """Let Kafka's ``.lock`` of the second log dir, and nothing else, lie on a FUSE server: OPEN, SETLK or FLUSH hangs.

    An unlock is the kernel's own; closing the file, which gives the lock up, asks the server to flush it.
    """

    def with_lock(broker: Broker) -> None:
        prepare(broker)
        (broker.sick / ".lock").touch()

    with on_served(folder, with_lock, ".lock") as sick:
        yield sick


def _unmounted(mounted: Mounted) -> None:
    """Unmount a file system once what hung on it has ended."""
    end = time.monotonic() + _GONE_S
    while time.monotonic() < end:
        if subprocess.run(["umount", str(mounted.path)], check=False, capture_output=True).returncode == 0:
            break
        time.sleep(0.1)
    else:
        subprocess.run(["umount", "-l", str(mounted.path)], check=False, capture_output=True)
    mounted.is_mounted = False
    os.close(mounted._loop)
