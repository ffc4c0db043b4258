"""The listening sockets of a page: those that systemd passed, else one on the configured address.

Not here: which pages there are (``web.site``), who is answered there (``web.server``).

Spec: issue "The daemon at home on a host", status page.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from logdir.daemon.socket.connections import BACKLOG
from logdir.daemon.web.listen_error import ListenError

Address = tuple[str, int]
"""An IP address and a TCP port."""
_SUPPORTED: Final = "an address on which logdird can listen"


def opened(key: str, address: Address | None, passed: Sequence[socket.socket], unit: str) -> tuple[socket.socket, ...]:
    """Return the sockets on which a page is served; none: it is served nowhere.

    Args:
        key: The key of the configuration, for messages.
        address: Its value.
        passed: Sockets that systemd passed for this page: with them the address is left alone.
        unit: The socket unit that could open the port, for messages.

    Raises:
        ListenError: the address cannot be listened on.
    """
    if passed:
        return tuple(passed)
    return () if address is None else (_bound(key, address, unit),)


def _bound(key: str, address: Address, unit: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        # The unit of the daemon may open unix sockets alone (RestrictAddressFamilies=).
        is_forbidden = error.errno in (errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES)
        fix = f"let systemd open the port: systemctl enable {unit}; then restart logdird" if is_forbidden else ""
        raise _failed(key, address, error, fix) from error
    try:
        # Connections of a daemon that has just ended keep no port from the next one.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _failed(key, address, error, "") from error
    return listener


def _failed(key: str, address: Address, error: OSError, fix: str) -> ListenError:
    fix = fix or "name another port, or end what listens there: ss -ltnp shows it"
    return ListenError(f"{key}: {words(address)}", expected=_SUPPORTED, found=error.strerror or str(error), fix=fix)


def words(address: object) -> str:
    """Return the address of a socket for people.

    >>> words(("::1", 9470, 0, 0)), words(("127.0.0.1", 9470)), words("/run/page.sock")
    ('[::1]:9470', '127.0.0.1:9470', '/run/page.sock')
    """
    if not isinstance(address, tuple):
        return str(address)
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def require_loopback(name: str, listener: socket.socket) -> None:
    """Check that only this host can reach a socket.

    Args:
        name: Of the page, for messages.
        listener: The socket.

    Raises:
        ListenError: it is reached over a network.
    """
    if listener.family == socket.AF_UNIX:
        return
    address = listener.getsockname()
    with suppress(ValueError):
        if ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
            return
    raise ListenError(
        f"{name}: {words(address)}",
        expected="an address that only this host reaches, as 127.0.0.1: the page asks nobody for a password",
        found="another one",
        fix="correct ListenStream= of its socket unit; from another host it is read by ssh -L (docs/status-page.md)",
    )
