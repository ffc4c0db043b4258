"""Commands run, and killed at the n-th change that a watch sees or after a time.

Not here: which commands, and what must hold afterwards.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.soak.watch import Watch

_LONGEST_S = 120.0
LAUNCHER = Path(__file__).with_name("launcher.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """When a command is killed: at a number of changes, after a time, or not at all."""

    changes: int | None = None
    after_s: float | None = None

    def __str__(self) -> str:
        if self.changes is not None:
            return f"killed at change {self.changes}"
        return "not killed" if self.after_s is None else f"killed after {1000 * self.after_s:.1f} ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    status: int
    """Its exit status; negative: the signal that killed it."""
    output: str
    changes: int
    took_s: float
    cpu_s: float

    @property
    def was_killed(self) -> bool:
        return self.status == -signal.SIGKILL


def _children(pid: int) -> list[int]:
    """Return the worker processes of a command."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _await_end(workers: Sequence[int]) -> None:
    """Wait until workers are gone: killed with their command, they release their locks a moment later."""
    for worker in workers:
        with suppress(OSError):
            descriptor = os.pidfd_open(worker)
            try:
                select.select([descriptor], [], [], _LONGEST_S)
            finally:
                os.close(descriptor)


class Host:
    """Starts ``logdirctl`` from a process that has it loaded, or now and then as an operator would."""

    def __init__(self, folder: Path, warm: Sequence[Sequence[str]]) -> None:
        self._output = folder / "output"
        self._process = subprocess.Popen(
            [sys.executable, str(LAUNCHER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        self._say({"warm": [list(argv) for argv in warm]})
        self._hear()

    def _say(self, asked: object) -> None:
        self._in.write(json.dumps(asked).encode() + b"\n")

    def _hear(self) -> dict[str, float]:
        said: dict[str, float] = json.loads(self._out.readline())
        return said

    def run(self, argv: Sequence[str], tops: Sequence[Path], kill: Kill, *, is_plain: bool = False) -> Ended:
        """Run a command; count the changes below ``tops``; kill it as asked.

        Args:
            argv: Its arguments.
            tops: What is watched.
            kill: When it is killed.
            is_plain: Start the installed script itself.
        """
        watch = Watch(tops)
        try:
            if is_plain:
                return self._plain(argv, watch, kill)
            self._say({"argv": list(argv), "output": str(self._output)})
            pid = int(self._hear()["pid"])
            began = time.monotonic()
            changes = self._wait(watch, pid, self._out.fileno(), kill, began)
            took = time.monotonic() - began
            self._hear()
            self._say({})
            ended = self._hear()
            status, cpu = int(ended["status"]), ended["cpu"]
        finally:
            watch.close()
        text = self._output.read_text(errors="replace") if self._output.exists() else ""
        return Ended(status=status, output=text, changes=changes, took_s=took, cpu_s=cpu)

    def _plain(self, argv: Sequence[str], watch: Watch, kill: Kill) -> Ended:
        script = Path(sys.executable).with_name("logdirctl")
        began, before = time.monotonic(), os.times()
        with self._output.open("wb") as output:
            process = subprocess.Popen([str(script), *argv], stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        descriptor = os.pidfd_open(process.pid)
        try:
            changes = self._wait(watch, process.pid, descriptor, kill, began)
        finally:
            os.close(descriptor)
        status, after = process.wait(), os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        text = self._output.read_text(errors="replace")
        return Ended(status=status, output=text, changes=changes, took_s=time.monotonic() - began, cpu_s=cpu)

    def _wait(self, watch: Watch, pid: int, end: int, kill: Kill, began: float) -> int:
        """Wait until ``end`` can be read, kill meanwhile; return the number of changes seen."""
        changes, is_killed = 0, False
        while True:
            left = _LONGEST_S - (time.monotonic() - began)
            if kill.after_s is not None and not is_killed:
                left = min(left, kill.after_s - (time.monotonic() - began))
            ready, _, _ = select.select([watch.descriptor, end], [], [], max(0.0, left))
            if watch.descriptor in ready:
                changes += watch.count()
            if end in ready:
                return changes + watch.count()
            passed = time.monotonic() - began
            is_due = (kill.changes is not None and changes >= kill.changes) or (
                kill.after_s is not None and passed >= kill.after_s
            )
            if not is_killed and (is_due or passed >= _LONGEST_S):
                workers = _children(pid)
                os.kill(pid, signal.SIGKILL)
                is_killed = True
                _await_end(workers)

    def close(self) -> None:
        """End the launcher."""
        self._in.close()
        self._process.wait()
        self._out.close()
