"""JSON schemas of dataclasses and named tuples, as ``json_form`` writes and reads them.

A result has all its keys; a request may leave out those with a default. So one class is in results or in requests.

Spec: JSON Schema 2020-12, which OpenAPI 3.1 has.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, NewType, Union, get_args, get_origin, get_type_hints

from logdir.daemon.report import figures
from logdir.evidence import Absent, Present, Removed, Unknown
from logdir.ids import Uuid
from logdir.replica_ref import ReplicaRef
from logdir.service.report.json_form import EvidenceForm, keys_of
from logdir.worker.inventory import KindFigures
from tests.generated.fields import ABSENT, default_of, every_meaning

Schema = dict[str, Any]
_PLAIN: Final[Mapping[object, str]] = {
    str: "string", int: "integer", bool: "boolean", float: "number", NoneType: "null",
}  # fmt: skip
_EVIDENCE: Final = {Removed, Absent, Present, Unknown}
_NAMES: Final[Mapping[type, str]] = {KindFigures: "InventoryFigures", figures.KindFigures: "KindFigures"}
"""Names of classes that share theirs with another one."""


def ref(name: str) -> Schema:
    """Return a reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def or_null(schema: Schema) -> Schema:
    """Return the schema of a value that may be null, too."""
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


class Schemas:
    """The components that the schemas refer to, made as they are asked for."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        self._made: dict[str, tuple[type, bool]] = {}

    def of(self, hint: Any, *, is_request: bool) -> Schema:
        """Return the schema of an annotation."""
        origin, inner = get_origin(hint), get_args(hint)
        if hint is object:
            return {}
        if hint in _PLAIN:
            return {"type": _PLAIN[hint]}
        if isinstance(hint, NewType):
            return self.of(hint.__supertype__, is_request=is_request)
        if origin in (Union, UnionType):
            others = [one for one in inner if one is not NoneType]
            one: Any = EvidenceForm if set(others) <= _EVIDENCE else Union[tuple(others)]  # noqa: UP007
            schema = (
                {"anyOf": [self.of(other, is_request=is_request) for other in others]}
                if get_origin(one) in (Union, UnionType)
                else self.of(one, is_request=is_request)
            )
            return or_null(schema) if NoneType in inner else schema
        if origin in (tuple, frozenset, list):
            if origin is tuple and inner[-1] is not Ellipsis:
                parts = [self.of(part, is_request=is_request) for part in inner]
                return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
            return {"type": "array", "items": self.of(inner[0], is_request=is_request)}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(inner[1], is_request=is_request)}
        if hint in _EVIDENCE:
            return self.of(EvidenceForm, is_request=is_request)
        if issubclass(hint, Enum):
            values = [one.value for one in hint]
            return {"type": "integer" if all(isinstance(one, int) for one in values) else "string", "enum": values}
        if issubclass(hint, Uuid):
            return {"type": "string", "description": "an id in base64, as Kafka prints it"}
        return self.record(hint, is_request=is_request)

    def record(self, kind: type, *, is_request: bool) -> Schema:
        """Return the schema of a dataclass or named tuple: a reference to its component."""
        name = _NAMES.get(kind, kind.__name__)
        before = self._made.setdefault(name, (kind, is_request))
        if before != (kind, is_request):
            raise ValueError(f"two objects {name}: {before}, {(kind, is_request)}")
        if name not in self.components:
            self.components[name] = {}  # A class may hold its own type.
            self.components[name] = self._object(kind, is_request=is_request)
        return ref(name)

    def _object(self, kind: Any, *, is_request: bool) -> Schema:
        hints, texts = get_type_hints(kind), every_meaning(kind)
        hints |= _ref_hints(hints)
        properties: dict[str, Schema] = {}
        required = []
        for name, key in keys_of(kind).items():
            schema = self.of(hints[name], is_request=is_request)
            default = default_of(kind, name) if is_request else ABSENT
            more = {} if default is ABSENT else {"default": default}
            if name in texts:
                more["description"] = texts[name]
            properties[key] = {**schema, **more}
            if default is ABSENT:
                required.append(key)
        made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            made["required"] = required
        return made


def _ref_hints(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations of the parts of each ``ReplicaRef``, which stand in the object that holds it."""
    found: dict[str, Any] = {}
    for name, hint in hints.items():
        if ReplicaRef in (hint, *get_args(hint)):
            parts = get_type_hints(ReplicaRef)
            found |= {f"{name}.{part}": one if hint is ReplicaRef else one | None for part, one in parts.items()}
    return found
