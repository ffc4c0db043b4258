"""The record batches of a metadata snapshot, from its header to its footer: all of them, or an error.

Not here: which snapshot is read (``metadata_names``), what its records mean.

Spec: kafka-formats §7.5, §8.1; org.apache.kafka.snapshot.RecordsSnapshotReader; attacks A29.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from logdir.cluster.metadata_file import MetadataFile
from logdir.errors import MalformedFileError
from logdir.wire.batches import Batch
from logdir.wire.control import ControlRecord, decode_control

_HEADER_RECORD: Final = "SNAPSHOT_HEADER"
_FOOTER_RECORD: Final = "SNAPSHOT_FOOTER"


class SnapshotBatch(NamedTuple):
    """One record batch of a snapshot."""

    as_of_ms: int
    """Newest timestamp of the log that the snapshot replaces (wall clock); the same for all its batches."""
    batch: Batch


def snapshot_batches(file: MetadataFile) -> Iterator[SnapshotBatch]:
    """Yield all record batches of a snapshot, control batches included; their offsets are not those of the log.

    Only once all were yielded without an error is it certain that none is missing.

    Raises:
        WireError: a batch is damaged, missing, or out of order.
        MalformedFileError: the file has no header, or is cut off, be it between two batches.
        OSError: the file cannot be read.
    """
    last: Batch | None = None
    as_of_ms = 0
    for batch in file.batches():
        if last is None:
            as_of_ms = _time_of(batch)
        _require_follows(batch, last)
        yield SnapshotBatch(as_of_ms, batch)
        last = batch
    if file.is_torn or last is None:
        found = f"{file.end} of {file.size} bytes"
        raise MalformedFileError(file.path, expected="whole batches to its end", found=found)
    # Cut off between two batches it would lack topics, and those would seem to be removed.
    _require(last, _FOOTER_RECORD, "a snapshot footer last")


def require_ended(path: str, open_since: int | None) -> None:
    """Check that no transaction is open at the end of a snapshot: its rows would be missing from the image, and what
    they name would seem to be removed.

    Args:
        path: Path of the snapshot.
        open_since: Offset in the snapshot at which a transaction began that has not ended; ``None``: none is open.

    Raises:
        MalformedFileError: a transaction is open.
    """
    if open_since is not None:
        found = f"a transaction that begins at its offset {open_since} and does not end"
        raise MalformedFileError(path, expected="a snapshot whose transactions end in it", found=found)


def _require_follows(batch: Batch, last: Batch | None) -> None:
    """Check that a batch follows ``last``: no checksum covers a base offset or the order of batches."""
    following = 0 if last is None else last.last_offset + 1
    if batch.base_offset != following:
        raise batch.corrupt(f"a record batch at offset {following}", batch.base_offset, 0)


def _time_of(first: Batch) -> int:
    found: int = _require(first, _HEADER_RECORD, "a snapshot header first").fields["lastContainedLogTimestamp"]
    return max(0, found)


def _require(batch: Batch, name: str, expected: str) -> ControlRecord:
    """Return the first record of a batch; raises ``MalformedFileError`` unless it is a control record of this name."""
    first = next(batch.records(), None) if batch.is_control else None
    record = None if first is None else decode_control(first, batch.path)
    if record is None or record.name != name:
        raise MalformedFileError(batch.path, expected=expected, found="something else")
    return record
