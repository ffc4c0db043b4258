"""Recheck before a purge: compare a staged replica once more with the current cluster metadata.

A replica that is assigned here again is never purged, nor one assigned to other nodes if none of them holds it and is
online. A replica staged because of the metadata log or the live cluster needs evidence newer than its staging: reading
the same log twice counts as one check. A replica that a FULL request left out waits while another FULL request is
wanted.

A replica that an operator staged although the cluster assigns it here is purged in one of three cases only: a live
replica of it is in the ISR here, and another broker was in the ISR when it was staged; a replica on another broker is
in the ISR, and the operator overrides; metadata newer than its staging shows that it is not assigned here any more.
Missing information never allows its purge. Uncommitted entries at the end of the broker's own log count for keeping a
replica, never against it.

Not here: when a deadline has passed (``purge``, ``deadline``).

Spec: design §4; attacks A2, A28, A43, A46, A48.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from logdir.cluster.assignment import AssignmentState, assignment_in
from logdir.cluster.image import Image, Source
from logdir.decide.candidate import is_held_elsewhere, refuse_last_copy
from logdir.decide.image.still_assigned import is_kept_for_last, other_in_sync
from logdir.decide.image.trust import YOUNGER_BY_MS, is_proof_of_removal
from logdir.decide.refusal import Refusal, refuse
from logdir.decide.staged.wanted import HAS_A_TWIN, has_live_copy, is_wanted
from logdir.errors import Problem
from logdir.evidence import Present, Proof, Removed, Unknown
from logdir.formats.own.controller_file import ControllerFile
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import ReplicaMarker
from logdir.observe.facts import ReplicaIndex, StagedReplica
from logdir.paths import DELETING
from logdir.reasons import Reason
from logdir.refusal_slug import Why
from logdir.text import quoted

MINUTE_MS = 60 * 1000
_LOOKED_UP = frozenset((Proof.METADATA_LOG, Proof.LIVE_CLUSTER))
"""Proofs that the cluster metadata can confirm again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRecheck:
    """What is known about the cluster when a deadline has passed."""

    image: Image | None
    """A usable image (``trust.check_image``); ``None``: there is none."""
    aged: Image | None = None
    """An image that is only too old to prove anything; replicas assigned by it are still kept."""
    latest: tuple[Image, ...] = ()
    """Images of metadata logs to their ends, which may not be committed: these can only keep a replica."""
    last_applied: ControllerFile | None
    held: Problem | None = None
    """Why nothing may be purged at all, from ``trust.check_image``."""
    blind: Problem | None = None
    """Why there is no image although one is expected: only replicas that the operator names are purged."""
    is_named: bool = False
    """Whether the operator names the replicas (``--even-if-early``, ``--even-if-last``), so that no image is needed."""
    is_even_if_assigned: bool = False
    """Whether to purge a replica that is still assigned here if another broker's replica is in the ISR."""
    is_even_if_last: bool = False
    """Whether to purge a replica staged as the only in-sync one, or without knowledge of its assignment."""
    is_latest_alone: bool = False
    """Whether of several images the one that reaches furthest alone may keep a replica: its broker removed it because
    of that log.
    """


def against_purge(look: PurgeRecheck, item: StagedReplica, known: ReplicaIndex) -> Refusal | None:
    """Return why a staged replica may not be purged although its deadline has passed; ``None`` if it may.

    Args:
        look: What is known about the cluster now.
        item: The replica with its marker just read; one without a usable marker is not purged anyway (``purge``).
        known: Index of the replicas of every configured log dir.
    """
    where = item.log_dir, f"{DELETING}/{item.name}"
    marker = item.marker
    if look.held is not None:
        return Refusal(log_dir=item.log_dir, path=where[1], why=None, problem=look.held)
    if marker is None:
        blind = None if look.is_named else look.blind
        return None if blind is None else Refusal(log_dir=item.log_dir, path=where[1], why=None, problem=blind)
    if is_kept_for_last(marker):
        return None if look.is_even_if_last else _against_the_last(*where, item, known)
    if look.blind is not None and not look.is_named:
        return _against_blind(look, look.blind, item, marker, known)
    images = [image for image in (look.image, look.aged) if image is not None]
    if marker.reason is Reason.OPERATOR:
        return _against_deliberate(look, images, item, marker, known)
    keeping = _keeping(look, images)
    if any(is_wanted(image, item) is not None for image in keeping):
        if marker.reason not in HAS_A_TWIN or not _has_live_copy(item, known):
            return refuse(
                *where,
                Why.ASSIGNED_HERE,
                "an id that is not assigned here",
                "the cluster assigns it here again",
                "logdirctl staged restore takes it back",
            )
    elif marker.reason not in HAS_A_TWIN:
        for image in keeping:
            if (refusal := _against_last_copy(image, item)) is not None:
                return refusal
    if marker.reason is Reason.ABSENT and (look.last_applied is None or look.last_applied.is_full_wanted):
        expected = "a FULL request after the last gap"
        return refuse(
            *where,
            Why.NO_EVIDENCE,
            expected,
            "none: a request may have been missed",
            "give the controller's next FULL request",
        )
    if isinstance(marker.evidence, Removed) and marker.evidence.proof in _LOOKED_UP:
        return _against_old_evidence(look.image, item, marker.staged_at_ms)
    return None


