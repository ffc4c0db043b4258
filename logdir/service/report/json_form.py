"""One JSON form of the dataclasses and named tuples of a use case: requests, results and their items.

An object has one key per field. The field metadata ``{"json": "key"}`` changes its key, and ``{"json": None}`` leaves
the field out. A ``ReplicaRef`` is no object of its own: its keys stand in the object that holds it, null for each
``None``. An enum becomes its value, an id its text, a tuple or set a list; evidence has the form used in a marker.
A codec is built from the annotations once per type.

Not here: JSON text, and text that UTF-8 cannot represent (``json_text``).

Spec: design §5 "A use case"; docs/json.md.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from logdir.errors import MalformedMessageError, printable
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.ids import Uuid
from logdir.replica_ref import ReplicaRef

KEY: Final = "json"
"""Key of field metadata: the JSON key of the field; ``None``: the field is left out."""
HIDDEN: Final = {KEY: None}
"""Field metadata of a field that is left out."""
_T = TypeVar("_T")
_Decode = Callable[[object, str], Any]
_PLAIN: Final = {str: "a text", int: "a whole number", bool: "true or false", type(None): "null"}


def to_json(value: object) -> object:
    """Return a value as dictionaries, lists, texts, numbers, booleans and ``None``.

    Raises:
        TypeError: it contains a value without a JSON form.
    """
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    encode: Callable[[object], object] = _encoder(kind)
    return encode(value)


def from_json(kind: type[_T], value: object) -> _T:
    """Return the value of which ``to_json`` returned this form.

    Args:
        kind: The dataclass or named tuple that is expected.
        value: As a JSON parser returns it; a key may be left out where its field has a default.

    Raises:
        MalformedMessageError: a key is missing or unknown, or a value has another type.
        TypeError: the type has no JSON form that can be read.
    """
    annotation: Any = kind
    found: _T = _decoder(annotation)(value, kind.__name__)
    return found


def keys_of(kind: type) -> dict[str, str]:
    """Return the JSON key of every field of a dataclass or named tuple that is not left out, by the field's name.

    The fields of a ``ReplicaRef`` are named ``ref.topic`` and so on.
    """
    if not dataclasses.is_dataclass(kind):
        return {name: name for name in kind._fields}  # type: ignore[attr-defined]  # a named tuple
    hints = get_type_hints(kind)
    keys = {}
    for field in dataclasses.fields(kind):
        if ReplicaRef in (hints[field.name], *get_args(hints[field.name])):
            keys.update({f"{field.name}.{one.name}": one.name for one in dataclasses.fields(ReplicaRef)})
        elif (key := field.metadata.get(KEY, field.name)) is not None:
            keys[field.name] = key
    return keys


@cache
def _encoder(kind: Any) -> Callable[[Any], object]:
    if kind in (Removed, Absent, Present, Unknown):
        return _evidence_json
    if dataclasses.is_dataclass(kind) or _is_named_tuple(kind):
        parts = [(key, _getter(name)) for name, key in keys_of(kind).items()]
        return lambda value: {key: to_json(get(value)) for key, get in parts}
    if issubclass(kind, Enum):
        return attrgetter("value")
    if issubclass(kind, Uuid):
        return str
    if issubclass(kind, frozenset):
        return lambda value: sorted(map(to_json, value), key=str)
    if issubclass(kind, tuple | list):
        return lambda value: list(map(to_json, value))
    if issubclass(kind, Mapping):
        return lambda value: {key: to_json(one) for key, one in value.items()}
    if issubclass(kind, float):
        return float
    raise TypeError(f"{kind.__name__} has no JSON form")


def _getter(name: str) -> Callable[[Any], object]:
    held, dot, inner = name.partition(".")
    if not dot:
        return attrgetter(name)
    return lambda value: getattr(getattr(value, held), inner, None)


def _evidence_json(evidence: Evidence) -> object:
    proof = evidence.proof.value if isinstance(evidence, Removed) else None
    as_of_ms = None if isinstance(evidence, Unknown) else evidence.as_of_ms
    return {"kind": type(evidence).__name__.lower(), "proof": proof, "as_of_ms": as_of_ms}


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


@cache
def _decoder(kind: Any) -> _Decode:
    """Return the function that reads a value of an annotated type from its JSON form, and the path in messages."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _plain(kind)
    if kind is object:
        return lambda value, _: value
    if kind == Evidence:
        return _evidence
    if isinstance(kind, NewType):
        return _decoder(kind.__supertype__)
    if origin in (Union, types.UnionType) and type(None) in inner:
        return _optional(_decoder(Union[tuple(one for one in inner if one is not type(None))]))  # noqa: UP007
    if origin is tuple:
        return _sequence(_decoder(inner[0])) if inner[-1] is Ellipsis else _fixed(tuple(map(_decoder, inner)))
    if origin is frozenset:
        many = _sequence(_decoder(inner[0]))
        return lambda value, path: frozenset(many(value, path))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind)
    if isinstance(kind, type) and issubclass(kind, Uuid):
        return _uuid(kind)
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or _is_named_tuple(kind)):
        return _record(kind)
    raise TypeError(f"{kind} has no JSON form that can be read")


