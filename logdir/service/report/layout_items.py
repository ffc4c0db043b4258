"""The JSON form of a change of layout and of its status: one item per replica, or per log dir.

Spec: docs/json.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdir.disk.record.start_block import StartBlockState
from logdir.errors import Problem
from logdir.formats.own.layout_file import LayoutState
from logdir.replica_ref import ReplicaRef
from logdir.service.layout_status import LayoutStatus, LogDirLayout
from logdir.service.report.layout_result import LayoutResult, LayoutStep
from logdir.service.report.result import ItemResult, ItemState


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutItem:
    """One replica that is moved or refused."""

    log_dir: str | None
    """``None`` where ``path`` is absolute."""
    path: str
    new_path: str | None
    state: ItemState
    problem: Problem | None
    ref: ReplicaRef | None
    """``None`` of a step refused before it began."""

    @classmethod
    def of(cls, item: ItemResult) -> LayoutItem:
        """Return the form of an item."""
        return cls(
            log_dir=item.log_dir or None,
            path=item.path,
            new_path=item.new_path,
            state=item.state,
            problem=item.problem,
            ref=item.ref,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutForm:
    """What a verb would do, or did."""

    applied: bool
    finished: bool
    plan_sha256: str | None
    done_before: int
    steps: tuple[LayoutStep, ...]
    items: tuple[LayoutItem, ...]

    @classmethod
    def of(cls, result: LayoutResult) -> LayoutForm:
        """Return the form of a result."""
        return cls(
            applied=result.is_applied,
            finished=result.is_finished,
            plan_sha256=result.plan_sha256 or None,
            done_before=result.done_before,
            steps=result.steps,
            items=tuple(map(LayoutItem.of, result.items)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStatusItem:
    """The layout of one log dir; all but its path is ``None`` where it cannot be looked at."""

    log_dir: str
    layout: str | None
    state: LayoutState | None
    """``None`` without a ``layout.json``."""
    plan_sha256: str | None
    for_broker: str | None
    cluster_id: str | None
    node_id: int | None
    start_block: StartBlockState | None
    by_name: int | None
    by_id: int | None
    held: int | None

    @classmethod
    def of(cls, one: LogDirLayout) -> LayoutStatusItem:
        """Return the item of a log dir."""
        by_name, by_id, held = one.counts
        return cls(
            log_dir=one.log_dir,
            layout=one.layout,
            state=one.state,
            plan_sha256=one.plan_sha256,
            for_broker=one.for_broker,
            cluster_id=None if one.seen is None else one.seen.cluster_id,
            node_id=None if one.seen is None else one.seen.node_id,
            start_block=one.start_block,
            by_name=by_name,
            by_id=by_id,
            held=held,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStatusForm:
    """The layout of every log dir."""

    items: tuple[LayoutStatusItem, ...]

    @classmethod
    def of(cls, found: LayoutStatus) -> LayoutStatusForm:
        """Return the form of a status."""
        return cls(items=tuple(map(LayoutStatusItem.of, found.log_dirs)))
