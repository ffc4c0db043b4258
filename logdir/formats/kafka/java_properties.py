r"""Java's ``Properties`` text format, used by ``meta.properties`` and ``server.properties``.

One byte is one character (ISO-8859-1), whatever encoding the author used. A value may be a password: no error shows
one. Not here: the meaning of keys.

Spec: kafka-formats §3.2 (reading), §3.3 (writing); java.util.Properties of Java 17, against which both were
compared.

>>> parse(b"# a comment\nlog.dirs = /a,\\\n  /b\nnode.id:1")
{'log.dirs': '/a,/b', 'node.id': '1'}
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

from logdir.errors import MalformedFileError
from logdir.formats.stock_output.java_map import text_hash

_BLANKS = " \t\f"
_NATURAL_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
SEPARATORS = "=: \t\f"
"""The characters that end a key."""
_PLAIN_KEY = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)+")
"""Keys that an error shows: those of Kafka's form. What stands in the place of a key may be a line of a password."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_READ = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {c: f"\\{c}" for c in "\\=:#!"}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FIRST_TABLE = 16  # bins of the map inside a new java.util.Properties


class Style(Enum):
    """How characters beyond ASCII are written."""

    ESCAPED = "escaped"
    r"""As ``\uXXXX``, the only way that reads back equal; Kafka up to 3.6."""
    STOCK = "stock"
    """As UTF-8, which Java reads back as ISO-8859-1, so that ``é`` grows at every rewrite; Kafka since
    3.7.
    """


def parse(data: bytes, path: str = "") -> dict[str, str]:
    r"""Parse a properties file.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Returns:
        Keys in the order in which each appeared first; the last value of a repeated key. Escapes are
        resolved.

    Raises:
        MalformedFileError: a ``\u`` without four hexadecimal digits; nothing else is malformed. It shows the number
            of the line and, for a value, the key; never the value.
    """
    properties = {}
    for number, line in _logical_lines(data.decode("latin-1")):
        end = _end(_KEY.match(line))
        value = _end(_SEPARATOR.match(line, end))
        key = _unescaped(line[:end], f"another text in line {number}", path)
        properties[key] = _unescaped(line[value:], _value_at(key, number), path)
    return properties


def _value_at(key: str, number: int) -> str:
    """Return, for a message, which value it is; never the value itself."""
    return f"another text in line {number}" + (f", {key}" if _PLAIN_KEY.fullmatch(key) else "")


def shown(text: str, separators: str = "=") -> str:
    r"""Return a value for a message, without what follows the first separator of keys and values.

    A backslash at the end of a line joins the next one to the value, and that may hold a password.

    Args:
        text: The value, or words about it.
        separators: An equals sign; also a colon and blanks (``SEPARATORS``) where the value should hold none of them.

    >>> shown("1ssl.keystore.password=secret")
    '1ssl.keystore.password=…'
    """
    ends = [place for separator in separators if (place := text.find(separator)) >= 0]
    return f"{text[: min(ends) + 1]}…" if ends else text


def _end(matched: re.Match[str] | None) -> int:
    return matched.end() if matched else 0


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line with the number of its first line, from 1."""
    lines = _NATURAL_END.split(text)
    last = len(lines) - 1
    logical, first = "", 1
    for number, line in enumerate(lines):
        part = line.lstrip(_BLANKS)
        # Java asks "is the logical line still empty?", not "does this line continue another?". So a comment
        # is a comment even after a line that was a lone backslash.
        if not logical and (not part or part[0] in "#!"):
            continue
        if not logical:
            first = number + 1
        if (len(part) - len(part.rstrip("\\"))) % 2 == 0:
            yield first, logical + part
            logical = ""
            continue
        logical += part[:-1]
        if number == last or (number == last - 1 and not lines[last] and not text.endswith("\r\n")):
            # Even an empty line: a lone backslash at the end is an empty key with an empty value. Before CRLF it is
            # not, because Java does not know yet that the file ends.
            yield first, logical
            return


def _unescaped(text: str, found: str, path: str) -> str:
    if "\\" not in text:
        return text

    def resolve(escape: re.Match[str]) -> str:
        if escape[1] is not None:
            return chr(int(escape[1], 16))
        if escape[2] == "u":
            raise MalformedFileError(
                path,
                expected="four hexadecimal digits after every \\u",
                found=found,
                fix="write \\\\u for a plain \\u",
            )
        return _READ.get(escape[2], escape[2])

    resolved = _ESCAPE.sub(resolve, text)
    if _SURROGATE.search(resolved):
        # Two escapes may be the halves of one character.
        resolved = resolved.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return resolved


def render(properties: Mapping[str, str], *, written_at_ms: int | None = None, style: Style = Style.ESCAPED) -> bytes:
    r"""Return a properties file as Kafka on Java 9 to 17 writes it: an empty comment, the date, keys in hash order.

    Args:
        properties: Keys and values; the order matters only where two keys share a bin of Java's table.
        written_at_ms: Instant of the date line, epoch milliseconds; ``None`` leaves the line out.
        style: What to do with characters beyond ASCII.

    >>> print(render({"cluster.id": "a=b", "node.id": "1"}, written_at_ms=1_700_000_000_000).decode(), end="")
    #
    #Tue Nov 14 22:13:20 UTC 2023
    node.id=1
    cluster.id=a\=b
    """
    lines = ["#"]
    if written_at_ms is not None:
        lines.append(f"#{date_text(written_at_ms)}")
    for key in java_order(properties):
        name = "".join("\\ " if c == " " else _WRITTEN.get(c, c) for c in key)
        value = "".join(_WRITTEN.get(c, c) for c in properties[key])
        if value.startswith(" "):
            value = f"\\{value}"
        lines.append(f"{name}={value}")
    text = "\n".join(lines) + "\n"
    if style is Style.STOCK:
        return text.encode("utf-8", "replace")
    return "".join(c if " " <= c <= "~" or c == "\n" else _escaped(c) for c in text).encode("ascii")


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def date_text(instant_ms: int) -> str:
    """Return ``java.util.Date``'s text of an instant (epoch milliseconds) in UTC, independent of the
    locale.
    """
    at = time.gmtime(instant_ms // 1000)
    clock = f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}"
    return f"{_DAYS[at.tm_wday]} {_MONTHS[at.tm_mon - 1]} {at.tm_mday:02} {clock} UTC {at.tm_year:04}"


def java_order(keys: Iterable[str]) -> list[str]:
    """Return ``keys`` in the order in which ``Properties`` of Java 9 to 17 lists them.

    Exact up to eleven keys, the size of every file that Kafka writes this way; beyond that only the order of
    keys within one bin may differ. The order carries no meaning.
    """
    listed = list(keys)
    bins = _FIRST_TABLE
    while len(listed) >= bins * 3 // 4:
        bins *= 2
    return sorted(listed, key=lambda key: _spread(key) & (bins - 1))


def _spread(key: str) -> int:
    value = text_hash(key)
    return (value ^ (value >> 16)) & 0x7FFFFFFF
