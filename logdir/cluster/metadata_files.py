"""The one reader of a metadata log: its files, opened once, and their batches in the order of their offsets.

Image, browser, topic details and quorum read through it. A reader gets the files of a log from ``reading``; within
``one_reading`` all readers get the same files, each as it was when it was first opened.
The record batches stop at a gap (``gap``), at damage (an error), or at a torn tail (``torn``). A live broker appends,
truncates and renames under a reader: ``read_again`` begins again when a file vanished.

Not here: how a file is walked (``metadata_file``), a snapshot (``metadata_snapshot``), names (``metadata_names``),
which batches are committed (``metadata_log``), what their records mean (``fold``, ``metadata.contents``).

Spec: kafka-formats §8.1, §8.3; org.apache.kafka.raft.internals.KafkaRaftLog.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeVar

from logdir.cluster.metadata_file import MetadataFile, open_file
from logdir.cluster.metadata_heads import Head, Heads
from logdir.cluster.metadata_names import bases_of, segment_name, segments_behind
from logdir.cluster.metadata_snapshot import SnapshotBatch, snapshot_batches
from logdir.errors import FormatError, Problem, StateError
from logdir.wire.batches import Batch
from logdir.wire.errors import WireError

_KEPT_OPEN: Final = 64
"""Limit of files that stay open; those beyond it are opened each time they are needed."""
_ATTEMPTS: Final = 8


class Before(Enum):
    """How record batches are checked that lie before the start offset of a walk, in the same segment."""

    CHECKED = "checked"
    """As for all other batches: checksums are verified, and each batch must follow the one before."""
    PASSED_OVER = "passed over"
    """Only their frames are read: a snapshot replaces their records."""


class Gap(NamedTuple):
    """Where a record batch does not follow from the one before."""

    path: str
    """Path of the segment that the batch lies in."""
    expected_offset: int
    expected_epoch: int
    """The lowest leader epoch that may follow; -1: any."""
    found_offset: int
    found_epoch: int

    def problem(self, path: str) -> Problem:
        """Return the reason why an image ends at this gap.

        Args:
            path: Directory of the log.
        """
        expected = f"a record batch at offset {self.expected_offset}, of no lower leader epoch"
        return Problem(
            "malformed-file",
            path,
            expected,
            f"one at offset {self.found_offset}",
            "the records behind this gap are not used",
        )


class Torn(NamedTuple):
    """The end of a last segment whose last bytes are no whole record batch."""

    name: str
    """File name of the segment."""
    end: int
    """Position after its last whole batch, in bytes."""
    size: int
    """Size in bytes when it was opened."""


class _Framed(Protocol):
    """A record batch, or its head."""

    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...


_F = TypeVar("_F", bound=_Framed)
_T = TypeVar("_T")


class MetadataFiles:
    """The files of one metadata log. Closed by ``reading``."""

    def __init__(self, directory: str, only: str | None = None) -> None:
        """Prepare to read a log; no file is opened yet.

        Args:
            directory: Directory of the log.
            only: Name of the one file to read, as an operator typed it: a link is followed. ``None``: all files.
        """
        self.directory = directory
        self.gap: Gap | None = None
        """The gap at which the last walk stopped; ``None``: it met none."""
        self.end = 0
        """Offset after the last batch that the last walk came to, even if that lies before its start offset."""
        self.place: tuple[int, int] | None = None
        """Where the last batch that was yielded lies: base offset of its segment, byte position in it."""
        self._walked_to: tuple[int, int] | None = None
        """Base offset of the last segment, position after its last batch; ``None``: the last walk stopped before."""
        self._only = only
        self._names: list[str] | None = None
        self._open: dict[str, MetadataFile] = {}
        self._heads: dict[int, Heads] = {}

    @property
    def names(self) -> list[str]:
        """The names of the files in the directory of the log.

        Raises:
            OSError: they cannot be listed.
        """
        if self._names is None:
            self._names = os.listdir(self.directory) if self._only is None else [self._only]
        return self._names

    @property
    def bases(self) -> list[int]:
        """The base offsets of the segments, ascending. Raises as ``names``."""
        return bases_of(self.names)

    @property
    def ended(self) -> Problem | None:
        """The gap at which the last walk stopped, as the reason why an image ends; ``None``: it met none."""
        return None if self.gap is None else self.gap.problem(self.directory)

    def forget(self) -> None:
        """Close all files, and forget their names and the heads of their batches; the next read goes to the disk."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        self._heads.clear()
        self._names = None

    @contextmanager
    def opened(self, name: str) -> Iterator[MetadataFile]:
        """Yield a file of the log, opened now unless it is open.

        Raises:
            MalformedFileError: it is no regular file.
            OSError: it cannot be opened; ``FileNotFoundError``: it vanished since it was listed.
        """
        file = self._open.get(name)
        if file is not None:
            yield file
            return
        file = open_file(f"{self.directory}/{name}", is_followed=name == self._only)
        if len(self._open) < _KEPT_OPEN:
            self._open[name] = file
            yield file
            return
        try:
            yield file
        finally:
            file.close()

    def batches_in(self, name: str, position: int = 0) -> Iterator[Batch]:
        """Yield the record batches of one file from a byte on. Raises as ``opened`` and ``MetadataFile.batches``."""
        with self.opened(name) as file:
            yield from file.batches(position)

    def snapshot(self, name: str) -> Iterator[SnapshotBatch]:
        """Yield the batches of a snapshot. Raises as ``opened`` and ``snapshot_batches``."""
        with self.opened(name) as file:
            yield from snapshot_batches(file)

    def torn(self) -> Torn | None:
        """Return the torn end of the last segment; ``None``: it has none, or the last walk stopped before it."""
        if self._walked_to is None:
            return None
        base, end = self._walked_to
        with self.opened(segment_name(base)) as file:
            return Torn(segment_name(base), end, file.size) if end < file.size else None

    def size_of(self, name: str) -> int:
        """Return the current size of a file in bytes. Raises as ``opened``."""
        with self.opened(name) as file:
            return file.size_now

    def batches(self, start: int, place: tuple[int, int] | None = None) -> Iterator[Batch]:
        """Yield the record batches that hold records from an offset on; stops at the first gap or damage.

        No checksum covers a base offset: each must follow from the one before, the first of a segment from its name.

        Args:
            start: The offset.
            place: A hint, checked first: where a batch lies whose records all come before ``start``.

        Raises:
            WireError: a batch whose header or checksum cannot be true.
            FileNotFoundError: a segment vanished.
        """
        return self._walk(
            lambda base, position: self.batches_in(segment_name(base), position), start, self._checked(place, start)
        )

    def batches_behind(self, start: int, epoch: int) -> Iterator[Batch]:
        """Yield the record batches that hold records from an offset on; a snapshot replaces all before it.

        As ``batches``, but damage before the offset does not matter.

        Args:
            start: The offset.
            epoch: Leader epoch of the record before it; -1: there is none. A batch of a lower epoch is a gap.
        """
        return self._walk(lambda base, _: self._framed(base, start), start, epoch=epoch, before=Before.PASSED_OVER)

    def _framed(self, base: int, start: int) -> Iterator[Batch]:
        with self.opened(segment_name(base)) as file:
            for walked in file.walk():
                if walked.batch.last_offset >= start:
                    walked.require_valid()
                yield walked.batch

    def last_epoch(self, start: int) -> int:
        """Return the leader epoch of the last record batch before any damage; -1: there is none.

        Args:
            start: Offset from which on the log is read.
        """
        last = -1
        try:
            for base in segments_behind(self.bases, start):
                with self.opened(segment_name(base)) as file:
                    for walked in file.walk():
                        last = walked.batch.leader_epoch
        except WireError:
            pass  # what is behind it does not count either
        return last

    def heads(self, start: int, place: tuple[int, int] | None = None, *, placed: int | None = None) -> Iterator[Head]:
        """Yield the heads of the record batches that hold records from an offset on; stops as ``batches``.

        Args:
            start: The offset.
            place: As for ``batches``.
            placed: Offset that the records of the batch at ``place`` come before; ``None``: ``start``.
        """
        return self._walk(self._heads_of, start, self._checked(place, start if placed is None else placed))

    def _walk(
        self,
        source: Callable[[int, int], Iterator[_F]],
        start: int,
        first: tuple[int, int] | None = None,
        *,
        epoch: int = -1,
        before: Before = Before.CHECKED,
    ) -> Iterator[_F]:
        bases = self.bases
        self.gap, self._walked_to, self.end = None, None, bases[-1] if bases else 0
        expected = start
        for base in segments_behind(bases, start):
            if first is not None and base < first[0]:
                continue
            position = first[1] if first is not None and first[0] == base else 0
            following = None if position else base
            end = position
            for batch in source(base, position):
                end, self.end = batch.position + batch.size, batch.last_offset + 1
                is_before = batch.last_offset < expected
                if is_before and before is Before.PASSED_OVER:
                    following = None
                    continue
                if following is not None and batch.base_offset != following:
                    self.gap = self._gap(base, batch, following, epoch)
                    return
                following = batch.last_offset + 1
                if is_before:
                    continue
                if batch.base_offset > expected or batch.leader_epoch < epoch:
                    self.gap = self._gap(base, batch, expected, epoch)
                    return
                self.place = base, batch.position
                yield batch
                expected, epoch = batch.last_offset + 1, batch.leader_epoch
            if base == bases[-1]:
                self._walked_to = base, end

    def _gap(self, base: int, found: _Framed, expected: int, epoch: int) -> Gap:
        path = f"{self.directory}/{segment_name(base)}"
        return Gap(path, expected, epoch, found.base_offset, found.leader_epoch)

    def _heads_of(self, base: int, position: int) -> Iterator[Head]:
        """Yield the heads of a segment; those read before come from memory."""
        known = self._heads.get(base)
        if known is None or position < known.start:
            known = self._heads[base] = Heads(position, end=position)
        yield from known.since(position)
        if not known.is_whole:
            yield from self._further(base, known)
        if known.error is not None:
            raise known.error

    def _further(self, base: int, known: Heads) -> Iterator[Head]:
        try:
            for one in self.batches_in(segment_name(base), known.end):
                head = Head(one.base_offset, one.last_offset, one.leader_epoch, one.position, one.size, one.is_control)
                known.add(head)
                yield head
        except WireError as error:
            known.error = error
        known.is_whole = True

    def _checked(self, place: tuple[int, int] | None, end: int) -> tuple[int, int] | None:
        """Return ``place`` if a batch lies there whose records all come before ``end``; else ``None``."""
        if place is None or place[0] not in self.bases:
            return None
        try:
            batch = next(self.batches_in(segment_name(place[0]), place[1]), None)
        except WireError:
            return None
        return None if batch is None or not place[0] <= batch.base_offset <= batch.last_offset < end else place

    def epoch_before(self, offset: int, place: tuple[int, int] | None = None) -> int | None:
        """Return the leader epoch of the record before an offset; ``None``: no such record, or it cannot be read."""
        if offset <= self.bases[0]:
            return None
        try:
            found = next(self.heads(offset - 1, place, placed=offset), None)
        except FormatError:
            return None
        return None if found is None else found.leader_epoch


