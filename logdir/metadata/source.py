"""The metadata log of a node, or one snapshot of it, read whole for people to look at.

Unlike ``metadata_log`` it goes on to the end of the local log, committed or not; ``Look.committed`` is the offset from
which on that is not known. It stops at a gap, at damage and at a record type of a newer release; ``Look.ended`` is why.
The reading is that of ``cluster.metadata_files``.

Not here: what the records mean together (``contents``), what may be decided on it (``metadata_log``).

Spec: kafka-formats §8.1-§8.5; design §4, §6.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from logdir.cluster.metadata_file import link_refused
from logdir.cluster.metadata_files import Gap, MetadataFiles, Torn, read_again, reading
from logdir.cluster.metadata_names import Snapshot, base_of, newest, snapshot_of
from logdir.cluster.metadata_snapshot import require_ended
from logdir.errors import MalformedFileError, Problem
from logdir.metadata.contents import Contents, ContentsFold
from logdir.wire.batches import Batch
from logdir.wire.control import decode_control
from logdir.wire.errors import WireError
from logdir.wire.metadata_fast import read_fast

_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was read of a metadata log, and how far it was read."""

    origin: str
    """Path of the directory or file that was read."""
    contents: Contents
    snapshot: str | None
    """Name of the snapshot that was read first; ``None``: none, the log was read from offset 0."""
    committed: int
    """Records below this offset are committed; whether others are is not known from the disk (kafka-formats §8.5)."""
    offset: int
    """Offset after the last record that was read."""
    epoch: int
    """Leader epoch of that record; -1: there is none."""
    as_of_ms: int
    """Newest timestamp of a record, wall clock; 0: there is none."""
    kraft_version: int | None
    """``None``: the log has no record of it."""
    voters: Sequence[dict[str, Any]] | None
    """Voters of the quorum; ``None``: the log has no record of them."""
    open_transaction: int | None
    """Offset at which a transaction begins that does not end: its records do not count; ``None``: there is none."""
    is_log_behind: bool
    """Whether the log ends before the snapshot and is not used: the next start empties it (kafka-formats §8.2)."""
    ended: Problem | None
    """Why the reading stopped before the end of the files; ``None``: it did not."""


def read_directory(directory: str) -> Look:
    """Read the newest snapshot and all of the log behind it.

    Args:
        directory: Path of ``__cluster_metadata-0``; a broker may be running on it.

    Raises:
        MalformedFileError: the directory has no metadata log, or the snapshot is malformed.
        WireError: the snapshot is damaged, or holds a record type of a newer release.
        StateError: a file vanished in every attempt.
        OSError: the log cannot be read.
    """
    with link_refused(), reading(directory) as files:
        for _ in range(_ATTEMPTS):
            look, torn = read_again(files, _read)
            if torn is None or files.size_of(torn.name) == torn.size:
                break
            files.forget()  # a broker has written more of the batch that it ended in
    return look


def read_file(path: str) -> Look:
    """Read one snapshot by itself, or the segment that begins at offset 0.

    Raises:
        MalformedFileError: the file is neither, or is malformed.
        WireError: the snapshot is damaged, or holds a record type of a newer release.
        OSError: the file cannot be read.
    """
    directory, name = os.path.split(path)
    files = MetadataFiles(directory, name)
    try:
        snapshot = snapshot_of(name)
        if snapshot is not None:
            reader = _Reader(files, path)
            reader.load(snapshot)
            return reader.look()
        if base_of(name) == 0:
            return _followed(files, path, None)[0]
    finally:
        files.forget()
    raise MalformedFileError(path, expected="a snapshot, or the segment of offset 0", found=name)


def _read(files: MetadataFiles) -> tuple[Look, Torn | None]:
    """Read a log; return its contents, and the torn record batch at its end (``None``: there is none)."""
    bases = files.bases
    start = bases[0] if bases else 0
    snapshot = newest(files.names, start)
    if snapshot is None and (start > 0 or not bases):
        expected = f"a snapshot at offset {start} or later" if bases else "a metadata log"
        raise MalformedFileError(
            files.directory, expected=expected, found="no snapshot" if bases else "no segment and no snapshot"
        )
    return _followed(files, files.directory, snapshot)


def _followed(files: MetadataFiles, origin: str, snapshot: Snapshot | None) -> tuple[Look, Torn | None]:
    """Read a snapshot and the log behind it; returns what ``_read`` does."""
    try:
        return _followed_to(files, origin, snapshot, None)
    except _ContradictionError as error:
        # What was folded is spent: once more, without the batch that contradicts what was before.
        look, _ = _followed_to(files, origin, snapshot, error.bound)
        return replace(look, ended=error.problem), None


def _followed_to(
    files: MetadataFiles, origin: str, snapshot: Snapshot | None, bound: int | None
) -> tuple[Look, Torn | None]:
    reader = _Reader(files, origin)
    if snapshot is not None:
        reader.load(snapshot)
    reader.follow(bound)
    return reader.look(), reader.torn


