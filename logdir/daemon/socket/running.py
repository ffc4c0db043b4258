"""Running a use case on the thread of changes, and its answer; waited for or not, it is the same.

Not here: who may ask, and who waits (``handler``, ``operating``).

Spec: design §5, §6.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from logdir.daemon.release import RELEASE
from logdir.daemon.socket.body import Asked
from logdir.daemon.socket.envelopes import Reply, of_error, of_fault, of_ran
from logdir.daemon.socket.reads import Reads
from logdir.errors import LogDirError
from logdir.service.report.use_case import Ran

if TYPE_CHECKING:
    from logdir.daemon.work import Work

LOG: Final = logging.getLogger(__name__)
Came: TypeAlias = tuple[Ran, tuple[str, ...]]
"""What came of a use case, and the warnings that came before a change."""


def run_on(work: Work, asked: Asked) -> Came:
    """Run a use case; called by the thread of changes. Raises ``LogDirError``: as the use case."""
    if asked.spec is RELEASE:
        return work.release(asked.request, is_applied=asked.is_applied)
    return work.run(asked.spec, asked.request, is_applied=asked.is_applied)


def log_dir_left(asked: Asked) -> str | None:
    """Return the log dir that a request lets go; ``None``: it lets go none."""
    if asked.spec is not RELEASE or not asked.is_applied:
        return None
    log_dir: str = asked.request.log_dir
    return log_dir


def reply_of(name: str, came: Callable[[], Came], reads: Reads, left: str | None) -> Reply:
    """Return the answer to a request.

    Args:
        name: Name of the use case.
        came: Returns what came of it, or raises the error that ended it.
        reads: Those of the daemon.
        left: The log dir that the request lets go: once that is done no read has it open any more, before the answer
            says so.
    """
    try:
        ran, warnings = came()
        if left is not None:
            reads.leave(left)
        return of_ran(name, ran, warnings)
    except LogDirError as error:
        return of_error(name, error)
    except Exception as error:
        LOG.exception("request.fault command=%r", name)
        return of_fault(name, error)
