"""The one way in to recovery: every start takes it before it decides anything, and nothing else calls its parts.

Adoptions that were cut off come first, over all log dirs at once (``adopt_recovery``); then each log dir by itself
(``recover``), which takes away what is left of one that was withdrawn. If a log dir is left out no adoption is
touched: that one may hold the replica which speaks against finishing it.

Not here: layouts half changed (``relayout``) and disks half barred (``bar``).

Spec: design §2 laws 2, 3, §3.3; attacks A11, A16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from logdir.disk.recover_log_dir import Recovered, recover
from logdir.disk.replica.adopt_recovery import RecoveredAdoptions, recover_adoptions
from logdir.disk.root.open_log_dir import Site
from logdir.errors import Problem

_NO_ADOPTIONS = RecoveredAdoptions(finished=(), withdrawn=(), troubled=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a recovery did and could not do."""

    adoptions: RecoveredAdoptions
    sites: tuple[tuple[str, Recovered], ...]
    """Log dir, and what was done there; in the order given."""

    @property
    def troubled(self) -> tuple[Problem, ...]:
        """What is as it was, by its absolute path, and why."""
        found = [problem for _, one in self.sites for problem in one.troubled]
        return (*self.adoptions.troubled, *found)


def _here(call: Callable[[Site], Recovered], site: Site) -> Recovered:
    return call(site)


def recover_broker(
    sites: Sequence[Site],
    *,
    is_whole: bool,
    told: Callable[[str], AbstractContextManager[object]] = nullcontext,
    run_at: Callable[[Callable[[Site], Recovered], Site], Recovered] = _here,
) -> Recovery:
    """Finish or undo what an interruption left; the owner locks and every lock of the broker are held.

    Args:
        sites: Log dirs of one broker, all open for changes.
        is_whole: Whether these are all it has.
        told: Given a log dir, says what an error of the kernel means there.
        run_at: Makes the call that recovers one log dir.

    Returns:
        What was done.

    Raises:
        ReadOnlyDiskError: a sync failed, or a disk is sick.
        OSError: a log dir or work root cannot be listed, unless ``told`` makes something else of it.
    """
    adoptions = _NO_ADOPTIONS
    if is_whole and sites:
        with told(sites[0].log_dir):
            adoptions = recover_adoptions(sites)
    found = []
    for site in sites:
        with told(site.log_dir):
            found.append((site.log_dir, run_at(recover, site)))
    return Recovery(adoptions=adoptions, sites=tuple(found))
