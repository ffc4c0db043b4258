"""Capture ``-delete`` and ``-stray`` directories by hard links in the work root.

Works beside a running broker: its files are not changed, and Kafka's locks are not taken.

Not here: what may be captured (``logdir.decide.capture``), the links (``logdir.disk.replica.capture``).

Spec: design §3.3, §6; attacks A17, A33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from logdir.decide import capture as rule
from logdir.decide.capture import CAPTURABLE, LEAST_FREE_PERCENT, Capture, CapturePlan, CaptureRoom, plan_capture
from logdir.decide.selector import EVERYTHING, Selector, parse, select
from logdir.decide.staged.deadline import DelayPolicy, require_delays
from logdir.disk.kernel.calls import Space
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.outcome import Outcome
from logdir.errors import LogDirSuspectError, Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, Replica
from logdir.service.batch.unlocked import each
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState, refused
from logdir.service.report.selection import nothing_selected
from logdir.service.report.staged import staged_replicas
from logdir.worker import operations
from logdir.worker.look import NOTHING, Deep
from logdir.worker.port import Port


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """A request to capture directories."""

    selector: str | None
    """The directories; ``None``: every ``-delete`` and ``-stray`` directory."""
    delays: DelayPolicy
    """How long the captures stay after their broker has removed the directories."""
    is_held: bool
    """Whether the captures get no deadline."""

    def require_valid(self) -> None:
        """Check that selector and delays are valid. Raises ``ConfigError``."""
        self.parsed()
        require_delays(self.delays)

    def parsed(self) -> Selector | None:
        """Return the selector; ``None``: everything. Raises ``ConfigError``."""
        return None if self.selector in (None, EVERYTHING) else parse(str(self.selector))


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePlanned:
    """The plan of a capture."""

    items: tuple[ItemResult, ...]
    problems: tuple[Problem, ...]
    plan: CapturePlan
    is_empty: bool
    """Whether the selector matched no ``-delete`` or ``-stray`` directory."""

    @property
    def lines(self) -> tuple[str, ...]:
        """A remark for people if there is nothing to capture."""
        return () if self.items or self.is_empty else ("there is no -delete and no -stray directory",)


def plan(broker: OpenBroker, asked: CaptureRequest) -> CapturePlanned:
    """Scan a broker and return the plan; changes nothing.

    Args:
        broker: The broker, opened.
        asked: The request.

    Raises:
        ConfigError: the selector is invalid or ambiguous.
        LogDirError: a log dir does not report the free space of its disk.
    """
    selector = asked.parsed()
    facts = broker.look(Deep(kinds=CAPTURABLE))
    problems = [one.problem for one in facts if one.problem is not None]
    there = _there(facts)
    chosen = there if selector is None else select(selector, there)
    if selector is not None and not chosen:
        problems.append(nothing_selected(selector.text, "capture", there))
    request = rule.CaptureRequest(
        selected=tuple((one.log_dir, one.path) for one in chosen), delays=asked.delays, is_held=asked.is_held
    )
    made = plan_capture(request, facts, rooms_of(broker))
    items = [_row(action) for action in made.actions] + refused(made.refusals)
    is_empty = selector is not None and not chosen
    return CapturePlanned(items=tuple(items), problems=tuple(problems), plan=made, is_empty=is_empty)


def apply(broker: OpenBroker, shown: CapturePlanned, reporter: Reporter) -> tuple[list[ItemResult], list[Problem]]:
    """Capture the planned directories; report those that the broker has removed meanwhile.

    Args:
        broker: Opened for changes.
        shown: The plan, from ``plan``.
        reporter: Receives progress.

    Returns:
        One item per directory, and the problems of disks.
    """
    broker.beat(read_instant())
    calls = [(_row(action), _capturing(action)) for action in shown.plan.actions]
    rows, problems = each(broker, calls, reporter)
    deadlines = _deadlines(broker)
    rows = [
        replace(row, undo_until_ms=deadlines.get((row.log_dir, row.new_path)))
        if row.state is ItemState.DONE
        else _undone(row)
        for row in rows
    ]
    return [*rows, *refused(shown.plan.refusals)], [*shown.problems, *problems]


def _there(facts: tuple[LogDirFacts, ...]) -> tuple[Replica, ...]:
    return tuple(replica for one in facts for replica in one.replicas if replica.kind in CAPTURABLE)


def rooms_of(broker: OpenBroker) -> Mapping[str, CaptureRoom]:
    """Return the free space of the disk of every log dir that answers."""
    rooms = {}
    asked = broker.request.least_free_percent
    for open_dir in broker.open_dirs:
        try:
            with map_os_errors(open_dir.log_dir):
                space = open_dir.top.space()
        except LogDirSuspectError as error:
            broker.ports.note(error)
            continue
        rooms[open_dir.log_dir] = room_of(space, asked)
    return rooms


def room_of(space: Space, least_free_percent: int | None) -> CaptureRoom:
    """Return the free space of a disk; ``least_free_percent``: ``staged.min.free``, ``None``: its default."""
    return CaptureRoom(
        free_bytes=space.free_bytes,
        total_bytes=space.total_bytes,
        free_inodes=space.free_inodes,
        total_inodes=space.total_inodes,
        least_free_percent=LEAST_FREE_PERCENT if least_free_percent is None else least_free_percent,
        fs_id=space.fs_id,
    )


def _deadlines(broker: OpenBroker) -> Mapping[tuple[str, str | None], int]:
    """Return the deadline of every staged replica, by log dir and path; a repeated capture keeps its earlier
    deadline.
    """
    found: dict[tuple[str, str | None], int] = {}
    for item in staged_replicas(broker.look(NOTHING), None, Kind.STAGED):
        if item.marker is not None and item.marker.delay_ms is not None:
            found[item.log_dir, item.path] = item.marker.staged_at_ms + item.marker.delay_ms
    return found


def _row(action: Capture) -> ItemResult:
    one = action.replica
    undo_until_ms = None if action.delay_ms is None else read_instant().wall_ms + action.delay_ms
    return ItemResult(
        log_dir=one.log_dir,
        path=one.path,
        state=ItemState.PLANNED,
        ref=one.ref,
        undo_until_ms=undo_until_ms,
        detail=action.why,
    )


def _undone(row: ItemResult) -> ItemResult:
    detail = (
        "not captured"
        if row.new_path is None
        else "partial capture: logdirctl staged export copies it, it cannot be restored"
    )
    return replace(row, undo_until_ms=None, detail=detail)


def row_and_item(action: Capture) -> tuple[ItemResult, CaptureItem]:
    """Return the row that shows a planned capture, and what its disk is asked to do."""
    return _row(action), CaptureItem(name=action.replica.path, delay_ms=action.delay_ms)


def _capturing(action: Capture) -> Callable[[Port], Outcome]:
    _, item = row_and_item(action)
    return lambda port: port.run_at(operations.capture, item)
