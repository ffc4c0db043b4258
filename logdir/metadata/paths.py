r"""Paths of the metadata tree as people type and read them: globs, escapes, ``.`` and ``..``.

A name may hold any character, a slash too. Shown, whatever means something in a path or to a terminal is escaped, so
that a path that was shown can be typed again. A malformed pattern is taken as a name.

Not here: what is in the tree (``metadata.tree``).

Spec: KIP-631, "kafka-metadata-shell.sh"; org.apache.kafka.shell.glob.{GlobComponent,GlobVisitor},
org.apache.kafka.shell.command.CommandUtils.

>>> shown("a/b*\x1b")
'a\\/b\\*\\x1b'
>>> [one.name for one in resolve(("image",), "../local/./a\\/b")]
['local', 'a/b']
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_SPECIAL: Final = frozenset("/\\*?[]{}'\" ")
_EMPTY: Final = "\\e"
"""How the empty name is written in a path."""
_DOTS: Final = (".", "..")
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "e": ""}
_CODES: Final = {"x": 2, "u": 4, "U": 8}
_GLOB: Final = frozenset("*?[]{},")
_MOST_CODE: Final = 0x10FFFF


class Component(NamedTuple):
    """One step of a path."""

    name: str | None
    """The one name that fits; ``None``: all names fit that match ``pattern``."""
    pattern: re.Pattern[str] | None = None

    def fits(self, name: str) -> bool:
        """Whether the step leads to a name."""
        return name == self.name if self.pattern is None else self.pattern.fullmatch(name) is not None


class _NoGlobError(Exception):
    """A pattern is malformed: it is taken as a name."""


class _Char(NamedTuple):
    text: str
    """One character; empty for ``\\e``."""
    is_escaped: bool


def shown(name: str) -> str:
    """Return a name as one step of a path, escaped so that it can be typed again."""
    if not name:
        return _EMPTY
    if name in _DOTS:
        return "\\" + "\\".join(name)
    return "".join(_shown(char) for char in name)


def _shown(char: str) -> str:
    if char in _SPECIAL:
        return f"\\{char}"
    return char if char.isprintable() else repr(char)[1:-1]


def path_of(names: Sequence[str]) -> str:
    """Return the absolute path that leads over these names from the root."""
    return "/" + "/".join(map(shown, names))


def resolve(working: Sequence[str], path: str) -> tuple[Component, ...]:
    """Return the steps of a path from the root.

    Args:
        working: Names on the way from the root to the working directory.
        path: As typed. Empty steps are ignored; ``..`` of the root is the root.
    """
    steps = [] if path.startswith("/") else [Component(name) for name in working]
    for chars in _split(path):
        text = "".join(char.text for char in chars)
        if not any(char.is_escaped for char in chars) and text in _DOTS:
            if text == ".." and steps:
                steps.pop()
        else:
            steps.append(_component(chars))
    return tuple(steps)


def _chars(text: str) -> Iterator[_Char]:
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char != "\\" or position == len(text):
            yield _Char(char, False)
            continue
        char = text[position]
        position += 1
        if (size := _CODES.get(char)) is not None:
            digits = text[position : position + size]
            code = int(digits, 16) if re.fullmatch(f"[0-9a-fA-F]{{{size}}}", digits) else None
            if code is not None and code <= _MOST_CODE:
                position += size
                yield _Char(chr(code), True)
                continue
        yield _Char(_CONTROLS.get(char, char), True)


def _split(path: str) -> Iterator[list[_Char]]:
    step: list[_Char] = []
    for char in _chars(path):
        if char == ("/", False):
            if step:
                yield step
            step = []
        else:
            step.append(char)
    if step:
        yield step


def _component(chars: list[_Char]) -> Component:
    plain = Component("".join(char.text for char in chars))
    if not any(char.text in _GLOB and not char.is_escaped for char in chars):
        return plain
    try:
        pattern = _pattern(chars)
    except _NoGlobError:
        return plain
    return plain if pattern is None else Component(None, pattern)


def _pattern(chars: list[_Char]) -> re.Pattern[str] | None:
    out: list[str] = []
    is_literal, is_group = True, False
    position = 0
    while position < len(chars):
        text, is_escaped = chars[position]
        position += 1
        special = "" if is_escaped else text
        if special in ("{", "[", "*", "?"):
            is_literal = False
        if special == "?":
            out.append(".")
        elif special == "*":
            if out[-1:] != [".*"]:  # two are as good as one, and slower
                out.append(".*")
        elif special == "{":
            if is_group:
                raise _NoGlobError
            out.append("(?:")
            is_group = True
        elif special == "," and is_group:
            out.append("|")
        elif special == "}" and is_group:
            out.append(")")
            is_group = False
        elif special == "[":
            position = _bracket(chars, position, out)
        else:
            out.append(re.escape(text))
    if is_group:
        raise _NoGlobError
    return None if is_literal else re.compile("".join(out), re.DOTALL)


def _bracket(chars: list[_Char], position: int, out: list[str]) -> int:
    """Append a class of characters (``[a-z]``) to ``out``; return the position behind its ``]``."""
    negated = position < len(chars) and chars[position] in (("!", False), ("^", False))
    position += negated
    first = position
    while position < len(chars) and (chars[position] != ("]", False) or position == first):
        position += 1
    inside = chars[first:position]
    if position == len(chars) or not inside:
        raise _NoGlobError
    parts, at = [], 0
    while at < len(inside):
        low = inside[at].text
        if at + 2 < len(inside) and inside[at + 1] == ("-", False):
            high = inside[at + 2].text
            if not low or not high or high < low:
                raise _NoGlobError
            parts.append(f"{re.escape(low)}-{re.escape(high)}")
            at += 3
        else:
            parts.append(re.escape(low))
            at += 1
    out.append(f"[{'^' if negated else ''}{''.join(parts)}]")
    return position + 1


def words(line: str) -> list[str]:
    r"""Return the words of a line; within quotes a blank does not end a word, and no character is part of a pattern.

    Raises:
        ValueError: a quote is not closed.

    >>> words("cat '/a b'/* x\\ y")
    ['cat', '/a\\ b/*', 'x\\ y']
    """
    found: list[str] = []
    word: str | None = None
    quote, position = "", 0
    while position < len(line):
        char = line[position]
        position += 1
        if char == "\\" and position < len(line):
            word = (word or "") + char + line[position]
            position += 1
        elif quote:
            if char == quote:
                quote = ""
            else:
                word = (word or "") + (f"\\{char}" if char in _SPECIAL | _GLOB and char != "/" else char)
        elif char in "'\"":
            quote, word = char, word or ""
        elif char.isspace():
            if word is not None:
                found.append(word)
            word = None
        else:
            word = (word or "") + char
    if quote:
        raise ValueError(f"no closing {quote}")
    return found if word is None else [*found, word]
