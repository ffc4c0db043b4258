"""The replicas that a purge was to remove and that are still there, and why.

Each problem is logged once, and stays in the status until its replica is removed, restored, or no longer to be purged.
One that is claimed is always to be purged.

Used by the thread of changes alone.

Not here: the purges (``purges``).

Spec: design §2 law 8, §3.3 "Purge"; KIP-516, "Deletion", step 1 (a scheduled loss is logged).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Final

from logdir.daemon.faults import ReloadingError, StoppingError
from logdir.daemon.purging.pause import PauseFileError
from logdir.errors import Problem
from logdir.names import parse_work_dir
from logdir.observe.facts import LogDirFacts
from logdir.service.log_dirs.last_look import Place
from logdir.service.report.result import ItemResult, ItemState
from logdir.worker.operations import PurgePausedError

GOES_ON: Final = frozenset((PurgePausedError.code, PauseFileError.code, StoppingError.code, ReloadingError.code))
"""Slugs of replicas with which a purge goes on as soon as it may."""


class Undone:
    """The replicas that were to be purged and are still there."""

    def __init__(self) -> None:
        """Begin with none."""
        self.announced: set[Place] = set()
        """Replicas whose loss was logged."""
        self._why: dict[Place, Problem] = {}
        """In the order in which they failed."""
        self._early: set[Place] = set()
        """Those that were to go before their deadline."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why replicas were not removed, each problem once."""
        return tuple(dict.fromkeys(self._why.values()))

    @property
    def failed(self) -> frozenset[Place]:
        """Claimed replicas whose removal failed."""
        return frozenset(place for place in self._why if _is_claimed(place))

    def note(self, items: Sequence[ItemResult], *, is_early: bool = False) -> list[Problem]:
        """Take what became of replicas; return the problems that are new.

        Args:
            items: What a purge returned.
            is_early: Whether they were to go before their deadline, because a disk is nearly full.
        """
        new = []
        for item in items:
            was, now = (item.log_dir, item.path), _place_of(item)
            before = self._why.pop(was, None)
            self._early.discard(was)
            if was in self.announced:
                self.announced.discard(was)
                if item.state is ItemState.UNDONE:
                    self.announced.add(now)
            problem = item.problem
            if item.state is ItemState.UNDONE and problem is not None and problem.slug not in GOES_ON:
                self._why[now] = problem
                if is_early:
                    self._early.add(now)
                if problem != before:
                    new.append(problem)
        return new

    def note_requested(self, items: Sequence[ItemResult]) -> list[Problem]:
        """Take what became of replicas that an operator named, as ``note``; the daemon goes on with claimed ones."""
        return self.note([item for item in items if item.state is ItemState.DONE or _is_claimed(_place_of(item))])

    def keep_only(self, facts: Sequence[LogDirFacts], nearly_full: Collection[str]) -> None:
        """Forget the replicas that are not there any more, and those that may stay because their disk has room again.

        Args:
            facts: Of every log dir; what lies on one that cannot be read is kept.
            nearly_full: Log dirs on whose disks replicas go before their deadline.
        """
        if not self._why and not self.announced:
            return
        there = {(one.log_dir, item.path) for one in facts for item in one.staged}
        unread = {one.log_dir for one in facts if one.problem is not None}
        gone = {place for place in (*self._why, *self.announced) if place not in there and place[0] not in unread}
        over = {place for place in self._early if place[0] not in nearly_full and not _is_claimed(place)}
        for place in gone | over:
            self._why.pop(place, None)
            self._early.discard(place)
            self.announced.discard(place)


def _place_of(item: ItemResult) -> Place:
    """Return where an item lies now."""
    return item.log_dir, item.new_path or item.path


def _is_claimed(place: Place) -> bool:
    """Whether the removal of the replica at a place has begun."""
    parts = parse_work_dir(os.path.basename(place[1]))
    return parts is not None and parts.mark == "purging"
