"""One record of the metadata log, from and to the bytes of its value, and as the stock decoder prints it.

Not here: batches (``batches``), the faster reading of the most frequent types (``metadata_fast``).

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
"""Since 3.0; 2.8 wrote 0, which no later release reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecord:
    """One record of the metadata log."""

    type: int
    """Key in :data:`TYPES`."""
    version: int
    fields: dict[str, Any]
    """Those of this version, under Kafka's names: ids as 16 bytes, arrays as tuples, structs as dictionaries. Tagged
    ones are always there; tags of a newer writer stand under ``_tags`` as (tag, bytes)."""

    @property
    def name(self) -> str:
        """The type as the stock decoder prints it."""
        return TYPES[self.type].name


@cache
def _codec(number: int, version: int) -> Codec:
    return Codec(TYPES[number].fields, version, flexible=True)


def decode(value: bytes | memoryview, path: str = "", position: int = 0) -> MetadataRecord:
    """Read the value of a record in a metadata batch.

    Args:
        value: All of it.
        path: The file it comes from, for the errors.
        position: Where in that file it starts, in bytes.

    Raises:
        UnknownRecordTypeError: a type or version that this release does not know.
        WireError: anything else that is not such a value.
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
    # Kafka reads a version above its newest with the newest layout, and mostly fails; what it leaves out would be lost.
    if kind is None or version not in kind.versions:
        raise UnknownRecordTypeError(record_type=number, version=version, position=1)
    return MetadataRecord(type=number, version=version, fields=_codec(number, version).read(data, at))


def encode(record: MetadataRecord) -> bytes:
    """Return the value of a record, as Kafka writes it.

    Raises:
        UnknownRecordTypeError: a type or version that this release does not know.
        WireError: a field is missing, cannot be written, or is not of this version.
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
    """Return what ``kafka-dump-log --cluster-metadata-decoder`` prints of a record."""
    kind = TYPES[record.type]
    data = json_form.to_json(kind.fields, record.version, record.fields)
    return {"type": kind.name, "version": record.version, "data": data}


_BY_NAME: Final = {kind.name: kind for kind in TYPES.values()}


def from_json(document: object, path: str = "") -> MetadataRecord:
    """Return the record that :func:`to_json` shows.

    Raises:
        UnknownRecordTypeError: a version that this release does not know.
        WireError: the document is no such record; the path says what is wrong.
    """
    if not isinstance(document, dict) or document.keys() != {"type", "version", "data"}:
        raise WireError(path, expected="an object of type, version and data", found=document)
    name, version = document["type"], document["version"]
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(version, int) or isinstance(version, bool):
        raise WireError(path, expected="a record type and version", found=f"{name!r}, {version!r}")
    if version not in kind.versions:
        raise UnknownRecordTypeError(path, record_type=kind.number, version=version)
    fields = json_form.from_json(kind.fields, version, document["data"], path)
    return MetadataRecord(type=kind.number, version=version, fields=fields)
