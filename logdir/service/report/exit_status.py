"""Exit statuses, and which of them follows from an error.

``logdirctl`` exits with them, and the daemon answers them; ``kafka-storage`` has its own. Few imports: every command
imports this module.

Not here: the status of a result (``result``).

Spec: design §6.
"""

from __future__ import annotations

from enum import IntEnum

from logdir.errors import (
    ConfigError,
    DiskError,
    FormatError,
    LockHeldError,
    LogDirError,
    LogDirSuspectError,
    NoPermissionError,
    Problem,
    RefusedError,
    WorkRootOwnedError,
)


class Exit(IntEnum):
    """Exit statuses of every command but ``kafka-storage``."""

    DONE = 0
    PROBLEMS = 1
    USAGE = 2
    BROKER_RUNS = 3
    REFUSED = 4
    INTERNAL = 5
    INTERRUPTED = 130
    """As a shell reports a process that SIGINT ended."""


_BY_SLUG = {
    "output-failed": Exit.PROBLEMS,
    "output-exists": Exit.USAGE,
    "no-spark": Exit.USAGE,
    "spark-session": Exit.USAGE,
    "plan-format": Exit.USAGE,
    "snapshot-format": Exit.USAGE,
    "walk-on-cluster": Exit.REFUSED,
}
"""Slugs of errors whose family does not settle the exit status; most are the planner's."""


class AnsweredError(ConfigError):
    """A daemon answered a request with problems and without a result."""

    code = "daemon-answered"

    def __init__(self, problems: tuple[Problem, ...], exit_status: int = Exit.USAGE) -> None:
        """Take the problems, at least one, and the exit status that the daemon answered."""
        super().__init__(problems)
        self.exit_status = exit_status


def problems_of(error: LogDirError) -> tuple[Problem, ...]:
    """Return every problem that an error carries: several of a ``ConfigError``, one of most others."""
    return error.problems if isinstance(error, ConfigError) else (error.problem(),)


def exit_for(error: LogDirError) -> Exit:
    """Return the exit status of a command that an error stopped."""
    match error:
        case AnsweredError():
            return Exit(error.exit_status)
        case ConfigError():
            return Exit.USAGE
        case WorkRootOwnedError() | RefusedError() | NoPermissionError() | LogDirSuspectError():
            return Exit.REFUSED
        case LockHeldError():
            return Exit.BROKER_RUNS
        case FormatError() | DiskError():
            return Exit.PROBLEMS
        case _:
            return _BY_SLUG.get(error.code, Exit.REFUSED)
