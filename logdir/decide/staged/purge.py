"""What staged replicas may be removed for good: those whose time has come, and what an operator says.

Purge is irrevocable. Before its deadline only what an operator staged may go, and only if the operator says so once
more; what has no deadline waits for an operator, who must name that too. What was staged as the only in-sync replica,
or with nothing known, waits for a word of its own (``--even-if-last``).

What goes together is claimed together, and from its claim on it cannot be restored: so only as much is claimed at a
time as is removed in about a second.

Not here: when a deadline has passed (``deadline``), what the cluster says by then (``purge_recheck``), doing it
(``disk.purge``).

Spec: design §2 law 1, §3.3 "Purge"; attacks A18, A24, A25, A48.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from logdir.clock import Instant
from logdir.decide.image.still_assigned import is_kept_for_last
from logdir.decide.refusal import Refusal, at, refuse, refuse_marker, refuse_quarantined
from logdir.decide.staged.deadline import Due, Held, NotYet, due
from logdir.decide.staged.purge_recheck import PurgeRecheck, against_purge
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.observe.facts import LogDirFacts, ReplicaIndex, StagedReplica
from logdir.paths import DELETING
from logdir.reasons import Reason
from logdir.refusal_slug import Why

MOST_PARTITIONS, MOST_BYTES, MOST_FILES = 1024, 16 << 30, 20_000
"""What a quiet disk frees in about a second, however much it is asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRequest:
    """What is asked."""

    now: Instant
    heartbeats: Mapping[str, Heartbeat | None]
    """By log dir; ``None`` where it is missing or cannot be read."""
    is_early: bool = False
    """The operator does not want to wait for the deadline of what an operator staged."""
    includes_held: bool = False
    """With ``is_early``: nor for one that never comes."""
    quarantined: Mapping[str, Problem] = field(default_factory=dict)
    """By log dir: why nothing of it may be changed; of a disk that was away nobody knows what was restored since."""
    look: PurgeRecheck = field(default_factory=lambda: PurgeRecheck(image=None, last_applied=None))
    """What the cluster says now; without it what was staged because it said so stays."""
    facts: Sequence[LogDirFacts] = ()
    """Of every log dir: where a copy may live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Remove one; what ``disk.purge`` is given."""

    log_dir: str
    name: str
    """Under ``deleting/``."""
    marker: ReplicaMarker | None
    """``None``: it was claimed before, and is only finished."""
    why: str
    loses: str
    """What is gone for good, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """What follows; each item is in one of them once."""

    actions: tuple[Purge, ...]
    refusals: tuple[Refusal, ...]
    waits: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Of what is not due yet, by log dir and name: the wall clock at its deadline, for people."""

    @property
    def next_due_ms(self) -> int | None:
        """Return when the next one is due (wall clock), ``None`` if no other has a deadline to come."""
        return min(self.waits.values(), default=None)


class PurgeCost(NamedTuple):
    """What a removal frees."""

    partitions: int
    size_bytes: int
    """Of files that nobody else holds."""
    files: int

    def plus(self, more: PurgeCost) -> PurgeCost:
        """Return both together."""
        return PurgeCost(*(one + other for one, other in zip(self, more, strict=True)))


class ClaimLimit(NamedTuple):
    """How much may be claimed at a time, in each of three ways."""

    partitions: int
    size_bytes: int
    files: int


def claim_limit_of(bytes_per_second: int, files_per_second: int) -> ClaimLimit:
    """Return what is removed in about a second.

    Args:
        bytes_per_second: 0: as fast as it goes.
        files_per_second: Likewise.
    """
    return ClaimLimit(
        MOST_PARTITIONS,
        min(bytes_per_second or MOST_BYTES, MOST_BYTES),
        min(files_per_second or MOST_FILES, MOST_FILES),
    )


def fits(room: ClaimLimit, taken: PurgeCost, more: PurgeCost) -> bool:
    """Whether one more may be claimed: the first always may, or a big one would never go.

    Args:
        room: For everything that waits for its removal.
        taken: What waits already.
        more: The one that is next.
    """
    both = taken.plus(more)
    return not taken.partitions or all(load <= most for load, most in zip(both, room, strict=True))


