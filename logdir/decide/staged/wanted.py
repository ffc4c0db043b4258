"""Staged replicas that are assigned here again: they are never purged, and a restore is proposed.

The source of a move, the loser of two copies, or a replica that a broker deleted after a move is assigned here all the
time: for these a live copy on a disk of this broker is enough. A replica with another id, or an unreadable directory,
is no such copy, nor is one on a quarantined disk, which may be older than the deletion, or on one not read in full.

Not here: whether it can be restored (``restore``), the recheck before a purge (``purge_recheck``).

Spec: design §4; attacks A25, A43.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from logdir.cluster.assignment import assignment_in
from logdir.cluster.image import Image
from logdir.decide.reconcile_action import HoldStaged
from logdir.decide.refusal import UNTOUCHED, Refusal, at, refuse
from logdir.evidence import Evidence, Present, Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.paths import DELETING
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaKey

HAS_A_TWIN = frozenset((Reason.MOVED, Reason.DUPLICATE, Reason.OPERATOR, Reason.CAPTURED))
"""Reasons for staging while the id was assigned here: a live copy here is then expected."""


def is_wanted(image: Image, item: StagedReplica) -> Evidence | None:
    """Return the evidence that a staged replica is assigned here; ``None`` if the image does not assign it."""
    assignment = assignment_in(image, item.ref)
    return assignment.evidence if isinstance(assignment.evidence, Present) else None


def hold_what_is_wanted(
    image: Image, facts: Sequence[LogDirFacts], usable: Collection[LogDirFacts], refusals: list[Refusal]
) -> tuple[HoldStaged, ...]:
    """Return the staged replicas that this node is to have again, and whose deadline must therefore be taken away.

    Args:
        image: Any usable image.
        facts: Facts of every log dir.
        usable: Log dirs that may be changed.
        refusals: Gets a refusal for each such replica that has no deadline, or whose deadline cannot be taken away.
    """
    wanted = [
        (item, evidence)
        for one in usable
        for item in one.staged
        if item.kind is not Kind.INCOMING and (evidence := is_wanted(image, item)) is not None
    ]
    if not wanted:
        return ()
    live = live_namesakes(facts, {key for item, _ in wanted for key in item.ref.keys})
    trusted = {one.log_dir for one in facts if one.is_trusted}
    found = []
    for item, evidence in wanted:
        namesakes = [replica for key in item.ref.keys for replica in live.get(key, ())]
        has_copy = has_live_copy(item, [replica for replica in namesakes if replica.log_dir in trusted])
        decided = _decide(item, evidence, namesakes, has_copy=has_copy)
        if isinstance(decided, HoldStaged):
            found.append(decided)
        elif decided is not None:
            refusals.append(at(item.place, decided))
    return tuple(found)


def live_namesakes(facts: Sequence[LogDirFacts], keys: Collection[ReplicaKey]) -> dict[ReplicaKey, list[Replica]]:
    """Return the live replicas by name and by id; keys of which there is none are left out.

    Args:
        facts: Facts of every log dir.
        keys: The names and ids to look for, each with its partition.
    """
    found: dict[ReplicaKey, list[Replica]] = {}
    for one in facts:
        for replica in one.replicas:
            if replica.kind is Kind.LIVE:
                for key in replica.ref.keys:
                    if key in keys:
                        found.setdefault(key, []).append(replica)
    return found


def has_live_copy(item: StagedReplica, namesakes: Iterable[Replica]) -> bool:
    """Whether one of the live replicas of its name or id is a copy of the staged replica, as far as can be seen.

    Args:
        item: The staged replica.
        namesakes: Live replicas on log dirs without a problem that are not quarantined.
    """
    return any(
        UNTOUCHED.isdisjoint(replica.problems)
        and (None in (replica.ref.topic_id, item.ref.topic_id) or replica.ref.topic_id == item.ref.topic_id)
        for replica in namesakes
    )


_BEGUN = "logdirctl staged purge finishes its removal; its broker copies it again from another replica"


def _decide(
    item: StagedReplica, evidence: Evidence, namesakes: Sequence[Replica], *, has_copy: bool
) -> HoldStaged | Refusal | None:
    where = item.log_dir, f"{DELETING}/{item.name}"
    expected = "nothing staged that the cluster assigns here"
    if item.kind is Kind.PURGING:
        return refuse(
            *where, Why.PURGING, expected, "the cluster assigns it here again, and its removal has begun", _BEGUN
        )
    marker = item.marker
    if marker is None or item.problem is not None:
        return refuse(
            *where,
            Why.MARKER_UNUSABLE,
            expected,
            "the cluster assigns it here again, and its marker cannot be used",
            "inspect its marker; logdirctl explain marker-unusable",
        )
    if marker.reason in HAS_A_TWIN and has_copy:
        return None
    if isinstance(marker.evidence, Removed) and marker.evidence.proof is Proof.IN_SYNC_ELSEWHERE:
        return None  # It was assigned here when it was staged; its purge requires a live replica in the ISR.
    if not namesakes:
        proposes = "logdirctl staged restore restores it while its broker is stopped"
    else:
        twin = namesakes[0]
        proposes = f"{twin.log_dir}/{twin.path} is live under its name or id: compare both, then keep one"
    if marker.delay_ms is None:
        return refuse(
            *where, Why.ASSIGNED_HERE, expected, "the cluster assigns it here again; it has no deadline", proposes
        )
    return HoldStaged(log_dir=item.log_dir, name=item.name, marker=marker, evidence=evidence, proposes=proposes)
