"""Purge staged replicas: irrevocably remove those that are due, or those that an operator names. Works beside a running
broker.

Not here: the removals (``batch.purge_batches``), the decision (``decide.staged.purge``), the recheck of each replica
(``batch.purge_recheck``).

Spec: design §2 laws 1, 4, §3.3, §6; attacks A17, A18, A43.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from logdir.clock import Instant
from logdir.decide.selector import EVERYTHING
from logdir.decide.staged import purge as rule
from logdir.decide.staged.listing import reason_of
from logdir.decide.staged.purge import Purge, PurgePlan, plan_purge
from logdir.decide.staged.removal_reason import RemovalReason
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica.rate_limiter import BYTES_PER_SECOND, FILES_PER_SECOND
from logdir.errors import ConfigError, LogDirSuspectError, Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from logdir.paths import DELETING
from logdir.service.batch.purge_batches import Halted, Rates, never_halted, purge_all
from logdir.service.batch.purge_recheck import NO_OVERRIDES, PurgeOverrides, Rechecking
from logdir.service.batch.unlocked import recover_if_stopped
from logdir.service.cluster.cluster_state import require_source
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.last_look import Place
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.report.json_form import HIDDEN
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemsResult, ItemState, PurgeResult, refused
from logdir.service.report.staged import ALL, WHERE_READ, Selection, item_of, nothing_staged, selected
from logdir.text import utc
from logdir.worker.look import NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRequest:
    """A request to purge staged replicas."""

    source: SourceRequest
    """The source of cluster metadata."""
    selection: Selection = ALL
    """The staged replicas to purge; without a selector those that are due."""
    overrides: PurgeOverrides = NO_OVERRIDES
    """The operator's overrides for reasons that keep a replica."""
    includes_held: bool = False
    """With ``is_even_if_early``: include replicas without a deadline."""
    bytes_per_second: int = BYTES_PER_SECOND
    """Rate limit per disk; 0: no limit."""
    budget_ms: int = 0
    """Longest time of one step; a replica that takes longer stays claimed. 0: no limit."""
    is_topic_removed: bool = False
    """Purge what the selector names only if its topic is known to be removed, and then before its deadline."""
    kept_reasons: tuple[RemovalReason, ...] | None = None
    """``capture.reasons`` of the daemon; ``None``: no captured replica goes before its deadline."""
    goes_on: bool = field(default=False, metadata=HIDDEN)
    """Whether a step that reached ``budget_ms`` is followed by the next one at once."""
    halted: Halted = field(default=never_halted, metadata=HIDDEN)
    """Asked before each step."""
    announced: frozenset[Place] = field(default=frozenset(), metadata=HIDDEN)
    """Replicas whose loss the reporter has received before."""

    def require_valid(self) -> None:
        """Check that the request is valid.

        Raises:
            ConfigError: selector or source is invalid, or an override has no selector.
        """
        overrides = {
            "--even-if-early": self.overrides.is_even_if_early,
            "--even-if-last": self.overrides.is_even_if_last,
            "--even-if-assigned": self.overrides.is_even_if_assigned,
            "--topic-removed": self.is_topic_removed,
        }
        problems = [
            Problem(
                "config-error",
                flag,
                "a selector that names the replicas to purge for good",
                self.selection.selector or "none",
            )
            for flag, is_given in overrides.items()
            if is_given and self.selection.selector in (None, EVERYTHING)
        ]
        if self.includes_held and not self.overrides.is_even_if_early:
            problems.append(Problem("config-error", "--include-held", "--even-if-early beside --include-held", "none"))
        if self.bytes_per_second < 0:
            found = str(self.bytes_per_second)
            problems.append(Problem("config-error", "--bytes-per-second", "0 or more", found))
        if problems:
            raise ConfigError(tuple(problems))
        require_source(self.source)
        self.selection.require_valid()


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlanned:
    """The plan of a purge."""

    items: tuple[ItemResult, ...]
    """Replicas to purge, then those that stay: refused, or, without a selector, not due yet."""
    problems: tuple[Problem, ...]
    plan: PurgePlan | None
    """``None`` if the selector matched nothing."""
    looking: Rechecking | None
    """Checks each replica against the cluster metadata before its removal; ``None``, as ``plan``."""
    asked: PurgeRequest
    has_staged: bool
    """Whether anything is staged."""
    is_whole: bool
    """Whether every log dir was read."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was selected."""
        return self.plan is None

    def result(self, *, applied: bool, items: tuple[ItemResult, ...]) -> ItemsResult:
        """Return the result, with what became of each replica."""
        if self.plan is None:
            return ItemsResult(applied=applied, items=items)
        return PurgeResult(applied=applied, items=items, next_due_ms=self.plan.next_due_ms)

    @property
    def lines(self) -> tuple[str, ...]:
        """When the next replica is due, or that nothing is staged, for people."""
        if self.plan is None:
            return ()
        if not self.has_staged:
            return (f"nothing is staged{'' if self.is_whole else WHERE_READ}",)
        due = self.plan.next_due_ms
        return (
            "no other staged replica has a deadline to come"
            if due is None
            else f"the next staged replica is due {utc(due)}",
        )


