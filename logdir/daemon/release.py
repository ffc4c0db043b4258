"""Letting go one log dir of a running daemon, so that its disk can be unmounted while the others go on.

The worker of the log dir ends, and with it its open directories and its owner lock; its watch ends, too. The log dir is
OFFLINE until the daemon reads its configuration again (SIGHUP) or is started again: only an operator knows when the
disk is back. Nothing is written, so a disk that hangs can be let go as well.

Not here: which log dirs a session leaves out (``session``).

Spec: design §6 ``disk release``; attacks A26, A40.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from logdir.daemon.session import Session
from logdir.errors import LogDirSuspectError, Problem
from logdir.service.batch.use_cases import Spec
from logdir.service.log_dirs.request import require_log_dirs
from logdir.service.report.exit_status import Exit
from logdir.service.report.result import ItemResult, ItemsResult, ItemState
from logdir.service.report.use_case import Ran

SLUG: Final = "log-dir-released"
_WHAT: Final = "worker, locks and watch end; requests that need this log dir are refused until logdird is reloaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """A request to let go one log dir."""

    log_dir: str
    """The absolute path of the log dir."""


RELEASE: Final = Spec(
    name="disk release",
    case=None,
    request=ReleaseRequest,
    result=ItemsResult,
    prepare=lambda broker: None,
    options=None,
    is_beside_broker=True,
)
"""How a daemon is asked for it; only a daemon has a log dir open for life."""


def released(log_dir: str) -> Problem:
    """Return why a log dir that was let go is OFFLINE, and how it is taken back."""
    return Problem(
        SLUG,
        log_dir,
        "a log dir that logdird has open",
        "one that was let go by logdirctl disk release",
        f"mount its disk (a new one: logdirctl init --log-dirs {log_dir} --apply), then reload logdird (SIGHUP)",
    )


def release(
    session: Session, request: ReleaseRequest, unwatch: Callable[[Collection[str]], None], *, is_applied: bool
) -> Ran:
    """Let go a log dir; a second time does nothing.

    Args:
        session: The open broker.
        request: The log dir.
        unwatch: Ends the watches of all these log dirs.
        is_applied: Whether to do it.

    Raises:
        ConfigError: it is no log dir of the broker.
    """
    (log_dir,) = require_log_dirs("DIR", (request.log_dir,), session.broker.named)
    if not is_applied:
        return _ran(log_dir, ItemState.PLANNED, _WHAT)
    session.let_go(log_dir, released(log_dir))
    unwatch(tuple(session.kept.released))
    pid = session.kept.unreaped.pids().get(log_dir)
    if pid is None:
        return _ran(log_dir, ItemState.DONE, "nothing of logdird has it open: its disk can be unmounted")
    hangs = Problem(
        LogDirSuspectError.code,
        log_dir,
        "the end of its worker process",
        f"pid {pid}, which hangs in the kernel",
        "the disk cannot be unmounted until that process has ended: check the kernel log",
    )
    return _ran(log_dir, ItemState.UNDONE, "released, but its worker has not ended and may hold the disk", hangs)


def _ran(log_dir: str, state: ItemState, detail: str, problem: Problem | None = None) -> Ran:
    item = ItemResult(log_dir=log_dir, path=os.curdir, state=state, detail=detail, problem=problem)
    return Ran(
        exit=Exit.DONE if problem is None else Exit.PROBLEMS,
        problems=() if problem is None else (problem,),
        result=ItemsResult(applied=state is not ItemState.PLANNED, items=(item,)),
    )
