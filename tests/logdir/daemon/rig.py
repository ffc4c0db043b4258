"""A daemon as a process of its own, on the log dirs of one broker that does not run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from logdir.daemon.report.status import StatusResult
from logdir.daemon.socket import client
from logdir.decide.staged.deadline import DelayPolicy
from logdir.service.cluster.source import SourceRequest
from logdir.service.report.exit_status import AnsweredError
from logdir.service.stage import StageRequest
from tests.builders import TOPIC_ID, log_dir, partition
from tests.free_space import on_any_disk
from tests.logdir.daemon.as_user import as_user, rights_of
from tests.tools.ctl import HOME, ctl, tree

CODE = "import sys; from tools.entry import logdird; sys.exit(logdird())"
UNIQUE = "0123456789abcdef0123456789abcdef"


def stage_of(selector: str) -> StageRequest:
    """Return a request to stage what a selector names, over the limit and without asking the cluster."""
    return StageRequest(
        source=SourceRequest(),
        selector=selector,
        delays=DelayPolicy(),
        is_held=False,
        protected=("__*",),
        is_even_over_limit=True,
        is_even_if_last=False,
        is_even_if_unknown=True,
    )


def until(what: str, found: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something is so; fail by its name if it does not become so."""
    deadline = time.monotonic() + seconds
    while not found():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Process:
    """A daemon, by its configuration file; the socket and the state lie beside that."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self.folder = config.parent
        self.process: subprocess.Popen[str] | None = None

    @property
    def socket(self) -> str:
        return str(self.folder / "s.sock")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def command(self, *words: str) -> list[str]:
        """Return the command that starts it, with these words at its end."""
        return as_user(sys.executable, "-c", CODE, "--config", str(self.config), *words)

    def start(self, *, is_awaited: bool = True) -> None:
        """Start it, as a user who is not root and has no capabilities."""
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(self.command(), cwd=HOME, stderr=log, text=True)
        pid = self.process.pid
        # What starts it gives up the rights of root; the daemon cannot get them back.
        until("the daemon runs as a user who is not root and has no capabilities", lambda: rights_of(pid).are_none)
        if is_awaited:
            until("the daemon runs", lambda: self.state() == "RUNNING" or self.has_ended())
            assert not self.has_ended(), self.log

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Start it; nothing of it is left at the end."""
        try:
            self.start()
            yield self
        finally:
            if self.process is not None and self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def state(self) -> str:
        try:
            return self.status().state
        except (client.DaemonUnreachableError, AnsweredError):
            return "-"

    def status(self) -> StatusResult:
        return client.status(self.socket)

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(30)

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the history, those that the daemon shows now among them."""
        if not self.has_ended():
            newest = self.status().events[-1]
            until("the newest event is written", lambda: any(e["at_ms"] >= newest.at_ms for e in self._events()))
        return self._events()

    def _events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "state" / "history.jsonl").read_text().splitlines()]

    def children(self) -> list[int]:
        assert self.process is not None
        pid = self.process.pid
        found: list[int] = []
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # The thread of a request that has ended.
                found += map(int, (task / "children").read_text().split())
        return found

    def watches(self) -> list[int]:
        found = []
        for pid in self.children():
            with suppress(FileNotFoundError, ProcessLookupError):  # It has ended meanwhile.
                found += [pid] if b"worker.watch" in Path(f"/proc/{pid}/cmdline").read_bytes() else []
        return found


class Daemon(Process):
    """A daemon on the log dirs of a broker that does not run."""

    def __init__(self, folder: Path, *, disks: int = 2, delete_delay_ms: int = 60_000, more: str = "") -> None:
        super().__init__(folder / "b1.yaml")
        self.log_dirs = [log_dir(folder / f"d{n + 1}", directory=f"JEXY6aqzQY-32P5TStza{n}g") for n in range(disks)]
        self.server_properties = folder / "server.properties"
        self.server_properties.write_text(
            f"broker.id=1\nlog.dirs={','.join(map(str, self.log_dirs))}\n"
            f"log.segment.delete.delay.ms={delete_delay_ms}\n"
        )
        self.configure(more)
        assert ctl("init", "--server-properties", self.server_properties, "--apply").status == 0

    def configure(self, more: str) -> None:
        self.config.write_text(
            "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\nauto.while.stopped: true\n"
            + on_any_disk(more),
            encoding="utf-8",
        )

    def make(self, topic: str = "pay", number: int = 0, *, disk: int = 0, topic_id: str = TOPIC_ID) -> Path:
        """Make a live replica."""
        return partition(self.log_dirs[disk] / f"{topic}-{number}", topic_id=topic_id, segments={0: 100, 7: 20})

    def delete(self, path: Path, suffix: str = "delete", unique: str = UNIQUE) -> Path:
        """Rename a replica as a broker does when its topic is deleted."""
        gone = path.with_name(f"{path.name}.{unique}-{suffix}")
        path.rename(gone)
        return gone

    def remove(self, gone: Path) -> None:
        """Remove it, as its broker does a minute later."""
        shutil.rmtree(gone)

    def staged(self, disk: int = 0) -> list[str]:
        return sorted(os.listdir(f"{self.log_dirs[disk]}.logdird/deleting"))


@contextmanager
def daemon(folder: Path, *, is_started: bool = True, **options: Any) -> Iterator[Daemon]:
    """Make the log dirs and start a daemon on them; nothing is left of it at the end."""
    one = Daemon(folder, **options)
    try:
        if is_started:
            one.start()
        yield one
    finally:
        if one.process is not None and one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def unchanged(one: Daemon) -> dict[str, tuple[object, ...]]:
    """Return all that no request has changed: the log dirs, their work roots, and what lies beside them.

    Not what the daemon writes by itself: its state, its log, and the heartbeat in each work root.
    """
    tops = [path for path in one.folder.iterdir() if path.is_dir() and path.name != "state"]
    found = tree(*tops)
    names: tuple[object, ...] = tuple(sorted(os.listdir(one.folder)))
    return {path: seen for path, seen in found.items() if Path(path).name != "heartbeat.json"} | {"": names}


def ask(path: str, data: bytes, seconds: float = 30.0) -> bytes:
    """Send bytes to a socket, and return all that comes back until it is closed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
        return found
