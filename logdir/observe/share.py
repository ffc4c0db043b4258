"""A second process for half of a big log dir: a forked copy that looks, sends back what it saw, and ends.

It holds no lock, changes nothing and is reaped before the scan returns; where it cannot be had, or fails, the first
process does that half too. Only for a process with a single thread. Not here: what is looked at (``scan``).

Spec: spec/baselines.md §1 ("optional second process … for one big disk").
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import NamedTuple

from logdir.observe.awaited import awaiting


class Share(NamedTuple):
    """The half under way in the other process."""

    pid: int
    pipe: int

    def result(self) -> bytes | None:
        """Wait for its bytes; ``None`` if it failed. Reaps the process."""
        pieces = []
        poll = select.poll()
        poll.register(self.pipe, select.POLLIN)
        with awaiting(f"/proc/{self.pid}/schedstat"):
            try:
                # A signal ends no read(2) where it restarts calls, and its handler would run when the half is done.
                while poll.poll() and (piece := os.read(self.pipe, 1 << 20)):
                    pieces.append(piece)
            finally:
                os.close(self.pipe)
                _, status = os.waitpid(self.pid, 0)
        return b"".join(pieces) if status == 0 else None

    def drop(self) -> None:
        """End it; its half is not wanted any more."""
        os.kill(self.pid, 9)
        os.close(self.pipe)
        os.waitpid(self.pid, 0)


def is_alone() -> bool:
    """Whether this process has a single thread: a fork of one with more may never come to its work."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def send(descriptor: int, data: bytes) -> None:
    """Write all of this to a descriptor. Raises ``OSError``."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def begin(work: Callable[[], bytes]) -> Share | None:
    """Run ``work`` in a copy of this process; ``None`` if there can be none just now."""
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
            # Never back into the caller's code, whatever happened: there it would run twice.
            os._exit(status)
    os.close(end)
    return Share(pid, pipe)
