"""Decoding and encoding one record of the metadata log, and its JSON form as ``kafka-dump-log`` prints it.

Not here: batches (``batches``), the faster decoding of the most frequent types (``metadata_fast``).

Spec: kafka-formats §9; org.apache.kafka.server.common.serialization.AbstractApiMessageSerde.

>>> record = decode(bytes.fromhex("010c00116d657461646174612e76657273696f6e001500"))
>>> to_json(record)
{'type': 'FEATURE_LEVEL_RECORD', 'version': 0, 'data': {'name': 'metadata.version', 'featureLevel': 21}}
>>> encode(record).hex()
'010c00116d657461646174612e76657273696f6e001500'
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from logdir.wire import json_form
from logdir.wire.codec import Codec
from logdir.wire.errors import UnknownRecordTypeError, WireError
from logdir.wire.metadata_tables import TYPES
from logdir.wire.primitives import read_unsigned_varint, unsigned_varint

__all__ = ("FRAME_VERSION", "TYPES", "MetadataRecord", "decode", "encode", "from_json", "to_json")

FRAME_VERSION: Final = 1
"""Frame version that Kafka writes since 3.0; 2.8 wrote 0, which no later release reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecord:
    """One record of the metadata log."""

    type: int
    """Record type, a key of :data:`TYPES`."""
    version: int
    fields: dict[str, Any]
    """The fields of this version, under Kafka's names: ids as 16 bytes, arrays as tuples, structs as dictionaries.
    Known tagged fields are always present; tags of a newer writer are under ``_tags`` as (tag, bytes).
    """

    @property
    def name(self) -> str:
        """The name of the record type, as ``kafka-dump-log`` prints it."""
        return TYPES[self.type].name


@cache
def _codec(number: int, version: int) -> Codec:
    return Codec(TYPES[number].fields, version, flexible=True)


def decode(value: bytes | memoryview, path: str = "", position: int = 0) -> MetadataRecord:
    """Decode the value of a record in a metadata batch.

    Args:
        value: The bytes of the value.
        path: Path of the file, for the errors.
        position: Start position of the value in that file, in bytes.

    Raises:
        UnknownRecordTypeError: a type or version that this release does not know.
        WireError: the bytes are no record of the metadata log.
    """
    data = bytes(value)
    try:
        return _decode(data)
    except WireError as error:
        raise error.within(path, position) from None


def _decode(data: bytes) -> MetadataRecord:
    frame, at = read_unsigned_varint(data, 0)
    if frame != FRAME_VERSION:
        raise WireError(expected=f"frame version {FRAME_VERSION}", found=frame, position=0)
    number, at = read_unsigned_varint(data, at)
    version, at = read_unsigned_varint(data, at)
    kind = TYPES.get(number)
    # Kafka reads an unknown newer version with its newest schema, and mostly fails; unread fields would be lost.
    if kind is None or version not in kind.versions:
        raise UnknownRecordTypeError(record_type=number, version=version, position=1)
    return MetadataRecord(type=number, version=version, fields=_codec(number, version).read(data, at))


def encode(record: MetadataRecord) -> bytes:
    """Return the bytes of a record's value, as Kafka writes them.

    Raises:
        UnknownRecordTypeError: a type or version that this release does not know.
        WireError: a field is missing, has a wrong value, or is not in this version.
    """
    kind = TYPES.get(record.type)
    if kind is None or record.version not in kind.versions:
        raise UnknownRecordTypeError(record_type=record.type, version=record.version)
    out = bytearray((FRAME_VERSION,))
    out += unsigned_varint(record.type)
    out += unsigned_varint(record.version)
    try:
        _codec(record.type, record.version).write(record.fields, out)
    except WireError as error:
        raise WireError(kind.name, expected=error.expected, found=error.found, position=error.position) from None
    return bytes(out)


def to_json(record: MetadataRecord) -> dict[str, Any]:
    """Return the JSON that ``kafka-dump-log --cluster-metadata-decoder`` prints for a record."""
    kind = TYPES[record.type]
    data = json_form.to_json(kind.fields, record.version, record.fields)
    return {"type": kind.name, "version": record.version, "data": data}


_BY_NAME: Final = {kind.name: kind for kind in TYPES.values()}


def from_json(document: object, path: str = "") -> MetadataRecord:
    """Return the record of a JSON document in the form of :func:`to_json`.

    Raises:
        UnknownRecordTypeError: a version that this release does not know.
        WireError: the document is no such record; the error's path names the wrong key.
    """
    if not isinstance(document, dict) or document.keys() != {"type", "version", "data"}:
        raise WireError(path, expected="an object with type, version and data", found=document)
    name, version = document["type"], document["version"]
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(version, int) or isinstance(version, bool):
        raise WireError(path, expected="a known record type and version", found=f"{name!r}, {version!r}")
    if version not in kind.versions:
        raise UnknownRecordTypeError(path, record_type=kind.number, version=version)
    fields = json_form.from_json(kind.fields, version, document["data"], path)
    return MetadataRecord(type=kind.number, version=version, fields=fields)
