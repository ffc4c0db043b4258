"""Purge staged replicas in batches: each claimed with one sync, and removed with another.

A batch takes what the pace frees in about a second, for what is claimed cannot be restored while it waits. Before each
the broker's configuration is read again and the paths of its log dir are compared with what was opened. Kafka's locks
are not taken: nothing here is seen by a broker, so a purge works beside one and never stands in the way of its start.

Not here: what may go (``logdir.decide.purge``), the plan (``purge``).

Spec: design §2 laws 1, 4, 6, §3.3; attacks A18, A26, A45.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile

from logdir.decide.purge import Purge, Room
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.in_use import in_use
from logdir.disk.outcome import Outcome, undone
from logdir.disk.pace import Pace
from logdir.disk.purge import Listing, claim_all, remove_all
from logdir.disk.site import Site
from logdir.errors import LogDirError, Problem
from logdir.service.broker import OpenBroker
from logdir.service.os_errors import sick_disks
from logdir.service.reporter import Reporter
from logdir.service.result import ItemResult, ItemState, after
from logdir.service.unlocked import unlocked

_Place = tuple[str, str]
"""Log dir, and name under ``deleting/``."""
_Became = tuple[_Place, Outcome | None]
"""``None``: its disk takes no more changes."""


def purge_all(
    broker: OpenBroker,
    planned: Sequence[tuple[ItemResult, Purge]],
    room: Room,
    pace: Pace,
    reporter: Reporter,
    *,
    against: Callable[[Purge], LogDirError | None],
) -> tuple[list[ItemResult], list[Problem]]:
    """Remove what was decided on, one log dir after the other.

    Args:
        broker: Opened for changes.
        planned: The row of each and what is to be done.
        room: What may be claimed at a time.
        pace: Called after every step.
        reporter: For progress.
        against: Asked right before each is claimed: why it may not be.

    Returns:
        One row per action, in their order, and what is wrong with disks: one that takes no more changes, or is no
        longer the one that was opened, does not stop the others.

    Raises:
        RefusedError: the broker's configuration changed meanwhile; what was done by then is done.
    """
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
                outcomes[action.name] = undone(f"deleting/{action.name}", error)
        some = [action for action in some if action.name not in outcomes]
        if some:
            _batch(broker, some, room, pace, outcomes, problems, sick)
        handled: dict[_Place, Outcome | None] = {(log_dir, name): outcome for name, outcome in outcomes.items()}
        if log_dir in sick:
            # Of a disk that gave up in the middle nobody knows what was done: the next look tells.
            handled = {**{(log_dir, action.name): None for action in some}, **handled}
        return {place: (place, outcome) for place, outcome in handled.items()}

    def decide(left: Collection[_Place]) -> Turn[_Place, _Became]:
        # Nothing is begun on a disk that takes no more changes.
        if sick and (lost := {place: (place, None) for place in left if place[0] in sick}):
            return Turn(settled=lost)
        log_dir = next(iter(left))[0]
        some = [actions[place] for place in islice(takewhile(lambda place: place[0] == log_dir, left), room.partitions)]
        return Turn(steps=lambda: [partial(step, some)])

    def undecided(place: _Place) -> _Became:
        problems.append(nothing_decided(broker.path_of(place[0], f"deleting/{place[1]}")))
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
    """Return what is to go, one log dir after the other.

    What was claimed before goes first: it cannot be restored any more, and its name may be in the way.
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
    return replace(made, place=None) if made.place == row.path else made  # claimed before: it stays where it was


def _batch(
    broker: OpenBroker,
    left: Sequence[Purge],
    room: Room,
    pace: Pace,
    outcomes: dict[str, Outcome],
    problems: list[Problem],
    sick: set[str],
) -> None:
    """Remove some; note what became of each, by name, or what is wrong with their disk."""
    log_dir = left[0].log_dir
    (root,) = (one for one in broker.roots if one.site.log_dir == log_dir)
    try:
        with sick_disks(problems, sick, root.site):
            root.require_same(broker.disk)
            _remove(root.site, left, room, pace, outcomes)
    except LogDirError as error:  # something else lies there by now
        problems.append(error.problem())
        sick.add(log_dir)


def _remove(site: Site, some: Sequence[Purge], room: Room, pace: Pace, outcomes: dict[str, Outcome]) -> None:
    """Finish those that were claimed before, else claim as many as there is room for, and remove them."""
    seen: dict[str, Listing] = {}
    claimed = {action.name: action.name for action in some if action.marker is None}
    if not claimed:
        markers = {action.name: action.marker for action in some if action.marker is not None}
        for name, outcome in zip(markers, claim_all(site, markers, room=room, seen=seen), strict=False):
            if outcome.place is None:
                outcomes[name] = outcome
            else:
                claimed[name] = os.path.basename(outcome.place)
    removed = remove_all(site, tuple(claimed.values()), pace, in_use=in_use, seen=seen, at_once=pace.at_once)
    outcomes |= dict(zip(claimed, removed, strict=True))
