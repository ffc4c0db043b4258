"""Adopt staged replicas: make their files the log of a re-created topic; in batches under every lock.

Adoption restores a topic that the cluster has really deleted. The decision covers the replicas on all brokers, by
listings made on the others; the change is made for the broker of this host, which is stopped.

Not here: what may be adopted (``logdir.decide.adopt_here``), the files themselves (``logdir.disk.replica.adopt``).

Spec: design §2 laws 1, 4, §3.3 "Restore"; kafka-behaviour §10.5, §10.6; attacks A13, A16, A22, A33, A36.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from logdir.decide import adopt_here as rule
from logdir.decide.adopt import Adopt
from logdir.decide.adopt_here import AdoptHere, AdoptHerePlan, Place, plan_adopt_here
from logdir.decide.staged.deadline import DelayPolicy, require_delays
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica import adopt as disk_adopt
from logdir.disk.replica.adopt import AdoptItem
from logdir.errors import ConfigError, ForeignLogDirError, Problem
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.names import is_legal_topic
from logdir.observe.facts import LogDirFacts
from logdir.paths import DELETING
from logdir.service.cluster.cluster_state import (
    Stamp,
    cluster_with_own_logs,
    require_source,
    require_unwritten,
    stamp_of,
)
from logdir.service.cluster.other_brokers import OtherBrokers, read_listings
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import sick_disks
from logdir.service.report.json_form import KEY
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemsResult, ItemState, after, refused
from logdir.service.report.staged import Selection, nothing_staged, selected
from logdir.service.staged_listing import log_end_of
from logdir.text import utc
from logdir.worker.look import Deep


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRequest:
    """A request to adopt staged replicas."""

    source: SourceRequest
    """The source of cluster metadata."""
    selection: Selection
    """The staged replicas to adopt."""
    as_topic: str
    """The re-created topic that adopts the files; its name may differ from the old one."""
    listings: tuple[str, ...] = ()
    """Files with the output of ``staged ls --json`` on other brokers."""
    delays: DelayPolicy = field(default_factory=DelayPolicy)
    """How long the replaced replicas stay staged."""
    is_kept: bool = False
    """Whether the staged directories stay; their files are then shared with the live log."""
    is_even_if_unknown: bool = False
    """``--even-if-unknown``: adopt where the topic may still have its old id; the staged directory is kept."""

    def require_valid(self) -> None:
        """Check that selector, delays, topic and source are valid. Raises ``ConfigError``."""
        self.selection.require_valid()
        require_delays(self.delays)
        require_source(self.source)
        if not is_legal_topic(self.as_topic):
            expected = "the name of a topic: 1 to 249 of a-z A-Z 0-9 . _ -"
            raise ConfigError((Problem("config-error", "--as", expected, self.as_topic),))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptingTopic:
    """The re-created topic that adopts the files."""

    name: str = field(metadata={KEY: "topic"})
    topic_id: TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptResult(ItemsResult):
    """The result of an adoption; ``items`` are the replicas of this broker."""

    topic: AdoptingTopic | None = field(metadata={KEY: "new_topic"})
    """``None``: the cluster has no such topic."""
    stop: tuple[int, ...]
    """Node ids of the brokers of all adopted replicas, in the order to stop them."""
    start: tuple[int, ...]
    """The same node ids in the order to start them."""
    replicas: tuple[Adopt, ...] = field(metadata={KEY: "adoptions"})
    """The adoptions on all brokers."""
    warnings: tuple[str, ...]
    """Warnings to show before the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptPlanned:
    """The plan of an adoption."""

    items: tuple[ItemResult, ...]
    """The selected replicas of this broker, to adopt or refused."""
    problems: tuple[Problem, ...]
    plan: AdoptHerePlan | None
    """``None`` if the selector matched nothing."""
    request: rule.AdoptHereRequest | None
    stamp: Stamp | None
    """The stamp of the broker's own metadata log before it was read (``stamp_of``); ``None`` if it has no log."""
    warnings: tuple[str, ...]
    """Shown before any change: which replicas are replaced, and the order in which brokers stop and start."""
    is_kept: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing was selected."""
        return self.plan is None

    @property
    def plan_lines(self) -> tuple[str, ...]:
        """The warnings: a change reports them before it begins."""
        return self.warnings

    def result(self, *, applied: bool, items: tuple[ItemResult, ...]) -> AdoptResult:
        """Return the result of the plan, or of carrying it out: ``items`` are what became of this broker's replicas."""
        topic, whole = (None, None) if self.plan is None else (self.plan.topic, self.plan.whole)
        return AdoptResult(
            applied=applied,
            items=items,
            topic=None if topic is None else AdoptingTopic(name=topic.topic, topic_id=topic.topic_id),
            stop=() if whole is None else whole.stop,
            start=() if whole is None else whole.start,
            replicas=() if whole is None else whole.actions,
            warnings=self.warnings,
        )


