"""A broker of three log dirs, the second on a disk that can be let hang, and commands in processes of their own.

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
from pathlib import Path
from typing import Any, NamedTuple

from tests.builders import log_dir, partition
from tests.kernel.images import Images, Mounted, missing
from tests.tools.cluster_log import cluster_log, topics_on
from tests.tools.ctl import CODE, HOME, ctl, tree

TIMEOUT_S = 1
_SEEN_S = 0.2
"""The server looks at its control file twenty times a second."""
AT_MOST_S = 60
"""A command takes a second or two, and on a slow machine more."""
_GONE_S = 20.0
_DIRECTORIES = ("JEXY6aqzQY-32P5TStzaFg", "AAAAAAAAAAAAAAAAAAAABA", "AAAAAAAAAAAAAAAAAAAACA")
_OLD, _KEEP = "MkU3OEVBNTcwNTJENDM2Qg", "MkU3OEVBNTcwNTJENDM2QQ"


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
        command = [sys.executable, "-m", "tests.hung.fuse", *map(str, (backing, at, control))]
        self._server = subprocess.Popen(command, cwd=HOME, stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"mounted\n"

    def hang(self, *operations: str) -> None:
        """Answer these no more."""
        self._control.write_text(" ".join(operations))
        time.sleep(_SEEN_S)

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
            [sys.executable, "-c", CODE, *argv],
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

    def answer(self) -> Answer:
        """Wait for its end. Raises ``subprocess.TimeoutExpired``."""
        try:
            out, err = self._process.communicate(timeout=AT_MOST_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.session, signal.SIGKILL)
            raise
        seconds = time.monotonic() - self._began
        assert out.count("\n") == 1, (out, err)
        said = json.loads(out)
        assert said["exit"] == self._process.returncode
        return Answer(said["exit"], said["result"], said["problems"], err, seconds, self.session)


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


class Broker:
    """Three log dirs with a live replica ``pay`` and a staged one, ``old``, that is due, on each."""

    def __init__(self, folder: Path, second: Path) -> None:
        self.folder = folder
        self.disks = (folder / "d1", second / "d2", folder / "d3")
        for number, (path, directory) in enumerate(zip(self.disks, _DIRECTORIES, strict=True)):
            log_dir(path, directory=directory)
            partition(path / f"pay-{number}", segments={0: 100, 7: 20})
            partition(path / f"old-{number}", topic_id=_OLD)
            partition(path / f"keep-{number}", topic_id=_KEEP)
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
        self.disks = (self.disks[0], second / "d2", self.disks[2])

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


@contextmanager
def on_fuse(folder: Path) -> Iterator[Sick]:
    """Put the second log dir on a FUSE server that shows it: for commands that read."""
    broker = Broker(folder, folder / "backing")
    server = Answering(folder / "backing", folder / "sick", folder / "control")
    try:
        broker.moved(folder / "sick")
        yield Sick(broker, server.hang, server.go_on, broker.seen())
    finally:
        server.close()


def nothing(broker: Broker) -> None:
    """Leave a broker as it was made."""


@contextmanager
def on_loop(images: Images, folder: Path, prepare: Callable[[Broker], object] = nothing) -> Iterator[Sick]:
    """Put the second log dir on ext4 whose image lies on a FUSE server; nothing of it is in memory.

    Args:
        images: Makes it.
        folder: For all there is.
        prepare: Adds to what lies on the disks.
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
        broker = Broker(folder, folder / "sick")
        prepare(broker)
        before = broker.seen()
        mounted.pop().unmount()
        mounted.append(Mounted(folder / "served" / "image", folder / "sick", "ext4"))
        yield Sick(broker, server.hang, server.go_on, before)
    finally:
        server.go_on()
        for one in mounted:
            _unmounted(one)
        server.close()


@contextmanager
def on_frozen(images: Images, folder: Path, prepare: Callable[[Broker], object] = nothing) -> Iterator[Sick]:
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
        broker = Broker(folder, mounted.path)
        prepare(broker)
        yield Sick(broker, hang, go_on, broker.seen())
    finally:
        go_on()
        _unmounted(mounted)


@contextmanager
def on_lock(folder: Path, prepare: Callable[[Broker], object] = nothing) -> Iterator[Sick]:
    """Let Kafka's ``.lock`` of the second log dir, and nothing else, lie on a FUSE server: OPEN, SETLK or FLUSH hangs.

    An unlock is the kernel's own; closing the file, which gives the lock up, asks the server to flush it.
    """
    served = folder / "lock-served"
    served.mkdir()
    (served / "lock").touch()
    (folder / "second").mkdir()
    broker = Broker(folder, folder / "second")
    prepare(broker)
    lock = broker.sick / ".lock"
    lock.touch()
    before = broker.seen()
    server = Answering(served, folder / "lock-at", folder / "lock-control")
    try:
        subprocess.run(["mount", "--bind", str(folder / "lock-at" / "lock"), str(lock)], check=True)
        yield Sick(broker, server.hang, server.go_on, before)
    finally:
        server.go_on()
        subprocess.run(["umount", "-l", str(lock)], check=False, capture_output=True)
        server.close()


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
