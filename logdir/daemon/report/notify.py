"""Messages to systemd: READY, RELOADING, STOPPING, WATCHDOG and one line of status.

Without ``NOTIFY_SOCKET`` nothing is sent.

Spec: sd_notify(3); libraries §0 "systemd notify".
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress


class Notifier:
    """Sends datagrams to the service manager; never raises."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """Read the address from ``NOTIFY_SOCKET``."""
        path = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{path[1:]}" if path.startswith("@") else path
        usec = environment.get("WATCHDOG_USEC", "")
        self.watchdog_ms = int(usec) // 2000 if usec.isdecimal() else None
        """How often ``WATCHDOG=1`` is due; ``None``: the unit has no watchdog."""

    def send(self, *lines: str) -> None:
        """Send assignments such as ``READY=1`` in one datagram."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
            connection.sendto("\n".join(lines).encode(), self._address)
