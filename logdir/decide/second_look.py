"""The look before a purge: what was staged because the cluster said so is asked about once more.

What is wanted again is never purged, nor what other nodes were to hold and, by now, none that answers does. What was
staged by the metadata log, or the live cluster, needs evidence newer than its staging: the same log read twice is one
look. What a FULL request left out waits while another one is wanted.

Not here: when a deadline has passed (``purge``, ``deadline``).

Spec: design §4; attacks A2, A28, A43, A46.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from logdir.decide.refusal import Refusal, Why, refuse
from logdir.decide.wanted import HAS_A_TWIN, has_live_copy, is_wanted, keys_of, live_namesakes
from logdir.decide.wish import YOUNGER_BY_MS, is_held_elsewhere, refuse_last_copy
from logdir.desired.claim import claim
from logdir.desired.image import Image, Source
from logdir.errors import Problem
from logdir.evidence import Proof, Removed, Unknown
from logdir.formats.controller_file import ControllerFile
from logdir.observe.facts import LogDirFacts, SetAside
from logdir.reasons import Reason

_LOOKED_UP = frozenset((Proof.METADATA_LOG, Proof.LIVE_CLUSTER))
"""Proofs that can be looked up again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What is known when a deadline has passed."""

    image: Image | None
    """One that may be used (``trust.check_image``); ``None``: there is none."""
    aged: Image | None = None
    """One that is only too old to prove anything: what it wants is not removed all the same."""
    used: ControllerFile | None
    held: Problem | None = None
    """Why all purges are held, of ``trust.check_image``."""


def against_purge(look: SecondLook, item: SetAside, facts: Sequence[LogDirFacts]) -> Refusal | None:
    """Return why something set aside may not be purged although its time has come, ``None`` if it may.

    Args:
        look: What is known now.
        item: With its marker just read; one without is held anyway.
        facts: Of every log dir configured for the broker.
    """
    where = item.log_dir, f"deleting/{item.name}"
    marker = item.marker
    if look.held is not None:
        return Refusal(log_dir=item.log_dir, path=where[1], why=Why.HELD, problem=look.held)
    if marker is None:
        return None
    images = [image for image in (look.image, look.aged) if image is not None]
    if any(is_wanted(image, item) is not None for image in images):
        if marker.reason not in HAS_A_TWIN or not _has_live_copy(item, facts):
            return refuse(
                *where, Why.WANTED, "an id that nobody wants", "it is wanted again", "logdirctl staged restore"
            )
    elif marker.reason not in HAS_A_TWIN:
        for image in images:
            if (refusal := _against_last_copy(image, item)) is not None:
                return refusal
    if marker.reason is Reason.ABSENT and (look.used is None or look.used.is_full_wanted):
        expected = "a FULL request after the last gap"
        return refuse(*where, Why.NO_EVIDENCE, expected, "FULL wanted: one may have been missed", "wait for it")
    if isinstance(marker.evidence, Removed) and marker.evidence.proof in _LOOKED_UP:
        return _against_old_evidence(look.image, item, marker.staged_at_ms)
    return None


def _has_live_copy(item: SetAside, facts: Sequence[LogDirFacts]) -> bool:
    found = live_namesakes(facts, set(keys_of(item)))
    return has_live_copy(item, (replica for replicas in found.values() for replica in replicas))


def _against_last_copy(image: Image, item: SetAside) -> Refusal | None:
    """Refuse what is assigned elsewhere, if nobody who answers holds it there any more."""
    if image.source is not Source.METADATA_LOG:
        return None  # no other source says who answers
    one = claim(image, item.topic, item.topic_id, item.partition).partition
    if one is None or is_held_elsewhere(image, one):
        return None
    return refuse_last_copy(item.log_dir, f"deleting/{item.name}", "logdirctl staged hold")


def _against_old_evidence(image: Image | None, item: SetAside, staged_at_ms: int) -> Refusal | None:
    where = item.log_dir, f"deleting/{item.name}"
    expected = f"an image that shows it gone, more than {YOUNGER_BY_MS} ms newer than its staging"
    if image is None:
        return refuse(*where, Why.NO_EVIDENCE, expected, "none", "read the metadata again")
    said = claim(image, item.topic, item.topic_id, item.partition)
    if isinstance(said.evidence, Unknown):
        return refuse(*where, Why.NO_EVIDENCE, expected, "one that says nothing of it", "read the metadata again")
    age_ms = image.as_of_ms - staged_at_ms
    if age_ms <= YOUNGER_BY_MS:
        return refuse(*where, Why.NO_EVIDENCE, expected, f"{age_ms} ms", "read the metadata again")
    return None
