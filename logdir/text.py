"""Text that is safe to print, to type at a shell, and to write as UTF-8."""

from __future__ import annotations

import os


def utf8(text: str) -> str:
    r"""Return text that UTF-8 can represent: undecodable bytes of a path become U+FFFD.

    >>> utf8("/d\udcff")
    '/d\ufffd'
    """
    if text.isascii():
        return text
    try:
        return os.fsencode(text).decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def quoted(text: str) -> str:
    r"""Return one word for a shell, on one line; control characters and undecodable bytes are escaped.

    >>> print(quoted("/d 1"), quoted("/d\n1\udcff"))
    '/d 1' $'/d\0121\377'
    """
    import shlex

    if text.isprintable():
        return shlex.quote(text)
    # Three octal digits each: a shell that takes more of hexadecimal ones would read the next letter too. No quote
    # within the quotes: what reads words as POSIX has them would take it for the last one.
    shown = (char if char.isprintable() and char not in "\\'" else _octal(os.fsencode(char)) for char in text)
    return f"$'{''.join(shown)}'"


def _octal(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data)


def printable(text: str) -> str:
    """Return text that cannot steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def utc(wall_ms: int | None) -> str:
    """Return an instant for people.

    >>> utc(1_700_000_000_000)
    '2023-11-14T22:13:20Z'
    """
    from datetime import UTC, datetime

    if wall_ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "far away"
