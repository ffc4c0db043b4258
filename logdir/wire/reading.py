"""Functions that read fields, built from a field table for one version.

A reader does not recurse: a value is as deep as its table. A length is compared with the remaining bytes
before any allocation, and an array's count with the minimum size of its elements.

Not here: the table (``schema``), the enclosing struct (``codec``).

Spec: kafka-formats §9.2; org.apache.kafka.common.protocol.Readable, MessageDataGenerator.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from struct import Struct
from typing import Any, Final

from logdir.wire.errors import WireError
from logdir.wire.primitives import read_unsigned_varint, too_short
from logdir.wire.schema import NEVER, Field

Read = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value from data at a position; returns the value and the position after it."""

_Step = Callable[[bytes, int, dict[str, object]], int]

FIXED: Final = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "uint32": "I", "float64": "d",
    "uuid": "16s",
}  # fmt: skip
"""Types of fixed width, with their ``struct`` letters."""

MAX_STRING: Final = 0x7FFF
"""Maximum size of a string in bytes, as in Kafka."""

TAGS: Final = "_tags"
"""Key of the unknown tagged fields: a tuple of (tag, bytes), by ascending tag."""

_COUNT_32: Final = Struct(">i")
_COUNT_16: Final = Struct(">h")


def struct_reader(fields: tuple[Field, ...], version: int, *, flexible: bool) -> Read:
    """Return a function that reads a struct into a dictionary of the fields of this version."""
    steps = tuple(_steps(fields, version, flexible=flexible))

    def read(data: bytes, position: int) -> tuple[dict[str, object], int]:
        value: dict[str, object] = {}
        for step in steps:
            position = step(data, position, value)
        return value, position

    return read


def _steps(fields: tuple[Field, ...], version: int, *, flexible: bool) -> list[_Step]:
    steps: list[_Step] = []
    run: list[Field] = []

    def close() -> None:
        if run:
            steps.append(_run_step(tuple(run)))
            run.clear()

    for field in fields:
        if version not in field.versions or (flexible and field.tag is not None):
            continue
        if field.type in FIXED and not field.is_array:
            run.append(field)
            continue
        close()
        steps.append(_field_step(field.name, _reader(field, version, flexible=flexible)))
    close()
    if flexible:
        steps.append(_tag_step(fields, version))
    return steps


def _run_step(fields: tuple[Field, ...]) -> _Step:
    """Return a function that reads consecutive fields of fixed width at once into the struct's dictionary."""
    names = tuple(field.name for field in fields)
    layout = Struct(">" + "".join(FIXED[field.type] for field in fields))
    unpack, size = layout.unpack_from, layout.size

    def step(data: bytes, position: int, into: dict[str, object]) -> int:
        try:
            into.update(zip(names, unpack(data, position), strict=True))
        except struct.error:
            raise too_short(data, position, f"{size} bytes of {', '.join(names)}") from None
        return position + size

    return step


def _field_step(name: str, read: Read) -> _Step:
    def step(data: bytes, position: int, into: dict[str, object]) -> int:
        into[name], position = read(data, position)
        return position

    return step


def _tag_step(fields: tuple[Field, ...], version: int) -> _Step:
    tagged = [field for field in fields if field.tag is not None]
    here = [field for field in tagged if version in field.versions]
    known = {field.tag: (field.name, _reader(field, version, flexible=True)) for field in here}
    later = {field.tag: field.name for field in tagged if version not in field.versions}

    def step(data: bytes, position: int, into: dict[str, object]) -> int:
        for field in here:
            into[field.name] = field.default_at(version)
        count, position = read_unsigned_varint(data, position)
        if not count:
            return position
        previous, unknown = -1, []
        for _ in range(count):
            start = position
            tag, position = read_unsigned_varint(data, position)
            size, position = read_unsigned_varint(data, position)
            end = position + size
            # Kafka accepts tags in any order, and a wrong size of a known tag; neither could be written back.
            if tag <= previous:
                raise WireError(expected=f"a tag above {previous}", found=tag, position=start)
            if end > len(data):
                raise too_short(data, position, f"{size} bytes of tag {tag}")
            if tag in known:
                name, read = known[tag]
                into[name], position = read(data, position)
                if position != end:
                    found = f"{position - end:+} bytes"
                    raise WireError(expected=f"{name} of {size} bytes", found=found, position=start)
            elif tag in later:
                raise WireError(expected=f"no {later[tag]} in version {version}", found=f"tag {tag}", position=start)
            else:
                unknown.append((tag, data[position:end]))
                position = end
            previous = tag
        if unknown:
            into[TAGS] = tuple(unknown)
        return position

    return step


def _reader(field: Field, version: int, *, flexible: bool) -> Read:
    nullable = version in field.nullable
    if field.is_array:
        return _array_reader(field, version, flexible=flexible, nullable=nullable)
    if field.type in FIXED:
        return _fixed_reader(field)
    if field.type == "string":
        return _text_reader(field.name, _length_reader(field, flexible=flexible, nullable=nullable, wide=False))
    if field.type == "bytes":
        return _bytes_reader(field.name, _length_reader(field, flexible=flexible, nullable=nullable, wide=True))
    return struct_reader(field.fields, version, flexible=flexible)


