"""One segment or snapshot, walked batch by batch the way the stock tools walk it: a checksum that fails is told.

A window at a time is in memory, and never less than one batch. What was appended after the file was opened is not seen.

Not here: which files a log has, and what is believed of them (``metadata_log`` stops at the first bad checksum).

Spec: kafka-formats §7.3; org.apache.kafka.common.record.FileLogInputStream; design §2 law 10.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Final, NamedTuple

from logdir.errors import MalformedFileError
from logdir.wire.batches import CRC_START, MAGIC, Batch, read_batches
from logdir.wire.crc32c import crc32c
from logdir.wire.errors import CorruptBatchError
from logdir.wire.records import HEADER

_PREFIX: Final = Struct(">qiib")
"""Of a batch as far as its magic byte."""
_LENGTH_FROM: Final = 12
_LEAST_LENGTH: Final = 14
_WINDOW: Final = 1 << 20
_LARGE_WINDOW: Final = 4 << 20
"""For who needs every batch: a segment may have a gigabyte."""
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
MOST_BYTES: Final = 128 << 20
"""Of one batch; those of the metadata log have 8 MiB at most (kafka-formats §7.6)."""


class Walked(NamedTuple):
    """One batch of a file."""

    batch: Batch
    is_valid: bool
    """Its checksum holds."""


class MetadataFile:
    """An open segment or snapshot; see ``opened``."""

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        """Bytes when it was opened."""
        self.end = 0
        """Behind the last batch that was given, in bytes."""
        self._descriptor = descriptor
        self._window, self._start = b"", 0

    @property
    def is_torn(self) -> bool:
        """Whether, once all batches were given, bytes are left that are no whole batch."""
        return self.end < self.size

    def batches(self, position: int = 0) -> Iterator[Walked]:
        """Yield the batches from a byte on; stops where fewer bytes are left than one has.

        Args:
            position: Where one starts.

        Raises:
            CorruptBatchError: a length or a magic byte that cannot be true (zeros behind the end are that).
            OSError: the disk does not give it.
        """
        self.end = position
        # As the stock reader: the bytes up to the magic byte alone are no batch yet.
        while self.size - self.end > _PREFIX.size:
            head = self._read(self.end, HEADER.size)
            if len(head) <= _PREFIX.size:
                return  # cut off since it was opened
            _, length, _, magic = _PREFIX.unpack_from(head)
            if length < _LEAST_LENGTH:
                raise self._corrupt(f"a batch length of at least {_LEAST_LENGTH}", length, 8)
            size = _LENGTH_FROM + length
            if size > self.size - self.end:
                return
            if magic != MAGIC:
                raise self._corrupt(f"a batch of magic {MAGIC}", magic, 16)
            if not HEADER.size <= size <= MOST_BYTES:
                raise self._corrupt(f"a batch of {HEADER.size} to {MOST_BYTES} bytes", size, 8)
            data = self._read(self.end, size)
            if len(data) < size:
                return
            header = HEADER.unpack_from(data)
            batch = Batch(self.path, self.end, data, header)
            self.end += size
            yield Walked(batch, crc32c(data[CRC_START:]) == header[4])

    def _read(self, position: int, size: int) -> bytes:
        begin = position - self._start
        if begin < 0 or begin + size > len(self._window):
            wanted = min(max(size, _WINDOW), self.size - position)
            self._window, self._start, begin = os.pread(self._descriptor, wanted, position), position, 0
        return self._window[begin : begin + size]

    def _corrupt(self, expected: str, found: int, position: int) -> CorruptBatchError:
        return CorruptBatchError(self.path, expected=expected, found=found, position=self.end + position)


@contextmanager
def opened(path: str, *, is_followed: bool = False) -> Iterator[MetadataFile]:
    """Open a segment or snapshot for reading.

    Args:
        path: Of the file.
        is_followed: Whether a symbolic link is followed: one that somebody typed, never one that was found.

    Raises:
        MalformedFileError: it is no regular file.
        OSError: it is not there, or may not be read.
    """
    # Not to wait for the other end of a pipe.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if is_followed else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise MalformedFileError(path, expected="a regular file", found="a symbolic link") from error
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise MalformedFileError(path, expected="a regular file", found=stat.filemode(found.st_mode))
        yield MetadataFile(path, descriptor, found.st_size)
    finally:
        os.close(descriptor)


def open_regular(path: str) -> int:
    """Open a regular file: on a FIFO of its name nobody waits.

    Raises:
        MalformedFileError: it is something else.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, _OPEN)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise MalformedFileError(path, expected="a regular file", found="something else")
    return descriptor


def batches_at(path: str, descriptor: int, position: int) -> Iterator[Batch]:
    """Yield the batches of a file from a byte on, a window at a time; stops at a torn one.

    No map: a broker may cut the file off.

    Raises:
        CorruptBatchError: as ``read_batches``, or a batch larger than any of a metadata log.
        OSError: the disk does not give it.
    """
    window = _LARGE_WINDOW
    while True:
        data = os.pread(descriptor, window, position)
        used = 0
        try:
            for batch in read_batches(data, path):
                used = batch.position + batch.size
                yield Batch(path, position + batch.position, batch.data, batch.header)
        except CorruptBatchError as error:
            raise error.within(path, position) from None
        if used == 0:
            if len(data) < window:
                return
            if window >= MOST_BYTES:
                found = f"more than {MOST_BYTES}"
                raise CorruptBatchError(
                    path, expected=f"a batch of at most {MOST_BYTES} bytes", found=found, position=position + 8
                )
            window *= 2  # one batch is larger
        position += used
