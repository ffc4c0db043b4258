"""How the value of a key is read: from what YAML has to what the daemon takes.

Each function takes a value of the document and the folder of its file, and returns the value of the field.

Not here: which key is read by which function (``keys``), where a problem is in the file (``parsing``).

Spec: style §5.9; unix(7), ``sun_path``; systemd.unit(5).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from enum import Enum
from typing import Final

from logdir.decide.staged.deadline import check_delay
from logdir.decide.staged.pressure import Pressure
from logdir.decide.staged.removal_reason import RemovalReason
from logdir.formats import duration

Read = Callable[[object, str], object]
"""Takes a value of the document and the folder of its file; raises ``DoesNotFitError``."""
_MOST_SOCKET_BYTES: Final = 107
_MOST_UNIT_CHARACTERS: Final = 255
_UNIT: Final = re.compile(r"[A-Za-z0-9:_.\\-]+(?:@[A-Za-z0-9:_.\\-]+)?\.service", re.ASCII)
_PLACE: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\]|(?P<four>[0-9.]+)):(?P<port>[0-9]{1,5})")


class DoesNotFitError(Exception):
    """A value is not of the type of its key, or out of its range."""

    def __init__(self, expected: str, fix: str = "", found: str = "") -> None:
        """Take what was expected; ``found``: what is shown in place of the value itself."""
        super().__init__(expected)
        self.expected, self.fix, self.found = expected, fix, found


def words(kind: type[Enum], between: str = ", ") -> str:
    """Return the values of an enumeration, for people."""
    return between.join(str(one.value) for one in kind)


def path(value: object, folder: str) -> str:
    """Return a path; a relative one starts at the folder."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise DoesNotFitError("a path")
    return os.path.normpath(os.path.join(folder, value))


def socket_path(value: object, folder: str) -> str:
    """Return a path that a unix socket can have."""
    found = path(value, folder)
    length = len(os.fsencode(found))
    if length > _MOST_SOCKET_BYTES:
        raise DoesNotFitError(f"a path of at most {_MOST_SOCKET_BYTES} bytes", found=f"{length} bytes")
    return found


def flag(value: object, folder: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise DoesNotFitError("true or false")
    return value


def number(lowest: int, highest: int) -> Read:
    """Return a reader of whole numbers in a range."""

    def read(value: object, folder: str) -> int:
        if type(value) is not int or not lowest <= value <= highest:
            raise DoesNotFitError(f"a whole number from {lowest} to {highest}")
        return value

    return read


def delay(value: object, folder: str) -> int:
    """Return a delay: milliseconds, or a text with a unit, which answers whether milliseconds were meant."""
    if type(value) is int and value >= 0:
        if (question := check_delay(value)) is not None:
            fix = f"{question.fix}; with a unit it is taken as written: {value}ms, or {value}s"
            raise DoesNotFitError(question.expected, fix)
        return value
    try:
        found = duration.parse(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or not found.has_unit or found.ms < 0:
        raise DoesNotFitError("whole milliseconds, or a text with a unit as 4h or 30m")
    return found.ms


def globs(value: object, folder: str) -> tuple[str, ...]:
    """Return topic globs."""
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise DoesNotFitError("a list of topic globs")
    return tuple(value)


def reasons(value: object, folder: str) -> tuple[RemovalReason, ...]:
    """Return reasons of a removal, in the order of their enumeration."""
    typed = value if isinstance(value, list) else []
    found = tuple(one for one in RemovalReason if one.value in typed)
    if not typed or len(found) != len(typed):
        raise DoesNotFitError(f"a list of reasons: {words(RemovalReason)}; each at most once")
    if RemovalReason.NOT_KNOWN_YET not in found:
        fix = f"add {RemovalReason.NOT_KNOWN_YET.value}: no reason is known at the moment of a capture"
        raise DoesNotFitError(f"a list with {RemovalReason.NOT_KNOWN_YET.value}", fix)
    return found


def pressure(value: object, folder: str) -> Pressure:
    """Return what happens on a nearly full disk."""
    found = next((one for one in Pressure if one.value == value), None)
    if found is None:
        raise DoesNotFitError(words(Pressure, " or "))
    return found


def listen_address(value: object, folder: str) -> tuple[str, int]:
    """Return an IP address and a TCP port; a name is not looked up."""
    expected = "an IP address and a port from 1 to 65535, as 127.0.0.1:9470 or '[::1]:9470'"
    parts = _PLACE.fullmatch(value) if isinstance(value, str) else None
    if parts is None or not 1 <= int(parts["port"]) <= 0xFFFF:
        raise DoesNotFitError(expected)
    from ipaddress import ip_address  # Of the many commands that read a configuration few need it.

    try:
        return str(ip_address(parts["six"] or parts["four"])), int(parts["port"])
    except ValueError:
        raise DoesNotFitError(expected) from None


def loopback_address(value: object, folder: str) -> tuple[str, int]:
    """Return an address and a port that only this host reaches."""
    host, port = listen_address(value, folder)
    if host != "::1" and not host.startswith("127."):
        fix = f"write 127.0.0.1:{port}; from another host the page is reached by ssh -L {port}:127.0.0.1:{port} HOST"
        raise DoesNotFitError("a loopback address, which only this host reaches", fix)
    return host, port


def unit_name(value: object, folder: str) -> str:
    """Return the name of a systemd service; a template without its instance is none."""
    if not isinstance(value, str) or len(value) > _MOST_UNIT_CHARACTERS or _UNIT.fullmatch(value) is None:
        raise DoesNotFitError("the name of a systemd service, as kafka.service or kafka@1.service")
    return value