def _keeping(look: PurgeRecheck, images: Sequence[Image]) -> list[Image]:
    """Return the images of which each may keep a replica."""
    beyond = _beyond(images, look.latest)
    if look.is_latest_alone and beyond:
        return [max(beyond, key=lambda image: image.offset)]
    return [*images, *beyond]


def _beyond(images: Sequence[Image], latest: Sequence[Image]) -> list[Image]:
    """Return those of ``latest`` that reach beyond the committed part of the metadata logs in ``images``."""
    known = max((image.offset for image in images if image.source is Source.METADATA_LOG), default=-1)
    return [image for image in latest if image.offset > known]


def _against_deliberate(
    look: PurgeRecheck, images: Sequence[Image], item: StagedReplica, marker: ReplicaMarker, known: ReplicaIndex
) -> Refusal | None:
    """Return why a replica that an operator staged may not be purged; ``None`` if it may."""
    every = [*images, *_beyond(images, look.latest)]
    for image in every:
        if is_wanted(image, item) is not None:
            refusal = _against_assigned(look, image, item, marker, known)
            if refusal is not None:
                return refusal
    if any(is_wanted(image, item) is not None for image in images):
        return None
    if _was_assigned(marker) and not any(_shows_not_here(image, item, marker) for image in images):
        return _against_silence(item.log_dir, f"{DELETING}/{item.name}", images)
    if not _has_live_copy(item, known):
        for image in every:
            if (refusal := _against_last_copy(image, item)) is not None:
                return refusal
    return None


def _shows_not_here(image: Image, item: StagedReplica, marker: ReplicaMarker) -> bool:
    """Whether an image shows that a replica assigned here at its staging is not assigned here any more."""
    assignment = assignment_in(image, item.ref)
    if assignment.state is AssignmentState.REMOVED and not assignment.has_left:
        return is_proof_of_removal(image, marker.staged_at_ms)  # A topic id is never reused.
    return assignment.state is not AssignmentState.NOT_COVERED and _is_news(image, marker)


def _is_news(image: Image, marker: ReplicaMarker) -> bool:
    """Whether an image is certainly newer than the staging: an older one may list this very replica as in sync."""
    began_ms = max(marker.staged_at_ms, marker.evidence.as_of_ms if isinstance(marker.evidence, Removed) else 0)
    return image.is_dated and image.as_of_ms - began_ms > YOUNGER_BY_MS


def _was_assigned(marker: ReplicaMarker) -> bool:
    """Whether it was assigned here, and another broker was in its ISR, when it was staged."""
    return isinstance(marker.evidence, Removed) and marker.evidence.proof is Proof.IN_SYNC_ELSEWHERE


def _against_blind(
    look: PurgeRecheck, blind: Problem, item: StagedReplica, marker: ReplicaMarker, known: ReplicaIndex
) -> Refusal:
    """Return the refusal of a purge without cluster metadata; its fix names the override that lifts it, if any."""
    where = item.log_dir, f"{DELETING}/{item.name}"
    if _was_assigned(marker):
        return _against_silence(*where)
    fix = blind.fix or "name another source with --from"
    if against_purge(replace(look, blind=None), item, known) is None:
        if marker.reason is not Reason.OPERATOR:
            fix += ", or, once it is due, name it with --even-if-early"
        else:
            fix += f", or name it with --even-if-early{' --include-held' if marker.delay_ms is None else ''}"
    return Refusal(log_dir=where[0], path=where[1], why=None, problem=blind._replace(fix=fix))


