"""The end of a child process, without waiting for one that hangs in the kernel.

Spec: design §2 law 6; attacks A40; pidfd_open(2).
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Protocol

from logdir.errors import LogDirSuspectError, Problem
from logdir.paths import METADATA_DIR


def has_ended(pid: int, wait_ms: int) -> bool:
    """Wait at most ``wait_ms`` for the end of a child process, and reap it; return whether it ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        descriptor = -1
    try:
        if descriptor >= 0:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(wait_ms)
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
    finally:
        if descriptor >= 0:
            os.close(descriptor)


class Reaped(Protocol):
    """The part of a closed port that the record of unreaped workers needs."""

    @property
    def log_dir(self) -> str:
        """The path as configured."""

    @property
    def pid(self) -> int | None:
        """Process id of its worker; ``None``: it has none."""

    def is_reaped(self) -> bool:
        """Whether its worker has ended."""


class Orphan:
    """A process that another process of ours started, and that outlives it: the kernel alone tells of its end."""

    def __init__(self, log_dir: str, pid: int) -> None:
        """Remember the process, which has not ended yet.

        Args:
            log_dir: The log dir or path for which it was started.
            pid: Its process id.
        """
        self.log_dir = log_dir
        self.pid: int | None = pid
        self._descriptor = -1
        with suppress(OSError):  # It has ended meanwhile.
            self._descriptor = os.pidfd_open(pid)

    def is_reaped(self) -> bool:
        """Whether it has ended.

        Where this process has the pid 1, as in a container, it got the orphan as a child, and nobody else reaps it.
        """
        if self._descriptor >= 0:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            if poll.poll(0):
                with suppress(OSError):  # It is the child of another process.
                    # By the descriptor, not by its number, which may be that of another child by now.
                    os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED | os.WNOHANG)
                os.close(self._descriptor)
                self._descriptor = -1
        return self._descriptor < 0


def children_of(parent: int) -> tuple[int, ...]:
    """Return the process ids of the children of a process, as far as they can be seen; of one that has ended, none.

    Reads ``/proc`` once through, because not every kernel lists the children of a process (proc(5), PROC_CHILDREN).
    """
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError, ValueError, IndexError):  # It has ended meanwhile.
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name of a program may hold anything, brackets too: the parent stands behind the last one.
                _, starter, *_ = file.read().rpartition(b")")[2].split()
            if int(starter) == parent:
                found.append(int(name))
    return tuple(found)


class Unreaped:
    """Workers of closed ports that have not ended: each has its log dir open, and its last call may end yet. Also the
    processes of calls beside the log dirs, by the path that they read.

    Used by one thread.
    """

    def __init__(self) -> None:
        """Begin with no worker."""
        self._ports: list[Reaped] = []

    def keep(self, ports: Iterable[Reaped]) -> None:
        """Remember each of these ports whose worker has not ended; a port may be given again."""
        self._ports += [port for port in ports if port not in self._ports and not port.is_reaped()]

    def has_ended(self, path: str) -> bool:
        """Whether no process is kept that was started for a path; a metadata log and its directory are one path."""
        return _without_log(path) not in map(_without_log, self.pids())

    def require_ended(self, path: str) -> None:
        """Check that no process is kept that was started for a path, as ``has_ended``.

        Raises:
            LogDirSuspectError: one has not ended.
        """
        for one, pid in self.pids().items():
            if _without_log(one) == _without_log(path):
                raise LogDirSuspectError(
                    path,
                    expected="the end of the process that read it before, which was killed",
                    found=f"pid {pid}, which hangs in the kernel",
                    fix="SUSPECT: check the kernel log; it is read again once that process has ended",
                )

    def pids(self) -> Mapping[str, int]:
        """Return the process id of a worker that has not ended, by log dir or path; forget the workers that have."""
        self._ports = [port for port in self._ports if not port.is_reaped()]
        return {port.log_dir: port.pid for port in self._ports if port.pid is not None}

    def problems(self) -> dict[str, Problem]:
        """Return why log dirs are left out whose worker has not ended, by log dir."""
        return {
            log_dir: Problem(
                LogDirSuspectError.code,
                log_dir,
                "the end of its worker process, which was killed",
                f"pid {pid}, which hangs in the kernel",
                "SUSPECT: check the kernel log; logdird opens the log dir again once that process has ended",
            )
            for log_dir, pid in self.pids().items()
        }


def _without_log(path: str) -> str:
    return path.removesuffix(f"/{METADATA_DIR}")