def _wrong(path: str, expected: str, value: object) -> MalformedMessageError:
    match value:
        case dict():
            found = "an object"
        case list():
            found = "a list"
        case bool() | None:
            found = {True: "true", False: "false", None: "null"}[value]
        case _:
            found = str(value) or "an empty text"
    return MalformedMessageError(printable(path), expected=expected, found=found, fix="docs/json.md lists the keys")


def _plain(kind: type) -> _Decode:
    def decode(value: object, path: str) -> object:
        if type(value) is not kind:
            raise _wrong(path, _PLAIN[kind], value)
        return value

    return decode


def _optional(one: _Decode) -> _Decode:
    return lambda value, path: None if value is None else one(value, path)


def _list(value: object, path: str) -> list[object]:
    if type(value) is not list:
        raise _wrong(path, "a list", value)
    return value


def _sequence(one: _Decode) -> _Decode:
    return lambda value, path: tuple([one(item, f"{path}[{at}]") for at, item in enumerate(_list(value, path))])


def _fixed(parts: tuple[_Decode, ...]) -> _Decode:
    def decode(value: object, path: str) -> object:
        items = _list(value, path)
        if len(items) != len(parts):
            raise _wrong(path, f"a list of {len(parts)}", f"a list of {len(items)}")
        return tuple(one(item, f"{path}[{at}]") for at, (one, item) in enumerate(zip(parts, items, strict=True)))

    return decode


def _enum(kind: type[Enum]) -> _Decode:
    members = {(type(member.value), member.value): member for member in kind}
    expected = f"one of {', '.join(str(member.value) for member in kind)}"

    def decode(value: object, path: str) -> object:
        member = members.get((type(value), value)) if type(value) in (str, int) else None
        if member is None:
            raise _wrong(path, expected, value)
        return member

    return decode


def _uuid(kind: type[Uuid]) -> _Decode:
    def decode(value: object, path: str) -> object:
        if type(value) is not str:
            raise _wrong(path, "an id", value)
        return kind.parse(value, path)

    return decode


def _record(kind: type) -> _Decode:
    hints = get_type_hints(kind)
    refs = {name: hint for name, hint in hints.items() if ReplicaRef in (hint, *get_args(hint))}
    hints |= {f"{name}.{inner}": part | None for name in refs for inner, part in get_type_hints(ReplicaRef).items()}
    keys = {key: (name, _decoder(hints[name])) for name, key in keys_of(kind).items()}
    if dataclasses.is_dataclass(kind):
        needed = {one.name for one in dataclasses.fields(kind) if one.default is one.default_factory}
    else:
        needed = set(kind._fields) - kind._field_defaults.keys()  # type: ignore[attr-defined]  # a named tuple
    if hidden := needed - {name.partition(".")[0] for name, _ in keys.values()}:
        raise TypeError(f"{kind.__name__} has no JSON form that can be read: {', '.join(sorted(hidden))}")

    def decode(value: object, path: str) -> object:
        if type(value) is not dict:
            raise _wrong(path, "an object", value)
        found = {}
        for key, one in value.items():
            field = keys.get(key)
            if field is None:
                raise _wrong(path, f"only the keys {', '.join(keys) or 'none'}", key)
            found[field[0]] = field[1](one, f"{path}.{key}")
        for name, hint in refs.items():
            _gather_ref(found, name, path, is_needed=hint is ReplicaRef)
        for name in needed:
            if name not in found:
                raise _wrong(f"{path}.{name}", "a value", "none")
        return kind(**found)

    return decode


def _gather_ref(found: dict[str, Any], name: str, path: str, *, is_needed: bool) -> None:
    """Replace the parts of a ``ReplicaRef`` in ``found`` by one; by ``None`` if all are null or left out."""
    parts = {one.name: found.pop(f"{name}.{one.name}", None) for one in dataclasses.fields(ReplicaRef)}
    if parts["partition"] is not None:
        found[name] = ReplicaRef(**parts)
    elif is_needed or any(part is not None for part in parts.values()):
        raise _wrong(f"{path}.partition", _PLAIN[int], None)
    else:
        found[name] = None


_EVIDENCE: Final = {"absent": Absent, "present": Present}


class EvidenceForm(NamedTuple):
    """Evidence in JSON, of whatever kind."""

    kind: str
    proof: Proof | None
    as_of_ms: int | None


def _evidence(value: object, path: str) -> object:
    form: EvidenceForm = _decoder(EvidenceForm)(value, path)
    if form.kind == "unknown" and form.proof is None and form.as_of_ms is None:
        return Unknown()
    if form.as_of_ms is not None and form.kind == "removed" and form.proof is not None:
        return Removed(proof=form.proof, as_of_ms=form.as_of_ms)
    if form.as_of_ms is not None and form.proof is None and form.kind in _EVIDENCE:
        return _EVIDENCE[form.kind](as_of_ms=form.as_of_ms)
    raise _wrong(path, "evidence as in a marker", value)
