"""A validator of the part of JSON Schema that docs/openapi.json uses; a word that it does not know is an error.

Spec: JSON Schema 2020-12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]
_SAYS_NOTHING: Final = frozenset({"description", "default"})
_TYPES: Final[Mapping[str, Callable[[object], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_KNOWN: Final = frozenset(
    {
        "$ref", "type", "enum", "const", "anyOf", "oneOf", "properties", "required", "additionalProperties",
        "maxProperties", "items", "prefixItems", "minItems", "maxItems",
    }
)  # fmt: skip


def wrong(value: object, schema: Schema, document: Schema, at: str = "$") -> Iterator[str]:
    """Yield where a value does not fit a schema, and why.

    Args:
        value: As a parser of JSON returns it.
        schema: The schema.
        document: Where references lead.
        at: The place of the value, for the message.
    """
    unknown = schema.keys() - _KNOWN - _SAYS_NOTHING
    if unknown:
        raise ValueError(f"{at}: not known: {', '.join(sorted(unknown))}")
    if "$ref" in schema:
        yield from wrong(value, resolved(schema["$ref"], document), document, at)
    if "type" in schema:
        kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(_TYPES[kind](value) for kind in kinds):
            yield f"{at}: no {' or '.join(kinds)}: {value!r:.80}"
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        yield f"{at}: none of {schema['enum']}: {value!r:.80}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{at}: not {schema['const']!r}: {value!r:.80}"
    for word, is_one in (("anyOf", False), ("oneOf", True)):
        if word in schema:
            found = [list(wrong(value, one, document, at)) for one in schema[word]]
            fits = sum(not one for one in found)
            if not fits:
                yield f"{at}: fits none of {len(found)}: {min(found, key=len)}"
            elif is_one and fits > 1:
                yield f"{at}: fits {fits} of {len(found)}"
    if isinstance(value, dict):
        yield from _in_object(value, schema, document, at)
    if isinstance(value, list):
        yield from _in_list(value, schema, document, at)


def resolved(path: str, document: Schema) -> Schema:
    """Return the schema that a reference leads to. Raises ``KeyError``: it leads nowhere."""
    found: Any = document
    for part in path.removeprefix("#/").split("/"):
        found = found[part]
    assert isinstance(found, Mapping)
    return found


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _in_object(value: Mapping[str, object], schema: Schema, document: Schema, at: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{at}.{key}: lacks" for key in schema.get("required", ()) if key not in value)
    if len(value) > schema.get("maxProperties", len(value)):
        yield f"{at}: {len(value)} keys"
    others = schema.get("additionalProperties", True)
    for key, one in value.items():
        if key in properties:
            yield from wrong(one, properties[key], document, f"{at}.{key}")
        elif others is False:
            yield f"{at}.{key}: not known"
        elif others is not True:
            yield from wrong(one, others, document, f"{at}.{key}")


def _in_list(value: list[object], schema: Schema, document: Schema, at: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{at}: {len(value)} items"
    first = schema.get("prefixItems", ())
    for number, one in enumerate(value):
        part = first[number] if number < len(first) else schema.get("items", {})
        yield from wrong(one, part, document, f"{at}[{number}]")
