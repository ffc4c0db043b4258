"""The notation of our field tables (the schemas of Kafka's structs), and their parsed form.

One field a line; deeper indentation is a member of the struct above::

    name  type  [versions]  [null VERSIONS]  [tag N]  [= default]

``type`` is ``bool int8 int16 int32 int64 uint16 uint32 float64 uuid string bytes`` (``bytes`` serves for records too),
``[]`` before it makes an array; ``{}`` is a struct, ``[]{}`` an array of structs. Versions are ``2``, ``2+`` or
``2-4``; left out, the field is there whenever its struct is. In a flexible version a field with a tag is written
among the tagged fields, not in place. Without a default it is 0, false, "", empty or the zero id.

Not here: bytes (``codec``), JSON (``json_form``).

Spec: kafka-formats §9.2, §9.4.

>>> (field,) = parse_fields("replicas []int32 2+ null 2+ tag 3 = null")
>>> field.name, field.type, field.is_array, 1 in field.versions, field.tag, field.default
('replicas', 'int32', True, False, 3, None)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

STRUCT: Final = "{}"
"""The type of a field that has members."""

SCALARS: Final = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "float64", "uuid", "string", "bytes")
)
ZERO_UUID: Final = bytes(16)

_EMPTY: Final = {"bool": False, "float64": 0.0, "uuid": ZERO_UUID, "string": "", "bytes": b""}
_INDENT: Final = 4


class Versions(NamedTuple):
    """A range of versions, including both ends."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        """Return whether a version lies in the range."""
        return isinstance(version, int) and self.low <= version <= self.high

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse ``2``, ``2+`` or ``2-4``.

        Raises:
            ValueError: the text has another form.
        """
        if text.endswith("+"):
            return cls(int(text[:-1]), 0x7FFF)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def all(self) -> range:
        """Return every version of the range; only for a range with an upper end, so not ``2+``."""
        return range(self.low, self.high + 1)


ALL: Final = Versions(0, 0x7FFF)
NEVER: Final = Versions(1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct, as a line of a field table describes it."""

    name: str
    """Its name, as in Kafka's JSON."""
    type: str
    """A type of :data:`SCALARS`, or :data:`STRUCT`."""
    is_array: bool = False
    versions: Versions = ALL
    nullable: Versions = NEVER
    tag: int | None = None
    default: object = None
    """Default value of a field that is no struct; of an array: empty or ``None``."""
    fields: tuple[Field, ...] = ()
    """Members of a struct."""

    @property
    def is_struct(self) -> bool:
        """Whether the field is one struct, not an array."""
        return self.type == STRUCT and not self.is_array

    def default_at(self, version: int) -> object:
        """Return the field's default value in a version; for a struct a new dictionary of its members' defaults."""
        return defaults(self.fields, version) if self.is_struct else self.default


def defaults(fields: tuple[Field, ...], version: int) -> dict[str, object]:
    """Return a struct in a version, every field with its default value."""
    return {field.name: field.default_at(version) for field in fields if version in field.versions}


class Table:
    """The fields of a message or record; its text is parsed on first use."""

    __slots__ = ("__dict__", "text")

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields, in the order of the binary format."""
        return parse_fields(self.text)


def parse_fields(text: str) -> tuple[Field, ...]:
    """Parse a field table.

    Args:
        text: Lines in the notation above; empty lines and text after ``#`` are ignored.

    Raises:
        ValueError: a line that is no field, or an indentation without a struct above.
    """
    lines = []
    for line in text.splitlines():
        words = line.partition("#")[0].rstrip()
        if words:
            lines.append((len(words) - len(words.lstrip()), words.split()))
    margin = min((indent for indent, _ in lines), default=0)
    fields, rest = _parse([((indent - margin) // _INDENT, words) for indent, words in lines], 0)
    if rest:
        raise ValueError(f"expected a struct above an indented field, found {' '.join(rest[0][1])!r}")
    return fields


_Lines = list[tuple[int, list[str]]]


def _parse(lines: _Lines, depth: int) -> tuple[tuple[Field, ...], _Lines]:
    fields = []
    while lines and lines[0][0] == depth:
        words = lines[0][1]
        members: tuple[Field, ...] = ()
        lines = lines[1:]
        if words[1].removeprefix("[]") == STRUCT:
            members, lines = _parse(lines, depth + 1)
        fields.append(_field(words, members))
    return tuple(fields), lines


def _field(words: list[str], members: tuple[Field, ...]) -> Field:
    name, type_name, *rest = words
    is_array = type_name.startswith("[]")
    type_name = type_name.removeprefix("[]")
    if type_name not in SCALARS and type_name != STRUCT:
        raise ValueError(f"expected a type, found {' '.join(words)!r}")
    versions = Versions.parse(rest.pop(0)) if rest and rest[0][0].isdigit() else ALL
    nullable, tag = NEVER, None
    default: object = () if is_array else _EMPTY.get(type_name, 0)
    while rest:
        word, value, *rest = rest
        if word == "null":
            nullable = Versions.parse(value)
        elif word == "tag":
            tag = int(value)
        elif word == "=":
            default = _default(type_name, value)
        else:
            raise ValueError(f"expected null, tag or =, found {' '.join(words)!r}")
    return Field(
        name=name,
        type=type_name,
        is_array=is_array,
        versions=versions,
        nullable=nullable,
        tag=tag,
        default=None if type_name == STRUCT and not is_array else default,
        fields=members,
    )


def _default(type_name: str, text: str) -> object:
    if text == "null":
        return None
    if type_name == "bool":
        return text == "true"
    return text.strip('"') if type_name == "string" else int(text)
