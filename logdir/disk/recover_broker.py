"""Entry point of crash recovery for all log dirs of a broker; every start runs it before any decision.

It first recovers interrupted adoptions, over all log dirs at once (``adopt_recovery``), then each log dir by itself
(``recover_log_dir``), which removes the rest of a withdrawn adoption. If a log dir is missing, no adoption is changed:
that log dir may hold the replica that forbids finishing it.

Not here: interrupted layout changes (``relayout``) and partial start blocks (``start_block``).

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
    """The result of the crash recovery of a broker: its adoptions first, then each log dir by itself."""

    adoptions: RecoveredAdoptions
    open_dirs: tuple[tuple[str, Recovered], ...]
    """Each log dir and the result of its recovery, in the order given."""

    @property
    def troubled(self) -> tuple[Problem, ...]:
        """Entries that were left unchanged, by absolute path, and why."""
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
    """Finish or undo interrupted operations; the owner locks and every lock of the broker are held.

    Args:
        open_dirs: Log dirs of one broker, all open for changes.
        is_whole: Whether these are all log dirs of the broker.
        map_os_errors: Returns, for a log dir, the context that translates its ``OSError``.
        run_at: Calls the recovery it is given with one open log dir, and returns the result; default: in this process.

    Returns:
        What was finished or undone, and what was left unchanged.

    Raises:
        ReadOnlyDiskError: a sync failed, or a disk is sick.
        OSError: a log dir or work root cannot be listed, unless ``map_os_errors`` translates it.
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