def _against_silence(log_dir: str, path: str, images: Sequence[Image] = ()) -> Refusal:
    expected = "a live replica of it in the ISR: it was assigned here when it was staged"
    found, fix = "no metadata log that can be read", "name a metadata log that can be read with --from"
    if images:
        found = (
            f"metadata that does not show it, and is not {YOUNGER_BY_MS // MINUTE_MS} minutes newer than its staging"
        )
        fix = (
            "start the broker, which continues its metadata log, or name newer metadata with --from; then run "
            "logdirctl staged purge again"
        )
    return refuse(log_dir, path, Why.STILL_ASSIGNED, expected, found, fix)


def _against_the_last(log_dir: str, path: str, item: StagedReplica, known: ReplicaIndex) -> Refusal:
    is_last = item.marker is not None and isinstance(item.marker.evidence, Present)
    found = "the only in-sync replica when it was staged" if is_last else "staged with nothing known of its assignment"
    name = item.ref.id_text
    copies = known.staged(item.ref, Kind.STAGED, Kind.PURGING, Kind.INCOMING)
    # Without both options all copies would be purged: two disks may hold copies of the same name.
    which = f" --disk {quoted(item.log_dir)} --name {item.name}" if len(copies) > 1 else ""
    fix = f"it is kept until logdirctl staged purge {name}{which} --even-if-last"
    return refuse(log_dir, path, Why.KEPT_FOR_LAST, "a staged replica that is not the last", found, fix)


def _against_assigned(
    look: PurgeRecheck, image: Image, item: StagedReplica, marker: ReplicaMarker, known: ReplicaIndex
) -> Refusal | None:
    """Return why a replica that is still assigned here may not be purged; ``None`` if it may."""
    where = item.log_dir, f"{DELETING}/{item.name}"
    one = assignment_in(image, item.ref).partition
    is_live_here = one is not None and image.node_id in one.isr and _has_live_copy(item, known)
    if is_live_here and _is_news(image, marker) and _was_assigned(marker):
        return None
    elsewhere = () if one is None else other_in_sync(image, one)
    if elsewhere and look.is_even_if_assigned:
        return None
    expected = "a live replica of it in the ISR here, since it was staged"
    if not _was_assigned(marker):
        expected = "a live replica of it in the ISR of another broker"
    found = "still assigned here"
    fix = "start the broker until its replica is in the ISR, and run logdirctl staged purge again with newer metadata"
    if elsewhere:
        found += f", in the ISR of node {', '.join(map(str, elsewhere))}"
        fix += ", or add --even-if-assigned" if _was_assigned(marker) else ""
        if not _was_assigned(marker):
            fix = "add --even-if-assigned to purge it"
    elif not _was_assigned(marker):
        fix = "logdirctl staged restore restores it; it is purged once another broker is in the ISR"
    return refuse(*where, Why.STILL_ASSIGNED, expected, found, fix)


def _has_live_copy(item: StagedReplica, known: ReplicaIndex) -> bool:
    return has_live_copy(item, known.copies(item.ref))


def _against_last_copy(image: Image, item: StagedReplica) -> Refusal | None:
    """Refuse a replica assigned to other nodes if none of them holds it and is online."""
    if image.source not in (Source.METADATA_LOG, Source.LIVE_CLUSTER):
        return None  # No other source shows which brokers are online.
    one = assignment_in(image, item.ref).partition
    if one is None or is_held_elsewhere(image, one):
        return None
    return refuse_last_copy(item.log_dir, f"{DELETING}/{item.name}", "logdirctl staged hold keeps it")


def _against_old_evidence(image: Image | None, item: StagedReplica, staged_at_ms: int) -> Refusal | None:
    where = item.log_dir, f"{DELETING}/{item.name}"
    expected = (
        f"metadata that shows its removal, and is more than {YOUNGER_BY_MS // MINUTE_MS} minutes newer than its staging"
    )
    fix = (
        "start the broker, which continues its metadata log, or name newer metadata with --from; then run "
        "logdirctl staged purge again"
    )
    if image is None:
        return refuse(*where, Why.NO_EVIDENCE, expected, "no metadata that may be used", fix)
    assignment = assignment_in(image, item.ref)
    if isinstance(assignment.evidence, Unknown):
        return refuse(*where, Why.NO_EVIDENCE, expected, "metadata that does not cover it", fix)
    if not image.is_dated:
        return refuse(*where, Why.NO_EVIDENCE, expected, f"{image.origin}, whose age is not known", fix)
    age_ms = image.as_of_ms - staged_at_ms
    if age_ms > YOUNGER_BY_MS:
        return None
    found = "metadata of before its staging" if age_ms <= 0 else f"metadata {age_ms // MINUTE_MS} minutes newer"
    return refuse(*where, Why.NO_EVIDENCE, expected, found, fix)
