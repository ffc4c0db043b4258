"""Reading a file that an operator names: only regular files, with a size limit.

A FIFO would block a command for ever, a device would fill the memory. Few imports: every command imports this module
first.

Spec: design §2 law 8.
"""

from __future__ import annotations

import errno
import os
import stat

from logdir.errors import ConfigError, Problem

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def read_regular(path: str, most_bytes: int) -> bytes:
    """Return the first bytes of a regular file; links are followed. Only reads.

    Args:
        path: The path of the file.
        most_bytes: The number of bytes to read.

    Raises:
        OSError: it does not exist, cannot be read, or is no regular file.
        ValueError: the path is invalid.
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
    """Return the content of a file that the operator named. Only reads.

    Args:
        path: The path as named; links are followed.
        limit_bytes: Its maximum size.
        expected: The expected kind of file, for the error.
        fix: The fix, for the error.

    Raises:
        ConfigError: it does not exist, cannot be read, is no regular file, or is too large.
    """
    try:
        data = read_regular(path, limit_bytes + 1)
    except (OSError, ValueError) as error:
        found = str(error) if isinstance(error, ValueError) else error.strerror or str(error)
        raise ConfigError((Problem("config-error", path, expected, found, fix),)) from error
    if len(data) > limit_bytes:
        raise ConfigError((Problem("config-error", path, expected, f"more than {limit_bytes} bytes", fix),))
    return data
