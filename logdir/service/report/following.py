"""Which command is the next one to type after a use case, by what became of each replica.

Not here: how that command is typed (``tools.cli.command``).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from logdir.service.report.result import ItemResult, ItemState


class Next(Enum):
    """The next command to type; its value is the words of that command."""

    SAME = ""
    """The same one, to do what was planned."""
    STAGED_LS = "staged ls"
    INVENTORY = "inventory"
    DESCRIBE = "describe"
    PURGE = "staged purge"
    STRAYS = "strays"
    UNINSTALL = "uninstall"
    """Its plan, once what keeps a work root is away."""


class NextOf(Protocol):
    """Decides which command is next, by what became of each replica."""

    def __call__(self, rows: Sequence[ItemResult], /, *, is_applied: bool, has_override: bool) -> Next:
        """Return the next command.

        Args:
            rows: What became of each replica, or is planned.
            is_applied: Whether changes were to be made.
            has_override: Whether the operator overrode a refusal; the next command never repeats that.
        """


def is_planned(rows: Sequence[ItemResult]) -> bool:
    """Whether any replica is planned to be changed."""
    return any(row.state is ItemState.PLANNED for row in rows)


def after_change(rows: Sequence[ItemResult], /, *, is_applied: bool, has_override: bool) -> Next:
    """Return the next command as ``NextOf``: the same after a plan, else the list of what is staged."""
    return Next.STAGED_LS if is_applied or not is_planned(rows) or has_override else Next.SAME


def after_stage(rows: Sequence[ItemResult], /, *, is_applied: bool, has_override: bool) -> Next:
    """Return the next command after a staging as ``NextOf``."""
    states = {row.state for row in rows}
    if not rows:  # nothing was selected
        return Next.DESCRIBE
    if is_applied and ItemState.DONE in states:
        return Next.STAGED_LS
    if ItemState.WAITING in states or (ItemState.PLANNED in states and has_override):
        return Next.STAGED_LS  # what counts to the limit
    return Next.SAME if ItemState.PLANNED in states else Next.INVENTORY


def after_uninstall(
    rows: Sequence[ItemResult], staying: Sequence[StagedReplica], *, is_applied: bool, has_override: bool
) -> Next:
    """Return the next command after an uninstall as ``NextOf``; ``staying``: what keeps a work root."""
    states = {row.state for row in rows}
    if staying and all(item.kind is Kind.PURGING for item in staying):
        return Next.PURGE
    if not staying and ItemState.REFUSED in states:
        return Next.UNINSTALL
    if states & {ItemState.WAITING, ItemState.REFUSED, ItemState.UNDONE} or (not is_applied and has_override):
        return Next.STAGED_LS
    return Next.INVENTORY if is_applied else Next.SAME
