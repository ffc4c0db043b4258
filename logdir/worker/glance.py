"""A glance at a log dir: all that a sweep asks of it, in one call, because most sweeps find nothing new.

Not here: what is in the directories (``look``), the glance at every log dir of a broker
(``service.log_dirs.open_broker``).

Spec: design §3.3, §5 "A port per log dir"; attacks A26, A45.
"""

from __future__ import annotations

from typing import NamedTuple

from logdir.disk.kernel.calls import Space
from logdir.disk.lock_holder import is_locked
from logdir.disk.record import start_block
from logdir.disk.record.start_block import StartBlockState
from logdir.errors import LogDirError, LogDirSuspectError, Problem
from logdir.observe.leaving import Leaving, leaving
from logdir.observe.log_starts import LogStarts, log_starts
from logdir.worker.state import WorkerState, require_in_place, require_owner_lock
from logdir.worker_call import worker_call


class Since(NamedTuple):
    """What is known of a log dir from the last glance."""

    mtime_ns: int | None = None
    """As ``Leaving.mtime_ns``."""
    stamp: str = ""
    """As ``LogStarts.stamp``."""


class Glance(NamedTuple):
    """What one log dir answers."""

    is_locked: bool | Problem | None
    """Whether a broker runs there, as ``lock_holder.is_locked``."""
    is_blocked: bool
    """Whether it has a start block, as far as it can be read; ``False`` if a broker runs there."""
    starts: LogStarts
    """Read before ``leaving``: a broker takes an entry out of its file as it deletes the replica."""
    leaving: Leaving
    space: Space | None
    """Free space; ``None``: it cannot be read."""


@worker_call
def glance(
    opened: WorkerState, log_dir: str, since: Since, *, is_owner_required: bool, is_place_required: bool
) -> Glance:
    """Glance at the log dir of this worker. Only reads.

    Args:
        opened: Its state.
        log_dir: Path as configured.
        since: From the last glance.
        is_owner_required: Whether the owner lock must still be ours.
        is_place_required: Whether all paths must still lead to the open directories.

    Raises:
        LogDirReplacedError: as ``require_owner_lock``, ``require_in_place``.
        LogDirSuspectError: a killed process that hangs holds Kafka's lock.
        OSError: the log dir, or its work root, cannot be read.
    """
    if is_owner_required:
        require_owner_lock(opened)
    if is_place_required:
        require_in_place(opened)
    locked = is_locked(log_dir)
    is_blocked = locked is not True and _is_blocked(opened)
    return Glance(
        locked, is_blocked, log_starts(log_dir, since.stamp), leaving(log_dir, since.mtime_ns), _space(opened)
    )


def _is_blocked(opened: WorkerState) -> bool:
    try:
        return opened.root is not None and start_block.state((opened.open_dir,)) is not StartBlockState.NONE
    except LogDirSuspectError:
        raise
    except (LogDirError, OSError):
        return False  # The state of the log dir shows it.


def _space(opened: WorkerState) -> Space | None:
    try:
        return None if opened.root is None else opened.open_dir.top.space()
    except OSError:
        return None
