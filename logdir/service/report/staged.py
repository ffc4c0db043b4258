"""Select staged replicas of one broker, and list each as an item of a result.

Spec: design §3.3, §6.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from logdir.decide.selector import EVERYTHING, Selector, parse, select
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.service.report.result import ItemResult, ItemState
from logdir.service.report.selection import nothing_selected


def staged_replicas(facts: Sequence[LogDirFacts], selector: Selector | None, *kinds: Kind) -> tuple[StagedReplica, ...]:
    """Return what is staged on all disks.

    Args:
        facts: Of every log dir.
        selector: Which of it; ``None``: all.
        kinds: Of these kinds.

    Raises:
        ConfigError: as ``select``.
    """
    items = [item for one in facts for item in one.staged if item.kind in kinds]
    # A glob for everything finds also what nobody can name.
    return tuple(items) if selector is None or selector.text == EVERYTHING else select(selector, items)


class Selection(NamedTuple):
    """Which staged replicas are meant."""

    selector: str | None
    """``None``: any."""
    disk: str | None = None
    """Only what lies on this log dir."""
    names: tuple[str, ...] = ()
    """Of several copies these names below ``deleting/``."""

    def require_valid(self) -> None:
        """Return if the selector is one. Raises ``ConfigError``."""
        if self.selector is not None:
            parse(self.selector)

    @property
    def is_named(self) -> bool:
        """Whether anything narrower than all that is staged is meant."""
        return self.selector is not None or self.is_choice

    @property
    def text(self) -> str:
        """What was typed, for a line that says that it means nothing."""
        return self.selector or " ".join(self.names) or self.disk or EVERYTHING

    @property
    def is_choice(self) -> bool:
        """Whether one of several copies was chosen."""
        return bool(self.names) or self.disk is not None


ALL: Final = Selection(None)
WHERE_READ: Final = " where the log dirs and their work roots can be read"
"""Behind the word that nothing was found, where not all was read."""


def selected(facts: Sequence[LogDirFacts], selection: Selection, *kinds: Kind) -> tuple[StagedReplica, ...]:
    """Return the staged replicas that are meant, of some kinds.

    Raises:
        ConfigError: the selector is none, or means nothing here.
    """
    disk = None if selection.disk is None else os.path.abspath(selection.disk)
    return tuple(
        item
        for item in staged_replicas(facts, None if selection.selector is None else parse(selection.selector), *kinds)
        if disk in (None, item.log_dir) and (not selection.names or item.name in selection.names)
    )


def nothing_staged(facts: Sequence[LogDirFacts], selector: str) -> tuple[Problem, ...]:
    """Return why nothing was found: log dirs that were not read, and that the selector means nothing."""
    known = staged_replicas(facts, None, Kind.STAGED, Kind.PURGING)
    unread = [one.problem for one in facts if one.problem is not None]
    meant = staged_replicas(facts, parse(selector), Kind.STAGED, Kind.PURGING)
    if meant:  # it is there, and not what was asked for: no other name is any better
        is_begun = all(one.kind is Kind.PURGING for one in meant)
        found = "one whose removal has begun" if is_begun else f"only {', '.join(one.place for one in meant)}"
        fix = "logdirctl staged ls lists what there is"
        expected = "a staged replica, of the --name and on the --disk that were said"
        return (*unread, Problem("nothing-selected", selector, expected, found, fix))
    return (*unread, nothing_selected(selector, "staged ls", known))


def item_of(staged: StagedReplica, state: ItemState, says: str, undo_until_ms: int | None = None) -> ItemResult:
    """Return an item of a result for a staged replica."""
    return ItemResult(
        log_dir=staged.log_dir,
        path=staged.path,
        state=state,
        ref=staged.ref,
        undo_until_ms=undo_until_ms,
        detail=says,
    )
