"""Random values of a table, seeded: ordinary ones, and those at the edges of their types."""

from __future__ import annotations

import random
from typing import Any

from logdir.wire.reading import TAGS
from logdir.wire.schema import STRUCT, Field

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED_BITS = {"uint16": 16, "uint32": 32}
_TEXTS = ("", "a", "t-1", "PLAINTEXT", "ü€😀", "x" * 127, "x" * 128, "x" * 300, "\0")
_IDS = (bytes(16), bytes(15) + b"\x01", b"\xff" * 16)


def random_struct(
    draw: random.Random, fields: tuple[Field, ...], version: int, *, flexible: bool, most: int = 3
) -> dict[str, Any]:
    """Return a struct; arrays in it have up to ``most`` elements, now and then many more where they are numbers."""
    value = {
        field.name: random_value(draw, field, version, flexible=flexible, most=most)
        for field in fields
        if version in field.versions
    }
    if flexible and draw.random() < 0.1:
        first = 1 + max((field.tag for field in fields if field.tag is not None), default=-1)
        tags = sorted({first + draw.choice((0, 1, 200, 2**31 - 100)) for _ in range(draw.randint(1, 3))})
        value[TAGS] = tuple((tag, draw.randbytes(draw.choice((0, 1, 130)))) for tag in tags)
    return value


def random_value(draw: random.Random, field: Field, version: int, *, flexible: bool, most: int = 3) -> Any:
    """Return a value of a field; a default or null now and then."""
    if field.tag is not None and draw.random() < 0.4:
        return field.default_at(version)
    if version in field.nullable and draw.random() < 0.3:
        return None
    if not field.is_array:
        return _one(draw, field, version, flexible=flexible, most=most)
    count = draw.randint(0, most)
    if field.type != STRUCT and draw.random() < 0.03:
        count = draw.choice((31, 32, 126, 127, 128))
    return tuple(_one(draw, field, version, flexible=flexible, most=most) for _ in range(count))


def _one(draw: random.Random, field: Field, version: int, *, flexible: bool, most: int) -> Any:
    kind = field.type
    if kind == STRUCT:
        return random_struct(draw, field.fields, version, flexible=flexible, most=most)
    if kind in _BITS:
        half = 1 << (_BITS[kind] - 1)
        return draw.choice((0, 1, -1, -2, half - 1, -half, draw.randrange(-half, half)))
    if kind in _UNSIGNED_BITS:
        end = 1 << _UNSIGNED_BITS[kind]
        return draw.choice((0, 1, end - 1, draw.randrange(end)))
    if kind == "bool":
        return draw.random() < 0.5
    if kind == "float64":
        return draw.choice((0.0, -1.5, 1e300, draw.random()))
    if kind == "uuid":
        return draw.choice((*_IDS, draw.randbytes(16)))
    if kind == "bytes":
        return draw.randbytes(draw.choice((0, 1, 20, 126, 127, 200)))
    assert kind == "string"
    return draw.choice(_TEXTS)
