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
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from logdir import clock
from logdir.decide import capture as rule
from logdir.decide.auto_capture import CapturePolicy, passed_over
from logdir.decide.capture import CAPTURABLE, plan_capture
from logdir.decide.stale_disk import STALE_DISK
from logdir.disk.kernel.calls import Identity
from logdir.disk.kernel.failure import as_disk_error
from logdir.disk.replica.capture_item import CaptureItem
from logdir.errors import LogDirError, LogDirSuspectError, Problem
from logdir.observe.facts import LogDirFacts, ReplicaIndex, replicas_at
from logdir.observe.leaving import leaving
from logdir.service.batch.seen_starts import SeenStarts
from logdir.service.capture import rooms_of, row_and_item
from logdir.service.log_dirs.glances import Glances
from logdir.service.log_dirs.last_look import Place
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.report.result import ItemResult, ItemState, after, refused
from logdir.worker.glance import Since
from logdir.worker.look import Deep
from logdir.worker.operations import capture_step
from logdir.worker.remote import gather

AT_ONCE: Final = 256
"""How many directories of a log dir one call may link."""
LOOK_MS: Final = 10 * 1000
"""How long a look captures before it leaves the rest to the next one."""
MANY: Final = 32
"""After so many new directories in one listing the log dirs are listed again, and what is new is linked, before any
capture is completed."""
LISTS_IN_DELAY: Final = 4
"""How often the log dirs are listed in the time that the broker keeps a directory, also while a look captures."""


def _no_listing() -> None:
    """Listener that does nothing."""


@dataclass(slots=True)
class Leavers:
    """What is known of ``-delete`` and ``-stray`` directories of an open broker."""

    mtimes: dict[str, int | None] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    """By log dir: the directories that were there at the last look."""
    handled: set[Place] = field(default_factory=set)
    """Captured, or passed over, on the disks that are open."""
    identities: dict[str, Identity] = field(default_factory=dict)
    """By log dir: its directory as it was opened last."""
    unread: frozenset[str] = frozenset()
    """Log dirs that could not be read at the last look, or gave no answer."""
    has_changed: bool = True
    """Whether the last look found a log dir that changed, or one that can be read again or no more."""
    missed: int = 0
    """Directories that the broker removed before they were captured."""
    linked: dict[str, dict[str, ItemResult]] = field(default_factory=dict)
    """By log dir and name: what is linked, and left to the next look to be made durable."""
    untried: frozenset[Place] = frozenset()
    """Directories that the last look left to the next one, because it took too long."""
    seen_at: dict[Place, int] = field(default_factory=dict)
    """At which look each directory was seen first: its broker removes it before those that came later."""
    looks: int = 0
    """How many looks there were."""
    starts: SeenStarts = field(default_factory=SeenStarts)

    def reopened(self, broker: OpenBroker) -> None:
        """Forget what was known of the log dirs as they were open before, and what their workers had linked.

        What is captured stays known where the same disk is mounted: an older copy of it may hold the same names, not
        captured.

        Args:
            broker: As it is open now.
        """
        self.mtimes.clear()
        self.names.clear()
        self.linked.clear()
        before, self.identities = self.identities, {}
        for open_dir in broker.open_dirs:
            with suppress(OSError, LogDirError):
                self.identities[open_dir.log_dir] = open_dir.top.identity()
        same = dict(before.items() & self.identities.items())
        self.handled = {place for place in self.handled if place[0] in same}

    def glance(self, broker: OpenBroker, *, is_same_required: bool) -> Glances:
        """Glance at every log dir, as ``broker.glance``; ``new`` takes what it returns."""
        since = {one: Since(self.mtimes.get(one), self.starts.stamp(one)) for one in broker.named.log_dirs}
        return broker.glance(since, is_same_required=is_same_required)

    def new(self, broker: OpenBroker, found: Glances | None = None) -> tuple[Place, ...]:
        """Return the directories that are still to be handled, longest known first.

        Args:
            broker: As opened for changes.
            found: A glance that was not used yet; ``None``: one is made.

        Raises:
            LogDirError: as ``broker.glance``.
        """
        found = found or self.glance(broker, is_same_required=False)
        self.starts.read(found)
        unread = set()
        self.has_changed = False
        for log_dir in broker.named.log_dirs:
            one = found.of.get(log_dir)
            if one is None or not one.leaving.is_read:
                self.mtimes.pop(log_dir, None)
                self.starts.forget(log_dir)
                unread.add(log_dir)
                continue
            self.mtimes[log_dir] = one.leaving.mtime_ns
            names = one.leaving.names
            if names is not None:
                self.starts.note(log_dir, self.names.get(log_dir), names)
                self.names[log_dir] = frozenset(names)
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
    broker: OpenBroker,
    leavers: Leavers,
    policy: CapturePolicy,
    listed: Callable[[], None] = _no_listing,
    glances: Glances | None = None,
) -> Captured:
    """Capture what is new since the last call.

    The log dirs are listed again meanwhile, and what is new by then is linked before what is linked is made durable:
    the broker removes a directory after a fixed time, and what is linked it cannot take away. After a while the rest is
    left to the next look, linked or not.

    Args:
        broker: Opened for changes.
        leavers: What is known so far; it is updated.
        policy: The operator's policy.
        listed: Called each time that the log dirs were listed.
        glances: A glance that was not used yet, to begin with; ``None``: one is made.

    Raises:
        RefusedError: the broker's configuration changed since it was opened.
        LogDirReplacedError: a work root was replaced.
        LogDirError: as ``broker.look_again`` and ``broker.glance``.
    """
    places = leavers.new(broker, glances)
    listed()
    look = _CaptureLook(broker, leavers, policy)
    look.give_up_quarantined()
    places = look.not_taken(places)
    if not places and not look.is_busy and not look.rows:
        return Captured()
    leavers.untried = frozenset()
    look.note_new(len(places))
    facts = look.take(places)
    listed_ms = clock.monotonic_ms()
    until_ms = listed_ms + LOOK_MS
    list_ms = leavers.starts.delete_delay_ms // LISTS_IN_DELAY
    while look.is_busy:
        look.step()
        now_ms = clock.monotonic_ms()
        if now_ms >= until_ms:
            look.leave_rest()
            break
        if now_ms - listed_ms >= list_ms or look.is_list_due:
            places = look.not_taken(leavers.new(broker))
            listed()
            look.note_new(len(places))
            if places:
                facts = look.take(places)
            # From here on: planning may take long, and would leave no time for links.
            listed_ms = clock.monotonic_ms()
    return look.ended(facts)


