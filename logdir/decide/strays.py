"""Strays: directories that the metadata does not assign to this broker, and what proof is missing to remove them.

A view of ``reconcile``: for live replicas it shows what reconcile would do, or why not. It also judges directories that
brokers renamed (``-stray``, ``-delete``), and ``-future`` directories of partitions that are not assigned here. Absence
proves nothing: a replica that is not named is *unproven*, one that the metadata does not cover *unknown*.

Not here: acting on strays (``reconcile``), replicas that we staged (``staged.deadline``), unknown entries (law 7).

Spec: design §4, §6 ``strays``; kafka-behaviour §3.2, §3.3, §3.4; KIP-631, "Topic Identifiers"; attacks A1, A2, A4, A20,
A27, A42, A43, A46.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from logdir.cluster.assignment import Assignment, AssignmentState, assignment_in
from logdir.cluster.image import Certainty, Image
from logdir.decide.candidate import against_age, against_candidate, against_claim, against_log_dir, candidate_for
from logdir.decide.image.trust import check_image
from logdir.decide.reconcile import ReconcilePlan, ReconcileRequest, plan_reconcile
from logdir.decide.reconcile_action import Rule, StageReplica
from logdir.decide.refusal import FINISH_MOVE, Refusal, is_protected, refuse, refuse_protected
from logdir.errors import Problem
from logdir.evidence import Absent, Evidence, Present, Removed, Unknown
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, Replica, ReplicaIndex
from logdir.paths import METADATA_TOPIC
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaRef


class State(Enum):
    """How far it is proven that a directory is not assigned here."""

    PROVEN = "proven"
    """Its removal is in the metadata: reconcile stages a live one with a deadline."""
    HELD = "held"
    """Its name has another id: reconcile stages it without a deadline."""
    REFUSED = "refused"
    """Its removal is in the metadata, but another reason forbids changing it."""
    UNPROVEN = "unproven"
    """Not assigned here, but a proof is incomplete."""
    UNKNOWN = "unknown"
    """The metadata does not cover it: no proof."""
    LEAVING = "leaving"
    """A stock broker renamed it to ``-delete`` and removes it soon after its start."""
    WANTED = "wanted"
    """A stock broker renamed it, the metadata assigns it here, and the disks that answer hold no live copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """One directory that the metadata does not assign here, or that a broker renamed although it does."""

    log_dir: str
    path: str
    """Its path, relative to the log dir."""
    kind: Kind
    """``LIVE``, ``FUTURE``, ``DELETE`` or ``STRAY``."""
    ref: ReplicaRef
    log_bytes: int | None
    age_ms: int | None
    """Time since its oldest file was written; ``None`` if not known."""
    state: State
    assignment: AssignmentState
    """Its assignment in the image."""
    evidence: Evidence
    """The evidence from the image; ``Unknown`` if the image does not cover this directory."""
    reason: Reason | None = None
    """The reason for which it would be staged."""
    rule: Rule | None = None
    missing: Problem | None = field(default=None, metadata={"json": "problem"})
    """What a proof lacks, or what forbids changing it."""
    undo_until_ms: int | None = None
    """If reconcile staged it now: until when that could certainly be undone."""
    is_tiered: bool = field(default=False, metadata={"json": "tiered"})
    """Whether its log lies on this disk in part only: the rest is in remote storage (A33)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayView:
    """The strays of one broker by one image, with what was not judged, and why."""

    strays: tuple[Stray, ...] = ()
    """By log dir, then in the order of the scan."""
    refused: Problem | None = None
    """Why the image was not used for these disks; then there are no strays."""
    unplaced: Problem | None = None
    """Why otherwise proven strays are not proven: the image may be outdated (A20, A43)."""
    uncommitted: Problem | None = None
    """Why nothing is proven: no part of the image's log is known to be committed."""
    over_limit: Problem | None = None
    """Why reconcile would stage none of them until an operator confirms it, by the rules of the staging limit."""
    unseen: tuple[Problem, ...] = ()
    """Log dirs that could not be read: their directories are not listed (A27)."""
    passed_over: tuple[Refusal, ...] = ()
    """Log dirs that were not compared with the image, and why."""


