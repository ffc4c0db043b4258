"""The removals of ``logdirctl staged purge``, in batches: each claimed with one sync, and removed with another.

A batch takes what the pace frees in about a second, for what is claimed cannot be restored while it waits. Before each
the broker's configuration is read again and the paths of its log dir are compared with what was opened. Kafka's locks
are not taken: nothing here is seen by a broker, so a purge works beside one and never stands in the way of its start.

Not here: what may go (``logdir.decide.purge``), what is printed (``staged_change``).

Spec: design §2 laws 1, 4, 6, §3.3; attacks A18, A26, A45.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from logdir.decide.purge import Purge, Room
from logdir.disk.in_use import in_use
from logdir.disk.outcome import Outcome, undone
from logdir.disk.pace import Pace
from logdir.disk.purge import Listing, claim_all, remove_all
from logdir.disk.site import Site
from logdir.errors import LogDirError, Problem
from tools.cli import Streams
from tools.logdirctl.broker import OpenBroker, sick_disks
from tools.logdirctl.report import UNDONE, Progress, Row, after


def purge_all(
    broker: OpenBroker,
    planned: Sequence[tuple[Row, Purge]],
    room: Room,
    pace: Pace,
    streams: Streams,
    *,
    against: Callable[[Purge], LogDirError | None],
) -> tuple[list[Row], list[Problem]]:
    """Remove what was decided on, one log dir after the other.

    Args:
        broker: Opened for changes.
        planned: The row of each and what is to be done.
        room: What may be claimed at a time.
        pace: Called after every step.
        streams: For progress.
        against: Asked right before each is claimed: why it may not be.

    Returns:
        One row per action, in their order, and what is wrong with disks: one that takes no more changes, or is no
        longer the one that was opened, does not stop the others.

    Raises:
        RefusedError: the broker's configuration changed meanwhile; what was done by then is done.
    """
    progress = Progress(streams, "done", len(planned))
    problems: list[Problem] = []
    became: dict[tuple[str, str], Outcome] = {}
    for log_dir in dict.fromkeys(action.log_dir for _, action in planned):
        # What was claimed before goes first: it cannot be restored any more, and its name may be in the way.
        left = sorted(
            (action for _, action in planned if action.log_dir == log_dir), key=lambda one: one.marker is not None
        )
        sick: set[str] = set()
        while left and not sick:
            broker.require_unchanged()
            outcomes: dict[str, Outcome] = {}
            some = left[: room.partitions]
            for action in some:
                if (error := against(action)) is not None:
                    outcomes[action.name] = undone(f"deleting/{action.name}", error)
            some = [action for action in some if action.name not in outcomes]
            if some:
                _batch(broker, some, room, pace, outcomes, problems, sick)
            became |= {(log_dir, name): outcome for name, outcome in outcomes.items()}
            left = [action for action in left if action.name not in outcomes]
            progress.add(len(outcomes))
        progress.add(len(left))
    progress.done()
    return [_row(row, became.get((action.log_dir, action.name))) for row, action in planned], problems


def _row(row: Row, outcome: Outcome | None) -> Row:
    return replace(row, state=UNDONE) if outcome is None else after(row, outcome)


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
