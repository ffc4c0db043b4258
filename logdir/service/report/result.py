"""The result of a use case: one item per replica, and what is wrong beside them.

Spec: design §5 "A use case"; docs/json.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from logdir.decide.adopt import Adopt
from logdir.decide.refusal import Refusal
from logdir.disk.record.start_block import StartBlockState
from logdir.disk.replica.outcome import Outcome, Result
from logdir.errors import Problem
from logdir.ids import TopicId
from logdir.replica_ref import ReplicaRef
from logdir.service.report.json_form import KEY


class ItemState(Enum):
    """What became of a replica, or would."""

    PLANNED = "planned"
    DONE = "done"
    UNDONE = "undone"
    REFUSED = "refused"
    WAITING = "waiting"
    """The staging limit, or something staged, holds it back."""
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """One replica of a plan or of what was done."""

    log_dir: str
    path: str
    """Relative to its log dir or work root."""
    state: ItemState
    ref: ReplicaRef | None = None
    """``None``: it is about no replica."""
    new_path: str | None = None
    """Where it lies now, or will."""
    undo_until_ms: int | None = None
    detail: str = ""
    """For people."""
    problem: Problem | None = None
    """Why it is not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsResult:
    """What became of every replica."""

    applied: bool
    items: tuple[ItemResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeResult(ItemsResult):
    """Of a purge."""

    next_due_ms: int | None
    """When the next one is due that is not yet; ``None``: no other has a deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallResult(ItemsResult):
    """Of an uninstall."""

    start_block: StartBlockState
    """As it was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptingTopic:
    """The topic that adopts."""

    name: str = field(metadata={KEY: "topic"})
    topic_id: TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptResult(ItemsResult):
    """Of an adoption: the items are those of this broker."""

    topic: AdoptingTopic | None = field(metadata={KEY: "new_topic"})
    """``None``: the cluster names none."""
    stop: tuple[int, ...]
    """Node ids of the brokers of all replicas that are adopted, in the order to stop them."""
    start: tuple[int, ...]
    """The same in the order to start them."""
    replicas: tuple[Adopt, ...] = field(metadata={KEY: "adoptions"})
    """Of all brokers."""
    warnings: tuple[str, ...]
    """What is to be known before it is done."""


def refused(refusals: Iterable[Refusal]) -> list[ItemResult]:
    """Return refusals as items."""
    return [
        ItemResult(log_dir=one.log_dir, path=one.path, state=ItemState.REFUSED, problem=one.problem) for one in refusals
    ]


def after(item: ItemResult, outcome: Outcome) -> ItemResult:
    """Return a planned item as it was carried out."""
    problem = None if outcome.error is None else outcome.error.problem()
    state = ItemState.DONE if outcome.result is Result.DONE else ItemState.UNDONE
    return replace(item, state=state, new_path=outcome.place, problem=problem)
