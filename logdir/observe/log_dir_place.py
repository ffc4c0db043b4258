"""Where a log dir really lies, whose it is, and whether its work root lies within it. Only reads.

Not here: the mount table (``mounts``), a whole scan (``scan``).

Spec: design §3.2; attacks A6.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from logdir.paths import DELETING, HIDDEN_WORK_ROOT
from logdir.worker_call import worker_call


class LogDirPlace(NamedTuple):
    """Where a log dir lies, and whose it is."""

    real: str
    """Its path without links."""
    uid: int
    gid: int
    holds_work_root: bool
    """Whether its work root lies within it, so that nothing beside it is ours."""


@worker_call
def place_of(log_dir: str) -> LogDirPlace | None:
    """Return the place of a log dir; ``None`` if it cannot be read."""
    try:
        found = os.stat(log_dir)  # noqa: PTH116 - few imports, here
    except OSError:
        return None
    real = os.path.realpath(log_dir)
    holds = any(os.path.lexists(os.path.join(real, name)) for name in (HIDDEN_WORK_ROOT, DELETING))
    return LogDirPlace(real, found.st_uid, found.st_gid, holds)
