"""Purging staged replicas in batches: one sync for the claims of a batch, and one for its removals.

A batch holds what the rate limit removes in about a second, because claimed replicas cannot be restored while they
wait. Before each batch the broker's configuration is read again, and the paths of the log dir are compared with the
open directories. Kafka's locks are not taken: a broker sees nothing of a purge, so it works beside a running broker and
never delays its start.

Not here: what may be purged (``logdir.decide.staged.purge``), the plan (``purge``).

Spec: design §2 laws 1, 4, 6, §3.3; attacks A18, A26, A45.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile
from typing import NamedTuple

from logdir.decide.staged.purge import Purge, claim_limit_of
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.replica.outcome import Outcome, undone
from logdir.errors import LogDirError, Problem
from logdir.paths import DELETING
from logdir.service.batch.unlocked import unlocked
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import sick_disks
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState, after
from logdir.worker.operations import PurgeBatch, purge


class Rates(NamedTuple):
    """How fast a purge goes."""

    bytes_per_second: int
    """0: no limit."""
    files_per_second: int
    """0: no limit."""
    budget_ms: int = 0
    """After so long a step leaves the rest claimed; 0: no limit."""


_Place = tuple[str, str]
"""Log dir, and name under ``deleting/``."""
_Became = tuple[_Place, Outcome | None]
"""A place and its outcome; ``None``: its disk failed."""


def purge_all(
    broker: OpenBroker,
    planned: Sequence[tuple[ItemResult, Purge]],
    rates: Rates,
    reporter: Reporter,
    *,
    against: Callable[[Purge], LogDirError | None],
) -> tuple[list[ItemResult], list[Problem]]:
    """Purge the planned replicas, one log dir after the other.

    Args:
        broker: Opened for changes.
        planned: The result row and the purge of each replica.
        rates: Rate limits, and the longest time of a step.
        reporter: Receives progress.
        against: Called right before each claim; returns why the replica may not be purged, ``None`` if it may.

    Returns:
        One row per action, in their order, and the problems of disks. A disk that failed, or was replaced since it was
        opened, does not stop the others.

    Raises:
        RefusedError: the broker's configuration changed meanwhile; changes made by then stay.
    """
    room = claim_limit_of(rates.bytes_per_second, rates.files_per_second)
    actions = {(action.log_dir, action.name): action for _, action in planned}
    became: dict[_Place, Outcome] = {}
    problems: list[Problem] = []
    sick: set[str] = set()
    reporter.begin("done", len(actions))

    def step(some: Sequence[Purge]) -> Mapping[_Place, _Became]:
        log_dir = some[0].log_dir
        outcomes: dict[str, Outcome] = {}
        for action in some:
            if (error := against(action)) is not None:
                outcomes[action.name] = undone(f"{DELETING}/{action.name}", error)
        some = [action for action in some if action.name not in outcomes]
        if some:
            _batch(broker, some, rates, outcomes, problems, sick)
        handled: dict[_Place, Outcome | None] = {(log_dir, name): outcome for name, outcome in outcomes.items()}
        if log_dir in sick:
            # The disk failed mid-batch, so its outcome is unknown; the next scan shows it.
            handled = {**{(log_dir, action.name): None for action in some}, **handled}
        return {place: (place, outcome) for place, outcome in handled.items()}

    def decide(left: Collection[_Place]) -> Turn[_Place, _Became]:
        # No purge begins on a failed disk.
        if sick and (lost := {place: (place, None) for place in left if place[0] in sick}):
            return Turn(settled=lost)
        log_dir = next(iter(left))[0]
        some = [actions[place] for place in islice(takewhile(lambda place: place[0] == log_dir, left), room.partitions)]
        return Turn(steps=lambda: [partial(step, some)])

    def undecided(place: _Place) -> _Became:
        problems.append(nothing_decided(broker.path_of(place[0], f"{DELETING}/{place[1]}")))
        return place, None

    def report(some: Sequence[_Became]) -> None:
        became.update({place: outcome for place, outcome in some if outcome is not None})
        reporter.advance(len(some))

    batch_loop.run(
        _in_order(planned), hold=partial(unlocked, broker), decide=decide, undecided=undecided, report=report
    )
    reporter.end()
    return [_row(row, became.get((action.log_dir, action.name))) for row, action in planned], problems


def _in_order(planned: Sequence[tuple[ItemResult, Purge]]) -> list[_Place]:
    """Return the replicas to purge, one log dir after the other.

    Replicas claimed earlier come first: they cannot be restored any more, and their name may be in the way.
    """
    order = {log_dir: number for number, log_dir in enumerate(dict.fromkeys(action.log_dir for _, action in planned))}
    sorted_actions = sorted(
        (action for _, action in planned), key=lambda one: (order[one.log_dir], one.marker is not None)
    )
    return [(action.log_dir, action.name) for action in sorted_actions]


def _row(row: ItemResult, outcome: Outcome | None) -> ItemResult:
    if outcome is None:
        return replace(row, state=ItemState.UNDONE)
    made = after(row, outcome)
    return replace(made, new_path=None) if made.new_path == row.path else made  # Its place is unchanged.


def _batch(
    broker: OpenBroker,
    left: Sequence[Purge],
    rates: Rates,
    outcomes: dict[str, Outcome],
    problems: list[Problem],
    sick: set[str],
) -> None:
    """Purge some replicas; record the outcome of each, by name, or the problem of their disk."""
    log_dir = left[0].log_dir
    claimed = tuple(action.name for action in left if action.marker is None)
    markers = {action.name: action.marker for action in left if action.marker is not None}
    root = next((one for one in broker.roots if one.open_dir.log_dir == log_dir), None)
    if root is None:  # It gave no answer while another log dir was worked on.
        sick.add(log_dir)
        return
    try:
        with sick_disks(problems, sick, root.open_dir):
            root.require_same(broker.disk_of(log_dir))
            purged = broker.ports.port(log_dir).run_at(purge, PurgeBatch(claimed, markers, *rates))
            outcomes |= purged.outcomes
            if purged.error is not None:
                raise purged.error
    except LogDirError as error:  # The directory was replaced, or its disk failed.
        problems.append(error.problem())
        sick.add(log_dir)
