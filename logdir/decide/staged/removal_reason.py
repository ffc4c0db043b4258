"""Why a broker had deleted the replica that was captured: its topic was removed, or it moved to other brokers.

Both look alike on a disk, because a stock broker renames either directory to ``-delete``. Only the cluster metadata
shows which it was, often some seconds after the capture. A live replica on a quarantined disk, or on one not read in
full, shows no move: it may be older than the deletion.

Not here: whether a replica may be purged for it (``purge``, ``purge_recheck``).

Spec: design §3.3; kafka-behaviour §3.2, §3.4; attacks A25.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from logdir.cluster.assignment import AssignmentState, assignment_in
from logdir.cluster.image import Image, Source
from logdir.decide.image.still_assigned import other_in_sync
from logdir.decide.image.trust import is_proof_of_removal
from logdir.decide.staged.purge_recheck import PurgeRecheck
from logdir.decide.staged.wanted import has_live_copy
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.observe.facts import ReplicaIndex, StagedReplica


class RemovalReason(Enum):
    """Why a replica was removed; the value is the word of ``capture.reasons``."""

    TOPIC_REMOVED = "topic-removed"
    MOVED_AWAY = "replica-moved-away"
    """Another broker has it in sync, or another disk of this broker has it live."""
    NOT_KNOWN_YET = "not-known-yet"

    @property
    def words(self) -> str:
        """The reason in a message."""
        return _WORDS[self]


_WORDS: Final = {
    RemovalReason.TOPIC_REMOVED: "its topic was removed",
    RemovalReason.MOVED_AWAY: "it had moved away",
    RemovalReason.NOT_KNOWN_YET: "why it was removed is not known yet",
}

KEPT: Final = (RemovalReason.TOPIC_REMOVED, RemovalReason.NOT_KNOWN_YET)
"""Default of ``capture.reasons``: a replica that was captured for another reason is due at once."""


def removal_reason(look: PurgeRecheck, item: StagedReplica, known: ReplicaIndex) -> RemovalReason:
    """Return why a staged replica was removed, as far as committed metadata shows it.

    Args:
        look: What is known about the cluster now.
        item: The replica with its marker.
        known: Index of the replicas of every log dir.
    """
    if item.marker is None or item.ref.topic_id is None:
        return RemovalReason.NOT_KNOWN_YET
    images = [image for image in (look.image, look.aged) if image is not None]
    if any(_is_topic_removed(image, item, item.marker) for image in images):
        return RemovalReason.TOPIC_REMOVED
    if any(_is_in_sync_elsewhere(image, item, item.marker) for image in images) or _is_live_here(item, known):
        return RemovalReason.MOVED_AWAY
    return RemovalReason.NOT_KNOWN_YET


def is_due_for(look: PurgeRecheck, item: StagedReplica, known: ReplicaIndex, kept: tuple[RemovalReason, ...]) -> bool:
    """Whether a captured replica may go before its deadline, because of the reason of its removal.

    Args: as ``removal_reason``; ``kept``: ``capture.reasons``.
    """
    marker = item.marker
    # What has no deadline was captured from a -stray, or an operator keeps it.
    if marker is None or marker.intent is not Intent.CAPTURED or marker.delay_ms is None:
        return False
    return removal_reason(look, item, known) not in kept


def _is_topic_removed(image: Image, item: StagedReplica, marker: ReplicaMarker) -> bool:
    found = assignment_in(image, item.ref)
    if found.state is AssignmentState.REMOVED and not found.has_left:
        return is_proof_of_removal(image, marker.staged_at_ms)  # A topic id is never reused.
    if image.source is not Source.METADATA_LOG or not _is_later(image, marker):
        return False
    # An older log may not contain the topic yet.
    is_absent = found.state is AssignmentState.UNLISTED and bytes(item.ref.topic_id or b"") not in image.topics
    return is_absent or found.state is AssignmentState.OTHER_ID


def _is_in_sync_elsewhere(image: Image, item: StagedReplica, marker: ReplicaMarker) -> bool:
    found = assignment_in(image, item.ref)
    # An older image may show that it left, came back, and was deleted after that.
    is_elsewhere = found.state is AssignmentState.ELSEWHERE or found.has_left
    if not is_elsewhere or found.partition is None or not _is_later(image, marker):
        return False
    return bool(other_in_sync(image, found.partition))


def _is_live_here(item: StagedReplica, known: ReplicaIndex) -> bool:
    copies = [one for one in known.copies(item.ref) if one.ref.topic_id == item.ref.topic_id]
    return has_live_copy(item, [one for one in copies if one.log_dir != item.log_dir])


def _is_later(image: Image, marker: ReplicaMarker) -> bool:
    # The brokers of a live cluster may answer from metadata that is older than the question.
    is_surely = is_proof_of_removal(image, marker.staged_at_ms)
    return image.is_dated and image.as_of_ms > marker.staged_at_ms and is_surely
