"""The metadata log of a node as a source: the newest snapshot and the committed tail behind it, read from disk.

Nothing on the disk says how far the tail is committed. Without a high watermark learnt from the quorum the image ends
at the newest snapshot; with one it ends below it, and no further than the log is known to be the leader's. Time proves
nothing (attacks A2).

A live broker appends, truncates, and renames under a reader: a torn tail is the end, and when a file vanishes the
reading begins again. What cannot be read ends the image there, and the image says so; a snapshot that cannot be read
whole gives no image.

Not here: asking the quorum, what records do to an image (``fold``).

Spec: kafka-formats §8; design §4; attacks A1, A2, A29.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from logdir.cluster.fold import Fold, with_removals_seen
from logdir.cluster.image import AbsenceMeaning, Certainty, Image, Source
from logdir.cluster.metadata_files import MetadataFiles, read_again, reading
from logdir.cluster.metadata_names import Snapshot, bases_of, newest, segment_name, snapshots_of
from logdir.errors import FormatError, MalformedFileError, Problem
from logdir.formats.own.controller_file import MetadataMark
from logdir.refusal_slug import Why
from logdir.wire.batches import Batch
from logdir.wire.errors import WireError
from logdir.wire.metadata_fast import read_fast


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How far the log is committed, as learnt from its leader, or from what was used before."""

    offset: int
    """What is below is committed."""
    epoch: int
    """Of the leader that said so."""
    is_prefix_checked: bool = False
    """A fetch at our end came back without a diverging epoch: all of our log is the leader's."""


def read(
    directory: str,
    *,
    node_id: int,
    cluster_id: str | None,
    watermark: Watermark | None = None,
    known: Image | None = None,
    last_applied: MetadataMark | None = None,
) -> Image:
    """Read the metadata log of a node.

    Args:
        directory: ``__cluster_metadata-0``.
        node_id: Whose replicas are asked about.
        cluster_id: Of the log dir it lies in.
        watermark: How far it is committed; ``None``: up to the newest snapshot.
        known: An image of it read earlier, to be folded forward. Not changed.
        last_applied: How far the log was ever followed, of ``controller.json``: what is there must be the same log.

    Returns:
        An image; ``ended`` says why it stops before the watermark, if it is not for lack of records.

    Raises:
        WireError: the snapshot is damaged, or holds a record type of a newer release.
        MalformedFileError: no log, or a snapshot that is none.
        StateError: its files went away as often as it was tried.
        OSError: it cannot be read.
    """
    with reading(directory) as files:
        return read_again(files, lambda one: _read(one, node_id, cluster_id, watermark, known, last_applied))


def read_with_past(directory: str, *, node_id: int, cluster_id: str | None) -> Image | None:
    """Read the newest snapshot with the removals that the log before it still shows, to be handed to ``read``.

    A log keeps more than its newest snapshot needs (kafka-formats §8.3). It is folded from the oldest snapshot that it
    goes on from, and only if it ends in the very record the newest one ends in.

    Returns:
        An image at the newest snapshot; ``None`` where nothing older is there, or what is does not fit it.

    Raises:
        OSError: it cannot be read.
    """
    with reading(directory) as files:
        return _past(files, node_id, cluster_id)


def _past(files: MetadataFiles, node_id: int, cluster_id: str | None) -> Image | None:
    names, bases = files.names, files.bases
    last = newest(names, bases[0]) if bases else None
    if last is None:
        return None
    found = (one for one in snapshots_of(names) if one.offset >= bases[0])
    oldest = None if bases[0] == 0 else min(found, key=lambda one: one.offset)
    try:
        if oldest == last or files.epoch_before(last.offset) != last.epoch:
            return None
        before = _fold(files, _begin(files, oldest, node_id, cluster_id), last.offset)
        if before.ended is not None or (before.epoch, before.offset) != (last.epoch, last.offset):
            return None
        after = _begin(files, last, node_id, cluster_id)
        # Both stand for the same records: where they differ one of them is not what it seems.
        return with_removals_seen(before, after) if before.names == after.names else None
    except (FormatError, FileNotFoundError):
        return None  # of what is damaged, or went away meanwhile, nothing is remembered


def control_batches(files: MetadataFiles) -> Iterator[Batch]:
    """Yield the control batches of a log in order; stops at the first gap.

    Raises:
        WireError: a batch whose header or checksum cannot be true.
        OSError: it cannot be read.
    """
    for head in files.heads(files.bases[0]) if files.bases else ():
        if head.is_control and files.place is not None:
            yield next(files.batches_in(segment_name(files.place[0]), head.position))


def end_of(directory: str, *, is_torn_read: bool = True) -> int | None:
    """Return the offset behind the last record of a log; nothing says how much of it is committed.

    A newest snapshot beyond the segments is of what the node had, too: a log that is behind it is about to be emptied.

    Args:
        directory: ``__cluster_metadata-0``.
        is_torn_read: Whether one that ends in a torn batch counts up to that.

    Returns:
        It; ``None`` if there is no segment, or the log cannot be read to its end.
    """
    try:
        with reading(directory) as files:
            bases = files.bases
            if not bases:
                return None
            end, last = bases[-1], None
            for last in files.heads(end):
                end = last.last_offset + 1
            is_torn = files.size_of(segment_name(bases[-1])) != (0 if last is None else last.position + last.size)
            is_ended = files.gap is not None
            # What was listed before may have been rolled since.
            names = os.listdir(directory)
            if bases_of(names) != bases:
                return None
            snapshots = [one.offset for one in snapshots_of(names)]
    except (OSError, FormatError):
        return None
    return None if is_ended or (is_torn and not is_torn_read) else max(end, *snapshots, 0)


