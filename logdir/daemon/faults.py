"""Why a change is not begun: the daemon ends, has the log dirs open, or cannot open them or work on them.

Spec: design §2 law 8.
"""

from __future__ import annotations

import os

from logdir.daemon.config import DaemonConfig
from logdir.errors import LogDirError, Problem, StateError, WorkRootOwnedError, shown


class StoppingError(StateError):
    """The daemon ends, and begins no other change."""

    code = "daemon-stopping"


def stopping_error() -> StoppingError:
    """Return the error that the daemon ends."""
    return StoppingError("logdird", expected="a daemon that runs", found="a daemon that ends", fix="repeat the command")


class ReloadingError(StateError):
    """The daemon has read another configuration, and purges nothing more by the former one."""

    code = "daemon-reloading"


def reloading_error(file: str) -> ReloadingError:
    """Return the error that a configuration file was read again."""
    found = "one that was read again; the log dirs are opened by it first"
    return ReloadingError(
        file,
        expected="the configuration that is in use",
        found=found,
        fix="nothing to do: the purge goes on after that",
    )


class ReopeningError(StateError):
    """The daemon opens its log dirs again before it does what was asked."""

    code = "daemon-reopening"


def reopening_error(failed: tuple[str, ...]) -> ReopeningError:
    """Return the error that log dirs could not be opened before, and are tried again."""
    found = "some that could not be opened before; they are opened again now"
    return ReopeningError(", ".join(failed), expected="log dirs that are open", found=found, fix="repeat the command")


def problem_of(config: DaemonConfig, error: LogDirError | OSError) -> Problem:
    """Return why the broker of a configuration cannot be opened, or worked on."""
    if isinstance(error, LogDirError):
        return error.problem()
    path = config.server_properties if error.filename is None else os.fsdecode(error.filename)
    return Problem("io-error", path, "a call that succeeds", error.strerror or str(error), "check the kernel log")


def fault_of(what: str, error: Exception) -> Problem:
    """Return the problem of an error that no rule foresees: a fault of ours.

    Args:
        what: What was worked on.
        error: The error.
    """
    return Problem("internal-error", what, "an answer", shown(f"{type(error).__name__}: {error}"), "report this line")


def in_use(command: str, path: str) -> WorkRootOwnedError:
    """Return the error that a command needs log dirs that no daemon has open.

    Args:
        command: Its name.
        path: The socket of the daemon.
    """
    return WorkRootOwnedError(
        command,
        expected="log dirs that no logdird has open",
        found=f"logdird, which answers on {path}",
        fix="stop logdird first",
    )
