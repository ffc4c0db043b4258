"""The files of a metadata log, read for one purpose after the other: each is listed, opened and walked once.

Whoever reads a log for a command asks for it with ``reading``; within ``one_reading`` all of them get the same files,
as they were when the first of them came to each. Batches come in the order of their offsets, and what stops them is
said: a gap, or damage. A live broker appends, truncates and renames under a reader: what vanished is looked for again
after ``forget``.

Not here: which batches are committed (``metadata_log``), what their records mean (``fold``, ``metadata_contents``).

Spec: kafka-formats §8.1, §8.3; org.apache.kafka.raft.internals.KafkaRaftLog.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeVar

from logdir.cluster.metadata_file import batches_at, open_regular
from logdir.errors import FormatError, Problem
from logdir.wire.batches import Batch
from logdir.wire.errors import WireError

_SEGMENT: Final = re.compile(r"([0-9]{20})\.log", re.ASCII)
_SNAPSHOT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint", re.ASCII)
_KEPT_OPEN: Final = 64
"""Files; of a log of more segments the others are opened whenever they are needed."""


class Snapshot(NamedTuple):
    """A snapshot file; the newest is the greatest: by epoch first, then by offset (kafka-formats §8.1)."""

    epoch: int
    offset: int
    """Behind the last record it stands for."""
    name: str


def base_of(name: str) -> int | None:
    """Return the base offset of a segment by its file name, ``None`` for anything else."""
    matched = _SEGMENT.fullmatch(name)
    return None if matched is None else int(matched[1])


def bases_of(names: Iterable[str]) -> list[int]:
    """Return the base offsets of the segments among file names, rising."""
    return sorted(base for name in names if (base := base_of(name)) is not None)


def segment_name(base: int) -> str:
    """Return the file name of a segment."""
    return f"{base:020d}.log"


def snapshot_of(name: str) -> Snapshot | None:
    """Return the snapshot of a file name, ``None`` for anything else (``.part``, ``.deleted``)."""
    matched = _SNAPSHOT.fullmatch(name)
    return None if matched is None else Snapshot(int(matched[2]), int(matched[1]), name)


def newest(names: list[str], log_start: int) -> Snapshot | None:
    """Return the snapshot to begin with, ``None`` to begin with nothing at offset 0.

    Args:
        names: Of all files.
        log_start: Base offset of the first segment.
    """
    found = (snapshot_of(name) for name in names)
    # The snapshot of offset 0 holds voters only.
    return max((one for one in found if one is not None and one.offset >= max(log_start, 1)), default=None)


class Head(NamedTuple):
    """What the header of a batch says; its checksum held when it was read."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    position: int
    """Where it starts in its segment, in bytes."""
    size: int
    is_control: int
    """1: it holds control records; 0: it holds none."""


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


_F = TypeVar("_F", bound=_Framed)


@dataclass(slots=True)
class _Heads:
    """The heads of a segment from a byte on, as far as it was walked."""

    start: int
    _numbers: array[int] = field(default_factory=lambda: array("q"))
    """Of one head after the other: a big log has tens of thousands of batches."""
    end: int = 0
    """Behind the last of them."""
    error: WireError | None = None
    is_whole: bool = False
    """There are no more."""

    def add(self, head: Head) -> None:
        """Remember the next one."""
        self._numbers.extend(head)
        self.end = head.position + head.size

    def since(self, position: int) -> Iterator[Head]:
        """Yield those that are remembered by now, from a byte on."""
        numbers = self._numbers
        for at in range(0, len(numbers), len(Head._fields)):
            head = Head(*numbers[at : at + len(Head._fields)])
            if head.position >= position:
                yield head


class MetadataFiles:
    """The files of one metadata log. Closed by ``reading``."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.ended: Problem | None = None
        """Why the last walk stopped before the end of the files."""
        self.place: tuple[int, int] | None = None
        """Where the last batch lies that was walked over: base offset of its segment, byte in it."""
        self._names: list[str] | None = None
        self._open: dict[str, int] = {}
        self._heads: dict[int, _Heads] = {}

    @property
    def names(self) -> list[str]:
        """The names of all files.

        Raises:
            OSError: they cannot be listed.
        """
        if self._names is None:
            self._names = os.listdir(self.directory)
        return self._names

    @property
    def bases(self) -> list[int]:
        """The base offsets of the segments, rising. Raises as ``names``."""
        return bases_of(self.names)

    def forget(self) -> None:
        """Close all files; what is asked for next is read anew."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        self._heads.clear()
        self._names = None

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """Open a file, or give the descriptor that is open.

        Raises:
            MalformedFileError: it is no regular file.
            OSError: it cannot be opened; ``FileNotFoundError``: it went away since it was listed.
        """
        descriptor = self._open.get(name)
        if descriptor is not None:
            yield descriptor
            return
        descriptor = open_regular(f"{self.directory}/{name}")
        if len(self._open) < _KEPT_OPEN:
            self._open[name] = descriptor
            yield descriptor
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def batches_in(self, name: str, position: int = 0) -> Iterator[Batch]:
        """Yield the batches of one file from a byte on, in its order. Raises as ``opened`` and ``batches_at``."""
        with self.opened(name) as descriptor:
            yield from batches_at(f"{self.directory}/{name}", descriptor, position)

    def size_of(self, name: str) -> int:
        """Return how many bytes a file has now. Raises as ``opened``."""
        with self.opened(name) as descriptor:
            return os.fstat(descriptor).st_size

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

    def heads(self, start: int, place: tuple[int, int] | None = None, *, placed: int | None = None) -> Iterator[Head]:
        """Yield what the headers say of the batches that hold records from an offset on; as ``batches``, one at a time.

        Args:
            start: The offset.
            place: As for ``batches``.
            placed: What the batch there ends at, or before; ``start`` if left out.
        """
        return self._walk(self._heads_of, start, self._checked(place, start if placed is None else placed))

    def _walk(
        self, source: Callable[[int, int], Iterator[_F]], start: int, first: tuple[int, int] | None
    ) -> Iterator[_F]:
        self.ended = None
        expected, epoch = start, -1
        bases = self.bases
        for number, base in enumerate(bases):
            after = bases[number + 1] if number + 1 < len(bases) else None
            if (after is not None and after <= start) or (first is not None and base < first[0]):
                continue
            position = first[1] if first is not None and first[0] == base else 0
            following = None if position else base
            for batch in source(base, position):
                if following is not None and batch.base_offset != following:
                    self.ended = self._gap(batch.base_offset, following)
                    return
                following = batch.last_offset + 1
                if batch.last_offset < expected:
                    continue
                if batch.base_offset > expected or batch.leader_epoch < epoch:
                    self.ended = self._gap(batch.base_offset, expected)
                    return
                self.place = base, batch.position
                yield batch
                expected, epoch = batch.last_offset + 1, batch.leader_epoch

    def _heads_of(self, base: int, position: int) -> Iterator[Head]:
        """Yield the heads of a segment; what was walked over before is not read again."""
        known = self._heads.get(base)
        if known is None or position < known.start:
            known = self._heads[base] = _Heads(position, end=position)
        yield from known.since(position)
        if not known.is_whole:
            yield from self._further(base, known)
        if known.error is not None:
            raise known.error

    def _further(self, base: int, known: _Heads) -> Iterator[Head]:
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

    def _gap(self, found: int, expected: int) -> Problem:
        return Problem(
            "malformed-file",
            self.directory,
            f"a batch at offset {expected}, of no lower epoch",
            f"one at {found}",
            "what is behind it is not used",
        )

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
