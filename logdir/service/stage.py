"""Stage replicas on an operator's request, to be restored or purged later.

The plan shows which replicas the broker loses, until when that can be undone, and what the next start of the broker
does if the cluster still assigns them here. ``apply`` first makes the record of the staging limit durable. Then every
batch scans and decides again under the locks, and stages only planned replicas.

Spec: design §2 laws 1, 4, §3.3, §6; attacks A22, A38, A45, A48.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Final

from logdir.decide import stage as rule
from logdir.decide import staging_limit as limit_rule
from logdir.decide.selector import Selector, parse, select
from logdir.decide.stage import Stage, StagePlan, plan_stage
from logdir.decide.staged.deadline import DelayPolicy, require_delays
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import staging_limit
from logdir.disk.replica import staging
from logdir.disk.replica.batches import Batches
from logdir.disk.replica.outcome import Outcome
from logdir.errors import Problem, RefusedError
from logdir.evidence import Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, Replica
from logdir.reasons import Reason
from logdir.service.cluster.cluster_state import cluster_with_own_logs, require_source
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors, sick_disks
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState, after, refused
from logdir.service.report.selection import nothing_selected
from logdir.worker.look import Deep

_CONFIRMS: Final = "--even-over-limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """A request to stage replicas."""

    source: SourceRequest
    """The source of cluster metadata."""
    selector: str
    """The live replicas to stage."""
    delays: DelayPolicy
    """How long the replicas stay staged."""
    is_held: bool
    """Whether the staged replicas get no deadline."""
    protected: tuple[str, ...]
    """Globs of topics that must not be changed."""
    is_even_over_limit: bool
    """``--even-over-limit``: stage more than the staging limit."""
    is_even_if_last: bool
    """``--even-if-last``: stage the only in-sync replica of a partition."""
    is_even_if_unknown: bool
    """``--even-if-unknown``: stage what is not known to be assigned here or not."""

    def require_valid(self) -> None:
        """Check that selector, delays and source are valid. Raises ``ConfigError``."""
        parse(self.selector)
        require_delays(self.delays)
        require_source(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlanned:
    """The plan of a staging."""

    items: tuple[ItemResult, ...]
    problems: tuple[Problem, ...]
    selector: Selector
    request: rule.StageRequest | None
    """``None`` if the selector matched nothing."""
    plan: StagePlan | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was selected."""
        return self.plan is None


def plan(broker: OpenBroker, asked: StageRequest) -> StagePlanned:
    """Scan a broker and return the plan; changes nothing.

    Args:
        broker: The broker, opened; before a change crash recovery has run.
        asked: The request.

    Raises:
        ConfigError: the selector or the source is invalid.
        LogDirError: a source that the operator named cannot be read.
    """
    selector = parse(asked.selector)
    facts = broker.look(Deep(selector=selector.text))
    chosen = select(selector, _candidates(facts))
    if not chosen:
        problems = [
            *(one.problem for one in facts if one.problem is not None),
            nothing_selected(selector.text, "describe", _candidates(facts)),
        ]
        return StagePlanned(items=(), problems=tuple(problems), selector=selector, request=None, plan=None)
    now = read_instant()
    request = rule.StageRequest(
        selected=tuple((one.log_dir, one.path) for one in chosen),
        reason=Reason.OPERATOR,
        evidence=Removed(proof=Proof.OPERATOR, as_of_ms=max(0, now.wall_ms)),
        now=now,
        delays=asked.delays,
        is_held=asked.is_held,
        protected=asked.protected,
        record=limit_rule.highest(broker.on_all(staging_limit.read_records)),
        is_confirmed=asked.is_even_over_limit,
        cluster=cluster_with_own_logs(asked.source, broker, facts),
        births=broker.ports.births_of(chosen),
        is_even_if_last=asked.is_even_if_last,
        is_even_if_unknown=asked.is_even_if_unknown,
    )
    made = plan_stage(request, facts)
    items, problems = _planned(made)
    return StagePlanned(items=tuple(items), problems=tuple(problems), selector=selector, request=request, plan=made)


def _candidates(facts: Sequence[LogDirFacts]) -> list[Replica]:
    # The metadata log is matched, too, so that it is refused by name.
    return [r for one in facts for r in one.replicas if r.kind in (Kind.LIVE, Kind.METADATA)]


def _row(action: Stage, state: ItemState) -> ItemResult:
    marker = action.marker
    return ItemResult(
        log_dir=action.log_dir,
        path=action.path,
        state=state,
        ref=marker.ref,
        undo_until_ms=action.undo_until_ms,
        detail=action.loses,
    )


def _planned(plan: StagePlan) -> tuple[list[ItemResult], list[Problem]]:
    rows = [_row(action, ItemState.PLANNED) for action in plan.actions] + [
        _row(action, ItemState.WAITING) for action in plan.waiting
    ]
    problems = list(plan.unseen) if plan.over_limit is None else [*plan.unseen, _confirmed_by_flag(plan.over_limit)]
    return [*rows, *refused(plan.refusals)], problems


def _confirmed_by_flag(problem: Problem) -> Problem:
    return problem._replace(fix=f"check the plan, then add {_CONFIRMS}")