def _fixed_reader(field: Field) -> Read:
    layout = Struct(">" + FIXED[field.type])
    unpack, size, name = layout.unpack_from, layout.size, field.name

    def read(data: bytes, position: int) -> tuple[object, int]:
        try:
            return unpack(data, position)[0], position + size
        except struct.error:
            raise too_short(data, position, f"{size} bytes of {name}") from None

    return read


def _length_reader(field: Field, *, flexible: bool, nullable: bool, wide: bool) -> Read:
    """Return a function that reads the length or count of a field, ``None`` for null.

    Args:
        field: The field that has the length.
        flexible: Whether the length is compact (an unsigned varint).
        nullable: Whether null is allowed.
        wide: Whether a length that is not compact has 32 bits, not 16.
    """
    name = field.name
    layout = _COUNT_32 if wide else _COUNT_16

    def null(position: int) -> tuple[None, int]:
        if not nullable:
            raise WireError(expected=f"{name}, which is never null", found="null", position=position)
        return None, position

    def compact(data: bytes, position: int) -> tuple[int | None, int]:
        if position < len(data) and 0 < data[position] < 0x80:
            return data[position] - 1, position + 1
        length, position = read_unsigned_varint(data, position)
        return (length - 1, position) if length else null(position)

    def fixed(data: bytes, position: int) -> tuple[int | None, int]:
        try:
            (length,) = layout.unpack_from(data, position)
        except struct.error:
            raise too_short(data, position, f"the length of {name}") from None
        if length < -1:
            raise WireError(expected=f"the length of {name}", found=length, position=position)
        position += layout.size
        return (length, position) if length >= 0 else null(position)

    return compact if flexible else fixed


def _text_reader(name: str, read_length: Read) -> Read:
    def read(data: bytes, position: int) -> tuple[str | None, int]:
        length, start = read_length(data, position)
        if length is None:
            return None, start
        end = start + length
        if length > MAX_STRING:
            raise WireError(
                expected=f"{name} of at most {MAX_STRING} bytes", found=f"{length} bytes", position=position
            )
        if end > len(data):
            raise too_short(data, start, f"{length} bytes of {name}")
        try:
            return data[start:end].decode(), end
        except UnicodeDecodeError as error:
            found = data[start + error.start : start + error.end].hex()
            raise WireError(expected=f"{name} in UTF-8", found=found, position=start + error.start) from None

    return read


def _bytes_reader(name: str, read_length: Read) -> Read:
    def read(data: bytes, position: int) -> tuple[bytes | None, int]:
        length, start = read_length(data, position)
        if length is None:
            return None, start
        end = start + length
        if end > len(data):
            raise too_short(data, start, f"{length} bytes of {name}")
        return data[start:end], end

    return read


def _array_reader(field: Field, version: int, *, flexible: bool, nullable: bool) -> Read:
    name = field.name
    read_count = _length_reader(field, flexible=flexible, nullable=nullable, wide=True)
    least = _least_size(field, version, flexible=flexible)
    read_all = _elements_reader(field, version, flexible=flexible)

    def read(data: bytes, position: int) -> tuple[tuple[object, ...] | None, int]:
        count, start = read_count(data, position)
        if count is None:
            return None, start
        if count * least > len(data) - start:
            raise too_short(data, start, f"{count} elements of {name}")
        return read_all(data, start, count)

    return read


def _elements_reader(
    field: Field, version: int, *, flexible: bool
) -> Callable[[bytes, int, int], tuple[tuple[object, ...], int]]:
    letter = FIXED.get(field.type, "")
    if letter and field.type != "uuid":
        width = Struct(">" + letter).size

        def numbers(data: bytes, position: int, count: int) -> tuple[tuple[object, ...], int]:
            return Struct(f">{count}{letter}").unpack_from(data, position), position + count * width

        return numbers
    read = _reader(replace(field, is_array=False, nullable=NEVER), version, flexible=flexible)

    def elements(data: bytes, position: int, count: int) -> tuple[tuple[object, ...], int]:
        values = []
        for _ in range(count):
            value, position = read(data, position)
            values.append(value)
        return tuple(values), position

    return elements


def _least_size(field: Field, version: int, *, flexible: bool) -> int:
    """Return the minimum size of one element of an array in bytes; never 0."""
    if field.type in FIXED:
        return Struct(">" + FIXED[field.type]).size
    if field.type == "string":
        return 1 if flexible else 2
    if field.type == "bytes":
        return 1 if flexible else 4
    least = int(flexible)
    for member in field.fields:
        if version not in member.versions or (flexible and member.tag is not None):
            continue
        if member.is_array:
            least += 1 if flexible else 4
        else:
            least += _least_size(member, version, flexible=flexible)
    return max(least, 1)
