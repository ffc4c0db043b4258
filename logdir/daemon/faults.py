"""Why the daemon begins no change: it ends, or its log dirs cannot be opened or worked on.

Spec: design §2 law 8.
"""

from __future__ import annotations

import os

from logdir.daemon.config import DaemonConfig
from logdir.errors import LogDirError, Problem, StateError


class StoppingError(StateError):
    """The daemon ends, and begins no other change."""

    code = "daemon-stopping"


def stopping_error() -> StoppingError:
    """Return that the daemon ends."""
    return StoppingError("logdird", expected="a daemon that runs", found="a daemon that ends", fix="repeat the command")


def problem_of(config: DaemonConfig, error: LogDirError | OSError) -> Problem:
    """Return why the broker of a configuration cannot be opened, or worked on."""
    if isinstance(error, LogDirError):
        return error.problem()
    path = config.server_properties if error.filename is None else os.fsdecode(error.filename)
    return Problem("io-error", path, "a call that succeeds", error.strerror or str(error), "check the kernel log")
