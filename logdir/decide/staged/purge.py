"""Purge decisions: staged replicas that may be removed for good, because they are due or an operator names them.

A purge is irrevocable. Before its deadline goes only what an operator staged, with an override; what was captured for a
reason that ``capture.reasons`` leaves out; and what belongs to a topic that is known to be removed, if an operator
requests that. A replica without a deadline is purged only if the operator includes held ones. A replica staged as the
only in-sync one, or without knowledge of its assignment, needs an override of its own (``--even-if-last``).

Replicas purged together are claimed together, and a claimed replica cannot be restored; so only as much is claimed at a
time as is removed in about a second.

Not here: when a deadline has passed (``deadline``), the current cluster metadata (``purge_recheck``), carrying it out
(``disk.replica.purge``).

Spec: design §2 law 1, §3.3 "Purge"; attacks A18, A24, A25, A48.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from logdir.clock import Instant
from logdir.decide.image.still_assigned import is_kept_for_last
from logdir.decide.refusal import FINISH_COPY, Refusal, at, refuse, refuse_marker, refuse_quarantined
from logdir.decide.staged.deadline import Due, Held, NotYet, due
from logdir.decide.staged.purge_recheck import PurgeRecheck, against_purge
from logdir.decide.staged.removal_reason import RemovalReason, is_due_for, removal_reason
from logdir.errors import Problem
from logdir.evidence import Proof, Removed
from logdir.formats.own.heartbeat_file import Heartbeat
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import BY_HAND, Intent, ReplicaMarker
from logdir.observe.facts import LogDirFacts, ReplicaIndex, StagedReplica
from logdir.paths import DELETING
from logdir.reasons import Reason
from logdir.refusal_slug import Why

MOST_PARTITIONS, MOST_BYTES, MOST_FILES = 1024, 16 << 30, 20_000
"""The most that is claimed at a time: about what a quiet disk frees in a second."""
_PARTIAL = "logdirctl staged export copies the part that was captured; no command removes it"
"""Fix for a partial capture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRequest:
    """A request to purge staged replicas."""

    now: Instant
    heartbeats: Mapping[str, Heartbeat | None]
    """The heartbeat of each work root, by log dir; ``None`` if missing or unreadable."""
    is_early: bool = False
    """Whether to purge operator-staged replicas before their deadline."""
    includes_held: bool = False
    """With ``is_early``: whether to purge replicas without a deadline."""
    quarantined: Mapping[str, Problem] = field(default_factory=dict)
    """Why a log dir may not be changed, by log dir; on a stale disk, for example, replicas may have been restored
    since.
    """
    look: PurgeRecheck = field(default_factory=lambda: PurgeRecheck(image=None, last_applied=None))
    """The current cluster metadata; without it, replicas staged because of the metadata stay."""
    facts: Sequence[LogDirFacts] = ()
    """Facts of every log dir, to find live copies."""
    kept_reasons: tuple[RemovalReason, ...] | None = None
    """``capture.reasons``: what was captured for another reason is due at once; ``None``: nothing is due for it."""
    is_topic_removed: bool = False
    """Whether to purge, before its deadline, only what belongs to a removed topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """An action: purge one replica; the input of ``disk.replica.purge``."""

    log_dir: str
    name: str
    """Its name under ``deleting/``."""
    marker: ReplicaMarker | None
    """``None``: it was claimed before, and its removal is only finished."""
    why: str
    loses: str
    """What is irrevocably lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """The plan; each item is in exactly one of actions and refusals."""

    actions: tuple[Purge, ...]
    refusals: tuple[Refusal, ...]
    waits: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Deadlines of replicas that are not due yet, by log dir and name: wall clock, for people."""

    @property
    def next_due_ms(self) -> int | None:
        """Return when the first replica that is not due yet becomes due (wall clock); ``None``: there is none."""
        return min(self.waits.values(), default=None)


class PurgeCost(NamedTuple):
    """What a removal frees: partitions, bytes and files."""

    partitions: int
    size_bytes: int
    """Bytes in files that have no other name and are not open."""
    files: int

    def plus(self, more: PurgeCost) -> PurgeCost:
        """Return the sum of both."""
        return PurgeCost(*(one + other for one, other in zip(self, more, strict=True)))


class ClaimLimit(NamedTuple):
    """How much may be claimed at a time: partitions, bytes and files."""

    partitions: int
    size_bytes: int
    files: int


def claim_limit_of(bytes_per_second: int, files_per_second: int) -> ClaimLimit:
    """Return the limit that corresponds to about a second of removal.

    Args:
        bytes_per_second: 0: no rate limit.
        files_per_second: 0: no rate limit.
    """
    return ClaimLimit(
        MOST_PARTITIONS,
        min(bytes_per_second or MOST_BYTES, MOST_BYTES),
        min(files_per_second or MOST_FILES, MOST_FILES),
    )


def fits(room: ClaimLimit, taken: PurgeCost, more: PurgeCost) -> bool:
    """Whether one more replica may be claimed; the first always may, so that a big one is purged at all.

    Args:
        room: The limit for all claimed replicas.
        taken: Cost of the replicas claimed so far.
        more: Cost of the next replica.
    """
    both = taken.plus(more)
    return not taken.partitions or all(load <= most for load, most in zip(both, room, strict=True))


def plan_purge(request: PurgeRequest, items: Sequence[StagedReplica]) -> PurgePlan:
    """Decide which replicas to purge.

    Args:
        request: The request.
        items: The selected replicas, with markers just read.
    """
    known = ReplicaIndex(request.facts)
    decided = [_at_place(item, _decide(request, item, known)) for item in items]
    waits = {}
    for item, found in zip(items, decided, strict=True):
        if isinstance(found, Purge):  # Also before its deadline, if an operator says so.
            continue
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
        fix = _PARTIAL if item.is_partial else FINISH_COPY
        return refuse(*where, Why.INCOMING, "a staged replica", "an incoming copy", fix)
    if item.kind is Kind.PURGING:
        return Purge(
            log_dir=item.log_dir, name=item.name, marker=None, why="its removal has begun", loses=loss_of(item)
        )
    marker = item.marker
    if marker is None or item.problem is not None:
        return refuse_marker(*where, item.problem)
    if marker.intent is Intent.INCOMING:
        return refuse(*where, Why.INCOMING, "a staged replica", "an incoming copy", BY_HAND)

    def purge(why: str) -> Purge | Refusal:
        # Law 1, "look again before the last step": a passed deadline alone is not enough.
        if (blind := request.look.blind) is not None:
            why += f"; the cluster is not asked: {blind.path}: {blind.mismatch()}"
        return against_purge(request.look, item, known) or Purge(
            log_dir=item.log_dir, name=item.name, marker=marker, why=why, loses=loss_of(item)
        )

    if request.is_topic_removed:
        if removal_reason(request.look, item, known) is not RemovalReason.TOPIC_REMOVED:
            return _against_topic(request.look, *where)
        return purge("its topic is removed, and an operator requests it")
    if is_kept_for_last(marker):
        return purge("the operator requests it, although it may be the last copy")
    was_operator = may_go_early(marker)
    match due(marker, request.heartbeats.get(item.log_dir), request.now):
        case Due():
            return purge("its deadline has passed")
        case NotYet():
            kept = request.kept_reasons
            if kept is not None and is_due_for(request.look, item, known, kept):
                return purge(f"captured for a reason that capture.reasons leaves out: {_reason(request, item, known)}")
            if request.is_early and was_operator:
                return purge("before its deadline: an operator requests it")
            words = _words(request, item, known, "--even-if-early") if was_operator else None
            fix = "wait" if words is None else f"wait, or add {words}"
            if not was_operator:
                fix = "wait: only a replica that an operator staged may be purged before its deadline"
            return refuse(*where, Why.NOT_DUE, "a deadline that has passed", "a deadline to come", fix)
        case Held(why=why):
            if marker.delay_ms is None and request.is_early and request.includes_held:
                return purge("it has no deadline: an operator requests it")
            if marker.delay_ms is not None and request.is_early and was_operator:
                return purge("before its deadline: an operator requests it")
            if marker.delay_ms is not None:
                return refuse(
                    *where,
                    Why.DEADLINE_UNKNOWN,
                    "a deadline that has passed",
                    why,
                    "logdirctl init writes the heartbeat again",
                )
            words = _words(request, item, known, "--even-if-early --include-held")
            gate = against_purge(request.look, item, known) if words is None else None
            fix = f"add {words} to purge it for good"
            return gate or refuse(*where, Why.NO_DEADLINE, "a deadline that has passed", why, fix)


def _reason(request: PurgeRequest, item: StagedReplica, known: ReplicaIndex) -> str:
    return removal_reason(request.look, item, known).words


def _against_topic(look: PurgeRecheck, log_dir: str, path: str) -> Refusal:
    expected = "committed metadata that shows the removal of its topic"
    found = "metadata that does not show it"
    if look.blind is not None:
        found = f"no such metadata: {look.blind.path}: {look.blind.mismatch()}"
    fix = "start the broker, which continues its metadata log, or name newer metadata with --from; then repeat"
    return refuse(log_dir, path, Why.TOPIC_NOT_REMOVED, expected, found, fix)


def _words(request: PurgeRequest, item: StagedReplica, known: ReplicaIndex, flags: str) -> str | None:
    return overrides_for(request.look, item, known, flags)


def overrides_for(look: PurgeRecheck, item: StagedReplica, known: ReplicaIndex, flags: str) -> str | None:
    """Return the overrides that together lift a refusal; ``None`` if there are none.

    Args:
        look: What is known about the cluster now.
        item: The replica, named by the operator.
        known: Index of the replicas of every log dir.
        flags: The overrides that lift its deadline.
    """
    named = replace(look, is_named=True)
    if against_purge(named, item, known) is None:
        return flags
    assigned = replace(named, is_even_if_assigned=True)
    return f"{flags} --even-if-assigned" if against_purge(assigned, item, known) is None else None


def may_go_early(marker: ReplicaMarker) -> bool:
    """Whether an operator staged the replica of a marker, so that an operator may purge it before its deadline."""
    return marker.reason is Reason.OPERATOR and _proof(marker) in (Proof.OPERATOR, Proof.IN_SYNC_ELSEWHERE)


def _proof(marker: ReplicaMarker) -> Proof | None:
    return marker.evidence.proof if isinstance(marker.evidence, Removed) else None


def loss_of(item: StagedReplica) -> str:
    """Return what is irrevocably lost with a staged replica."""
    size = "of unknown size" if item.log_bytes is None else f"{item.log_bytes} bytes"
    return f"{item.ref.topic or item.ref.topic_id}-{item.ref.partition}: {size}, for good"