_READ: Final[ContextVar[dict[str, MetadataFiles] | None]] = ContextVar("read", default=None)


@contextmanager
def one_reading() -> Iterator[None]:
    """Let all readers of a metadata log within the block share its open files; in a nested block nothing changes."""
    if _READ.get() is not None:
        yield
        return
    shared: dict[str, MetadataFiles] = {}
    token = _READ.set(shared)
    try:
        yield
    finally:
        _READ.reset(token)
        for files in shared.values():
            files.forget()


@contextmanager
def reading(directory: str) -> Iterator[MetadataFiles]:
    """Yield the files of a metadata log: those that ``one_reading`` shares, or new ones, closed at the end."""
    shared = _READ.get()
    if shared is not None:
        yield shared.setdefault(directory, MetadataFiles(directory))
        return
    files = MetadataFiles(directory)
    try:
        yield files
    finally:
        files.forget()


def read_again(files: MetadataFiles, read: Callable[[MetadataFiles], _T]) -> _T:
    """Return what ``read`` returns for a log; again if a file vanished: a broker renames old ones (kafka-formats §8.3).

    Raises:
        StateError: a file vanished in each of eight attempts.
        OSError: the log cannot be read; ``FileNotFoundError``: there is no such directory.
    """
    vanished = files.directory
    for _ in range(_ATTEMPTS):
        try:
            return read(files)
        except FileNotFoundError as error:
            if error.filename == files.directory:
                raise
            vanished = error.filename
            files.forget()
    raise StateError(
        vanished, expected="a file that stays while it is read", found="it went away", fix="run the command again"
    )
