"""The end of a child process, without waiting for one that hangs in the kernel.

Spec: design §2 law 6; attacks A40; pidfd_open(2).
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Mapping
from typing import Protocol

from logdir.errors import LogDirSuspectError
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


def _without_log(path: str) -> str:
    return path.removesuffix(f"/{METADATA_DIR}")
