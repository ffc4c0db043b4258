"""The lock beside a control socket: only one daemon at a time looks whether the socket is stale, removes and makes it.

Without it, of two daemons that start in the same instant, the second might remove the socket that the first has just
made. The lock file stays: a file that is removed and made again could be locked twice.

Not here: the socket (``server``); ``owner.lock``, which is taken later (``disk.locks``).

Spec: design §5; attacks A19, A31.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

from logdir.disk.lock_holder import whole_file
from logdir.paths import SOCKET_LOCK

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MODE: Final = 0o600
"""Whoever could open the file could lock it."""


class SocketLock:
    """A lock that this process holds until ``release``, or until its end."""

    def __init__(self, descriptor: int) -> None:
        """Take the descriptor of the locked file."""
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: str) -> SocketLock | None:
        """Lock the file beside a socket, which is made if it is missing.

        Args:
            path: The path of the socket.

        Returns:
            The lock; ``None``: another daemon holds it.

        Raises:
            OSError: the file cannot be opened or locked.
        """
        name = Path(path + SOCKET_LOCK)
        descriptor = os.open(name, _FLAGS, _MODE)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole_file(fcntl.F_WRLCK))
            # Somebody may have removed the file, and another daemon have locked a new one.
            found, held = name.lstat(), os.fstat(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES, errno.ENOENT):
                return None
            raise
        if (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
            os.close(descriptor)
            return None
        return cls(descriptor)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
