"""The one reader of a metadata log: its files, opened once, and their batches in the order of their offsets.

Image, browser, topic details and quorum read through it. Whoever reads a log for a command asks for it with
``reading``; within ``one_reading`` all of them get the same files, as they were when the first of them came to each.
What stops the batches is a gap (``gap``), damage (an error), or a torn tail (``torn``). A live broker appends,
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
"""Files; of a log of more segments the others are opened whenever they are needed."""
_ATTEMPTS: Final = 8


class Before(Enum):
    """The checks of batches that lie before the start offset of a walk, in the same segment."""

    CHECKED = "checked"
    """As for all other batches: checksums are verified, and each batch must follow the one before."""
    PASSED_OVER = "passed over"
    """Only their frames are read: a snapshot replaces their records."""


class Gap(NamedTuple):
    """Where a batch does not follow from the one before."""

    path: str
    """Of the segment it lies in."""
    expected_offset: int
    expected_epoch: int
    """No lower one; -1: any."""
    found_offset: int
    found_epoch: int

    def problem(self, path: str) -> Problem:
        """Return it as what ends an image.

        Args:
            path: Of the log.
        """
        expected = f"a batch at offset {self.expected_offset}, of no lower epoch"
        return Problem("malformed-file", path, expected, f"one at {self.found_offset}", "what is behind it is not used")


class Torn(NamedTuple):
    """The last segment ends in bytes that are no whole batch."""

    name: str
    """Of the file."""
    end: int
    """Behind the last whole batch, in bytes."""
    size: int
    """Of the file when it was opened."""


class _Framed(Protocol):
    """A batch, or its head."""

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
        """Begin; nothing is opened yet.

        Args:
            directory: Of the log.
            only: Name of the one file that is read, as somebody typed it: a link is followed. ``None``: all of them.
        """
        self.directory = directory
        self.gap: Gap | None = None
        """What the last walk stopped at before the end of the files, if it was no damage."""
        self.end = 0
        """Behind the last batch that the last walk came to, also before its start."""
        self.place: tuple[int, int] | None = None
        """Where the last batch lies that was walked over: base offset of its segment, byte in it."""
        self._walked_to: tuple[int, int] | None = None
        """Base offset of the last segment, and the byte behind its last batch, if the last walk came to its end."""
        self._only = only
        self._names: list[str] | None = None
        self._open: dict[str, MetadataFile] = {}
        self._heads: dict[int, Heads] = {}

    @property
    def names(self) -> list[str]:
        """The names of all files.

        Raises:
            OSError: they cannot be listed.
        """
        if self._names is None:
            self._names = os.listdir(self.directory) if self._only is None else [self._only]
        return self._names

    @property
    def bases(self) -> list[int]:
        """The base offsets of the segments, rising. Raises as ``names``."""
        return bases_of(self.names)

    @property
    def ended(self) -> Problem | None:
        """Why the last walk stopped before the end of the files, as an image says it."""
        return None if self.gap is None else self.gap.problem(self.directory)

    def forget(self) -> None:
        """Close all files; what is asked for next is read anew."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        self._heads.clear()
        self._names = None

    @contextmanager
    def opened(self, name: str) -> Iterator[MetadataFile]:
        """Open a file, or give the one that is open.

        Raises:
            MalformedFileError: it is no regular file.
            OSError: it cannot be opened; ``FileNotFoundError``: it went away since it was listed.
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
        """Yield the batches of one file from a byte on, in its order. Raises as ``opened`` and its ``batches``."""
        with self.opened(name) as file:
            yield from file.batches(position)

    def snapshot(self, name: str) -> Iterator[SnapshotBatch]:
        """Yield the batches of a snapshot. Raises as ``opened`` and ``snapshot_batches``."""
        with self.opened(name) as file:
            yield from snapshot_batches(file)

    def torn(self) -> Torn | None:
        """Return how the last segment ends, if the last walk came to its end and found no whole batch there."""
        if self._walked_to is None:
            return None
        base, end = self._walked_to
        with self.opened(segment_name(base)) as file:
            return Torn(segment_name(base), end, file.size) if end < file.size else None

    def size_of(self, name: str) -> int:
        """Return how many bytes a file has now. Raises as ``opened``."""
        with self.opened(name) as file:
            return file.size_now

    def batches(self, start: int, place: tuple[int, int] | None = None) -> Iterator[Batch]:
        """Yield the batches that hold records from an offset on; stops at the first gap or damage.

        No checksum covers a base offset: each must follow from the one before, the first of a segment from its name.

        Args:
            start: The offset.
            place: Where a batch is said to lie that ends at it, or before; looked at first.

        Raises:
            WireError: a batch whose header or checksum cannot be true.
            FileNotFoundError: a segment went away.
        """
        return self._walk(
            lambda base, position: self.batches_in(segment_name(base), position), start, self._checked(place, start)
        )

    def batches_behind(self, start: int, epoch: int) -> Iterator[Batch]:
        """Yield the batches that hold records from an offset on, behind a snapshot that stands for what is before it.

        As ``batches``, but what is damaged before the offset does not matter.

        Args:
            start: The offset.
            epoch: Of the record before it; -1: there is none. A batch of a lower one is a gap.
        """
        return self._walk(lambda base, _: self._framed(base, start), start, epoch=epoch, before=Before.PASSED_OVER)

    def _framed(self, base: int, start: int) -> Iterator[Batch]:
        with self.opened(segment_name(base)) as file:
            for walked in file.walk():
                if walked.batch.last_offset >= start:
                    walked.require_valid()
                yield walked.batch

    def last_epoch(self, start: int) -> int:
        """Return the epoch of the last batch of the log, as far as its batches are framed; -1: there is none.

        Args:
            start: Offset that the log is read from.
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
        """Yield what the headers say of the batches that hold records from an offset on; as ``batches``, one at a time.

        Args:
            start: The offset.
            place: As for ``batches``.
            placed: What the batch there ends at, or before; ``start`` if left out.
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
        """Yield the heads of a segment; what was walked over before is not read again."""
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
        """Return a place if a batch lies there that ends at an offset, or before it."""
        if place is None or place[0] not in self.bases:
            return None
        try:
            batch = next(self.batches_in(segment_name(place[0]), place[1]), None)
        except WireError:
            return None
        return None if batch is None or not place[0] <= batch.base_offset <= batch.last_offset < end else place

    def epoch_before(self, offset: int, place: tuple[int, int] | None = None) -> int | None:
        """Return the epoch of the record before an offset, ``None`` if it is not there."""
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
    """Let all who read a metadata log meanwhile share its files; within another one nothing begins."""
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
    """Give the files of a metadata log: those of ``one_reading``, or its own, which are closed at the end."""
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
    """Read a log, once more whenever a file of it vanished: a broker renames old ones (kafka-formats §8.3).

    Raises:
        StateError: its files went away as often as it was tried.
        OSError: it cannot be read; ``FileNotFoundError``: there is no such directory.
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
    raise StateError(vanished, expected="a file that stays while it is read", found="it went away")
