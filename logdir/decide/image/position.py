"""The last applied position: whether an image is older, and the position to record after an image was applied.

``controller.json`` may only make us refuse or hold: without it an image changes nothing until an operator confirms.

Not here: request documents, which are admitted one by one (``admission``).

Spec: design §2 law 2, §4; attacks A20, A28, A43.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from logdir.cluster.image import Image, Source
from logdir.errors import Problem
from logdir.formats.own.controller_file import (
    FILE_NAME,
    REQUESTS_UNKNOWN,
    ControllerFile,
    MetadataMark,
    RequestMark,
    begin,
)
from logdir.ids import Uuid
from logdir.refusal_slug import Why

_GOES_ON = "run logdirctl reconcile --from URI --even-if-older-metadata --apply to go on from it"
"""The only command that records a new last applied position."""


def highest(records: Iterable[ControllerFile | None]) -> ControllerFile | None:
    """Return the record that holds for the broker.

    Args:
        records: The records of all its work roots; ``None`` for a missing or unreadable one.

    Returns:
        The highest value of every mark, because a crash may leave a newer record in some work roots only. ``None`` if
        any record is ``None``, or there is none: the lost one may have been higher.
    """
    found: ControllerFile | None = None
    for record in records:
        if record is None:
            return None
        found = record if found is None else _joined(found, record)
    return found


def readable(records: Iterable[ControllerFile | None]) -> ControllerFile | None:
    """Return the highest of the records that can be read, from which a record that replaces a lost one starts.

    Args:
        records: As for ``highest``.

    Returns:
        As ``highest`` if every record can be read. Beside a lost record a FULL request is wanted, because the lost one
        may have been higher. ``None`` if no record can be read.
    """
    listed = tuple(records)
    found = highest(record for record in listed if record is not None)
    if found is None or None not in listed:
        return found
    return replace(found, requests=found.requests or REQUESTS_UNKNOWN, is_full_wanted=True)


def _joined(one: ControllerFile, other: ControllerFile) -> ControllerFile:
    newer = max(one, other, key=lambda record: (_rank(record.metadata), _rank(record.requests)))
    requests = [mark for mark in (one.requests, other.requests) if mark is not None]
    marks = [mark for mark in (one.metadata, other.metadata) if mark is not None]
    epochs = [epoch for epoch in (one.broker_epoch, other.broker_epoch) if epoch is not None]
    last = max(requests, default=None)
    return replace(
        newer,
        cluster_id=one.cluster_id or other.cluster_id,
        requests=last,
        broker_epoch=max(epochs, default=None),
        # As after the last applied document; older records do not count.
        is_full_wanted=any(record.is_full_wanted for record in (one, other) if record.requests == last),
        # In one log epoch and offset rise together; if an operator lowered the position on some disks only, the higher
        # one counts.
        metadata=MetadataMark(epoch=max(mark.epoch for mark in marks), offset=max(mark.offset for mark in marks))
        if marks
        else None,
        incarnation_id=newer.incarnation_id or one.incarnation_id or other.incarnation_id,
    )


def _rank(mark: MetadataMark | RequestMark | None) -> tuple[int, int]:
    match mark:
        case MetadataMark():
            return mark.epoch, mark.offset
        case RequestMark():
            return mark.controller_epoch, mark.sequence
        case None:
            return -1, -1


def mark_of(image: Image) -> MetadataMark | None:
    """Return the position of an image of the metadata log; ``None`` for any other image, or an empty one."""
    if image.source is not Source.METADATA_LOG or image.epoch < 0:
        return None
    return MetadataMark(epoch=image.epoch, offset=image.offset)


def against_position(image: Image, last_applied: ControllerFile | None, *, has_work_roots: bool) -> Problem | None:
    """Return the problem of an image older than the last applied position; ``None`` if it is not older.

    Args:
        image: Any image.
        last_applied: ``controller.json``; ``None`` if it is missing or unreadable.
        has_work_roots: Whether every log dir has the work root that contains the file.
    """
    if last_applied is None:
        return position_unknown(has_work_roots=has_work_roots)
    if image.diverged is not None:
        return image.diverged._replace(fix=f"{image.diverged.fix}; if it is right, {_GOES_ON}")
    mark = mark_of(image)
    if mark is None or last_applied.metadata is None or not _is_behind(mark, last_applied.metadata):
        return None
    before = last_applied.metadata
    return Problem(
        Why.METADATA_OLDER.value,
        image.origin,
        f"an image at epoch {before.epoch}, offset {before.offset} or later, as applied before",
        f"epoch {mark.epoch}, offset {mark.offset}: older, or rolled back",
        f"nothing is staged or purged until it has caught up; if it is right, {_GOES_ON}",
    )


def position_unknown(*, has_work_roots: bool = True) -> Problem:
    """Return the problem of a lost record. Argument as ``against_position``."""
    expected = "the last applied position in every work root"
    found = "the file is missing or cannot be read in one of them"
    fix = f"compare the metadata with the cluster, then {_GOES_ON}"
    if not has_work_roots:
        found, fix = "a log dir without a work root", "logdirctl init makes it"
    return Problem(Why.LAST_APPLIED_UNKNOWN.value, FILE_NAME, expected, found, fix)


def _is_behind(mark: MetadataMark, last_applied: MetadataMark) -> bool:
    # In one log a later epoch never has a lower offset, unless the quorum was restored from a backup (attacks A43).
    return mark.epoch < last_applied.epoch or mark.offset < last_applied.offset


def after_image(
    image: Image, known: ControllerFile | None, *, is_confirmed: bool, is_broker_running: bool
) -> ControllerFile:
    """Return the record to make durable after all actions of an image are done.

    Args:
        image: The applied image.
        known: The record before, from ``readable``: a lost record on one disk does not make the others forgotten.
            ``None``: every record is lost.
        is_confirmed: Whether an operator accepts an older image, which then becomes the last applied position.
        is_broker_running: Whether the broker of this host runs, so that the registration is its own.
    """
    known = known or replace(begin(image.cluster_id, image.node_id), requests=REQUESTS_UNKNOWN)
    mark = mark_of(image)
    if mark is not None and (known.metadata is None or is_confirmed or not _is_behind(mark, known.metadata)):
        known = replace(known, metadata=mark)
    registered = image.brokers.get(image.node_id)
    # The live cluster does not report the incarnation.
    has_incarnation = registered is not None and registered.incarnation and not registered.is_fenced
    if is_broker_running and registered is not None and has_incarnation:
        known = replace(known, incarnation_id=str(Uuid(registered.incarnation)))
    return known


def until_done(after: ControllerFile, before: ControllerFile | None) -> ControllerFile:
    """Return the record to make durable before the first action of an image or document.

    It is ``after`` with the request mark one sequence lower: nothing older is applied from then on, but the same
    request may be given again until all of it is done. An image may be given again at any time.

    Args:
        after: The record to make durable after the last action, from ``after_image`` or ``admission``.
        before: The record as it is now, from ``readable``; ``None``: there is none.
    """
    mark = after.requests
    if mark in (None, REQUESTS_UNKNOWN) or (before is not None and mark == before.requests):
        return after
    is_full_wanted = after.is_full_wanted or before is None or before.is_full_wanted
    return replace(after, requests=replace(mark, sequence=mark.sequence - 1), is_full_wanted=is_full_wanted)
