"""Purging staged replicas in batches: one sync for the claims of a batch, and one for its removals.

A batch holds what the rate limit removes in about a second, because claimed replicas cannot be restored while they
wait. Before each batch the broker's configuration is read again, and the paths of the log dir are compared with the
open directories. Kafka's locks are not taken: a broker sees nothing of a purge, so it works beside a running broker and
never delays its start.

Not here: what may be purged (``logdir.decide.staged.purge``), the plan (``purge``).

Spec: design §2 laws 1, 4, 6, §3.3; attacks A18, A26, A45.
"""

from __future__ import annotations

import os
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
from logdir.worker.operations import PurgeBatch, PurgePausedError, purge

Halted = Callable[[], LogDirError | None]
"""Returns why no other step of a purge may begin; ``None``: it may."""


def never_halted() -> LogDirError | None:
    """Return ``None``: nothing stops the purge."""
    return None


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
    halted: Halted = never_halted,
    goes_on: bool = False,
) -> tuple[list[ItemResult], list[Problem]]:
    """Purge the planned replicas, one log dir after the other.

    Args:
        broker: Opened for changes.
        planned: The result row and the purge of each replica.
        rates: Rate limits, and the longest time of a step.
        reporter: Receives progress.
        against: Called right before each claim; returns why the replica may not be purged, ``None`` if it may.
        halted: Called before each step; if it returns an error, all replicas that are left are undone for it.
        goes_on: Whether a replica whose step has reached its longest time is removed further in another step at once.

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
    paused: set[str] = set()
    reporter.begin("done", len(actions))

    def step(some: Sequence[Purge]) -> Mapping[_Place, _Became]:
        log_dir = some[0].log_dir
        outcomes: dict[str, Outcome] = {}
        for action in some:
            if (error := against(action)) is not None:
                outcomes[action.name] = undone(f"{DELETING}/{action.name}", error)
        todo = [action for action in some if action.name not in outcomes]
        steps = {action.name: action for action in todo}
        while steps:
            # Asked right before each step: the recheck, and captures in between, may have taken seconds.
            if (error := halted()) is not None:
                outcomes.update({name: _left((log_dir, name), error) for name in steps if name not in outcomes})
                steps = {}
                break
            _batch(broker, steps, rates, outcomes, problems, sick)
            steps = _cut_off(steps, outcomes)
            if not goes_on or log_dir in sick or halted() is not None:
                break
            reporter.advance(0)
        if steps and not goes_on:
            # What is claimed cannot be restored: no other replica of the disk is, before its removal has ended.
            paused.add(log_dir)
        handled: dict[_Place, Outcome | None] = {(log_dir, name): outcome for name, outcome in outcomes.items()}
        if log_dir in sick:
            # The disk failed mid-batch, so its outcome is unknown; the next scan shows it.
            handled = {**{(log_dir, action.name): None for action in todo}, **handled}
        return {place: (place, outcome) for place, outcome in handled.items()}

    def decide(left: Collection[_Place]) -> Turn[_Place, _Became]:
        if (error := halted()) is not None:
            return Turn(settled={place: (place, _left(place, error)) for place in left})
        # No purge begins on a failed disk.
        if sick and (lost := {place: (place, None) for place in left if place[0] in sick}):
            return Turn(settled=lost)
        if cut := {place: (place, _left(place, _behind())) for place in left if place[0] in paused}:
            return Turn(settled=cut)
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


def _left(place: _Place, error: LogDirError) -> Outcome:
    """Return the outcome of a replica that was not begun."""
    return undone(f"{DELETING}/{place[1]}", error)


def _behind() -> PurgePausedError:
    """Return why a replica was not begun: the removal of another one of its disk has not ended."""
    return PurgePausedError(
        "purge",
        expected="that the removal before it on this disk has ended",
        found="one that goes on",
        fix="nothing to do: this replica is unchanged, and the next purge ends both",
    )


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


def _cut_off(steps: Mapping[str, Purge], outcomes: Mapping[str, Outcome]) -> dict[str, Purge]:
    """Return the next step of each replica whose removal was cut off by the time of a step, by its planned name."""
    return {
        name: replace(action, name=os.path.basename(outcomes[name].place or action.name), marker=None)
        for name, action in steps.items()
        if name in outcomes and isinstance(outcomes[name].error, PurgePausedError)
    }


def _batch(
    broker: OpenBroker,
    steps: Mapping[str, Purge],
    rates: Rates,
    outcomes: dict[str, Outcome],
    problems: list[Problem],
    sick: set[str],
) -> None:
    """Purge some replicas of one log dir; record the outcome of each, or the problem of their disk.

    Args:
        broker: As for ``purge_all``.
        steps: The replicas, by planned name.
        rates: As for ``purge_all``.
        outcomes: Receives each outcome, by planned name; a former one of a replica is forgotten first.
        problems: Receives the problem of the disk.
        sick: Receives the log dir if its disk failed.
    """
    log_dir = next(iter(steps.values())).log_dir
    planned = {action.name: name for name, action in steps.items()}
    for name in steps:
        outcomes.pop(name, None)
    claimed = tuple(action.name for action in steps.values() if action.marker is None)
    markers = {action.name: action.marker for action in steps.values() if action.marker is not None}
    root = next((one for one in broker.roots if one.open_dir.log_dir == log_dir), None)
    if root is None:  # It gave no answer while another log dir was worked on.
        sick.add(log_dir)
        return
    try:
        with sick_disks(problems, sick, log_dir):
            root.require_same(broker.disk_of(log_dir))
            purged = broker.ports.port(log_dir).run_at(purge, PurgeBatch(claimed, markers, *rates))
            outcomes |= {planned[name]: outcome for name, outcome in purged.outcomes.items()}
            if purged.error is not None:
                raise purged.error
    except LogDirError as error:  # The directory was replaced, or its disk failed.
        problems.append(error.problem())
        sick.add(log_dir)
