"""The metadata log of a node, or one snapshot of it, read whole for people to look at.

Unlike ``metadata_log`` it goes on to the end of the local log, committed or not: who looks is told from which offset on
that is not known. It stops where that stops: at a gap, at damage, at a record type of a newer release; and says so.

Not here: what the records mean together (``metadata_contents``), what may be decided on it (``metadata_log``).

Spec: kafka-formats §8.1-§8.5; design §4, §6.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from logdir.cluster.metadata_file import MetadataFile, opened
from logdir.cluster.metadata_files import Snapshot, base_of, bases_of, newest, segment_name, snapshot_of
from logdir.cluster.metadata_log import require_follows, require_footer, snapshot_time
from logdir.errors import MalformedFileError, Problem, StateError
from logdir.metadata.contents import Contents, ContentsFold
from logdir.wire.batches import Batch
from logdir.wire.control import decode_control
from logdir.wire.errors import CorruptBatchError, WireError
from logdir.wire.metadata_fast import read_fast

_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found."""

    origin: str
    """Directory or file."""
    contents: Contents
    snapshot: str | None
    """Name of the one it begins with; ``None``: with nothing, at offset 0."""
    committed: int
    """What is below this offset is committed; of the rest nothing on disk says it (kafka-formats §8.5)."""
    offset: int
    """Behind the last record that was looked at."""
    epoch: int
    """Of that record; -1: there is none."""
    as_of_ms: int
    """Newest timestamp, wall clock; 0 if there is none."""
    kraft_version: int | None
    voters: Sequence[dict[str, Any]] | None
    """Of the quorum, if the log says them."""
    open_transaction: int | None
    """Where a transaction begins that does not end; nothing of it counts."""
    is_log_behind: bool
    """The log is behind the snapshot, and not used: a broker empties it at its next start (kafka-formats §8.2)."""
    ended: Problem | None
    """Why it stops before the end of the files."""


def read_directory(directory: str) -> Look:
    """Read the newest snapshot and all of the log behind it.

    Args:
        directory: ``__cluster_metadata-0``; a broker may be running on it.

    Raises:
        MalformedFileError: there is no log, or a snapshot that is none.
        WireError: the snapshot is damaged, or holds a record type of a newer release.
        StateError: its files went away as often as it was tried.
        OSError: it cannot be read.
    """
    vanished = directory
    for _ in range(_ATTEMPTS):
        reader = _Reader(directory)
        try:
            look = _read(reader, directory)
        except FileNotFoundError as error:
            # A broker renames old segments and snapshots while we read (kafka-formats §8.3).
            if error.filename == directory:
                raise
            vanished = error.filename
            continue
        if not reader.has_grown():
            return look
    if vanished == directory:
        return look
    raise StateError(vanished, expected="a file that stays while it is read", found="it went away")


def read_file(path: str) -> Look:
    """Read one snapshot by itself, or the segment that begins at offset 0.

    Raises:
        MalformedFileError: it is neither.
        WireError: a snapshot that is damaged, or holds a record type of a newer release.
        OSError: it cannot be read.
    """
    name = os.path.basename(path)
    reader = _Reader(path)
    snapshot = snapshot_of(name)
    if snapshot is not None:
        reader.load(path, snapshot, is_followed=True)
    elif base_of(name) == 0:
        try:
            reader.follow([(0, path)], is_followed=True)
        except _ContradictionError as error:
            reader = _Reader(path)
            reader.follow([(0, path)], bound=error.bound, is_followed=True)
            reader.ended = error.problem
    else:
        raise MalformedFileError(path, expected="a snapshot, or the segment of offset 0", found=name)
    return reader.look()


def _read(reader: _Reader, directory: str, bound: int | None = None) -> Look:
    names = os.listdir(directory)
    bases = bases_of(names)
    start = bases[0] if bases else 0
    snapshot = newest(names, start)
    if snapshot is None and (start > 0 or not bases):
        expected = f"a snapshot at offset {start} or later" if bases else "a metadata log"
        raise MalformedFileError(
            directory, expected=expected, found="no snapshot" if bases else "no segment and no snapshot"
        )
    if snapshot is not None:
        reader.load(f"{directory}/{snapshot.name}", snapshot)
    try:
        reader.follow([(base, f"{directory}/{segment_name(base)}") for base in bases], bound=bound)
    except _ContradictionError as error:
        # What was folded is spent: once more, without the batch that contradicts what was before.
        again = _Reader(directory)
        _read(again, directory, error.bound)
        again.ended = error.problem
        return again.look()
    return reader.look()


