"""The tokens of PromQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from tests.promql.values import PromqlError


class Kind(Enum):
    """The kind of a token."""

    NUMBER = "number"
    DURATION = "duration"
    NAME = "name"
    TEXT = "text"
    SIGN = "sign"
    END = "end"


class Token(NamedTuple):
    """One token; ``at`` is where it begins."""

    kind: Kind
    text: str
    at: int


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\n]*)
      | (?P<duration>(?:[0-9]+(?:ms|[smhdwy]))+)(?![\w.])
      | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?))(?![\w:.])
      | (?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
      | (?P<sign>==|!=|<=|>=|=~|!~|[-+*/%^<>=(){}\[\],:@])""",
    re.VERBOSE,
)
_PART = re.compile(r"([0-9]+)(ms|[smhdwy])")
_UNITS_MS = {"y": 31_536_000_000, "w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
"""The longest first, as they come in a duration."""
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the tokens of an expression, and the end.

    Raises:
        PromqlError: something is no token.
    """
    return (*_tokens(text), Token(Kind.END, "", len(text)))


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise PromqlError(f"unexpected character at {at}: {text[at : at + 20]!r}")
        if found.lastgroup != "space":
            yield Token(Kind(found.lastgroup), found[0], at)
        at = found.end()


def duration_ms(text: str) -> int:
    """Return a duration such as ``1h30m``; the units come in order, each once.

    Raises:
        PromqlError: it is no duration.
    """
    parts = _PART.findall(text)
    order = [list(_UNITS_MS).index(unit) for _, unit in parts]
    if not parts or "".join(number + unit for number, unit in parts) != text or order != sorted(set(order)):
        raise PromqlError(f"not a valid duration: {text!r}")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in parts)


def number_of(text: str) -> float:
    """Return the value of a number token."""
    return float(int(text, 16)) if text[:2].lower() == "0x" else float(text)


def text_of(token: str) -> str:
    """Return the content of a text token.

    Raises:
        PromqlError: it has an escape that Go does not know, such as a dot after a single backslash.
    """
    if token[0] == "`":
        return token[1:-1]
    return _ESCAPE.sub(_unescaped, token[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    plain, two, four, other = found.groups()
    if other is not None:
        raise PromqlError(f"unknown escape sequence: {found[0]!r}")
    if plain is not None:
        return _ESCAPED.get(plain, plain)
    return chr(int(two or four, 16))
