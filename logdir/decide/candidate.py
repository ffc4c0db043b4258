"""Staging candidates: live replicas that an image gives a reason to stage, and what forbids staging them.

Not here: obstacles in the replica itself (``stage``), the staging limit and the order (``reconcile``).

Spec: design §2 law 1, §3.3 "Reasons", §4; KIP-516, "LeaderAndIsr", "DeleteTopics"; KIP-631, "Topic Identifiers";
attacks A1, A3, A4, A25, A46.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from logdir.cluster.assignment import Assignment, AssignmentState, assignment_in
from logdir.cluster.image import Image, Partition, Source
from logdir.decide.image.holders import holders_elsewhere
from logdir.decide.image.trust import YOUNGER_BY_MS
from logdir.decide.reconcile_action import Rule
from logdir.decide.refusal import Refusal, not_formatted, refuse, refuse_quarantined
from logdir.errors import ANOTHERS_DISK
from logdir.evidence import Present, Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica, ReplicaIndex
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaRef

BROKEN_ID: Final = "partition-metadata-broken"
_EXPECTED: Final = {
    AssignmentState.IN_SYNC: "a replica that holds nothing committed",
    AssignmentState.OTHER_NAME: "one name for a topic id",
    AssignmentState.OTHER_ID: "proof that its topic id was removed",
    AssignmentState.ELSEWHERE: "proof that it left this node",
    AssignmentState.UNLISTED: "proof that it was removed",
}
_FOUND: Final = {
    AssignmentState.IN_SYNC: "it is named in the ISR, or as an eligible leader",
    AssignmentState.OTHER_NAME: "the cluster has its id under another name",
    AssignmentState.OTHER_ID: "its name has another id",
    AssignmentState.ELSEWHERE: "its partition is assigned to other nodes",
    AssignmentState.UNLISTED: "the cluster metadata does not name it",
}
_KEPT: Final = "nothing is done: keep it until another broker is in the ISR"
_READ_ON: Final = (
    "nothing is done: start the broker, or let more of the log count with --high-watermark and --leader-epoch, as "
    "kafka-metadata-quorum describe --status prints them"
)
_WHY: Final = {AssignmentState.IN_SYNC: Why.LAST_COPY, AssignmentState.OTHER_NAME: Why.ID_CONFLICT}


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingCandidate:
    """A live replica that is to be staged, and the reason for it; something may still forbid it."""

    one: LogDirFacts
    replica: Replica
    assignment: Assignment
    reason: Reason
    rule: Rule
    is_held: bool = False
    """Whether it is staged without a deadline."""


def candidate_for(image: Image, one: LogDirFacts, replica: Replica, assignment: Assignment) -> StagingCandidate | None:
    """Return the staging candidate that follows from an assignment; ``None`` if none follows.

    Args:
        image: Any image.
        one: The replica's log dir.
        replica: A live replica.
        assignment: The assignment of the replica in the image.
    """
    evidence = assignment.evidence
    if assignment.state is AssignmentState.OTHER_ID and image.stages_mismatch:
        reason, rule = Reason.TOPIC_ID_MISMATCH, Rule.ID_DIFFERS
        return StagingCandidate(one=one, replica=replica, assignment=assignment, reason=reason, rule=rule, is_held=True)
    if not isinstance(evidence, Removed):
        return None  # Mere absence stages nothing (A1).
    if assignment.state is AssignmentState.UNLISTED:
        return StagingCandidate(
            one=one, replica=replica, assignment=assignment, reason=Reason.ABSENT, rule=Rule.FULL_LEAVES_OUT
        )
    if evidence.proof is Proof.STOP_REPLICA:
        reason, rule = Reason.STOP_REPLICA, Rule.STOP_REPLICA
    elif evidence.proof is Proof.LIVE_CLUSTER:
        reason, rule = Reason.TOPIC_REMOVED, Rule.ID_UNKNOWN
    elif assignment.has_left:
        # First: its id still exists, even if its directory has the name of another topic.
        reason, rule = Reason.REPLICA_MOVED_AWAY, Rule.MOVED_AWAY
    elif assignment.other_id is not None:
        reason, rule = Reason.TOPIC_ID_MISMATCH, Rule.ID_REMOVED
    else:
        reason, rule = Reason.TOPIC_REMOVED, Rule.TOPIC_REMOVED
    return StagingCandidate(one=one, replica=replica, assignment=assignment, reason=reason, rule=rule)


def against_claim(replica: Replica, assignment: Assignment) -> Refusal:
    """Return why no action follows from the assignment of a replica."""
    why = _WHY.get(assignment.state, Why.REMOVAL_NOT_PROVEN)
    return refuse(
        replica.log_dir,
        replica.path,
        why,
        _EXPECTED[assignment.state],
        _FOUND[assignment.state],
        "nothing is changed; logdirctl describe shows its directory beside the cluster metadata",
    )


def against_log_dir(image: Image, one: LogDirFacts) -> Refusal | None:
    """Return why nothing may be changed in a log dir; ``None`` if it may.

    Args:
        image: Any image.
        one: The log dir, as far as it could be read.
    """
    where = one.log_dir, ""
    if (quarantined := refuse_quarantined(*where, one.quarantined)) is not None:
        return quarantined
    if (problem := not_formatted(one)) is not None:
        return Refusal(log_dir=one.log_dir, path="", why=Why.NOT_FORMATTED, problem=problem)
    if one.node_id != image.node_id:
        found = "no node id" if one.node_id is None else f"{one.node_id}"
        return refuse(*where, Why.FOREIGN, f"node {image.node_id}", found, ANOTHERS_DISK)
    if image.cluster_id is not None and one.cluster_id != image.cluster_id:
        found = one.cluster_id or "no cluster id"
        return refuse(*where, Why.FOREIGN, f"cluster {image.cluster_id}", found, ANOTHERS_DISK)
    return None


def against_age(image: Image, replica: Replica, births: Mapping[tuple[str, str], int]) -> Refusal | None:
    """Return the refusal if an image is not certainly younger than a directory; ``None`` if it is.

    Args:
        image: Any image.
        replica: The replica in that directory.
        births: Creation times of directories (wall clock), by log dir and path.
    """
    where = replica.log_dir, replica.path
    birth_ms = births.get(where)
    if birth_ms is None:
        return refuse(
            *where,
            Why.REPLICA_TOO_YOUNG,
            "a directory whose creation time is known",
            "one whose creation time is not known",
            "run the command again",
        )
    if image.as_of_ms - birth_ms > YOUNGER_BY_MS:
        return None
    expected = f"an image more than {YOUNGER_BY_MS} ms younger than the directory"
    # A document is dated by its file: waiting makes no document younger.
    fix = "give the controller's next request" if image.source is Source.REQUESTS else "wait for newer metadata"
    return refuse(*where, Why.REPLICA_TOO_YOUNG, expected, f"{image.as_of_ms - birth_ms} ms", fix)


def against_candidate(
    image: Image, candidate: StagingCandidate, known: ReplicaIndex, *, is_ahead: bool, beyond: Sequence[Image] = ()
) -> Refusal | None:
    """Return what forbids staging a replica, apart from obstacles in the replica itself.

    Args:
        image: Any image.
        candidate: The candidate.
        known: Index of the replicas on all disks, at least of this partition.
        is_ahead: Whether its log end or epoch is known to be ahead of its other replicas (A4).
        beyond: Metadata logs to their ends, which may not be committed, where these reach beyond ``image``.
    """
    replica, assignment = candidate.replica, candidate.assignment
    where = replica.log_dir, replica.path
    if replica.ref.topic_id is None and BROKEN_ID in replica.problems:
        return refuse(
            *where,
            Why.PARTITION_METADATA_BROKEN,
            "a topic id that can be read",
            "a partition.metadata that is broken",
            "repair it first",
        )
    if candidate.is_held and is_ahead:
        found = "its log goes further than those of its other replicas"
        return refuse(
            *where, Why.LOG_AHEAD, "a stale replica, where the name has another id", found, "compare them first"
        )
    if candidate.is_held and assignment.other_id is not None:
        asked = ReplicaRef(topic=None, topic_id=TopicId(assignment.other_id), partition=replica.ref.partition)
        staged = known.staged(asked, Kind.STAGED, Kind.PURGING)
        if staged:
            found = " and ".join(one.place for one in staged)
            expected = "an id that was not staged here before"
            return refuse(
                *where,
                Why.STALE_TOPIC_ID,
                expected,
                found,
                "an old request, or the id is wanted again: then restore or purge it first",
            )
    if candidate.rule is Rule.MOVED_AWAY:
        return _against_moving(image, replica, assignment.partition, beyond)
    return None


def _against_moving(image: Image, replica: Replica, one: Partition | None, beyond: Sequence[Image]) -> Refusal | None:
    where = replica.log_dir, replica.path
    if image.ended is not None:
        # It may have been assigned again after the unreadable record.
        return refuse(
            *where,
            Why.REMOVAL_NOT_PROVEN,
            "a metadata log that is whole",
            image.ended.found,
            "nothing is done; name a whole one with --from",
        )
    if image.source is Source.REQUESTS:
        return None
    if one is None or not is_held_elsewhere(image, one):
        return refuse_last_copy(*where, _KEPT)
    return next((refusal for end in beyond if (refusal := _against_end(end, replica)) is not None), None)


def _against_end(end: Image, replica: Replica) -> Refusal | None:
    """Return why the end of a metadata log keeps a replica that left this node before; ``None``: it does not.

    Nothing in it is known to be committed, but where it is, the replica may be the only one in sync by now.
    """
    where = replica.log_dir, replica.path
    if end.ended is not None:
        found = f"{end.ended.path}: {end.ended.mismatch()}"
        return refuse(*where, Why.REMOVAL_NOT_PROVEN, "metadata logs that can be read to their ends", found, _READ_ON)
    assignment = assignment_in(end, replica.ref)
    if isinstance(assignment.evidence, Present):
        state = _FOUND.get(assignment.state, "it is assigned here again")
        found = f"{end.origin} at its end, offset {end.offset}: {state}"
        return refuse(*where, Why.REMOVAL_NOT_PROVEN, _EXPECTED[AssignmentState.ELSEWHERE], found, _READ_ON)
    if assignment.partition is not None and not is_held_elsewhere(end, assignment.partition):
        return refuse_last_copy(*where, _KEPT)
    return None


def refuse_last_copy(log_dir: str, path: str, fix: str) -> Refusal:
    """Return the refusal of a replica that no other online broker holds in sync."""
    expected = "another replica in the ISR, whose broker and log dir are online"
    return refuse(log_dir, path, Why.LAST_COPY, expected, "no such replica: this may be the last copy", fix)


def is_held_elsewhere(image: Image, one: Partition) -> bool:
    """Whether another online broker has the partition in sync, on an online log dir."""
    return bool(holders_elsewhere(image, one))