def plan(broker: OpenBroker, asked: AdoptRequest) -> AdoptPlanned:
    """Scan a broker and return the plan; changes nothing.

    Args:
        broker: The broker, opened; before a change crash recovery has run.
        asked: The request.

    Raises:
        ConfigError: the selector, the topic, the source or a listing is invalid.
        LogDirError: a source that the operator named, or a listing, cannot be used.
    """
    facts = broker.look(Deep(topic=asked.as_topic))
    staged = selected(facts, asked.selection, Kind.STAGED, Kind.PURGING)
    # A partial capture is listed with the reason why it is not adopted.
    staged = staged or tuple(one for one in selected(facts, asked.selection, Kind.INCOMING) if one.is_partial)
    if not staged:
        problems = nothing_staged(facts, asked.selection.text)
        return AdoptPlanned(
            items=(), problems=problems, plan=None, request=None, stamp=None, warnings=(), is_kept=asked.is_kept
        )
    stamp = stamp_of(broker, facts)
    node_id, others = _others(asked, facts, broker)
    request = rule.AdoptHereRequest(
        selected=tuple((item.log_dir, item.path) for item in staged),
        as_topic=asked.as_topic,
        cluster=cluster_with_own_logs(asked.source, broker, facts),
        node_id=node_id,
        now=read_instant(),
        log_ends={(item.log_dir, item.path): log_end_of(broker.ports, item) for item in staged},
        others=others.staged,
        brokers=others.is_stopped,
        delays=asked.delays,
        is_even_if_unknown=asked.is_even_if_unknown,
    )
    made = plan_adopt_here(request, facts)
    return AdoptPlanned(
        items=(*(_row(action, ItemState.PLANNED) for action in made.actions), *refused(made.refusals)),
        problems=(),
        plan=made,
        request=request,
        stamp=stamp,
        warnings=_warnings(broker, made),
        is_kept=asked.is_kept,
    )


def _others(asked: AdoptRequest, facts: Sequence[LogDirFacts], broker: OpenBroker) -> tuple[int, OtherBrokers]:
    """Return the node id of this broker, and the listings of the other brokers."""
    nodes = {one.node_id for one in facts if one.node_id is not None}
    if len(nodes) != 1:
        found = " and ".join(map(str, sorted(nodes))) or "no node id"
        where = ", ".join(broker.named.log_dirs)
        fix = "mount the disks of this broker, or correct log.dirs"
        raise ForeignLogDirError(where, expected="log dirs with one node id", found=found, fix=fix)
    (node_id,) = nodes
    cluster_id = next((one.cluster_id for one in facts if one.cluster_id is not None), None)
    return node_id, read_listings(asked.listings, cluster_id=cluster_id, node_id=node_id)


def _warnings(broker: OpenBroker, plan: AdoptHerePlan) -> tuple[str, ...]:
    """Return the warnings to show before any change; reads the log ends of the replicas that are replaced."""
    if plan.whole is None:
        return ()
    lines = list(plan.whole.notes)
    # A broker rewrites the log start checkpoint as soon as it has renamed a deleted replica (LogManager.asyncDelete).
    unknown = [action.path for action in plan.actions if action.marker.checkpoints.log_start is None]
    if unknown:
        again = "records that kafka-delete-records had deleted come back; delete them again"
        lines.append(f"the log start offset is not known for {', '.join(unknown)}: {again}")
    for action in plan.actions:
        end = broker.ports.log_end(action.present.log_dir, action.present.log_dir, action.present.path)
        until = utc(action.present.undo_until_ms)
        written = "records of unknown number" if end is None else f"its records up to offset {end}"
        if end != 0:
            lines.append(f"{action.path}: {written} are replaced; staged with reason duplicate until {until}")
    return tuple(lines)


