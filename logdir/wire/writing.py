"""Functions that write fields, built from a field table for one version: exactly the bytes that ``reading`` reads.

Not here: the table (``schema``), the enclosing struct (``codec``).

Spec: kafka-formats §9.2; org.apache.kafka.common.protocol.Writable, MessageDataGenerator.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from struct import Struct
from typing import Any

from logdir.wire.errors import WireError
from logdir.wire.primitives import unsigned_varint
from logdir.wire.reading import FIXED, MAX_STRING, TAGS
from logdir.wire.schema import NEVER, Field

Write = Callable[[Any, bytearray], None]
"""Appends the bytes of a value to the output."""

_WRONG = (struct.error, TypeError, ValueError, AttributeError)


def struct_writer(fields: tuple[Field, ...], version: int, *, flexible: bool) -> Write:
    """Return a function that writes a struct, from the dictionary that a reader of the same table and version returns.

    A tagged field may be missing. A field of another version may be present with its default; with another value it is
    refused, because Kafka refuses to drop it.
    """
    placed = tuple(
        (field.name, _writer(field, version, flexible=flexible))
        for field in fields
        if version in field.versions and not (flexible and field.tag is not None)
    )
    write_tags = _tag_writer(fields, version) if flexible else None
    names = {field.name: field for field in fields if version in field.versions}
    elsewhere = {field.name: field for field in fields if version not in field.versions}

    def refuse_what_would_be_dropped(value: dict[str, object]) -> None:
        for name in value.keys() - names.keys():
            if name == TAGS and flexible:
                continue
            other = elsewhere.get(name)
            if other is None or value[name] != other.default_at(version):
                raise WireError(expected=f"no field {name} in version {version}", found=value[name])

    def write(value: dict[str, object], out: bytearray) -> None:
        for name, put in placed:
            try:
                put(value[name], out)
            except KeyError:
                raise WireError(expected=f"a field {name}", found="no such field", position=len(out)) from None
            except _WRONG as error:
                raise _wrong(name, error, out) from None
        if value.keys() != names.keys():
            refuse_what_would_be_dropped(value)
        if write_tags is not None:
            write_tags(value, out)

    return write


def _wrong(name: str, error: Exception, out: bytearray) -> WireError:
    return WireError(expected=f"a value of {name} that can be written", found=str(error), position=len(out))


def _tag_writer(fields: tuple[Field, ...], version: int) -> Write:
    known = [
        (field, field.tag, _writer(field, version, flexible=True))
        for field in fields
        if field.tag is not None and version in field.versions
    ]

    def write(value: dict[str, Any], out: bytearray) -> None:
        sections: list[tuple[int, bytes]] = list(value.get(TAGS, ()))
        for field, tag, put in known:
            default = field.default_at(version)
            mine = value.get(field.name, default)
            if mine != default:
                section = bytearray()
                try:
                    put(mine, section)
                except _WRONG as error:
                    raise _wrong(field.name, error, out) from None
                sections.append((tag, bytes(section)))
        sections.sort()
        out += unsigned_varint(len(sections))
        previous = -1
        for tag, data in sections:
            if tag <= previous:
                raise WireError(expected=f"tag {tag} once", found="twice", position=len(out))
            out += unsigned_varint(tag)
            out += unsigned_varint(len(data))
            out += data
            previous = tag

    return write


def _writer(field: Field, version: int, *, flexible: bool) -> Write:
    nullable = version in field.nullable
    if field.is_array:
        return _array_writer(field, version, flexible=flexible, nullable=nullable)
    if field.type == "uuid":
        return _write_uuid
    if field.type == "bool":
        return _write_bool
    if field.type in FIXED:
        pack = Struct(">" + FIXED[field.type]).pack

        def write_number(value: Any, out: bytearray) -> None:
            out += pack(value)

        return write_number
    if field.type == "string":
        return _text_writer(_length_writer(flexible=flexible, nullable=nullable, wide=False))
    if field.type == "bytes":
        return _bytes_writer(_length_writer(flexible=flexible, nullable=nullable, wide=True))
    return struct_writer(field.fields, version, flexible=flexible)


def _write_uuid(value: bytes, out: bytearray) -> None:
    if len(value) != 16:
        raise ValueError(f"an id of {len(value)} bytes")
    out += value


def _write_bool(value: bool, out: bytearray) -> None:
    if value is not True and value is not False:
        raise ValueError(f"no truth value: {value!r}")
    out.append(value)


def _length_writer(*, flexible: bool, nullable: bool, wide: bool) -> Callable[[int | None, bytearray], None]:
    pack = Struct(">i" if wide else ">h").pack

    def write(length: int | None, out: bytearray) -> None:
        if length is None:
            if not nullable:
                raise ValueError("null")
            out += b"\0" if flexible else pack(-1)
        else:
            out += unsigned_varint(length + 1) if flexible else pack(length)

    return write


def _text_writer(write_length: Callable[[int | None, bytearray], None]) -> Write:
    def write(value: str | None, out: bytearray) -> None:
        if value is None:
            write_length(None, out)
            return
        data = value.encode()
        if len(data) > MAX_STRING:
            raise ValueError(f"a text of {len(data)} bytes")
        write_length(len(data), out)
        out += data

    return write


def _bytes_writer(write_length: Callable[[int | None, bytearray], None]) -> Write:
    def write(value: bytes | None, out: bytearray) -> None:
        if value is None:
            write_length(None, out)
            return
        write_length(len(value), out)
        out += value

    return write


def _array_writer(field: Field, version: int, *, flexible: bool, nullable: bool) -> Write:
    write_count = _length_writer(flexible=flexible, nullable=nullable, wide=True)
    put = _writer(replace(field, is_array=False, nullable=NEVER), version, flexible=flexible)

    def write(value: tuple[object, ...] | None, out: bytearray) -> None:
        if value is None:
            write_count(None, out)
            return
        write_count(len(value), out)
        for element in value:
            put(element, out)

    return write