def complete_linked(broker: OpenBroker, leavers: Leavers, policy: CapturePolicy, for_ms: int) -> Captured:
    """Make durable what earlier looks have linked, and link nothing else: the log dirs are to be closed, or left alone.

    Args:
        broker: Opened for changes.
        leavers: What is known so far; it is updated.
        policy: The operator's policy.
        for_ms: How long it may take; what is left then a later look takes for new.

    Raises:
        RefusedError, LogDirReplacedError: as ``capture_new``.
    """
    look = _CaptureLook(broker, leavers, policy)
    look.give_up_quarantined()
    until_ms = clock.monotonic_ms() + for_ms
    while look.is_busy and clock.monotonic_ms() < until_ms:
        look.step()
    return look.ended(())


class _CaptureLook:
    """The captures of one look, on every log dir at the same time, some with each call."""

    def __init__(self, broker: OpenBroker, leavers: Leavers, policy: CapturePolicy) -> None:
        self._broker, self._leavers, self._policy = broker, leavers, policy
        self._taken = {(log_dir, name) for log_dir, linked in leavers.linked.items() for name in linked}
        self._sick: set[str] = set()
        """Log dirs of which a call failed: nothing more is written there before the disk was looked at anew."""
        self._left: dict[str, list[tuple[ItemResult, CaptureItem]]] = {}
        """By log dir: what is still to be linked."""
        self.rows: list[ItemResult] = []
        """What became of those that were tried."""
        self.others: list[ItemResult] = []
        """Those that are refused or passed over."""
        self.problems: list[Problem] = []
        self._may_wait = not leavers.linked
        """Whether completion may wait for more to link: not twice, so not if an earlier look left something linked."""
        self._is_more_expected = False

    def note_new(self, count: int) -> None:
        """Note how many new directories the last listing has shown: after many, more are expected."""
        self._is_more_expected = self._may_wait and count >= MANY

    @property
    def is_list_due(self) -> bool:
        """Whether the log dirs are to be listed before anything is made durable."""
        return self._is_more_expected and not any(self._left.values())

    @property
    def is_busy(self) -> bool:
        """Whether something is still to be linked, or made durable."""
        return any(self._left.values()) or bool(self._leavers.linked)

    def not_taken(self, places: Sequence[Place]) -> tuple[Place, ...]:
        """Return those places that were not taken yet, except on log dirs of which a call failed."""
        return tuple(place for place in places if place not in self._taken and place[0] not in self._sick)

    def take(self, places: Sequence[Place]) -> tuple[LogDirFacts, ...]:
        """Look into directories, and plan their captures; return the facts of every log dir."""
        self._taken.update(places)
        broker, leavers = self._broker, self._leavers
        facts = broker.look_again(Deep(kinds=CAPTURABLE), places)
        chosen, passed = _sorted_out(places, facts, self._policy, leavers)
        request = rule.CaptureRequest(selected=tuple(chosen), delays=self._policy.delays)
        plan = plan_capture(request, facts, rooms_of(broker))
        self.others += [*passed, *refused(plan.refusals)]
        for action in plan.actions:
            row, item = row_and_item(action)
            item = replace(item, log_start_seen=leavers.starts.of((row.log_dir, row.path)))
            self._left.setdefault(row.log_dir, []).append((row, item))
        return facts

    def give_up_quarantined(self) -> None:
        """Forget linked captures on quarantined disks: a later look finds what is there."""
        for log_dir, problem in self._broker.quarantined.items():
            # Captures go on beside a stale disk.
            if problem.slug != STALE_DISK:
                self._forget(log_dir)

    def _forget(self, log_dir: str) -> None:
        rows = self._leavers.linked.pop(log_dir, {}).values()
        self.rows += [replace(row, state=ItemState.UNDONE) for row in rows]

    def step(self) -> None:
        """Link some of what is left on every log dir; make some durable once nothing is left to link, or expected.

        Configuration and owner locks are compared before. A disk that fails does not stop the others.
        """
        self._broker.require_unchanged()
        self._broker.require_owned()
        some, left, all_linked = {}, self._left, self._leavers.linked
        for log_dir in sorted({*left, *all_linked}):
            mine = left.get(log_dir, [])
            some[log_dir], left[log_dir] = mine[:AT_ONCE], mine[AT_ONCE:]
        is_all = not any(left.values()) and not self._is_more_expected
        begun = {
            log_dir: self._broker.ports.port(log_dir).begin_opened(
                capture_step, tuple(item for _, item in mine), is_all=is_all
            )
            for log_dir, mine in some.items()
            if mine or is_all
        }
        gather(begun.values())
        for log_dir, pending in begun.items():
            linked = all_linked.setdefault(log_dir, {})
            try:
                found = pending.result()
            except (LogDirError, OSError) as error:
                self._sick.add(log_dir)
                self.problems.append(
                    error.problem() if isinstance(error, LogDirError) else as_disk_error(log_dir, error).problem()
                )
                rest = [row for row, _ in (*some[log_dir], *left.pop(log_dir))]
                self.rows += [replace(row, state=ItemState.UNDONE) for row in rest]
                self._forget(log_dir)
                continue
            left[log_dir] = [*some[log_dir][found.begun :], *left[log_dir]]
            linked |= {item.name: row for row, item in some[log_dir][: found.begun]}
            self.rows += [after(linked.pop(one.path), one) for one in found.outcomes if one.path in linked]
            if not found.linked:
                self._forget(log_dir)  # The worker has, after an error that its answer did not bring.
        self._leavers.linked = {log_dir: linked for log_dir, linked in all_linked.items() if linked}

    def ended(self, facts: tuple[LogDirFacts, ...]) -> Captured:
        """Return what became of all that came to its end, and count what was missed."""
        leavers, rows = self._leavers, self.rows
        leavers.handled.update((row.log_dir, row.path) for row in rows if row.state is ItemState.DONE)
        gone = [row for row in rows if row.state is ItemState.UNDONE and row.new_path is None]
        there = _still_there(self._broker, gone)
        leavers.missed += sum((row.log_dir, row.path) not in there for row in gone)
        return Captured(
            items=(*self.others, *rows),
            problems=tuple(self.problems),
            is_cut_off=bool(leavers.untried or leavers.linked),
            facts=facts,
        )

    def leave_rest(self) -> None:
        """Leave what is not linked yet to the next look."""
        rest = ((row.log_dir, row.path) for mine in self._left.values() for row, _ in mine)
        self._leavers.untried |= frozenset(rest)


def _sorted_out(
    places: Sequence[Place],
    facts: Sequence[LogDirFacts],
    policy: CapturePolicy,
    leavers: Leavers,
) -> tuple[list[Place], list[ItemResult]]:
    """Return what is to be captured, and an item for each directory that is passed over."""
    there = replicas_at(facts, places)
    known = ReplicaIndex(facts, {replica.ref.partition for _, replica in there.values()})
    chosen: list[Place] = []
    items = []
    for place in places:
        if place not in there:
            leavers.missed += 1  # Its broker removed it between the listing and the look.
            continue
        _, replica = there[place]
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
