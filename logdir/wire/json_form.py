"""Conversion between structs, as the codec reads them, and Kafka's own JSON form.

Ids are base64 text, ``bytes`` standard base64, arrays lists. A tagged field with its default value is left out, as in
Kafka's converters; unknown tags have no JSON form and are lost. Reading is strict: a missing field, or one that is not
in the version, is an error.

Spec: kafka-formats §9 (what ``kafka-dump-log`` prints); org.apache.kafka JsonConverter classes.
"""

from __future__ import annotations

import base64
import binascii
import sys
from typing import Any, Final

from logdir.errors import InvalidIdError
from logdir.ids import Uuid
from logdir.wire.errors import WireError
from logdir.wire.reading import MAX_STRING
from logdir.wire.schema import STRUCT, Field

_RANGES: Final = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint16": (0, (1 << 16) - 1),
    "uint32": (0, (1 << 32) - 1),
}


def to_json(fields: tuple[Field, ...], version: int, value: dict[str, Any]) -> dict[str, Any]:
    """Return a struct in Kafka's JSON form.

    Args:
        fields: The field table of the struct.
        version: Version of the value.
        value: The struct, as the codec reads it.
    """
    shown = {}
    for field in fields:
        if version not in field.versions:
            continue
        if field.tag is not None:
            default = field.default_at(version)
            if value.get(field.name, default) == default:
                continue
        shown[field.name] = _shown(field, version, value[field.name])
    return shown


def _shown(field: Field, version: int, value: Any) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_shown_one(field, version, element) for element in value]
    return _shown_one(field, version, value)


def _shown_one(field: Field, version: int, value: Any) -> Any:
    if field.type == STRUCT:
        return to_json(field.fields, version, value)
    if field.type == "uuid":
        return str(Uuid(value))
    if field.type == "bytes":
        return base64.b64encode(value).decode("ascii")
    return value


def from_json(fields: tuple[Field, ...], version: int, document: object, path: str = "") -> dict[str, Any]:
    """Return the struct of a JSON document, as the codec reads it.

    A name may start with a capital letter, as in Kafka's tables; a tagged field may be left out.

    Args:
        fields: The field table of the struct.
        version: Version of the document.
        document: The result of ``json.loads``.
        path: Name of the document, for the error.

    Raises:
        WireError: a field is missing, unknown, repeated, of the wrong type or out of range; the path names it.
    """
    return _struct(fields, version, document, f"{path}: $" if path else "$")


def _struct(fields: tuple[Field, ...], version: int, document: object, path: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise WireError(path, expected="an object", found=document)
    left = dict(document)
    value = {}
    for field in fields:
        if version not in field.versions:
            continue
        capital = field.name[:1].upper() + field.name[1:]
        given = [left.pop(name) for name in dict.fromkeys((field.name, capital)) if name in left]
        if len(given) > 1:
            raise WireError(f"{path}.{field.name}", expected="one value", found=given)
        if given:
            value[field.name] = _value(field, version, given[0], f"{path}.{field.name}")
        elif field.tag is not None:
            value[field.name] = field.default_at(version)
        else:
            raise WireError(f"{path}.{field.name}", expected=_named(field), found="nothing")
    if left:
        name = next(iter(left))
        raise WireError(f"{path}.{name}", expected=f"no such field in version {version}", found=left[name])
    return value


def _named(field: Field) -> str:
    name = {STRUCT: "object", "uuid": "id", "bytes": "base64 text"}.get(field.type, field.type)
    return f"an array of {name}" if field.is_array else f"a value of type {name}"


def _value(field: Field, version: int, given: object, path: str) -> Any:
    if given is None and version in field.nullable:
        return None
    if not field.is_array:
        return _one(field, version, given, path)
    if not isinstance(given, list):
        raise WireError(path, expected=_named(field), found=given)
    return tuple(_one(field, version, element, f"{path}[{index}]") for index, element in enumerate(given))


def _one(field: Field, version: int, given: object, path: str) -> Any:
    kind = field.type
    if kind == STRUCT:
        return _struct(field.fields, version, given, path)
    if kind in _RANGES:
        low, high = _RANGES[kind]
        if isinstance(given, int) and not isinstance(given, bool) and low <= given <= high:
            return given
    elif kind == "bool":
        if isinstance(given, bool):
            return given
    elif kind == "float64":
        if isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= sys.float_info.max:
            return float(given)
    elif isinstance(given, str):
        return _text(kind, given, path)
    raise WireError(path, expected=f"a value of type {kind}", found=given)


def _text(kind: str, given: str, path: str) -> Any:
    if kind == "uuid":
        try:
            return bytes(Uuid.parse(given))
        except InvalidIdError as error:
            raise WireError(path, expected=error.expected, found=given) from None
    if kind == "bytes":
        try:
            return base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            raise WireError(path, expected="base64 text", found=given) from None
    try:
        size = len(given.encode())
    except UnicodeEncodeError:
        raise WireError(path, expected="text that UTF-8 can hold", found=given) from None
    if size > MAX_STRING:
        raise WireError(path, expected=f"a text of at most {MAX_STRING} bytes", found=f"{size} bytes")
    return given
