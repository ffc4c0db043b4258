"""The daemon of a configuration file that no longer fits: it goes on with the former one, and can still be asked.

Not here: how a file is read (``daemon.config``).

Spec: issue "The daemon at home on a host": a reload that fails keeps the former configuration.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from logdir.daemon.config import parse, read_config
from logdir.daemon.socket.client import is_answering
from logdir.errors import ConfigError, Problem
from logdir.observe.named_file import read_regular

_MOST_BYTES: Final = 1 << 20
_KEY: Final = b"socket:"
_LEAST: Final = b"server.properties: /\n"
"""A configuration with nothing but what is required."""


def socket_of(path: str) -> tuple[str, tuple[Problem, ...]]:
    """Return the control socket that a configuration names, and what is wrong with a file that no longer fits.

    Args:
        path: The configuration file.

    Raises:
        ConfigError: It cannot be used, and no daemon of it answers.
    """
    try:
        return read_config(path).socket, ()
    except ConfigError as error:
        if (socket := answering_socket(path)) is None:
            raise
        return socket, error.problems


def answering_socket(path: str) -> str | None:
    """Return the control socket of the daemon of a file that cannot be used; ``None``: no daemon answers.

    Asks where a line ``socket: PATH`` of the file says, then where a daemon of that name listens without one.

    Args:
        path: The configuration file; it may be missing.
    """
    return next((socket for socket in _sockets(os.path.abspath(path)) if is_answering(socket)), None)


def _sockets(path: str) -> Iterator[str]:
    try:
        lines = read_regular(path, _MOST_BYTES).splitlines(keepends=True)
    except (OSError, ValueError):
        lines = []
    for line in (*(line for line in lines if line.startswith(_KEY)), b""):
        try:
            yield parse(_LEAST + line, path).socket
        except ConfigError:
            continue  # That line does not fit either, or the file's name is none of a configuration.
