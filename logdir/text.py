"""Text that is safe to print, to type at a shell, and to write as UTF-8; instants, spans and sizes for people."""

from __future__ import annotations

import os

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SPANS = (("d", 24 * 60 * 60 * 1000), ("h", 60 * 60 * 1000), ("min", 60 * 1000), ("s", 1000))


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
    """Return text that cannot steer a terminal: what is not printable is escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def utc(wall_ms: int | None) -> str:
    """Return an instant as text for people, in UTC; ``-`` for ``None``.

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


def size(value: int | None) -> str:
    """Return a number of bytes as text for people.

    >>> size(1536), size(None), size(7)
    ('1.5 KiB', '-', '7 B')
    """
    if value is None:
        return "-"
    amount, step = float(value), 0
    while amount >= 1024 and step < len(_SIZES) - 1:
        amount, step = amount / 1024, step + 1
    return f"{value} B" if step == 0 else f"{amount:.1f} {_SIZES[step]}"


def age(age_ms: int | None) -> str:
    """Return a time span as text for people.

    >>> age(93_600_000), age(61_000), age(10), age(None)
    ('26 h', '61 s', '0 s', '-')
    """
    if age_ms is None:
        return "-"
    name, step = next((pair for pair in _SPANS if age_ms >= 2 * pair[1]), _SPANS[-1])
    return f"{age_ms // step} {name}"