class _ContradictionError(Exception):
    """A record batch contradicts the records before it."""

    def __init__(self, bound: int, problem: Problem) -> None:
        super().__init__(problem.line())
        self.bound, self.problem = bound, problem


class _Reader:
    """Reads a snapshot, and the log behind it, into contents, one record batch after the other."""

    def __init__(self, files: MetadataFiles, origin: str) -> None:
        self._files = files
        self._origin = origin
        self._fold = ContentsFold(origin)
        self._snapshot: Snapshot | None = None
        self._offset, self._epoch, self._as_of_ms = 0, -1, 0
        self._kraft_version: int | None = None
        self._voters: Sequence[dict[str, Any]] | None = None
        self._is_log_behind = False
        self.torn: Torn | None = None
        """The torn record batch at the end of the log, which a broker may be writing."""
        self.ended: Problem | None = None

    def look(self) -> Look:
        """Return what was found so far."""
        return Look(
            origin=self._origin,
            contents=self._fold.contents,
            snapshot=None if self._snapshot is None else self._snapshot.name,
            committed=0 if self._snapshot is None else self._snapshot.offset,
            offset=self._offset,
            epoch=self._epoch,
            as_of_ms=self._as_of_ms,
            kraft_version=self._kraft_version,
            voters=self._voters,
            open_transaction=self._fold.open_transaction,
            is_log_behind=self._is_log_behind,
            ended=self.ended,
        )

    def load(self, snapshot: Snapshot) -> None:
        """Read a snapshot whole.

        Raises:
            WireError: the snapshot is damaged, or holds a record type of a newer release.
            MalformedFileError: the file is cut off, be it between two batches or in a transaction, or is no snapshot.
        """
        for as_of_ms, batch in self._files.snapshot(snapshot.name):
            self._as_of_ms = as_of_ms
            self._take(batch)
        require_ended(f"{self._files.directory}/{snapshot.name}", self._fold.open_transaction)
        self._snapshot = snapshot
        # Offsets in a snapshot are its own (kafka-formats §8.1).
        self._offset, self._epoch = snapshot.offset, snapshot.epoch

    def follow(self, bound: int | None) -> None:
        """Read the log from where the loaded snapshot ends; without a snapshot from offset 0.

        Args:
            bound: Offset from which on nothing is read; ``None``: to its end.
        """
        files, start, epoch = self._files, self._offset, self._epoch
        try:
            for batch in files.batches_behind(start, epoch):
                if bound is not None and batch.base_offset >= bound:
                    return
                self._continue(batch, start)
        except WireError as error:
            self.ended = error.problem()
            return
        if files.gap is not None:
            # Nothing was read yet, and the log ends in an epoch before the snapshot's.
            self._is_log_behind = self._offset == start and files.gap.found_epoch < epoch > files.last_epoch(start)
            self.ended = None if self._is_log_behind else _shown(files.gap)
            return
        self._is_log_behind = files.end < start
        self.torn = files.torn()
        if self.torn is not None:
            self.ended = _torn(self._files.directory, self.torn)

    def _continue(self, batch: Batch, start: int) -> None:
        try:
            self._take(batch, start)
        except MalformedFileError as error:
            problem = error.problem()._replace(path=f"{batch.path} at byte {batch.position}")
            raise _ContradictionError(batch.base_offset, problem) from error
        self._offset, self._epoch = batch.last_offset + 1, batch.leader_epoch
        self._as_of_ms = max(self._as_of_ms, batch.max_timestamp)

    def _take(self, batch: Batch, start: int = 0) -> None:
        if batch.is_control:
            self._take_control(batch)
            return
        # Read whole before any of it counts; a snapshot may end within it (kafka-formats §8.3).
        rows = list(read_fast(batch))
        self._fold.add(rows if batch.base_offset >= start else [one for one in rows if one[0] >= start])

    def _take_control(self, batch: Batch) -> None:
        for record in batch.records():
            control = decode_control(record, batch.path)
            if control.name == "KRAFT_VERSION":
                self._kraft_version = control.fields["kRaftVersion"]
            elif control.name == "KRAFT_VOTERS":
                self._voters = control.fields["voters"]


def _shown(gap: Gap) -> Problem:
    expected = f"a record batch at offset {gap.expected_offset}, of no lower leader epoch than {gap.expected_epoch}"
    found = f"one at offset {gap.found_offset}, of leader epoch {gap.found_epoch}"
    return Problem("malformed-file", gap.path, expected, found, "the records behind this gap are not shown")


def _torn(directory: str, torn: Torn) -> Problem:
    path, found = (
        f"{directory}/{torn.name} at byte {torn.end}",
        f"{torn.size - torn.end} bytes behind the last whole one",
    )
    return Problem(
        "malformed-file",
        path,
        "whole batches to its end",
        found,
        "the file is cut off there; the records before that are shown",
    )
