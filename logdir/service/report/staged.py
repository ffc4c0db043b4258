"""Selecting staged replicas of one broker, and listing each as an item of a result.

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
    """Return the staged replicas of all disks.

    Args:
        facts: Facts of every log dir.
        selector: The replicas; ``None``: all.
        kinds: The kinds of directories to include.

    Raises:
        ConfigError: as ``select``.
    """
    items = [item for one in facts for item in one.staged if item.kind in kinds]
    # A glob for everything also matches directories without a readable name.
    return tuple(items) if selector is None or selector.text == EVERYTHING else select(selector, items)


class Selection(NamedTuple):
    """The operator's selection of staged replicas."""

    selector: str | None
    """The replicas; ``None``: all."""
    disk: str | None = None
    """Only replicas of this log dir."""
    names: tuple[str, ...] = ()
    """Of several copies only these names below ``deleting/``."""

    def require_valid(self) -> None:
        """Check that the selector is valid. Raises ``ConfigError``."""
        if self.selector is not None:
            parse(self.selector)

    @property
    def is_named(self) -> bool:
        """Whether the selection is narrower than all staged replicas."""
        return self.selector is not None or self.is_choice

    @property
    def text(self) -> str:
        """The selection as typed, for the message that it matched nothing."""
        return self.selector or " ".join(self.names) or self.disk or EVERYTHING

    @property
    def is_choice(self) -> bool:
        """Whether the operator chose between several copies."""
        return bool(self.names) or self.disk is not None


ALL: Final = Selection(None)
WHERE_READ: Final = " where the log dirs and their work roots can be read"
"""Appended to *nothing is staged* if not every log dir and work root was read."""


def selected(facts: Sequence[LogDirFacts], selection: Selection, *kinds: Kind) -> tuple[StagedReplica, ...]:
    """Return the selected staged replicas of some kinds.

    Raises:
        ConfigError: the selector is invalid or ambiguous.
    """
    disk = None if selection.disk is None else os.path.abspath(selection.disk)
    return tuple(
        item
        for item in staged_replicas(facts, None if selection.selector is None else parse(selection.selector), *kinds)
        if disk in (None, item.log_dir) and (not selection.names or item.name in selection.names)
    )


def nothing_staged(facts: Sequence[LogDirFacts], selector: str) -> tuple[Problem, ...]:
    """Return the problems of an empty selection: unread log dirs, and the selector that matched nothing."""
    known = staged_replicas(facts, None, Kind.STAGED, Kind.PURGING)
    unread = [one.problem for one in facts if one.problem is not None]
    meant = staged_replicas(facts, parse(selector), Kind.STAGED, Kind.PURGING)
    if meant:  # The replica exists but is not eligible, so no similar name is suggested.
        is_begun = all(one.kind is Kind.PURGING for one in meant)
        found = "a replica whose removal has begun" if is_begun else f"only {', '.join(one.place for one in meant)}"
        fix = "logdirctl staged ls lists the staged replicas"
        expected = "a staged replica with the given --name on the given --disk"
        return (*unread, Problem("nothing-selected", selector, expected, found, fix))
    return (*unread, nothing_selected(selector, "staged ls", known))


def item_of(staged: StagedReplica, state: ItemState, detail: str, undo_until_ms: int | None = None) -> ItemResult:
    """Return an item of a result for a staged replica."""
    return ItemResult(
        log_dir=staged.log_dir,
        path=staged.path,
        state=state,
        ref=staged.ref,
        undo_until_ms=undo_until_ms,
        detail=detail,
    )