_CLAIMED: Final = frozenset((AssignmentState.WANTED, AssignmentState.ZERO_ID, AssignmentState.NO_ID))
"""States of replicas that are assigned here; a missing id alone makes no stray (design §11)."""
_IN_DOUBT: Final = frozenset((
    Why.REPLICA_TOO_YOUNG, Why.LAST_COPY, Why.ID_CONFLICT, Why.STALE_TOPIC_ID,
    Why.REMOVAL_NOT_PROVEN, Why.NO_EVIDENCE, Why.ASSIGNED_HERE,
))  # fmt: skip
"""Refusals that leave the removal itself in doubt; the others only forbid changing the directory."""
_ANY_AGE_MS: Final = 2**63
_TRUNCATED: Final = "name-truncated"
_DAMAGED: Final = frozenset(("partition-metadata-broken", "unreadable"))
_ASK_QUORUM: Final = (
    "add --high-watermark and --leader-epoch, as kafka-metadata-quorum describe --status prints them, or wait for a "
    "snapshot"
)
_NO_METADATA: Final = "cluster metadata about this directory"


def unclaimed(image: Image, facts: Sequence[LogDirFacts]) -> tuple[Replica, ...]:
    """Return the possible strays of all log dirs, so that only those are opened.

    Args:
        image: Any image.
        facts: Facts of every log dir.
    """
    return tuple(replica for one in facts for replica in one.replicas if _may_be_stray(image, replica))


def view_strays(request: ReconcileRequest, facts: Sequence[LogDirFacts], latest: Image | None = None) -> StrayView:
    """Return the strays of a broker by the image of a request.

    Args:
        request: As for reconcile; ``births`` also for directories that are not live. A ``LOCAL`` image proves nothing.
        facts: Facts of every configured log dir, in the configured order.
        latest: For a metadata log: the image to its end, which may not all be committed; ``None``: it is not known.
    """
    uncommitted = _uncommitted(request.image)
    host_context = request.host_context
    strict = check_image(request.image, facts, host_context, request.now.wall_ms)
    # An outdated image, or one without a last applied position, shows strays, but proves nothing.
    asked = replace(request, host_context=replace(host_context, is_position_confirmed=True, max_age_ms=_ANY_AGE_MS))
    plan = plan_reconcile(asked, facts)
    if plan.refused is not None:
        return StrayView(refused=plan.refused, unseen=plan.unseen)
    unplaced = None if strict is None else strict.problem
    judge = _Judge(asked, facts, plan, uncommitted or unplaced, latest)
    strays: list[Stray] = []
    passed_over: list[Refusal] = []
    for one in facts:
        refusal = None if one.problem is not None and not one.replicas else against_log_dir(request.image, one)
        if refusal is not None:
            if not one.is_offline:  # ``unseen`` already lists this log dir.
                passed_over.append(refusal)
            continue
        strays += [found for replica in one.replicas if (found := judge.judge(one, replica)) is not None]
    return StrayView(
        strays=tuple(strays),
        unplaced=unplaced if any(stray.missing is unplaced for stray in strays) else None,
        uncommitted=uncommitted,
        over_limit=None if unplaced is not None or uncommitted is not None else plan.over_limit,
        unseen=plan.unseen,
        passed_over=tuple(passed_over),
    )


def view_unsaid(request: ReconcileRequest, facts: Sequence[LogDirFacts]) -> StrayView:
    """Return all directories of readable log dirs as *unknown*, if the cluster metadata cannot be read.

    Args:
        request: As of ``view_strays``; its image is empty.
        facts: As of ``view_strays``.
    """
    judge = _Judge(request, facts, ReconcilePlan(actions=(), refusals=()), None, None)
    found = (judge.judge(one, replica) for one in facts for replica in one.replicas)
    return StrayView(
        strays=tuple(stray for stray in found if stray is not None),
        unseen=tuple(one.problem for one in facts if one.problem is not None),
    )


def _uncommitted(image: Image) -> Problem | None:
    if image.certainty is not Certainty.LOCAL:
        return None
    expected = "a snapshot, or the high watermark of the quorum"
    found = f"neither: the log was read up to offset {image.offset}, and proves nothing without one"
    return Problem("not-committed", image.origin, expected, found, _ASK_QUORUM)


def _assignment(image: Image, replica: Replica) -> Assignment:
    return assignment_in(image, _ref(replica))


def _ref(replica: Replica) -> ReplicaRef:
    return replace(replica.ref, topic=_name(replica))


def _name(replica: Replica) -> str | None:
    """Return the topic in a directory's name; ``None`` if Kafka cut it, so that only its id counts."""
    is_cut = replica.kind in (Kind.DELETE, Kind.STRAY) and _TRUNCATED in replica.problems
    return None if is_cut else replica.ref.topic


def _may_be_stray(image: Image, replica: Replica) -> bool:
    if replica.kind is Kind.METADATA or replica.ref.topic == METADATA_TOPIC:
        return False
    if replica.kind in (Kind.LIVE, Kind.FUTURE):
        return _assignment(image, replica).state not in _CLAIMED
    return replica.kind in (Kind.DELETE, Kind.STRAY)


