"""One segment or snapshot of a metadata log, walked batch by batch: the only place that reads batches from a file.

``walk`` yields a batch whose checksum fails, too, as the stock tools do; ``batches`` stops there. A window at a time is
in memory, and never less than one batch. What was appended after the file was opened is not seen. The file is not
mapped: a broker may cut it off.

Not here: which files a log has and how they follow each other (``metadata_files``), how a batch is framed
(``wire.batches``).

Spec: kafka-formats §7.3, §7.6; org.apache.kafka.common.record.FileLogInputStream; design §2 law 10.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from logdir.errors import MalformedFileError
from logdir.wire.batches import CRC_AT, CRC_START, PREFIX_SIZE, Batch, framed_size
from logdir.wire.crc32c import crc32c
from logdir.wire.errors import CorruptBatchError
from logdir.wire.records import HEADER

_WINDOW: Final = 1 << 20
MOST_BYTES: Final = 128 << 20
"""Of one batch; those of the metadata log have 8 MiB at most (kafka-formats §7.6)."""


class Walked(NamedTuple):
    """One batch of a file."""

    batch: Batch
    crc: int
    """The checksum of its bytes."""

    @property
    def is_valid(self) -> bool:
        """Whether its checksum holds."""
        return self.crc == self.batch.crc

    def require_valid(self) -> Batch:
        """Return the batch. Raises ``CorruptBatchError`` if its checksum fails."""
        if not self.is_valid:
            raise self.batch.corrupt(f"checksum {self.batch.crc:08x}", f"{self.crc:08x}", CRC_AT)
        return self.batch


class MetadataFile:
    """An open segment or snapshot; see ``opened``. Several walks may go on at once."""

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        """Bytes when it was opened."""
        self.end = 0
        """Behind the batch that was given last, in bytes."""
        self._descriptor = descriptor
        self._window, self._start = b"", 0

    @property
    def is_torn(self) -> bool:
        """Whether, once all batches were given, bytes are left that are no whole batch."""
        return self.end < self.size

    @property
    def size_now(self) -> int:
        """Bytes that it has by now. Raises ``OSError``."""
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)

    def walk(self, position: int = 0) -> Iterator[Walked]:
        """Yield the batches from a byte on; stops where fewer bytes are left than one has.

        Args:
            position: Where one starts.

        Raises:
            CorruptBatchError: a length or a magic byte that cannot be true (zeros behind the end are that).
            OSError: the disk does not give it.
        """
        self.end = position
        while self.size - position > PREFIX_SIZE:
            begin = self._hold(position, HEADER.size)
            if len(self._window) - begin <= PREFIX_SIZE:
                return  # cut off since it was opened
            size = framed_size(self._window, begin, self.size - position, self.path, position)
            if size is None:
                return
            if size > MOST_BYTES:
                expected = f"a batch of at most {MOST_BYTES} bytes"
                raise CorruptBatchError(self.path, expected=expected, found=size, position=position + 8)
            begin = self._hold(position, size)
            data = self._window[begin : begin + size]
            if len(data) < size:
                return
            batch = Batch(self.path, position, data, HEADER.unpack_from(data))
            position += size
            self.end = position
            yield Walked(batch, crc32c(data[CRC_START:]))

    def batches(self, position: int = 0) -> Iterator[Batch]:
        """Yield the batches from a byte on, as ``walk``.

        Raises:
            CorruptBatchError: as ``walk``, or a checksum that fails.
            OSError: the disk does not give it.
        """
        for walked in self.walk(position):
            yield walked.require_valid()

    def _hold(self, position: int, size: int) -> int:
        """Have bytes of the file in the window, as far as there are any; return where in it they begin."""
        begin = position - self._start
        if begin >= 0 and begin + size <= len(self._window):
            return begin
        wanted = min(max(size, _WINDOW), self.size - position)
        self._window, self._start = os.pread(self._descriptor, wanted, position), position
        return 0


def open_file(path: str, *, is_followed: bool = False) -> MetadataFile:
    """Open a segment or snapshot for reading.

    Args:
        path: Of the file.
        is_followed: Whether a symbolic link is followed: one that somebody typed, never one that was found.

    Returns:
        It; to be closed.

    Raises:
        MalformedFileError: it is no regular file.
        OSError: it is not there, is a symbolic link, or may not be read.
    """
    # Not to wait for the other end of a pipe.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if is_followed else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise MalformedFileError(path, expected="a regular file", found=stat.filemode(found.st_mode))
    return MetadataFile(path, descriptor, found.st_size)


@contextmanager
def opened(path: str, *, is_followed: bool = False) -> Iterator[MetadataFile]:
    """Open a segment or snapshot for as long as the block takes. Arguments as ``open_file``.

    Raises:
        MalformedFileError: it is no regular file, also where it is a symbolic link.
        OSError: it is not there, or may not be read.
    """
    with link_refused():
        file = open_file(path, is_followed=is_followed)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def link_refused() -> Iterator[None]:
    """Say of a symbolic link that is not followed what it is, to people; no decision rests on a log that has one."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            path = os.fsdecode(error.filename)
            raise MalformedFileError(path, expected="a regular file", found="a symbolic link") from error
        raise
