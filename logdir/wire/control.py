"""Control records, which brokers and the quorum write between the records of a log.

Not here: their batch (``batches``), the meaning of a voter set.

Spec: kafka-formats §7.5; org.apache.kafka.common.record.{ControlRecordType,ControlRecordUtils,EndTransactionMarker}.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from logdir.wire import json_form
from logdir.wire.codec import Codec
from logdir.wire.errors import UnknownRecordTypeError, WireError
from logdir.wire.primitives import too_short
from logdir.wire.records import Record
from logdir.wire.schema import Table, Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlType:
    """A type of control record."""

    number: int
    name: str
    versions: Versions
    """Versions of the value."""
    table: Table
    flexible: bool = True


_MARKER: Final = "version int16\ncoordinatorEpoch int32"
_VOTER: Final = """
        voterId            int32
        voterDirectoryId   uuid    1+
"""

_ALL: Final = (
    ControlType(number=0, name="ABORT", versions=Versions(0, 0), table=Table(_MARKER), flexible=False),
    ControlType(number=1, name="COMMIT", versions=Versions(0, 0), table=Table(_MARKER), flexible=False),
    ControlType(
        number=2,
        name="LEADER_CHANGE",
        versions=Versions(0, 1),
        table=Table(f"""
    version                int16
    leaderId               int32
    voters                 []{{}}{_VOTER}
    grantingVoters         []{{}}{_VOTER}
"""),
    ),
    ControlType(
        number=3,
        name="SNAPSHOT_HEADER",
        versions=Versions(0, 0),
        table=Table("""
    version                    int16
    lastContainedLogTimestamp  int64
"""),
    ),
    ControlType(number=4, name="SNAPSHOT_FOOTER", versions=Versions(0, 0), table=Table("version int16")),
    ControlType(
        number=5,
        name="KRAFT_VERSION",
        versions=Versions(0, 0),
        table=Table("""
    version                int16
    kRaftVersion           int16
"""),
    ),
    ControlType(
        number=6,
        name="KRAFT_VOTERS",
        versions=Versions(0, 0),
        table=Table("""
    version                int16
    voters                 []{}
        voterId            int32
        voterDirectoryId   uuid
        endpoints          []{}
            name           string
            host           string
            port           uint16
        kRaftVersionFeature  {}
            minSupportedVersion  int16
            maxSupportedVersion  int16
"""),
    ),
)

TYPES: Final[Mapping[int, ControlType]] = MappingProxyType({one.number: one for one in _ALL})
"""Types of control record by number."""

_KEY: Final = struct.Struct(">hh")
_VERSION: Final = struct.Struct(">h")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """One decoded control record."""

    type: int
    name: str
    version: int
    """Version of the value; that of the key is always 0."""
    fields: dict[str, Any]
    """The fields of the value, including ``version``, under Kafka's names."""


@cache
def _codec(number: int, version: int) -> Codec:
    kind = TYPES[number]
    return Codec(kind.table.fields, version, flexible=kind.flexible)


def decode_control(record: Record, path: str = "") -> ControlRecord:
    """Decode a control record.

    Args:
        record: A record of a batch whose ``is_control`` is true.
        path: Path of the file, for the errors; positions count from the start of the record's key or value.

    Raises:
        UnknownRecordTypeError: a type or a version of the value that this release does not know.
        WireError: key or value are malformed.
    """
    key, value = record.key or b"", record.value or b""
    if len(key) < _KEY.size:
        raise too_short(key, 0, "the key of a control record").within(path)
    # Of a key with a higher version Kafka reads the first four bytes.
    key_version, number = _KEY.unpack_from(key)
    if key_version < 0:
        raise WireError(path, expected="a key version of 0 or above", found=key_version, position=0)
    if len(value) < _VERSION.size:
        raise too_short(value, 0, "the value of a control record").within(path)
    (version,) = _VERSION.unpack_from(value)
    kind = TYPES.get(number)
    if kind is None or version not in kind.versions:
        raise UnknownRecordTypeError(path, record_type=number, version=version, position=0)
    try:
        fields = _codec(number, version).read(value)
    except WireError as error:
        raise error.within(path) from None
    return ControlRecord(type=number, name=kind.name, version=version, fields=fields)


def encode_control(record: ControlRecord) -> tuple[bytes, bytes]:
    """Return the key and the value of a control record in bytes, as Kafka writes them.

    Raises:
        UnknownRecordTypeError: a type or version that this release does not know.
        WireError: a field that cannot be written.
    """
    kind = TYPES.get(record.type)
    if kind is None or record.version not in kind.versions:
        raise UnknownRecordTypeError(record_type=record.type, version=record.version)
    out = bytearray()
    _codec(record.type, record.version).write(record.fields, out)
    return _KEY.pack(0, record.type), bytes(out)


def to_json(record: ControlRecord) -> dict[str, Any]:
    """Return the value of a control record in the JSON that ``kafka-dump-log`` prints, ``version`` first."""
    return json_form.to_json(TYPES[record.type].table.fields, record.version, record.fields)
