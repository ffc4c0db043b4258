"""The port of a log dir for which no worker is started: every call is refused with the same problem.

Spec: design §2 law 6; attacks A40.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from logdir.disk.kernel.calls import Disk
from logdir.errors import LogDirSuspectError, Problem


class _Refused:
    """A call that was not made."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def result(self) -> Any:
        """Raise ``LogDirSuspectError``."""
        raise LogDirSuspectError.of(self._problem)


class RefusingPort:
    """A port without a worker and without an open directory."""

    is_suspect = True
    is_idle = False
    pid: int | None = None

    def __init__(self, log_dir: str, problem: Problem) -> None:
        """Take the path of the log dir, as configured, and why nothing is done there."""
        self.log_dir = log_dir
        self._refused = _Refused(problem)

    @property
    def disk(self) -> Disk:
        """Raise ``LogDirSuspectError``."""
        disk: Disk = self._refused.result()
        return disk

    def begin(self, *_: object, **__: object) -> _Refused:
        """Implement ``Port.begin``."""
        return self._refused

    def run(self, *_: object, **__: object) -> Any:
        """Implement ``Port.run``."""
        return self._refused.result()

    run_at = run_opened = run
    begin_at = begin_opened = begin

    def stream_opened(self, *_: object, **__: object) -> Iterator[Any]:
        """Implement ``Port.stream_opened``."""
        yield self._refused.result()

    def begin_root(self, *, is_start_block_allowed: bool) -> _Refused:
        """Implement ``Port.begin_root``."""
        return self._refused

    def is_reaped(self) -> bool:
        """Implement ``Port.is_reaped``: there is no worker."""
        return True

    def end(self) -> None:
        """Implement ``Port.end``: there is no worker."""

    def close(self) -> None:
        """Implement ``Port.close``: nothing is open."""
