"""The one way in to recovery: every start takes it before it decides anything, and nothing else calls its parts.

Adoptions that were cut off come first, over all log dirs at once (``adopt_recovery``); then each log dir by itself
(``recover``), which takes away what is left of one that was withdrawn. If a log dir is left out no adoption is
touched: that one may hold the replica which speaks against finishing it.

Not here: layouts half changed (``relayout``) and disks half blocked (``start_block``).

Spec: design §2 laws 2, 3, §3.3; attacks A11, A16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from logdir.disk.recover_log_dir import Recovered, recover
from logdir.disk.replica.adopt_recovery import RecoveredAdoptions, recover_adoptions
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import Problem

_NO_ADOPTIONS = RecoveredAdoptions(finished=(), withdrawn=(), troubled=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a recovery did and could not do."""

    adoptions: RecoveredAdoptions
    open_dirs: tuple[tuple[str, Recovered], ...]
    """Log dir, and what was done there; in the order given."""

    @property
    def troubled(self) -> tuple[Problem, ...]:
        """What is as it was, by its absolute path, and why."""
        found = [problem for _, one in self.open_dirs for problem in one.troubled]
        return (*self.adoptions.troubled, *found)


def _here(call: Callable[[OpenLogDir], Recovered], open_dir: OpenLogDir) -> Recovered:
    return call(open_dir)


def recover_broker(
    open_dirs: Sequence[OpenLogDir],
    *,
    is_whole: bool,
    map_os_errors: Callable[[str], AbstractContextManager[object]] = nullcontext,
    run_at: Callable[[Callable[[OpenLogDir], Recovered], OpenLogDir], Recovered] = _here,
) -> Recovery:
    """Finish or undo what an interruption left; the owner locks and every lock of the broker are held.

    Args:
        open_dirs: Log dirs of one broker, all open for changes.
        is_whole: Whether these are all it has.
        map_os_errors: Given a log dir, says what an error of the kernel means there.
        run_at: Makes the call that recovers one log dir.

    Returns:
        What was done.

    Raises:
        ReadOnlyDiskError: a sync failed, or a disk is sick.
        OSError: a log dir or work root cannot be listed, unless ``told`` makes something else of it.
    """
    adoptions = _NO_ADOPTIONS
    if is_whole and open_dirs:
        with map_os_errors(open_dirs[0].log_dir):
            adoptions = recover_adoptions(open_dirs)
    found = []
    for open_dir in open_dirs:
        with map_os_errors(open_dir.log_dir):
            found.append((open_dir.log_dir, run_at(recover, open_dir)))
    return Recovery(adoptions=adoptions, open_dirs=tuple(found))
