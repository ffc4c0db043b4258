"""Hold staged replicas: remove their deadline, so that no purge removes them. Works beside a running broker.

Spec: design §3.3, §6; attacks A18.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from logdir.decide.refusal import Refusal, at, refuse_quarantined
from logdir.disk.replica import staging
from logdir.disk.replica.outcome import Outcome
from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from logdir.paths import DELETING
from logdir.service.batch.unlocked import each
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState, refused
from logdir.service.report.staged import Selection, item_of, nothing_staged, selected
from logdir.worker.look import NOTHING
from logdir.worker.port import Port

_SAYS = "kept until an operator restores or purges it"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPlanned:
    """The plan of a hold."""

    items: tuple[ItemResult, ...]
    """Replicas to hold, then refused ones."""
    problems: tuple[Problem, ...]
    staged: tuple[StagedReplica, ...]
    """The staged replicas to hold."""
    is_empty: bool = False
    """Whether the selector matched nothing."""


def plan(broker: OpenBroker, selection: Selection) -> HoldPlanned:
    """Scan a broker and return the plan; changes nothing.

    Raises:
        ConfigError: the selector is invalid.
    """
    facts = broker.look(NOTHING)
    found = selected(facts, selection, Kind.STAGED)
    if not found:
        return HoldPlanned(items=(), problems=nothing_staged(facts, selection.text), staged=(), is_empty=True)
    refusals = [_closed(broker, item) for item in found]
    staged = tuple(item for item, refusal in zip(found, refusals, strict=True) if refusal is None)
    items = [item_of(item, ItemState.PLANNED, _SAYS) for item in staged]
    items += refused(refusal for refusal in refusals if refusal is not None)
    return HoldPlanned(items=tuple(items), problems=(), staged=staged)


def apply(broker: OpenBroker, shown: HoldPlanned, reporter: Reporter) -> tuple[list[ItemResult], list[Problem]]:
    """Remove the deadline of the planned replicas.

    Args:
        broker: Opened for changes.
        shown: The plan, from ``plan``.
        reporter: Receives progress.

    Returns:
        One item per replica, and the problems of disks.
    """
    count = len(shown.staged)
    calls = [(row, _holding(item)) for row, item in zip(shown.items[:count], shown.staged, strict=True)]
    done, problems = each(broker, calls, reporter)
    rows = [row if row.state is ItemState.DONE else replace(row, detail="its deadline is unchanged") for row in done]
    return [*rows, *shown.items[count:]], problems


def _closed(broker: OpenBroker, item: StagedReplica) -> Refusal | None:
    quarantined = refuse_quarantined(item.log_dir, f"{DELETING}/{item.name}", broker.quarantined.get(item.log_dir))
    return None if quarantined is None else at(item.place, quarantined)


def _holding(item: StagedReplica) -> Callable[[Port], Outcome]:
    return lambda port: port.run_at(staging.hold, item.name)
