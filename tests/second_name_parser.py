"""A second reader of directory names, made from kafka-formats §6 alone: by hand, character by character.

It shares nothing with ``logdir.names``; two readers that err alike would have to be wrong for two reasons.
"""

from __future__ import annotations

from typing import NamedTuple

_SUFFIXES = ("delete", "future", "stray")
_ASCII_BLANKS = (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20)
# First digits of the decimal scripts of the basic plane (Unicode 13, that of Java 17).
_ZEROS = (
    0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6,
    0x0D66, 0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80,
    0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0,
    0xFF10,
)  # fmt: skip


class Name(NamedTuple):
    topic: str
    partition: int
    suffix: str
    """``""``, ``"delete"``, ``"future"`` or ``"stray"``."""
    unique: str | None


def _digit(character: str) -> int:
    code = ord(character)
    for zero in _ZEROS:
        if zero <= code < zero + 10:
            return code - zero
    return -1


def _number(text: str) -> int | None:
    """Java's parseInt for what can stand right of the last dash: no minus sign."""
    start = 1 if text and text[0] == "+" else 0
    if start == len(text):
        return None
    value = 0
    for character in text[start:]:
        digit = _digit(character)
        if digit < 0:
            return None
        value = value * 10 + digit
        if value > 2147483647:
            return None
    return value


def _last(text: str, wanted: str) -> int:
    for at in range(len(text) - 1, -1, -1):
        if text[at] == wanted:
            return at
    return -1


def _has_suffix_shape(body: str) -> bool:
    """Whether ``body`` (the name without ``-delete``) is: something, a dash, something, a dot, something."""
    for character in body:
        if ord(character) in _ASCII_BLANKS:
            return False
    for dash in range(1, len(body)):
        if body[dash] == "-":
            # The first dash with something before it leaves the most room for the rest.
            return any(body[dot] == "." for dot in range(dash + 2, len(body) - 1))
    return False


def read_name(name: str) -> Name | None:
    """Return the parts as a stock broker takes them; ``None`` where it aborts its start."""
    if _last(name, "-") < 0:
        return None
    kind, unique, rest = "", None, name
    for suffix in _SUFFIXES:
        ending = "-" + suffix
        if len(name) >= len(ending) and name[len(name) - len(ending) :] == ending:
            body = name[: len(name) - len(ending)]
            if not _has_suffix_shape(body):
                return None
            dot = _last(name, ".")
            kind, unique, rest = suffix, name[dot + 1 : len(name) - len(ending)], name[:dot]
    dash = _last(rest, "-")
    if dash < 1:
        return None
    partition = _number(rest[dash + 1 :])
    return None if partition is None else Name(rest[:dash], partition, kind, unique)
