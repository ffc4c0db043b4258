"""Export staged replicas: verified copies in a directory outside the log dirs.

The staged replicas are unchanged. Works beside a running broker: only the ``owner.lock`` of each work
root is held, to exclude a purge.

Spec: design §3.3 "Restore" class (c), §6.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from logdir.decide.refusal import at, refuse
from logdir.disk.replica.outcome import Outcome
from logdir.disk.replica.staging import LOOK_AGAIN
from logdir.errors import ConfigError, Problem
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import BY_HAND, Intent
from logdir.observe.facts import StagedReplica
from logdir.observe.outside import KeptFree
from logdir.refusal_slug import Why
from logdir.service.batch.unlocked import each
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.ports import kept_free_places
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState, refused
from logdir.service.report.staged import Selection, item_of, nothing_staged, selected
from logdir.worker.look import NOTHING
from logdir.worker.operations import export_aside, place_problems
from logdir.worker.port import Port

_UNDONE = "no copy was made"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """A request to export staged replicas."""

    selection: Selection
    """The staged replicas to copy."""
    output: str
    """The directory for the copies; it must exist."""

    def require_valid(self) -> None:
        """Check that the selector is valid and a directory is named. Raises ``ConfigError``."""
        if not self.output:  # An empty path would mean the current directory.
            raise ConfigError((Problem("config-error", "-o", "a directory for the copies", "an empty text"),))
        self.selection.require_valid()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPlanned:
    """The plan of an export."""

    items: tuple[ItemResult, ...]
    """Replicas to copy, with a problem if their destination cannot be used; then refused ones."""
    problems: tuple[Problem, ...]
    staged: tuple[StagedReplica, ...]
    """The staged replicas to copy."""
    into: str
    """Absolute path of the directory for the copies."""
    places: tuple[KeptFree, ...] = ()
    """Log dirs and work roots, which may hold no copy."""
    is_empty: bool = False
    """Whether the selector matched nothing."""


def plan(broker: OpenBroker, asked: ExportRequest) -> ExportPlanned:
    """Scan a broker and return the plan; changes nothing.

    Raises:
        ConfigError: the selector is invalid.
        LogDirSuspectError: the disk of the output directory does not answer.
    """
    into = os.path.abspath(asked.output)
    facts = broker.look(NOTHING)
    # A partial capture can be exported as it is.
    there = selected(facts, asked.selection, Kind.STAGED, Kind.INCOMING)
    found = [item for item in there if item.kind is Kind.STAGED or item.is_partial]
    if not found:
        problems = nothing_staged(facts, asked.selection.text)
        return ExportPlanned(items=(), problems=problems, staged=(), into=into, is_empty=True)
    staged, refusals = _sorted_out(found)
    places = kept_free_places(broker.ports)
    wanted = tuple(_destination(into, item) for item in staged)
    found_there = broker.ports.apart(into, place_problems, wanted, places)
    items = [_placed(_item(into, item), problem) for item, problem in zip(staged, found_there, strict=True)]
    unread = tuple(one.problem for one in facts if one.problem is not None)
    return ExportPlanned(items=(*items, *refusals), problems=unread, staged=tuple(staged), into=into, places=places)


def apply(broker: OpenBroker, shown: ExportPlanned, reporter: Reporter) -> tuple[list[ItemResult], list[Problem]]:
    """Copy the planned replicas, also those whose destination could not be used when the plan was made.

    Args:
        broker: Opened for changes.
        shown: The plan, from ``plan``.
        reporter: Receives progress.

    Returns:
        One item per replica, and the problems of disks.
    """
    calls = [(_item(shown.into, item), _exporting(broker, shown, item, reporter)) for item in shown.staged]
    rows, problems = each(broker, calls, reporter)
    rows = [row if row.state is ItemState.DONE else replace(row, detail=_UNDONE) for row in rows]
    pairs = zip(rows, shown.items, strict=False)
    # A replica that the plan refused and that still fails stays refused.
    rows = [was if was.state is ItemState.REFUSED and row.state is ItemState.UNDONE else row for row, was in pairs]
    return [*rows, *shown.items[len(shown.staged) :]], [*shown.problems, *problems]


def _item(into: str, item: StagedReplica) -> ItemResult:
    detail = f"copy at {_destination(into, item)}, {item.log_bytes} bytes in its segments"
    return item_of(item, ItemState.PLANNED, detail)


def _sorted_out(items: Sequence[StagedReplica]) -> tuple[list[StagedReplica], list[ItemResult]]:
    """Return the staged replicas with a usable marker and a unique destination name, and refusals of the others."""
    taken = Counter((item.ref.topic, item.ref.partition) for item in items)
    good, refusals = [], []
    for item in items:
        where = item.log_dir, item.path
        if item.marker is None or item.problem is not None or item.ref.topic is None:
            found = "no marker" if item.problem is None else item.problem.found
            fix = BY_HAND if item.problem is None else item.problem.fix or BY_HAND
            refusals.append(at(item.place, refuse(*where, Why.MARKER_UNUSABLE, "a usable marker", found, fix)))
        elif item.marker.intent is Intent.INCOMING:  # As ``disk.replica.export`` refuses it.
            expected, found = "a replica that was staged", "an incoming replica"
            refusals.append(at(item.place, refuse(*where, Why.NOT_STAGED, expected, found, LOOK_AGAIN)))
        elif taken[item.ref.topic, item.ref.partition] > 1:
            several = refuse(*where, Why.AMBIGUOUS, "one staged copy", "several", "choose one: --disk, --name")
            refusals.append(at(item.place, several))
        else:
            good.append(item)
    return good, refused(refusals)


def _destination(into: str, item: StagedReplica) -> str:
    return os.path.join(into, f"{item.ref.topic}-{item.ref.partition}")


def _placed(row: ItemResult, problem: Problem | None) -> ItemResult:
    """Return a planned row, refused if no copy can be made at its destination."""
    return row if problem is None else replace(row, state=ItemState.REFUSED, detail=_UNDONE, problem=problem)


def _exporting(
    broker: OpenBroker, shown: ExportPlanned, item: StagedReplica, reporter: Reporter
) -> Callable[[Port], Outcome]:
    """Return the call that copies a replica: the worker of its disk and this process have other work meanwhile."""
    destination = _destination(shown.into, item)
    between = partial(reporter.advance, 0)
    return lambda port: broker.ports.aside(
        port.log_dir, between, export_aside, port.log_dir, item.path, destination, shown.places
    )