def _row(action: AdoptHere, state: ItemState) -> ItemResult:
    marker = action.marker
    return ItemResult(
        log_dir=action.log_dir,
        path=f"{DELETING}/{action.name}",
        state=state,
        ref=marker.ref,
        new_path=action.path if state is ItemState.PLANNED else None,
        undo_until_ms=action.present.undo_until_ms,
        detail=action.detail,
    )


def apply(broker: OpenBroker, shown: AdoptPlanned, reporter: Reporter) -> tuple[list[ItemResult], list[Problem]]:
    """Adopt the planned replicas in batches; each batch scans and decides again, under every lock.

    Args:
        broker: Opened for changes; crash recovery has run.
        shown: The plan, from ``plan``; nothing else is done.
        reporter: Receives progress, and the warnings about the replaced replicas.

    Returns:
        One item per replica, and the problems of disks.

    Raises:
        LogDirError: as ``OpenBroker.batch``; changes made by then stay.
        RefusedError: the broker wrote its metadata log meanwhile; changes made by then stay.
    """
    if shown.plan is None or shown.request is None:
        return list(shown.items), list(shown.problems)
    for line in shown.warnings:
        reporter.warn(line)
    left = {action.place: action for action in shown.plan.actions}
    work = _Adopting(broker=broker, shown=shown, request=shown.request, actions=left, reporter=reporter)
    work.rows += refused(shown.plan.refusals)
    reporter.begin("adopting", len(left))
    if left:
        broker.beat(read_instant())

    def undecided(place: Place) -> ItemResult:
        path = broker.path_of(*place)
        return replace(_row(left[place], ItemState.UNDONE), problem=nothing_decided(path))

    hold = partial(broker.batch_after, partial(work.look, tuple(left)))
    batch_loop.run(left, hold=hold, decide=work.decide, undecided=undecided, report=work.report)
    reporter.end()
    return work.rows, work.problems


@dataclass(slots=True, kw_only=True)
class _Adopting:
    """The state of one adoption: the results so far, and the disks that failed."""

    broker: OpenBroker
    shown: AdoptPlanned
    request: rule.AdoptHereRequest
    actions: Mapping[Place, AdoptHere]
    """The planned adoptions."""
    reporter: Reporter
    rows: list[ItemResult] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    sick: set[str] = field(default_factory=set)
    """Log dirs whose disk failed during this command."""

    def look(self, left: Collection[Place]) -> tuple[LogDirFacts, ...]:
        """Scan the remaining replicas again, and the re-created replicas that they replace."""
        topic = self.request.as_topic
        present = {f"{topic}-{self.actions[place].marker.partition}" for place in left}
        return self.broker.look_again(Deep(topic=topic), left, named=present)

    def decide(self, left: Collection[Place]) -> Turn[Place, ItemResult]:
        """Scan and decide again about the remaining replicas."""
        facts = self.look(left)
        require_unwritten(self.broker, facts, self.shown.stamp)
        again = replace(self.request, selected=tuple(left), now=read_instant())
        plan = plan_adopt_here(again, facts)
        settled = {(row.log_dir, row.path): row for row in refused(plan.refusals)}
        return Turn(settled=settled, steps=lambda: (partial(self._adopt, action) for action in plan.actions))

    def _adopt(self, action: AdoptHere) -> Mapping[Place, ItemResult]:
        row = _row(action, ItemState.UNDONE)
        # A failed disk may hold a replica that forbids the next adoption.
        if not self.sick:
            with sick_disks(self.problems, self.sick, action.log_dir):
                open_dir, item = self.broker.site_of(action.log_dir), self._item(action)
                row = after(row, disk_adopt.adopt(open_dir, item, self.broker.open_dirs))
        return {action.place: row}

    def _item(self, action: AdoptHere) -> AdoptItem:
        return AdoptItem(
            name=action.name,
            marker=action.marker,
            topic=action.topic,
            topic_id=action.topic_id,
            present=self.broker.site_of(action.present.log_dir),
            present_marker=action.present.marker,
            keep=self.shown.is_kept or action.is_kept,
            checkpoints=action.checkpoints,
        )

    def report(self, rows: Sequence[ItemResult]) -> None:
        """Record the results of some items."""
        self.rows += rows
        self.reporter.advance(len(rows))
