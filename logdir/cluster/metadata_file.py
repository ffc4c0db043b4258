"""One segment or snapshot of a metadata log, walked record batch by record batch: only this module reads batches from a
file.

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
"""Limit of one record batch; those of the metadata log have 8 MiB at most (kafka-formats §7.6)."""


class Walked(NamedTuple):
    """One record batch of a file, with the checksum that its bytes have."""

    batch: Batch
    crc: int
    """Computed over its bytes; ``batch.crc`` is the checksum in its header."""

    @property
    def is_valid(self) -> bool:
        """Whether the checksum in its header is that of its bytes."""
        return self.crc == self.batch.crc

    def require_valid(self) -> Batch:
        """Return the batch. Raises ``CorruptBatchError`` if its checksum is wrong."""
        if not self.is_valid:
            raise self.batch.corrupt(f"checksum {self.batch.crc:08x}", f"{self.crc:08x}", CRC_AT)
        return self.batch


class MetadataFile:
    """An open segment or snapshot; see ``opened``. Several walks may go on at once."""

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.size = size
        """Size in bytes when it was opened."""
        self.end = 0
        """Position after the last batch that was yielded, in bytes."""
        self._descriptor = descriptor
        self._window, self._start = b"", 0

    @property
    def is_torn(self) -> bool:
        """Whether bytes are left that are no whole batch; to be asked once all batches were yielded."""
        return self.end < self.size

    @property
    def size_now(self) -> int:
        """Current size in bytes. Raises ``OSError``."""
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def walk(self, position: int = 0) -> Iterator[Walked]:
        """Yield the record batches from a position on; stops where too few bytes are left for a whole one.

        Args:
            position: Byte at which a batch starts.

        Raises:
            CorruptBatchError: a length or a magic byte that cannot be true, as in zeros behind the end of the log.
            OSError: the file cannot be read.
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
                expected = f"a record batch of at most {MOST_BYTES} bytes"
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
        """Yield the record batches from a position on, as ``walk``, but only those whose checksum is right.

        Raises:
            CorruptBatchError: as ``walk``, or a checksum is wrong.
            OSError: the file cannot be read.
        """
        for walked in self.walk(position):
            yield walked.require_valid()

    def _hold(self, position: int, size: int) -> int:
        """Read bytes of the file into the window, as many as the file has; return their index in the window."""
        begin = position - self._start
        if begin >= 0 and begin + size <= len(self._window):
            return begin
        wanted = min(max(size, _WINDOW), self.size - position)
        self._window, self._start = os.pread(self._descriptor, wanted, position), position
        return 0


def open_file(path: str, *, is_followed: bool = False) -> MetadataFile:
    """Open a segment or snapshot for reading.

    Args:
        path: Path of the file.
        is_followed: Whether a symbolic link is followed: one that an operator typed, never one found in a directory.

    Returns:
        The open file, which the caller closes.

    Raises:
        MalformedFileError: it is no regular file.
        OSError: it does not exist, is a symbolic link that is not followed, or cannot be opened.
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
    """Yield an open segment or snapshot, and close it at the end of the block. Arguments as ``open_file``.

    Raises:
        MalformedFileError: it is no regular file, or a symbolic link that is not followed.
        OSError: it does not exist, or cannot be opened.
    """
    with link_refused():
        file = open_file(path, is_followed=is_followed)
    try:
        yield file
    finally:
        file.close()


@contextmanager
def link_refused() -> Iterator[None]:
    """Raise ``MalformedFileError`` where the block was to open a symbolic link, which it does not follow."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            path = os.fsdecode(error.filename)
            raise MalformedFileError(path, expected="a regular file", found="a symbolic link") from error
        raise
