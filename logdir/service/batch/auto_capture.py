"""Capture without an operator: the ``-delete`` and ``-stray`` directories that are new since the last look.

The names at the top of every log dir are listed, and only what is new among them is looked into, so that a broker with
tens of thousands of replicas costs next to nothing as long as no topic is deleted.

Works beside a running broker: its files are not changed, and Kafka's locks are not taken.

Not here: what is passed over (``decide.auto_capture``), what is refused (``decide.capture``), when this runs
(``daemon``).

Spec: design §3.3; attacks A17, A50; kafka-behaviour §3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from logdir import clock
from logdir.decide import capture as rule
from logdir.decide.auto_capture import CapturePolicy, passed_over
from logdir.decide.capture import CAPTURABLE, CapturePlan, plan_capture
from logdir.disk.kernel.failure import as_disk_error
from logdir.disk.replica.capture import CaptureItem
from logdir.errors import LogDirError, LogDirSuspectError, Problem
from logdir.observe.facts import LogDirFacts, Replica, ReplicaIndex
from logdir.observe.leaving import Leaving, leaving
from logdir.service.batch.seen_starts import SeenStarts
from logdir.service.capture import rooms_of, row_and_item
from logdir.service.log_dirs.last_look import Place
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.report.result import ItemResult, ItemState, after, refused
from logdir.worker.look import Deep
from logdir.worker.operations import capture_all
from logdir.worker.remote import gather

AT_ONCE: Final = 64
"""How many directories a log dir captures with one call."""
LOOK_MS: Final = 10 * 1000
"""After so long what is left waits for the next look: each costs more than the captures of a moment."""
LISTS_IN_DELAY: Final = 4
"""How often the log dirs are listed in the time that the broker keeps a directory, also while a look captures."""


def _nobody() -> None:
    """Listener that does nothing."""


@dataclass(slots=True)
class Leavers:
    """What is known of ``-delete`` and ``-stray`` directories of an open broker."""

    mtimes: dict[str, int | None] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    """By log dir: the directories that were there at the last look."""
    handled: set[Place] = field(default_factory=set)
    """Captured, or passed over, since the broker was opened."""
    unread: frozenset[str] = frozenset()
    """Log dirs that could not be read at the last look, or gave no answer."""
    has_changed: bool = True
    """Whether the last look found a log dir that changed, or one that can be read again or no more."""
    missed: int = 0
    """Directories that the broker removed before they were captured."""
    untried: frozenset[Place] = frozenset()
    """Directories that the last look left to the next one, because it took too long."""
    seen_at: dict[Place, int] = field(default_factory=dict)
    """At which look each directory was seen first: its broker removes it before those that came later."""
    looks: int = 0
    """How many looks there were."""
    starts: SeenStarts = field(default_factory=SeenStarts)

    def new(self, broker: OpenBroker) -> tuple[Place, ...]:
        """List the log dirs again; return the directories that are still to be handled, longest known first."""
        self.starts.read(broker)
        found: list[Leaving | LogDirSuspectError] = broker.ports.each(
            lambda port: port.begin(leaving, port.log_dir, self.mtimes.get(port.log_dir))
        )
        unread = set()
        self.has_changed = False
        for port, one in zip(broker.ports.ports, found, strict=True):
            if isinstance(one, LogDirSuspectError) or not one.is_read:
                self.mtimes.pop(port.log_dir, None)
                self.starts.forget(port.log_dir)
                unread.add(port.log_dir)
                continue
            self.mtimes[port.log_dir] = one.mtime_ns
            if one.names is not None:
                self.starts.note(port.log_dir, self.names.get(port.log_dir), one.names)
                self.names[port.log_dir] = frozenset(one.names)
                self.has_changed = True
        self.has_changed = self.has_changed or self.unread != unread
        self.unread = frozenset(unread)
        there = {(log_dir, name) for log_dir, names in self.names.items() for name in names}
        self.handled &= there
        self.missed += len(self.untried - there)
        self.untried &= there
        self.starts.keep_only(there)
        self.looks += 1
        self.seen_at = {place: self.seen_at.get(place, self.looks) for place in there}
        # Of a log dir that cannot be read nothing is known: what was there before is no miss.
        left = (place for place in there - self.handled if place[0] not in unread)
        return tuple(sorted(left, key=lambda place: (self.seen_at[place], place)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What became of the new directories."""

    items: tuple[ItemResult, ...] = ()
    """One per directory: done, undone, refused, or kept where it is passed over."""
    problems: tuple[Problem, ...] = ()
    is_cut_off: bool = False
    """Whether it took so long that some were left for the next look, which should come soon."""
    facts: tuple[LogDirFacts, ...] | None = None
    """Facts of every log dir from before the capture; ``None``: there was nothing new, and nothing was looked into."""


