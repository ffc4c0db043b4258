"""Purge captured replicas before their deadline on disks that are nearly full, no further than ``staged.min.free``.

One replica goes at a time, the oldest first, and the free space is read again after each. What a removal has freed
counts as free before the file system reports it (``free_space``), from one call to the next. A replica of which a file
has another name frees nothing: its broker has not removed it yet, or another copy shares its files.

A captured replica that the cluster assigns here again stays. A cluster that cannot be asked keeps none: the broker
itself had deleted the replica, and would go offline with a full disk.

Not here: which replicas may go (``decide.staged.pressure``), the removal (``purge_batches``), when this runs
(``daemon``).

Spec: design §3.3 "pressure"; attacks A14, A50.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from logdir.decide.capture import CaptureRoom
from logdir.decide.staged.pressure import MOST_FAILED, going
from logdir.decide.staged.purge import Purge, loss_of
from logdir.errors import LogDirError, LogDirSuspectError, Problem
from logdir.observe.facts import LogDirFacts, StagedReplica
from logdir.service.batch.free_space import FreeSpace
from logdir.service.batch.purge_batches import Halted, Rates, never_halted, purge_all
from logdir.service.batch.purge_recheck import PurgeOverrides, Rechecking
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.last_look import Place
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.purge import planned_item
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState
from logdir.worker.look import NOTHING
from logdir.worker.operations import PurgePausedError, inodes_alone

_AS_NAMED = PurgeOverrides(is_even_if_early=True, is_latest_alone=True)
"""Without cluster metadata a replica goes as if an operator had named it. A snapshot from before its removal, which may
be an hour old, does not keep what the end of the same log shows as removed.
"""


@dataclass(slots=True)
class Known:
    """What the caller knows from earlier looks and purges."""

    facts: Sequence[LogDirFacts]
    """Of its last look at every log dir."""
    free: FreeSpace
    """It is updated."""
    failed: Collection[Place] = ()
    """Replicas whose removal failed."""
    announced: set[Place] = field(default_factory=set)
    """Replicas whose loss the reporter has received, and that are still there; added to."""


@dataclass(slots=True)
class Relieved:
    """What was purged, and what could not be."""

    items: list[ItemResult] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def relieve(
    broker: OpenBroker,
    rooms: Mapping[str, CaptureRoom],
    rates: Rates,
    reporter: Reporter,
    known: Known,
    *,
    halted: Halted = never_halted,
) -> Relieved:
    """Purge captured replicas on nearly full disks until enough is free, or nothing more may go.

    Nothing is looked at where nothing may go by what is known.

    Args:
        broker: Opened for changes.
        rooms: Free space of each log dir that answers, just read.
        rates: Rate limits; a replica whose removal takes longer than ``budget_ms`` is gone on with by the next purge.
        reporter: Receives each loss once, before it happens, and progress.
        known: From earlier looks and purges.
        halted: Called before each replica; if it returns an error, no other one goes.

    Raises:
        RefusedError: the broker's configuration changed meanwhile.
    """
    found = Relieved()
    expected = known.free.take(rooms)
    answering = [one.log_dir for one in broker.changeable if one.log_dir in expected]
    short = {log_dir for log_dir in answering if expected[log_dir].lacking}
    places = [(item.log_dir, item.path) for items in _going(known.facts, short, known).values() for item in items]
    if not places:
        return found
    # Read again: a marker may have been rewritten since the last look.
    facts = broker.look_again(NOTHING, places)
    looking: Rechecking | None = None
    for log_dir, items in sorted(_going(facts, short, known).items()):
        failed = sum(one[0] == log_dir for one in known.failed)
        for item, inodes in _single(broker, log_dir, items):
            room = known.free.read(broker, log_dir)
            if room is None or not room.lacking or failed >= MOST_FAILED or halted() is not None:
                break
            if looking is None:
                looking = Rechecking(SourceRequest(), _AS_NAMED, broker, facts)
            rows, problems = _purge(broker, item, room, looking, rates, reporter, known, halted)
            found.items += rows
            found.problems += problems
            if problems or any(_is_paused(row) for row in rows):
                break  # What is claimed is removed first, before another one goes.
            failed += sum(row.state is not ItemState.DONE and row.new_path is not None for row in rows)
            if all(row.state is ItemState.DONE for row in rows):
                known.free.add(log_dir, item.log_bytes or 0, inodes)
    return found


def _going(facts: Sequence[LogDirFacts], short: Collection[str], known: Known) -> dict[str, tuple[StagedReplica, ...]]:
    """Return the replicas that may go, of each nearly full log dir that has any."""
    found = {}
    for one in facts:
        failed = {path for log_dir, path in known.failed if log_dir == one.log_dir}
        if one.log_dir in short and (items := going(one.staged, failed)):
            found[one.log_dir] = items
    return found


def _is_paused(row: ItemResult) -> bool:
    """Whether a replica was claimed, and its removal goes on later."""
    return row.new_path is not None and row.problem is not None and row.problem.slug == PurgePausedError.code


def _single(broker: OpenBroker, log_dir: str, items: Sequence[StagedReplica]) -> Iterator[tuple[StagedReplica, int]]:
    """Yield the replicas whose files have no other name, and how many inodes each frees.

    Each is looked at when its turn comes.
    """
    for item in items:
        try:
            with map_os_errors(log_dir):
                inodes = broker.ports.port(log_dir).run_at(inodes_alone, item.name)
        except LogDirSuspectError as error:
            broker.ports.note(error)
            return
        except LogDirError:
            continue  # It is gone, or cannot be read: the next one may free enough.
        if inodes is not None:
            yield item, inodes


def _purge(
    broker: OpenBroker,
    item: StagedReplica,
    room: CaptureRoom,
    looking: Rechecking,
    rates: Rates,
    reporter: Reporter,
    known: Known,
    halted: Halted,
) -> tuple[list[ItemResult], list[Problem]]:
    what, free, total = room.lacking[0]
    why = f"before its deadline: {free} of {total} {what} free, less than {room.least_free_percent} %"
    action = Purge(log_dir=item.log_dir, name=item.name, marker=item.marker, why=why, loses=loss_of(item))
    row = planned_item(action)
    place = item.log_dir, item.path
    if place not in known.announced and looking.against(action) is None:
        reporter.warn(row.detail)
        known.announced.add(place)
    return purge_all(broker, [(row, action)], rates, reporter, against=looking.against, halted=halted)