class _ContradictionError(Exception):
    """A batch that contradicts what was before."""

    def __init__(self, bound: int, problem: Problem) -> None:
        super().__init__(problem.line())
        self.bound, self.problem = bound, problem


class _Reader:
    """One reading, file after file."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._fold = ContentsFold(origin)
        self._snapshot: Snapshot | None = None
        self._offset, self._epoch, self._as_of_ms = 0, -1, 0
        self._kraft_version: int | None = None
        self._voters: Sequence[dict[str, Any]] | None = None
        self._is_log_behind = False
        self._log_end = 0
        self._torn: tuple[str, int] | None = None
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

    def has_grown(self) -> bool:
        """Whether the reading ended in a batch that a broker has written more of since."""
        if self._torn is None:
            return False
        path, size = self._torn
        return Path(path).lstat().st_size != size

    def load(self, path: str, snapshot: Snapshot, *, is_followed: bool = False) -> None:
        """Read a snapshot whole.

        Raises:
            WireError: it is damaged, or of a newer release.
            MalformedFileError: it is cut off, also between two batches, or none.
        """
        last: Batch | None = None
        with opened(path, is_followed=is_followed) as file:
            for batch, is_valid in file.batches():
                _require(batch, is_valid=is_valid)
                if last is None:
                    self._as_of_ms = snapshot_time(batch)
                require_follows(batch, last)
                self._take(batch)
                last = batch
            if file.is_torn or last is None:
                found = f"{file.end} of {file.size} bytes"
                raise MalformedFileError(path, expected="whole batches to its end", found=found)
        require_footer(last)
        self._snapshot = snapshot
        # Offsets in a snapshot are its own (kafka-formats §8.1).
        self._offset, self._epoch = snapshot.offset, snapshot.epoch

    def follow(
        self, segments: Sequence[tuple[int, str]], *, bound: int | None = None, is_followed: bool = False
    ) -> None:
        """Read the log behind what was loaded.

        Args:
            segments: Base offset and path, offsets rising.
            bound: Offset from which on nothing is read.
            is_followed: Whether they may be symbolic links.
        """
        start = self._offset
        self._log_end = segments[-1][0] if segments else start
        is_behind: bool | None = None
        for number, (_, path) in enumerate(segments):
            if number + 1 < len(segments) and segments[number + 1][0] <= start:
                continue
            with opened(path, is_followed=is_followed) as file:
                try:
                    for batch in self._tail(file):
                        if is_behind is None:
                            is_behind = batch.leader_epoch < self._epoch and self._is_behind(segments[number:])
                        if is_behind:
                            self._is_log_behind = True
                            return
                        if bound is not None and batch.base_offset >= bound:
                            return
                        if batch.base_offset > self._offset or batch.leader_epoch < self._epoch:
                            self.ended = self._gap(batch)
                            return
                        self._continue(batch, start)
                except WireError as error:
                    self.ended = error.problem()
                    return
                if file.is_torn and number + 1 == len(segments):
                    self._torn, self.ended = (path, file.size), _torn(file)
        self._is_log_behind = self._log_end < start

    def _tail(self, file: MetadataFile) -> Iterator[Batch]:
        for batch, is_valid in file.batches():
            self._log_end = batch.last_offset + 1
            if batch.last_offset >= self._offset:
                _require(batch, is_valid=is_valid)
                yield batch

    def _is_behind(self, segments: Sequence[tuple[int, str]]) -> bool:
        """Whether the last batch of the log is of an older epoch than the snapshot."""
        last = -1
        for _, path in segments:
            with opened(path) as file:
                try:
                    for batch, _ in file.batches():
                        last = batch.leader_epoch
                except WireError:
                    break
        return last < self._epoch

    def _gap(self, batch: Batch) -> Problem:
        expected = f"a batch at offset {self._offset}, of no lower epoch than {self._epoch}"
        found = f"one at {batch.base_offset}, of {batch.leader_epoch}"
        return Problem("malformed-file", batch.path, expected, found, "what is behind it is not shown")

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


def _require(batch: Batch, *, is_valid: bool) -> None:
    if not is_valid:
        raise CorruptBatchError(
            batch.path, expected="a checksum that holds", found=f"{batch.crc:08x}", position=batch.position + 17
        )


def _torn(file: MetadataFile) -> Problem:
    found = f"{file.size - file.end} bytes more"
    fix = "it is cut off there; what is before it is shown"
    return Problem("malformed-file", f"{file.path} at byte {file.end}", "whole batches to its end", found, fix)