def capture_new(
    broker: OpenBroker, leavers: Leavers, policy: CapturePolicy, listed: Callable[[], None] = _nobody
) -> Captured:
    """Capture what is new since the last call.

    Args:
        broker: Opened for changes.
        leavers: What is known so far; it is updated.
        policy: The operator's policy.
        listed: Called each time that the log dirs were listed.

    Raises:
        RefusedError: the broker's configuration changed since it was opened.
        LogDirReplacedError: a work root was replaced.
        LogDirError: as ``broker.look_again``.
    """
    places = leavers.new(broker)
    listed()
    if not places:
        return Captured()
    facts = broker.look_again(Deep(kinds=CAPTURABLE), places)
    there = {(one.log_dir, one.path): one for facts_of in facts for one in facts_of.replicas}
    chosen, items = _sorted_out(places, there, facts, policy, leavers)
    request = rule.CaptureRequest(selected=tuple(chosen), delays=policy.delays)
    plan = plan_capture(request, facts, rooms_of(broker))
    rows, problems, leavers.untried = _capture_all(broker, plan, leavers, listed)
    leavers.handled.update((row.log_dir, row.path) for row in rows if row.state is ItemState.DONE)
    refusals = refused(plan.refusals)
    gone = [row for row in rows if row.state is ItemState.UNDONE and row.new_path is None]
    leavers.missed += sum((row.log_dir, row.path) not in _still_there(broker, gone) for row in gone)
    return Captured(
        items=(*items, *rows, *refusals), problems=tuple(problems), is_cut_off=bool(leavers.untried), facts=facts
    )


def _capture_all(
    broker: OpenBroker, plan: CapturePlan, leavers: Leavers, listed: Callable[[], None]
) -> tuple[list[ItemResult], list[Problem], frozenset[Place]]:
    """Capture the planned directories, on every log dir at the same time, some with each call.

    Configuration and owner locks are compared before each round of calls. A disk that fails does not stop the others.
    A slow one holds them up for some seconds at most: then the log dirs are to be looked at again. Between the rounds
    they are listed, so that it is known when each directory came.

    Returns:
        The rows of those that were tried, problems of disks, and what was not tried.
    """
    listed_ms = clock.monotonic_ms()
    until_ms = listed_ms + LOOK_MS
    list_ms = leavers.starts.delete_delay_ms // LISTS_IN_DELAY
    left: dict[str, list[tuple[ItemResult, CaptureItem]]] = {}
    for action in plan.actions:
        row, item = row_and_item(action)
        item = replace(item, log_start_seen=leavers.starts.of((row.log_dir, row.path)))
        left.setdefault(row.log_dir, []).append((row, item))
    rows: list[ItemResult] = []
    problems: list[Problem] = []
    while left and (not rows or clock.monotonic_ms() < until_ms):
        if clock.monotonic_ms() - listed_ms >= list_ms:
            leavers.new(broker)
            listed()
            listed_ms = clock.monotonic_ms()
        broker.require_unchanged()
        broker.require_owned()
        begun = {}
        for log_dir in tuple(left):
            some, left[log_dir] = left[log_dir][:AT_ONCE], left[log_dir][AT_ONCE:]
            items = tuple(item for _, item in some)
            begun[log_dir] = some, broker.ports.port(log_dir).begin_opened(capture_all, items)
        gather(pending for _, pending in begun.values())
        for log_dir, (some, pending) in begun.items():
            try:
                outcomes = pending.result()
                rows += [after(row, outcome) for (row, _), outcome in zip(some, outcomes, strict=False)]
                left[log_dir] = [*some[len(outcomes) :], *left[log_dir]]
            except (LogDirError, OSError) as error:
                problems.append(
                    error.problem() if isinstance(error, LogDirError) else as_disk_error(log_dir, error).problem()
                )
                rows += [replace(row, state=ItemState.UNDONE) for row, _ in (*some, *left.pop(log_dir))]
        left = {log_dir: rest for log_dir, rest in left.items() if rest}
    return rows, problems, frozenset((row.log_dir, row.path) for rest in left.values() for row, _ in rest)


def _sorted_out(
    places: Sequence[Place],
    there: dict[Place, Replica],
    facts: Sequence[LogDirFacts],
    policy: CapturePolicy,
    leavers: Leavers,
) -> tuple[list[Place], list[ItemResult]]:
    """Return what is to be captured, and an item for each directory that is passed over."""
    known = ReplicaIndex(facts)
    chosen: list[Place] = []
    items = []
    for place in places:
        replica = there.get(place)
        if replica is None:
            leavers.missed += 1  # Its broker removed it between the listing and the look.
            continue
        why = passed_over(replica, known, policy)
        if why is None:
            chosen.append(place)
            continue
        leavers.handled.add(place)
        items.append(ItemResult(log_dir=place[0], path=place[1], state=ItemState.KEPT, ref=replica.ref, detail=why))
    return chosen, items


def _still_there(broker: OpenBroker, rows: Sequence[ItemResult]) -> frozenset[Place]:
    """Return which of some directories still exist, as far as their log dirs answer."""
    found: set[Place] = set()
    for log_dir in {row.log_dir for row in rows}:
        port = broker.ports.port(log_dir)
        try:
            names = port.run(leaving, log_dir, None).names or ()
        except LogDirSuspectError:
            continue
        found.update((log_dir, name) for name in names)
    return frozenset(found)