def _read(
    files: MetadataFiles,
    node_id: int,
    cluster_id: str | None,
    watermark: Watermark | None,
    known: Image | None,
    last_applied: MetadataMark | None,
) -> Image:
    directory, bases = files.directory, files.bases
    if not bases:
        raise MalformedFileError(directory, expected="a metadata log", found="no segment")
    snapshot = newest(files.names, bases[0])
    if snapshot is None and bases[0] > 0:
        found = "none: nothing says what was before"
        raise MalformedFileError(directory, expected=f"a snapshot at offset {bases[0]} or later", found=found)
    if known is not None and (known.origin, known.cluster_id, known.node_id) != (directory, cluster_id, node_id):
        known = None
    holds_known = known is not None and (_is_of(snapshot, known) or _holds(files, known))
    if known is not None and holds_known and not _is_newer(snapshot, known):
        base = replace(known, ended=None, diverged=None)
    else:
        base = _begin(files, snapshot, node_id, cluster_id)
        # Only of one and the same log is what vanished between two images a removal.
        if known is not None and holds_known and known.offset <= base.offset:
            base = with_removals_seen(known, base)
    if last_applied is not None and (found_epoch := files.epoch_before(last_applied.offset)) not in (
        None,
        last_applied.epoch,
    ):
        base = replace(base, diverged=_diverged(directory, last_applied, found_epoch))
    if watermark is None:
        return base
    bound, ended = _committed(files, base, watermark)
    image = base if bound <= base.offset else _fold(files, base, bound)
    return image if image.ended is not None else replace(image, ended=ended)


def _is_newer(snapshot: Snapshot | None, known: Image) -> bool:
    return snapshot is not None and (snapshot.epoch, snapshot.offset) > (known.epoch, known.offset)


def _is_of(snapshot: Snapshot | None, known: Image) -> bool:
    return snapshot is not None and (snapshot.epoch, snapshot.offset) == (known.epoch, known.offset)


def _diverged(directory: str, last_applied: MetadataMark, found: int | None) -> Problem:
    expected = f"epoch {last_applied.epoch} in the record before offset {last_applied.offset}, as was used before"
    return Problem(
        Why.METADATA_DIVERGED.value, directory, expected, f"epoch {found}", "this log was put back, or is another one"
    )


def _begin(files: MetadataFiles, snapshot: Snapshot | None, node_id: int, cluster_id: str | None) -> Image:
    base = Image(
        source=Source.METADATA_LOG,
        origin=files.directory,
        node_id=node_id,
        cluster_id=cluster_id,
        certainty=Certainty.SNAPSHOT,
        absence_meaning=AbsenceMeaning.ABSENT,
    )
    return base if snapshot is None else _load(files, base, snapshot)


def _load(files: MetadataFiles, base: Image, snapshot: Snapshot) -> Image:
    """Read a snapshot whole."""
    fold = Fold(base)
    as_of_ms = 0
    for as_of_ms, batch in files.snapshot(snapshot.name):
        if not batch.is_control:
            # Offsets in a snapshot are its own (kafka-formats §8.1).
            fold.add(read_fast(batch), epoch=snapshot.epoch, timestamp_ms=as_of_ms, end=snapshot.offset)
    return replace(fold.image(), epoch=snapshot.epoch, offset=snapshot.offset, as_of_ms=as_of_ms)


def _fold(files: MetadataFiles, base: Image, bound: int) -> Image:
    """Fold the tail below an offset; a batch that cannot be used ends the image before it."""
    fold = Fold(base)
    start, place = base.offset, base.place
    try:
        for batch in files.batches(base.offset, base.place):
            start = batch.base_offset
            # A high watermark may lie within a batch: its records come together (kafka-formats §8.4).
            if batch.last_offset >= bound:
                break
            rows = [] if batch.is_control else list(read_fast(batch))
            if start < base.offset:
                rows = [(offset, row) for offset, row in rows if offset >= base.offset]
            fold.add(rows, epoch=batch.leader_epoch, timestamp_ms=batch.max_timestamp, end=batch.last_offset + 1)
            if fold.offset == batch.last_offset + 1:
                place = files.place
            if batch.last_offset + 1 == bound:
                break
    except MalformedFileError as error:
        if start <= base.offset:
            return replace(base, ended=error.problem())
        # The fold is spent: once more, without the batch that contradicts what was before.
        return replace(_fold(files, base, start), ended=error.problem())
    except WireError as error:
        return _reached(fold, place, error.problem())
    return _reached(fold, place, files.ended)


def _reached(fold: Fold, place: tuple[int, int] | None, ended: Problem | None) -> Image:
    return replace(fold.image(), certainty=Certainty.WATERMARK, place=place, ended=ended)


def _committed(files: MetadataFiles, base: Image, watermark: Watermark) -> tuple[int, Problem | None]:
    """Return the offset below which the log is both committed and the leader's, and what hides more of it."""
    last_epoch, known_end, ended = -1, 0, None
    try:
        for head in files.heads(base.offset, base.place):
            last_epoch = head.leader_epoch
            if watermark.is_prefix_checked or head.leader_epoch == watermark.epoch:
                known_end = head.last_offset + 1
        ended = files.ended
    except WireError as error:
        ended = error.problem()
    if last_epoch < 0:
        return 0, ended if base.offset < watermark.offset else None
    if last_epoch < base.epoch:
        return 0, None  # the log is behind the snapshot: it is not used at all (kafka-formats §8.2)
    return min(watermark.offset, known_end), ended if known_end < watermark.offset else None


def _holds(files: MetadataFiles, known: Image) -> bool:
    """Whether the last record that a known image counts is still there, and the same."""
    return known.epoch >= 0 and files.epoch_before(known.offset, known.place) == known.epoch
