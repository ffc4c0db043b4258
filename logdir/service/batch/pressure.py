"""Purge captured replicas before their deadline on disks that are nearly full, no further than ``staged.min.free``.

One replica goes at a time, the oldest first, and the free space is read again after each. A replica of which a file has
another name frees nothing: its broker has not removed it yet, or another copy shares its files.

A captured replica that the cluster assigns here again stays. A cluster that cannot be asked keeps none: the broker
itself had deleted the replica, and would go offline with a full disk.

Not here: which replicas may go (``decide.staged.pressure``), the removal (``purge_batches``), when this runs
(``daemon``).

Spec: design §3.3 "pressure"; attacks A14, A50.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from logdir.decide.capture import CaptureRoom
from logdir.decide.staged.pressure import oldest_first
from logdir.decide.staged.purge import Purge, loss_of
from logdir.errors import LogDirError, LogDirSuspectError, Problem
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from logdir.service.batch.purge_batches import Halted, Rates, never_halted, purge_all
from logdir.service.batch.purge_recheck import PurgeOverrides, Rechecking
from logdir.service.capture import room_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.purge import planned_item
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState
from logdir.worker.look import NOTHING
from logdir.worker.operations import has_other_names

_AS_NAMED = PurgeOverrides(is_even_if_early=True, is_latest_alone=True)
"""Without cluster metadata a replica goes as if an operator had named it. A snapshot from before its removal, which may
be an hour old, does not keep what the end of the same log shows as removed.
"""


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
    *,
    halted: Halted = never_halted,
) -> Relieved:
    """Purge captured replicas on nearly full disks until enough is free, or nothing more may go.

    Args:
        broker: Opened for changes.
        rooms: Free space of each log dir that answers, just read.
        rates: Rate limits; a replica whose removal takes longer than ``budget_ms`` is gone on with by the next purge.
        reporter: Receives each loss before it happens, and progress.
        halted: Called before each replica; if it returns an error, no other one goes.

    Raises:
        RefusedError: the broker's configuration changed meanwhile.
    """
    found = Relieved()
    answering = [one.log_dir for one in broker.changeable if one.log_dir in rooms]
    short = {log_dir for log_dir in answering if rooms[log_dir].lacking}
    if not short:
        return found
    facts = broker.look(NOTHING)
    candidates = {one.log_dir: oldest_first(one.staged) for one in facts if one.log_dir in short}
    # The removal of these has begun: it is finished first, and takes its time by itself.
    begun = {one.log_dir for one in facts if any(item.kind is Kind.PURGING for item in one.staged)}
    looking: Rechecking | None = None
    for log_dir in sorted(short - begun):
        seen_bytes, freed_bytes = rooms[log_dir].free_bytes, 0
        for item in _single(broker, log_dir, candidates.get(log_dir, ())):
            # A file system may report freed space some time later.
            room = _room(broker, log_dir, at_least=seen_bytes + freed_bytes)
            if room is None or not room.lacking or halted() is not None:
                break
            if looking is None:
                looking = Rechecking(SourceRequest(), _AS_NAMED, broker, facts)
            rows, problems = _purge(broker, item, room, looking, rates, reporter, halted)
            found.items += rows
            found.problems += problems
            if problems or any(row.state is not ItemState.DONE and row.new_path is not None for row in rows):
                break  # What is claimed is removed first, before another one goes.
            freed_bytes += sum((item.log_bytes or 0) for row in rows if row.state is ItemState.DONE)
    return found


def _single(broker: OpenBroker, log_dir: str, items: tuple[StagedReplica, ...]) -> Iterator[StagedReplica]:
    """Yield the replicas whose files have no other name; each is looked at when its turn comes."""
    for item in items:
        try:
            with map_os_errors(log_dir):
                is_shared = broker.ports.port(log_dir).run_at(has_other_names, item.name)
        except LogDirSuspectError as error:
            broker.ports.note(error)
            return
        except LogDirError:
            continue  # It is gone, or cannot be read: the next one may free enough.
        if not is_shared:
            yield item


def _purge(
    broker: OpenBroker,
    item: StagedReplica,
    room: CaptureRoom,
    looking: Rechecking,
    rates: Rates,
    reporter: Reporter,
    halted: Halted,
) -> tuple[list[ItemResult], list[Problem]]:
    what, free, total = room.lacking[0]
    why = f"before its deadline: {free} of {total} {what} free, less than {room.least_free_percent} %"
    action = Purge(log_dir=item.log_dir, name=item.name, marker=item.marker, why=why, loses=loss_of(item))
    row = planned_item(action)
    if looking.against(action) is None:
        reporter.warn(row.detail)
    return purge_all(broker, [(row, action)], rates, reporter, against=looking.against, halted=halted)


def _room(broker: OpenBroker, log_dir: str, *, at_least: int) -> CaptureRoom | None:
    """Return the free space of a disk, at least so many bytes; ``None``: it does not answer."""
    try:
        with map_os_errors(log_dir):
            space = broker.site_of(log_dir).top.space()
    except (KeyError, LogDirError):
        return None
    space = space._replace(free_bytes=max(space.free_bytes, at_least))
    return room_of(space, broker.request.least_free_percent)
