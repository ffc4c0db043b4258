"""Restore staged replicas of a stopped broker, in batches under every lock.

Not here: what may be restored (``logdir.decide.staged.restore``), the guide to bring back what may not be, because its
topic id is gone (``logdir.service.report.guide``).

Spec: design §2 law 4, §3.3; attacks A15, A22.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from logdir.decide.staged import restore as rule
from logdir.decide.staged.guide import GuideStep
from logdir.decide.staged.restore import Restore, RestorePlan, plan_restore
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica import staging
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.paths import DELETING
from logdir.service.cluster.cluster_state import (
    Stamp,
    cluster_with_own_logs,
    require_source,
    require_unwritten,
    stamp_of,
)
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import sick_disks
from logdir.service.report.guide import guide_of
from logdir.service.report.guide_text import guide_lines
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemsResult, ItemState, after, refused
from logdir.service.report.staged import Selection, nothing_staged, selected
from logdir.service.staged_listing import log_end_of
from logdir.worker.look import NOTHING

_Place = tuple[str, str]
"""Log dir, and name under ``deleting/``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    """A request to restore staged replicas."""

    source: SourceRequest
    """The source of cluster metadata."""
    selection: Selection
    """The staged replicas to restore."""
    is_even_if_unknown: bool
    """``--even-if-unknown``: restore what is not known to be still assigned here; never what is known to be gone."""

    def require_valid(self) -> None:
        """Check that selector and source are valid. Raises ``ConfigError``."""
        self.selection.require_valid()
        require_source(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult(ItemsResult):
    """The result of a restore."""

    guide: tuple[GuideStep, ...]
    """How to bring back the replicas whose topic id is gone; empty if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlanned:
    """The plan of a restore."""

    items: tuple[ItemResult, ...]
    problems: tuple[Problem, ...]
    request: rule.RestoreRequest | None
    """``None`` if the selector matched nothing."""
    plan: RestorePlan | None
    stamp: Stamp | None
    """The stamp of the broker's own metadata log before it was read (``stamp_of``); ``None`` if it has no log."""
    guide: tuple[GuideStep, ...] = ()
    """How to bring back what a restore refuses because its topic id is gone."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was selected."""
        return self.plan is None

    @property
    def lines(self) -> tuple[str, ...]:
        """The guide as text for people."""
        return guide_lines(self.guide)

    def result(self, *, applied: bool, items: tuple[ItemResult, ...]) -> ItemsResult:
        """Return the result of the plan, or of carrying it out: ``items`` are what became of the replicas."""
        if self.is_empty and not self.guide:
            return ItemsResult(applied=applied, items=items)
        return RestoreResult(applied=applied, items=items, guide=self.guide)


def plan(broker: OpenBroker, asked: RestoreRequest) -> RestorePlanned:
    """Scan a broker and return the plan; changes nothing.

    Args:
        broker: The broker, opened; before a change crash recovery has run.
        asked: The request.

    Raises:
        ConfigError: the selector or the source is invalid.
        LogDirError: a source that the operator named cannot be read.
    """
    facts = broker.look(NOTHING)
    staged = selected(facts, asked.selection, Kind.STAGED, Kind.PURGING)
    partial = tuple(one for one in selected(facts, asked.selection, Kind.INCOMING) if one.is_partial)
    if not staged and not partial:
        problems = nothing_staged(facts, asked.selection.text)
        return RestorePlanned(items=(), problems=problems, request=None, plan=None, stamp=None)
    stamp = stamp_of(broker, facts)
    cluster = cluster_with_own_logs(asked.source, broker, facts)
    guide = guide_of(broker, asked.source, asked.selection, cluster, (*staged, *partial), facts)
    if not staged:
        problems = nothing_staged(facts, asked.selection.text)
        return RestorePlanned(items=(), problems=problems, request=None, plan=None, stamp=None, guide=guide)
    request = rule.RestoreRequest(
        selected=tuple((item.log_dir, item.name) for item in staged),
        cluster=cluster,
        is_choice=asked.selection.is_choice,
        is_even_if_unknown=asked.is_even_if_unknown,
        log_ends=log_ends(broker, staged),
    )
    made = plan_restore(request, facts)
    items = (*planned_restore(made), *refused(made.refusals))
    return RestorePlanned(items=items, problems=(), request=request, plan=made, stamp=stamp, guide=guide)


def apply(broker: OpenBroker, shown: RestorePlanned, reporter: Reporter) -> tuple[list[ItemResult], list[Problem]]:
    """Restore the planned replicas as ``restore_all``; the restore kind of each is reported first.

    Raises:
        LogDirError: as ``restore_all``.
    """
    if shown.plan is None or shown.request is None:
        return list(shown.items), list(shown.problems)
    warn_of_kinds(shown.plan, reporter)
    return restore_all(broker, shown.request, shown.plan, reporter, shown.stamp)


def log_ends(broker: OpenBroker, staged: Sequence[StagedReplica]) -> Mapping[_Place, int | None]:
    """Return the offset after the last record of each staged replica whose log start is known; ``None``: cannot be
    read.
    """
    return {
        (item.log_dir, item.name): log_end_of(broker.ports, item)
        for item in staged
        if item.marker is not None and item.marker.checkpoints.log_start is not None
    }


def planned_restore(plan: RestorePlan) -> list[ItemResult]:
    """Return a plan's restores as items of a result."""
    return [_restored(action, ItemState.PLANNED) for action in plan.actions]


def warn_of_kinds(plan: RestorePlan, reporter: Reporter) -> None:
    """Report the restore kind of each replica and its evidence, before any change."""
    for action in plan.actions:
        marker = action.marker
        reporter.warn(f"{marker.topic}-{marker.partition}: {action.detail}")


def _restored(action: Restore, state: ItemState) -> ItemResult:
    marker = action.marker
    return ItemResult(
        log_dir=action.log_dir,
        path=f"{DELETING}/{action.name}",
        state=state,
        ref=marker.ref,
        new_path=action.path if state == ItemState.PLANNED else None,
        detail=action.detail,
    )


def restore_all(
    broker: OpenBroker, request: rule.RestoreRequest, shown: RestorePlan, reporter: Reporter, stamp: Stamp | None
) -> tuple[list[ItemResult], list[Problem]]:
    """Restore planned replicas in batches; each batch scans and decides again, under every lock.

    Args:
        broker: Opened for changes.
        request: The selected replicas.
        shown: The plan; nothing else is done.
        reporter: Receives progress.
        stamp: Stamp of the broker's own metadata log before it was read (``stamp_of``).

    Returns:
        One item per replica, and the problems of disks.

    Raises:
        LogDirError: as ``OpenBroker.batch``; changes made by then stay.
        RefusedError: the broker wrote its metadata log meanwhile; changes made by then stay.
    """
    left = {(action.log_dir, action.name): action for action in shown.actions}
    reporter.begin("restoring", len(left))
    work = _Restoring(broker=broker, request=request, reporter=reporter, rows=refused(shown.refusals), stamp=stamp)
    if left:
        broker.beat(read_instant())

    def undecided(place: _Place) -> ItemResult:
        path = broker.path_of(place[0], f"{DELETING}/{place[1]}")
        return replace(_restored(left[place], ItemState.UNDONE), problem=nothing_decided(path))

    hold = partial(broker.batch_after, partial(work.look, tuple(left)))
    batch_loop.run(left, hold=hold, decide=work.decide, undecided=undecided, report=work.report)
    reporter.end()
    return work.rows, work.problems


@dataclass(slots=True, kw_only=True)
class _Restoring:
    """The state of one restore: the results so far, and the disks that failed."""

    broker: OpenBroker
    request: rule.RestoreRequest
    reporter: Reporter
    rows: list[ItemResult]
    stamp: Stamp | None
    problems: list[Problem] = field(default_factory=list)
    sick: set[str] = field(default_factory=set)
    """Log dirs whose disk failed during this command."""

    def look(self, left: Collection[_Place]) -> tuple[LogDirFacts, ...]:
        """Scan the remaining replicas again."""
        return self.broker.look_again(NOTHING, [(log_dir, f"{DELETING}/{name}") for log_dir, name in left])

    def decide(self, left: Collection[_Place]) -> Turn[_Place, ItemResult]:
        """Scan and decide again about the remaining replicas."""
        facts = self.look(left)
        require_unwritten(self.broker, facts, self.stamp)
        plan = plan_restore(replace(self.request, selected=tuple(left)), facts)
        settled = {(row.log_dir, row.path.removeprefix(f"{DELETING}/")): row for row in refused(plan.refusals)}
        return Turn(settled=settled, steps=lambda: (partial(self._restore, action) for action in plan.actions))

    def _restore(self, action: Restore) -> Mapping[_Place, ItemResult]:
        row = _restored(action, ItemState.UNDONE)
        if action.log_dir not in self.sick:
            with sick_disks(self.problems, self.sick, action.log_dir):
                row = after(row, self.broker.ports.port(action.log_dir).run_at(staging.restore, _item(action)))
        return {(action.log_dir, action.name): row}

    def report(self, rows: Sequence[ItemResult]) -> None:
        """Record the results of some items."""
        self.rows += rows
        self.reporter.advance(len(rows))


def _item(action: Restore) -> staging.RestoreItem:
    return staging.RestoreItem(
        name=action.name,
        marker=action.marker,
        path=action.path,
        drop_last_indexes=action.drop_last_indexes,
        checkpoints=action.checkpoints,
    )