def plan_purge(request: PurgeRequest, items: Sequence[StagedReplica]) -> PurgePlan:
    """Decide what to remove.

    Args:
        request: What is asked.
        items: What was selected, with its markers just read.
    """
    known = ReplicaIndex(request.facts)
    decided = [_at_place(item, _decide(request, item, known)) for item in items]
    waits = {}
    for item in items:
        if item.kind is Kind.STAGED and item.marker is not None and item.problem is None:
            when = due(item.marker, request.heartbeats.get(item.log_dir), request.now)
            if isinstance(when, NotYet):
                waits[item.log_dir, item.name] = when.at_earliest_wall_ms
    return PurgePlan(
        actions=tuple(one for one in decided if isinstance(one, Purge)),
        refusals=tuple(one for one in decided if isinstance(one, Refusal)),
        waits=waits,
    )


def _at_place(item: StagedReplica, decided: Purge | Refusal) -> Purge | Refusal:
    return at(item.place, decided) if isinstance(decided, Refusal) else decided


def _decide(request: PurgeRequest, item: StagedReplica, known: ReplicaIndex) -> Purge | Refusal:
    where = item.log_dir, f"{DELETING}/{item.name}"
    if (quarantined := refuse_quarantined(*where, request.quarantined.get(item.log_dir))) is not None:
        return quarantined
    if item.kind is Kind.INCOMING:
        return refuse(*where, Why.INCOMING, "something staged", "a copy on its way in")
    if item.kind is Kind.PURGING:
        return Purge(log_dir=item.log_dir, name=item.name, marker=None, why="its removal has begun", loses=_loses(item))
    marker = item.marker
    if marker is None or item.problem is not None:
        return refuse_marker(*where, item.problem)
    if marker.intent is Intent.INCOMING:
        return refuse(*where, Why.INCOMING, "something staged", "a copy on its way in")

    def purge(why: str) -> Purge | Refusal:
        # "Look again before the last step": its time alone is not enough.
        if (blind := request.look.blind) is not None:
            why += f"; the cluster is not asked: {blind.path}: {blind.mismatch()}"
        return against_purge(request.look, item, known) or Purge(
            log_dir=item.log_dir, name=item.name, marker=marker, why=why, loses=_loses(item)
        )

    if is_kept_for_last(marker):
        return purge("the operator says so, although it may be the last")
    was_operator = may_go_early(marker)
    match due(marker, request.heartbeats.get(item.log_dir), request.now):
        case Due():
            return purge("its time has come")
        case NotYet():
            if request.is_early and was_operator:
                return purge("before its time: an operator says so")
            words = _words(request, item, known, "--even-if-early") if was_operator else None
            fix = "wait" if words is None else f"wait, or say {words}"
            if not was_operator:
                fix = "wait: only what an operator staged may go early"
            return refuse(*where, Why.NOT_DUE, "a deadline that has passed", "a deadline to come", fix)
        case Held(why=why):
            if marker.delay_ms is None and request.is_early and request.includes_held:
                return purge("it has no deadline: an operator says so")
            if marker.delay_ms is not None and request.is_early and was_operator:
                return purge("before its time: an operator says so")
            if marker.delay_ms is not None:
                return refuse(
                    *where, Why.DEADLINE_UNKNOWN, "a deadline that has passed", why, "logdirctl init writes it anew"
                )
            words = _words(request, item, known, "--even-if-early --include-held")
            gate = against_purge(request.look, item, known) if words is None else None
            fix = f"{words}, if it is to go for good"
            return gate or refuse(*where, Why.NO_DEADLINE, "a deadline that has passed", why, fix)


def _words(request: PurgeRequest, item: StagedReplica, known: ReplicaIndex, flags: str) -> str | None:
    return overrides_for(request.look, item, known, flags)


def overrides_for(look: PurgeRecheck, item: StagedReplica, known: ReplicaIndex, flags: str) -> str | None:
    """Return the overrides that lift a refusal together, ``None`` where none do.

    Args:
        look: What is known now.
        item: What is named.
        known: What lies on every log dir.
        flags: Those that lift what its deadline says.
    """
    named = replace(look, is_named=True)
    if against_purge(named, item, known) is None:
        return flags
    assigned = replace(named, is_even_if_assigned=True)
    return f"{flags} --even-if-assigned" if against_purge(assigned, item, known) is None else None


def may_go_early(marker: ReplicaMarker) -> bool:
    """Whether an operator stage it, so that an operator may purge it before its time."""
    return marker.reason is Reason.OPERATOR and _proof(marker) in (Proof.OPERATOR, Proof.IN_SYNC_ELSEWHERE)


def _proof(marker: ReplicaMarker) -> Proof | None:
    return marker.evidence.proof if isinstance(marker.evidence, Removed) else None


def _loses(item: StagedReplica) -> str:
    size = "of unknown size" if item.log_bytes is None else f"{item.log_bytes} bytes"
    return f"{item.topic or item.topic_id}-{item.partition}: {size}, for good"
