"""The metadata log of a node as a source: the newest snapshot and the committed tail behind it, read from disk.

Nothing on the disk shows how far the tail is committed. Without a high watermark learnt from the quorum the image ends
at the newest snapshot; with one it ends below it, and no further than the log is known to be the leader's. Time proves
nothing (attacks A2).

A live broker appends, truncates, and renames under a reader: a torn tail is the end, and when a file vanishes the
reading begins again. Where the log cannot be read the image ends, with the reason in ``ended``; a snapshot that cannot
be read whole gives no image.

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
from logdir.cluster.metadata_snapshot import require_ended
from logdir.errors import FormatError, MalformedFileError, Problem
from logdir.formats.own.controller_file import MetadataMark
from logdir.refusal_slug import Why
from logdir.wire.batches import Batch
from logdir.wire.errors import WireError
from logdir.wire.metadata_fast import read_fast


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How far the log is committed: as its leader said, or as far as it was followed before."""

    offset: int
    """All records below it are committed."""
    epoch: int
    """Epoch of the leader that gave it."""
    is_prefix_checked: bool = False
    """Whether a fetch at the end of the local log came back without a diverging epoch: all of it is the leader's."""


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
        directory: Path of ``__cluster_metadata-0``.
        node_id: The node whose replicas are looked up in the image.
        cluster_id: Cluster id of the log dir that the log lies in; ``None``: not known.
        watermark: How far the log is committed; ``None``: up to the newest snapshot.
        known: An image read from this log earlier, to be folded forward. Not changed.
        last_applied: The position in ``controller.json``; if the log has another record there, the image is
            ``diverged``.

    Returns:
        An image; ``ended`` is why it stops before the watermark, ``None`` also if the log has no more records.

    Raises:
        WireError: the snapshot is damaged, or holds a record type of a newer release.
        MalformedFileError: the directory has no metadata log, or the snapshot is malformed.
        StateError: a file vanished in every attempt.
        OSError: it cannot be read.
    """
    with reading(directory) as files:
        return read_again(files, lambda one: _read(one, node_id, cluster_id, watermark, known, last_applied))


def read_with_past(directory: str, *, node_id: int, cluster_id: str | None) -> Image | None:
    """Read the newest snapshot, with the removals that the log before it still shows; for ``known`` of ``read``.

    A log keeps more than its newest snapshot needs (kafka-formats §8.3). It is folded from the oldest snapshot that it
    continues, and only if it has the very record that the newest snapshot ends in.

    Returns:
        An image at the newest snapshot; ``None``: there is nothing older, or it does not fit that snapshot.

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
    """Yield the batches of control records of a log in order; stops at the first gap.

    Raises:
        WireError: a batch whose header or checksum cannot be true.
        OSError: it cannot be read.
    """
    for head in files.heads(files.bases[0]) if files.bases else ():
        if head.is_control and files.place is not None:
            yield next(files.batches_in(segment_name(files.place[0]), head.position))


def end_of(directory: str, *, is_torn_read: bool = True) -> int | None:
    """Return the offset after the last record of a log; how much of it is committed is not known.

    A snapshot that ends beyond the segments counts, too: the node had its records, and is about to empty the log.

    Args:
        directory: Path of ``__cluster_metadata-0``.
        is_torn_read: Whether a log that ends in a torn batch counts up to that batch; if not, ``None`` is returned.

    Returns:
        The offset; ``None``: there is no segment, or the log cannot be read to its end.
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
        found = "none: what was before that offset is not known"
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
    expected = f"epoch {last_applied.epoch} in the record before offset {last_applied.offset}, as when it was applied"
    return Problem(
        Why.METADATA_DIVERGED.value,
        directory,
        expected,
        f"epoch {found}",
        "this log was restored from a backup, or is another log",
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
    """Return the image of a snapshot, which is read whole."""
    fold = Fold(base)
    as_of_ms = 0
    for as_of_ms, batch in files.snapshot(snapshot.name):
        if not batch.is_control:
            # Offsets in a snapshot are its own (kafka-formats §8.1).
            fold.add(read_fast(batch), epoch=snapshot.epoch, timestamp_ms=as_of_ms, end=snapshot.offset)
    require_ended(f"{files.directory}/{snapshot.name}", fold.open_since)
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
    """Return the offset below which the log is committed and the leader's, and the problem that hides more of it."""
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
    """Whether the log still has the last record of a known image, of the same leader epoch."""
    return known.epoch >= 0 and files.epoch_before(known.offset, known.place) == known.epoch
