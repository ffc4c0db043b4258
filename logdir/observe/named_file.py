"""Read a file that an operator names: a regular one, and no more of it than it may have.

A FIFO would let a command wait for ever, a device would fill the memory. Few imports: every command starts with this.

Spec: design §2 law 8.
"""

from __future__ import annotations

import errno
import os
import stat

from logdir.errors import ConfigError, Problem

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def read_regular(path: str, most_bytes: int) -> bytes:
    """Return the first bytes of a regular file; links are followed. Reads only.

    Args:
        path: Of the file.
        most_bytes: How many of them.

    Raises:
        OSError: it is not there, cannot be read, or is no regular file.
        ValueError: it is no path.
    """
    descriptor = os.open(path, _OPEN)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "a directory" if stat.S_ISDIR(mode) else "no regular file", path)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(descriptor)


def read_named(path: str, limit_bytes: int, expected: str, fix: str = "") -> bytes:
    """Return a whole file that somebody named. Reads only.

    Args:
        path: As it was named; links are followed.
        limit_bytes: How many bytes it may have.
        expected: What it should be, in words.
        fix: What to do where it is not.

    Raises:
        ConfigError: it is not there, cannot be read, is no regular file, or has more bytes.
    """
    try:
        data = read_regular(path, limit_bytes + 1)
    except (OSError, ValueError) as error:
        found = str(error) if isinstance(error, ValueError) else error.strerror or str(error)
        raise ConfigError((Problem("config-error", path, expected, found, fix),)) from error
    if len(data) > limit_bytes:
        raise ConfigError((Problem("config-error", path, expected, f"more than {limit_bytes} bytes", fix),))
    return data
