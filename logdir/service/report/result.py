"""The result of a use case: one item per replica, and further problems.

Spec: design §5 "A use case"; docs/json.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from logdir.decide.refusal import Refusal
from logdir.disk.record.start_block import StartBlockState
from logdir.disk.replica.outcome import Outcome, Result
from logdir.errors import Problem
from logdir.replica_ref import ReplicaRef
from logdir.service.report.exit_status import Exit
from logdir.service.report.table import Column
from logdir.text import utc


class ItemState(Enum):
    """The state of a replica in a plan or result."""

    PLANNED = "planned"
    DONE = "done"
    UNDONE = "undone"
    """It was to be done, and was not."""
    REFUSED = "refused"
    WAITING = "waiting"
    """Not done yet: the staging limit holds back a staging, or a staged replica the removal of a work root."""
    KEPT = "kept"
    """A staged replica that a purge of all due ones leaves: it is not due, or may not be purged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """One replica of a plan or result."""

    log_dir: str
    path: str
    """Its path, relative to its log dir or work root."""
    state: ItemState
    ref: ReplicaRef | None = None
    """``None``: it is about no replica."""
    new_path: str | None = None
    """Its new or planned path."""
    undo_until_ms: int | None = None
    """Until when it can be undone (wall clock); ``None``: without a deadline, or there is nothing to undo."""
    detail: str = ""
    """A remark for people."""
    problem: Problem | None = None
    """Why it was not done."""

    @property
    def remark(self) -> str:
        """For people: the remark; without one the slug of its refusal, whose line is printed before the table."""
        return self.problem.slug if self.problem is not None and not self.detail else self.detail


ITEM_COLUMNS: Final[tuple[Column[ItemResult], ...]] = (
    Column("log dir", "log_dir"),
    Column("path", "path"),
    Column("state", "state"),
    Column("new path", "new_path"),
    Column("undo until (UTC)", lambda one: utc(one.undo_until_ms)),
    Column("detail", "remark"),
)
"""The table of replicas, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsResult:
    """A result with one item per replica."""

    applied: bool
    """Whether the command was to make the changes; otherwise this is a plan."""
    items: tuple[ItemResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult(ItemsResult):
    """The result of a purge."""

    next_due_ms: int | None
    """When the next replica is due; ``None``: no other replica has a deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallResult(ItemsResult):
    """The result of an uninstall."""

    start_block: StartBlockState
    """The state of the start block before the uninstall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverResult(ItemsResult):
    """The result of a handover; ``items`` are log dirs."""

    start_block: StartBlockState
    """The state of the start block before the handover."""


def refused(refusals: Iterable[Refusal]) -> list[ItemResult]:
    """Return refusals as items."""
    return [
        ItemResult(log_dir=one.log_dir, path=one.path, state=ItemState.REFUSED, problem=one.problem) for one in refusals
    ]


def after(item: ItemResult, outcome: Outcome) -> ItemResult:
    """Return a planned item with its outcome."""
    problem = None if outcome.error is None else outcome.error.problem()
    state = ItemState.DONE if outcome.result is Result.DONE else ItemState.UNDONE
    return replace(item, state=state, new_path=outcome.place, problem=problem)


def status_of(items: Sequence[ItemResult], problems: Sequence[Problem]) -> Exit:
    """Return the exit status of a result: refused if every item was, problems if anything is wrong.

    Args:
        items: One per replica.
        problems: Problems beside those of the items.
    """
    states = {item.state for item in items}
    if states and states <= {ItemState.REFUSED, ItemState.WAITING}:
        return Exit.REFUSED
    return Exit.PROBLEMS if problems or states & {ItemState.REFUSED, ItemState.UNDONE, ItemState.WAITING} else Exit.DONE