def prepare(broker: OpenBroker) -> None:
    """Make a broker ready for a purge: run crash recovery, unless a broker runs, and advance its heartbeats.

    Raises:
        LogDirError: as ``recover_if_stopped``; a heartbeat cannot be written.
    """
    recover_if_stopped(broker)
    broker.beat(read_instant())


def plan(broker: OpenBroker, asked: PurgeRequest) -> PurgePlanned:
    """Scan a broker and return the plan; changes nothing.

    Args:
        broker: The broker, opened; before a change ``prepare`` has run.
        asked: The request.

    Raises:
        ConfigError: the selector or the source is invalid.
        LogDirError: a source that the operator named, or a heartbeat, cannot be read.
    """
    facts = broker.look(NOTHING)
    staged = selected(facts, asked.selection, Kind.STAGED, Kind.PURGING)
    if not staged and asked.selection.is_named:
        problems = nothing_staged(facts, asked.selection.text)
        return PurgePlanned(
            items=(),
            problems=problems,
            plan=None,
            looking=None,
            asked=asked,
            has_staged=False,
            is_whole=all(one.problem is None for one in facts),
        )
    looking = Rechecking(asked.source, asked.overrides, broker, facts)
    unread = [one.problem for one in facts if one.problem is not None]
    made = plan_purge(_request(asked, broker, read_instant(), looking), staged)
    # Replicas that are not due count as requested only if the operator named them.
    left = _kept(made, staged) if asked.selection.selector is None else refused(made.refusals)
    return PurgePlanned(
        items=(*(planned_item(action) for action in made.actions), *left),
        problems=(*unread, *(() if looking.problem is None else (looking.problem,))),
        plan=made,
        looking=looking,
        asked=asked,
        has_staged=bool(staged),
        is_whole=not unread,
    )


def apply(broker: OpenBroker, shown: PurgePlanned, reporter: Reporter) -> tuple[list[ItemResult], list[Problem]]:
    """Purge the planned replicas; every loss of data is reported before the first removal, if it was not before.

    Args:
        broker: Opened for changes.
        shown: The plan, from ``plan``.
        reporter: Receives the losses and progress.

    Returns:
        One item per replica, and the problems of disks.

    Raises:
        RefusedError: as ``purge_all``.
    """
    if shown.plan is None or shown.looking is None:
        return list(shown.items), list(shown.problems)
    for action in shown.plan.actions:
        if (action.log_dir, f"{DELETING}/{action.name}") not in shown.asked.announced:
            reporter.warn(f"{action.loses} ({action.why})")
    bytes_per_second = shown.asked.bytes_per_second
    rates = Rates(bytes_per_second, FILES_PER_SECOND if bytes_per_second else 0, shown.asked.budget_ms)
    going = len(shown.plan.actions)
    planned = list(zip(shown.items[:going], shown.plan.actions, strict=True))
    rows, problems = purge_all(
        broker,
        planned,
        rates,
        reporter,
        against=shown.looking.against,
        halted=shown.asked.halted,
        goes_on=shown.asked.goes_on,
    )
    return [*rows, *shown.items[going:]], [*shown.problems, *problems]


def _request(asked: PurgeRequest, broker: OpenBroker, now: Instant, looking: Rechecking) -> rule.PurgeRequest:
    beats = {}
    for open_dir in broker.open_dirs:
        try:
            with map_os_errors(open_dir.work.path):
                beats[open_dir.log_dir] = broker.heartbeat_of(open_dir)
        except LogDirSuspectError as error:
            broker.ports.note(error)
    return rule.PurgeRequest(
        now=now,
        heartbeats=beats,
        is_early=asked.overrides.is_even_if_early,
        includes_held=asked.includes_held,
        quarantined=broker.quarantined,
        look=looking.look,
        facts=looking.facts,
        kept_reasons=asked.kept_reasons,
        is_topic_removed=asked.is_topic_removed,
    )


def _kept(plan: PurgePlan, items: Sequence[StagedReplica]) -> list[ItemResult]:
    """Return an item for each replica that stays, with the reason."""
    by_place = {(item.log_dir, f"{DELETING}/{item.name}"): item for item in items}
    rows = []
    for one in plan.refusals:
        item = by_place[one.log_dir, one.path]
        due = plan.waits.get((item.log_dir, item.name))
        why = reason_of(item, one) if due is None else f"due {utc(due)}"
        rows.append(item_of(item, ItemState.KEPT, why, due))
    return rows


def planned_item(action: Purge) -> ItemResult:
    """Return the item of a planned purge."""
    marker = action.marker
    return ItemResult(
        log_dir=action.log_dir,
        path=f"{DELETING}/{action.name}",
        state=ItemState.PLANNED,
        ref=None if marker is None else marker.ref,
        detail=f"{action.loses} ({action.why})",
    )
