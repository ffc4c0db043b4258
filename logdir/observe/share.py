"""A forked second process that scans half of a big log dir, sends back the result, and ends.

It holds no lock, changes nothing and is reaped before the scan returns. If it cannot be started, or fails, the first
process scans that half too. Only for a process with a single thread. Not here: the scan itself (``scan``).

Spec: spec/baselines.md §1 ("optional second process … for one big disk").
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import NamedTuple

from logdir.observe.awaited import awaiting


class Share(NamedTuple):
    """The second process, which scans half of a log dir, and the pipe that it writes its result to."""

    pid: int
    pipe: int

    def result(self) -> bytes | None:
        """Wait for the process that scans its half, and return the bytes it sent; ``None``: it failed."""
        pieces = []
        poll = select.poll()
        poll.register(self.pipe, select.POLLIN)
        with awaiting(f"/proc/{self.pid}/schedstat"):
            try:
                # Signals may restart read(2) without running their handlers until the read returns; so poll.
                while poll.poll() and (piece := os.read(self.pipe, 1 << 20)):
                    pieces.append(piece)
            finally:
                os.close(self.pipe)
                _, status = os.waitpid(self.pid, 0)
        return b"".join(pieces) if status == 0 else None

    def drop(self) -> None:
        """End the second process; its result is not needed."""
        os.kill(self.pid, 9)
        os.close(self.pipe)
        os.waitpid(self.pid, 0)


def is_alone() -> bool:
    """Whether this process has a single thread: a fork of one with more may deadlock."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def send(descriptor: int, data: bytes) -> None:
    """Write all of ``data`` to a descriptor. Raises ``OSError``."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def begin(work: Callable[[], bytes]) -> Share | None:
    """Start ``work`` in a fork of this process and return at once; ``None``: no fork is possible now."""
    if not is_alone():
        return None
    try:
        pipe, end = os.pipe()
    except OSError:
        return None
    try:
        pid = os.fork()
    except OSError:
        os.close(pipe)
        os.close(end)
        return None
    if pid == 0:
        status = 1
        try:
            send(end, work())
            status = 0
        finally:
            # Never return into the caller's code, which would then run twice.
            os._exit(status)
    os.close(end)
    return Share(pid, pipe)
