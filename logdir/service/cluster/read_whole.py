"""Reading a file that an option names, whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

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


def read_whole(path: str, limit: int, option: str = "--from") -> bytes:
    """Return the content of a regular file, at most ``limit`` + 1 bytes.

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
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError((asked("a regular file", path)._replace(path=option),))
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(limit + 1)
        finally:
            os.close(descriptor)
