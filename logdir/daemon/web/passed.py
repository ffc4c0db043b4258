"""The listening sockets that systemd opened for the daemon and passed to it: those of its socket units.

With them the unit of the daemon needs no right to open a port. Not here: what listens there (``web.site``).

Spec: sd_listen_fds(3); systemd.socket(5), ``FileDescriptorName=``.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Collection, Mapping, MutableMapping
from typing import Final

from logdir.daemon.web.listen_error import ListenError

LOG: Final = logging.getLogger(__name__)
FIRST_DESCRIPTOR: Final = 3
"""SD_LISTEN_FDS_START."""
_PID, _COUNT, _NAMES, _PIDFD = "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"
Passed = Mapping[str, tuple[socket.socket, ...]]
"""Listening sockets by ``FileDescriptorName=``."""


def take_passed(names: Collection[str], environment: MutableMapping[str, str] = os.environ) -> Passed:
    """Take the sockets that were passed to this process, so that no process that it starts gets them.

    The variables of the environment are removed, and the descriptors become close-on-exec; a socket of another name is
    closed, and named in the log.

    Args:
        names: The names that are known.
        environment: Of this process.

    Raises:
        ListenError: a descriptor is no socket that accepts connections.
    """
    said = {variable: environment.pop(variable, "") for variable in (_PID, _COUNT, _NAMES, _PIDFD)}
    if said[_PID] != str(os.getpid()):
        return {}  # Nothing was passed, or it was passed to a process that started this one.
    count = int(said[_COUNT]) if said[_COUNT].isascii() and said[_COUNT].isdecimal() else 0
    named = said[_NAMES].split(":")
    found: dict[str, tuple[socket.socket, ...]] = {}
    for place in range(count):
        descriptor = FIRST_DESCRIPTOR + place
        name = named[place] if len(named) == count else "unknown"
        if name in names:
            found[name] = (*found.get(name, ()), _taken(name, descriptor))
        else:
            os.close(descriptor)
            LOG.warning("web.socket-not-known name=%r known=%s", name, ",".join(sorted(names)))
    return found


def _taken(name: str, descriptor: int) -> socket.socket:
    """Return the socket of a descriptor.

    Raises:
        ListenError: it is no stream socket that listens.
    """
    try:
        os.set_inheritable(descriptor, False)
        taken = socket.socket(fileno=descriptor)
        is_fit = taken.type == socket.SOCK_STREAM and taken.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        found = "a socket of another kind"
    except OSError as error:
        is_fit, found = False, error.strerror or str(error)
    if not is_fit:
        raise ListenError(
            f"{_NAMES}: {name}",
            expected="a stream socket that listens",
            found=found,
            fix="write ListenStream= into its socket unit, and leave out Accept=",
        )
    return taken