class _Judge:
    """Judges one directory after the other: whether it is a stray, and how far that is proven."""

    def __init__(
        self,
        request: ReconcileRequest,
        facts: Sequence[LogDirFacts],
        plan: ReconcilePlan,
        unplaced: Problem | None,
        latest: Image | None,
    ) -> None:
        self._request, self._image, self._unplaced, self._latest = request, request.image, unplaced, latest
        self._known = ReplicaIndex(facts)
        self._unread = ", ".join(one.log_dir for one in facts if one.problem is not None)
        self._stages = {
            (action.log_dir, action.path): action
            for action in (*plan.actions, *plan.waiting)
            if isinstance(action, StageReplica)
        }
        self._refusals: Mapping[tuple[str, str], Refusal] = {(one.log_dir, one.path): one for one in plan.refusals}

    def judge(self, one: LogDirFacts, replica: Replica) -> Stray | None:
        """Return the stray in a directory; ``None`` if the metadata assigns it here."""
        if not _may_be_stray(self._image, replica):
            return None
        assignment = _assignment(self._image, replica)
        match replica.kind:
            case Kind.LIVE:
                found = self._live(replica, assignment)
            case Kind.FUTURE:
                found = self._future(replica, assignment)
            case Kind.DELETE:
                found = self._leaving(replica, assignment)
            case _:
                found = self._stray(one, replica, assignment)
        if self._unplaced is None or found.state not in (State.PROVEN, State.HELD, State.REFUSED):
            return found
        return replace(
            found,
            state=State.UNPROVEN,
            evidence=_without_proof(found.evidence),
            missing=self._unplaced,
            reason=None,
            rule=None,
            undo_until_ms=None,
        )

    def _row(self, replica: Replica, assignment: Assignment, state: State) -> Stray:
        birth_ms = self._request.births.get((replica.log_dir, replica.path))
        topic = replica.ref.topic
        start, first = replica.checkpoints.log_start, replica.first_offset
        return Stray(
            log_dir=replica.log_dir,
            path=replica.path,
            kind=replica.kind,
            ref=replica.ref,
            log_bytes=replica.log_bytes,
            age_ms=None if birth_ms is None else max(0, self._request.now.wall_ms - birth_ms),
            state=state,
            assignment=assignment.state,
            evidence=assignment.evidence,
            is_tiered=topic in self._image.tiered or (start is not None and first is not None and start < first),
        )

    def _unknown(self, replica: Replica, assignment: Assignment) -> Stray:
        found = "its id cannot be read" if not _DAMAGED.isdisjoint(replica.problems) else "nothing: that is no proof"
        missing = refuse(
            replica.log_dir, replica.path, Why.NO_EVIDENCE, _NO_METADATA, found, "name another source with --from"
        )
        return replace(self._row(replica, assignment, State.UNKNOWN), missing=missing.problem, evidence=Unknown())

    def _refused(self, row: Stray, refusal: Refusal) -> Stray:
        evidence: Evidence = Unknown() if refusal.why is Why.REPLICA_TOO_YOUNG else row.evidence
        is_proven = isinstance(evidence, Removed) and refusal.why not in _IN_DOUBT
        if isinstance(evidence, Removed) and not is_proven:
            # The removal was seen, but is contradicted: treat it as merely not named.
            evidence = Absent(as_of_ms=evidence.as_of_ms)
        state = State.REFUSED if is_proven else State.UNPROVEN
        return replace(row, state=state, evidence=evidence, missing=refusal.problem)

    def _live(self, replica: Replica, assignment: Assignment) -> Stray:
        if assignment.state is AssignmentState.NOT_COVERED:
            return self._unknown(replica, assignment)
        row = self._row(replica, assignment, State.UNPROVEN)
        action = self._stages.get((replica.log_dir, replica.path))
        if action is not None:
            return replace(
                row,
                state=State.HELD if action.stage.marker.delay_ms is None else State.PROVEN,
                reason=action.reason,
                rule=action.rule,
                undo_until_ms=action.undo_until_ms,
                is_tiered=action.stage.marker.tiered,
            )
        refusal = self._refusal_of(replica)
        return self._refused(row, against_claim(replica, assignment) if refusal is None else refusal)

    def _refusal_of(self, replica: Replica) -> Refusal | None:
        found = self._refusals.get((replica.log_dir, replica.path))
        if found is not None or not replica.unexpected_entries:
            return found
        return self._refusals.get((replica.log_dir, f"{replica.path}/{replica.unexpected_entries[0]}"))

    def _future(self, replica: Replica, assignment: Assignment) -> Stray:
        if assignment.state is AssignmentState.NOT_COVERED:
            return self._unknown(replica, assignment)
        expected, found = "a live replica", "a -future copy of a partition that is not assigned here"
        missing = refuse(replica.log_dir, replica.path, Why.FUTURE_REPLICA_EXISTS, expected, found, FINISH_MOVE)
        row = self._row(replica, assignment, State.UNPROVEN)
        # A broker may promote this copy although its partition is removed (A13).
        return replace(row, missing=missing.problem, evidence=_without_proof(assignment.evidence))

    def _leaving(self, replica: Replica, assignment: Assignment) -> Stray:
        if self._is_lost(replica, assignment):
            return self._wanted(replica, assignment)
        return replace(self._row(replica, assignment, State.LEAVING), evidence=_without_proof(assignment.evidence))

    def _is_lost(self, replica: Replica, assignment: Assignment) -> bool:
        return isinstance(assignment.evidence, Present) and not self._live_of(replica)

    def _live_of(self, replica: Replica) -> tuple[Replica, ...]:
        return self._known.replicas(_ref(replica), Kind.LIVE)

    def _wanted(self, replica: Replica, assignment: Assignment) -> Stray:
        later = None if self._latest is None else _assignment(self._latest, replica)
        if later is not None and not isinstance(later.evidence, Present):
            return self._not_known(replica, later)
        if self._image.certainty is Certainty.LOCAL:
            return replace(self._row(replica, assignment, _unsure(replica)), missing=self._unplaced)
        expected, found = "a live replica of a partition that the cluster assigns here", "only what a broker renamed"
        fix = "keep the broker stopped, and compare this directory with the other replicas before it is removed"
        if self._unread:
            found = f"only what a broker renamed; {self._unread} cannot be read whole"
            fix = f"mount or repair {self._unread} first: the live replica may lie there"
        missing = refuse(replica.log_dir, replica.path, Why.ASSIGNED_HERE, expected, found, fix)
        return replace(self._row(replica, assignment, State.WANTED), missing=missing.problem)

    def _not_known(self, replica: Replica, later: Assignment) -> Stray:
        """Return the stray for a replica that the committed log assigns here and the uncommitted end does not."""
        expected = "a high watermark of the quorum at the end of the metadata log or after it"
        found = f"not known since offset {self._image.offset}: assigned here by then, and not any more behind it"
        missing = Problem("not-committed", f"{replica.log_dir}/{replica.path}", expected, found, _ASK_QUORUM)
        row = self._row(replica, later, _unsure(replica))
        return replace(row, evidence=_without_proof(later.evidence), missing=missing)

    def _stray(self, one: LogDirFacts, replica: Replica, assignment: Assignment) -> Stray:
        """Judge a ``-stray`` directory by the current metadata; the broker that renamed it may have been wrong (A1)."""
        if assignment.state is AssignmentState.NOT_COVERED:
            return self._unknown(replica, assignment)
        if self._is_lost(replica, assignment):
            return self._wanted(replica, assignment)
        row = self._row(replica, assignment, State.PROVEN)
        if isinstance(assignment.evidence, Present):
            twins = self._live_of(replica)
            live = f"{twins[0].log_dir}/{twins[0].path}"
            found = f"the cluster assigns the partition to this broker, and its live replica is {live}"
            expected = "an id that is gone from this node"
            return self._refused(
                row,
                refuse(replica.log_dir, replica.path, Why.ASSIGNED_HERE, expected, found, "compare both directories"),
            )
        candidate = candidate_for(self._image, one, replica, assignment)
        if candidate is None or candidate.is_held:
            return self._refused(row, against_claim(replica, assignment))
        refusal = against_age(self._image, replica, self._request.births) or against_candidate(
            self._image, candidate, self._known, is_ahead=False, beyond=self._request.beyond
        )
        topic = replica.ref.topic
        if refusal is None and topic is not None and is_protected(topic, self._request.protected):
            refusal = refuse_protected(replica.log_dir, replica.path, topic, self._request.protected)
        if refusal is not None:
            return self._refused(row, refusal)
        return replace(row, reason=Reason.STRAY, rule=candidate.rule)


def _unsure(replica: Replica) -> State:
    return State.LEAVING if replica.kind is Kind.DELETE else State.UNPROVEN


def _without_proof(evidence: Evidence) -> Evidence:
    """Return *absent* instead of *removed*, for a directory whose removal is not judged; other evidence as it is."""
    return Absent(as_of_ms=evidence.as_of_ms) if isinstance(evidence, Removed) else evidence
