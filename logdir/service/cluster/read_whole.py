"""Reading a file that an option names, whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from logdir.errors import ConfigError
from logdir.service.cluster.source import asked

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


@contextmanager
def readable(path: str, option: str = "--from") -> Iterator[None]:
    """Raise ``ConfigError`` for an ``OSError``; ``path`` is shown where the error names no file."""
    try:
        yield
    except OSError as error:
        found = f"{error.strerror or error}: {error.filename or path}"
        raise ConfigError((asked("a source that can be read", found)._replace(path=option),)) from error


class Read(NamedTuple):
    """A file as it was read."""

    data: bytes
    written_ms: int
    """Wall clock time of its last change when the reading began; never later than the bytes."""


def read_whole(path: str, limit: int, option: str = "--from") -> bytes:
    """Return the content of a regular file. Arguments and errors as ``read_dated``."""
    return read_dated(path, limit, option).data


def read_dated(path: str, limit: int, option: str = "--from") -> Read:
    """Return the content of a regular file, at most ``limit`` + 1 bytes, and when it was written.

    Args:
        path: The file.
        limit: In bytes.
        option: The option that names the file, for the error.

    Raises:
        ConfigError: the file does not exist, cannot be read, or is no regular file.
    """
    with readable(path, option):
        descriptor = os.open(path, _OPEN)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise ConfigError((asked("a regular file", path)._replace(path=option),))
            with open(descriptor, "rb", closefd=False) as file:
                return Read(file.read(limit + 1), found.st_mtime_ns // 1_000_000)
        finally:
            os.close(descriptor)