_Place = tuple[str, str]
"""Log dir, and path relative to it."""


@dataclass(slots=True, kw_only=True)
class _Work:
    """The state of one staging: the results so far, and the disks that failed."""

    broker: OpenBroker
    request: rule.StageRequest
    selector: Selector
    reporter: Reporter
    rows: list[ItemResult] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    sick: set[str] = field(default_factory=set)
    """Log dirs whose disk failed during this command."""
    batches: Batches = field(default_factory=staging.batches)
    is_counted: bool = False
    """Whether the staging limit has counted all of the replicas."""
    over_limit: StagePlan | None = None
    """The plan that the staging limit held back; ``None``: the limit was not exceeded."""

    def decide(self, left: Collection[_Place]) -> Turn[_Place, ItemResult]:
        """Scan and decide again about the remaining replicas; the record of the staging limit is made durable first."""
        facts = self.broker.look_again(Deep(selector=self.selector.text), left)
        again = replace(self.request, selected=tuple(left), now=read_instant())
        if self.is_counted:
            # The staging limit approved and counted all replicas before the first staging.
            again = replace(again, is_confirmed=True)
        plan = plan_stage(again, facts)
        if not self.is_counted:
            if plan.record is not None:
                with map_os_errors("staging-limit.json of every work root"):
                    self.broker.write_all(partial(staging_limit.write_record, record=plan.record))
            if plan.over_limit is not None:
                self.over_limit = plan
                return Turn(is_over=True)
            self.problems += plan.unseen
            self.is_counted = True
        settled = {(row.log_dir, row.path): row for row in refused(plan.refusals)}
        return Turn(settled=settled, steps=partial(self._steps, plan))

    def _steps(self, plan: StagePlan) -> Iterator[Callable[[], Mapping[_Place, ItemResult]]]:
        for _, group in groupby(plan.actions, key=lambda action: action.log_dir):
            for part in self.batches.of(list(group)):
                yield partial(self._stage, part)

    def _stage(self, part: Sequence[Stage]) -> Mapping[_Place, ItemResult]:
        log_dir = part[0].log_dir
        if log_dir in self.sick:
            rows = [_row(action, ItemState.UNDONE) for action in part]
        else:
            rows = _stage(self.broker, log_dir, part, self.problems, self.sick)
        return {(action.log_dir, action.path): row for action, row in zip(part, rows, strict=True)}

    def report(self, rows: Sequence[ItemResult]) -> None:
        """Record the results of some items."""
        self.rows += rows
        self.reporter.advance(len(rows))


def apply(broker: OpenBroker, shown: StagePlanned, reporter: Reporter) -> tuple[list[ItemResult], list[Problem]]:
    """Stage the planned replicas in batches; each batch scans and decides again.

    Args:
        broker: Opened for changes; crash recovery has run.
        shown: The plan, from ``plan``; nothing else is done.
        reporter: Receives progress.

    Returns:
        One item per replica, and the problems of disks.

    Raises:
        LogDirError: as ``OpenBroker.batch``; changes made by then stay.
    """
    if shown.plan is None or shown.request is None:
        return list(shown.items), list(shown.problems)
    left = {(action.log_dir, action.path): action for action in (*shown.plan.actions, *shown.plan.waiting)}
    rows = refused(shown.plan.refusals)
    if not left:
        return rows, list(shown.plan.unseen)
    reporter.begin("staging", len(left))
    work = _Work(broker=broker, request=shown.request, selector=shown.selector, reporter=reporter, rows=rows)
    broker.beat(shown.request.now)

    def undecided(place: _Place) -> ItemResult:
        return replace(_row(left[place], ItemState.UNDONE), problem=nothing_decided("/".join(place)))

    def run(places: Collection[_Place]) -> None:
        suspect = broker.ports.suspect
        before = partial(broker.look_again, Deep(selector=shown.selector.text), tuple(places))
        hold = partial(broker.batch_after, before)
        try:
            batch_loop.run(places, hold=hold, decide=work.decide, undecided=undecided, report=work.report)
        except RefusedError:
            if broker.ports.suspect == suspect:
                raise
            # The locks were released for a log dir that fell silent: once more, without it.
            known = {(row.log_dir, row.path) for row in work.rows}
            run([place for place in places if place not in known])

    run(left)
    reporter.end()
    if work.over_limit is not None:
        more, problems = _planned(work.over_limit)
        return [*rows, *more], problems
    return work.rows, work.problems


def _stage(
    broker: OpenBroker, log_dir: str, actions: Sequence[Stage], problems: list[Problem], sick: set[str]
) -> list[ItemResult]:
    items = [staging.StageItem(path=action.path, marker=action.marker) for action in actions]
    outcomes: tuple[Outcome, ...] = ()
    with sick_disks(problems, sick, log_dir):
        outcomes = broker.ports.port(log_dir).run_at(staging.stage, items)
    if len(outcomes) < len(actions):
        # The disk failed mid-batch, so its outcome is unknown; the next scan shows it.
        return [_row(action, ItemState.UNDONE) for action in actions]
    return [after(_row(action, ItemState.PLANNED), outcome) for action, outcome in zip(actions, outcomes, strict=True)]
