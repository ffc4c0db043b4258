"""Codec of a struct in one version: reads it from bytes and writes it back.

Not here: frames and headers (``frames``), the frame of a metadata record (``metadata_records``).

Spec: kafka-formats §9.2.
"""

from __future__ import annotations

from typing import Any

from logdir.wire.errors import WireError
from logdir.wire.reading import Read, struct_reader
from logdir.wire.schema import Field
from logdir.wire.writing import Write, struct_writer


class Codec:
    """Reads and writes one version of a struct."""

    __slots__ = ("_read", "_write")

    def __init__(self, fields: tuple[Field, ...], version: int, *, flexible: bool) -> None:
        """Build the codec.

        Args:
            fields: The field table of the struct.
            version: The version to read and write.
            flexible: Whether that version has compact lengths and tagged fields (KIP-482).
        """
        self._read: Read = struct_reader(fields, version, flexible=flexible)
        self._write: Write = struct_writer(fields, version, flexible=flexible)

    def read(self, data: bytes, position: int = 0) -> dict[str, Any]:
        """Return the fields of this version; missing tagged fields have their defaults.

        Ids are 16 bytes, arrays tuples, structs dictionaries; unknown tagged fields are under ``_tags``.

        Args:
            data: The bytes; the struct must reach to their end.
            position: The position where the struct starts.

        Raises:
            WireError: the bytes are no such struct, or are followed by others.
        """
        value, end = self._read(data, position)
        if end != len(data):
            raise WireError(expected="the end of the bytes", found=f"{len(data) - end} more bytes", position=end)
        fields: dict[str, Any] = value
        return fields

    def read_part(self, data: bytes, position: int) -> tuple[dict[str, Any], int]:
        """Return the fields of a struct that more bytes may follow, and the position after it; see :meth:`read`.

        Raises:
            WireError: the bytes are no such struct.
        """
        return self._read(data, position)

    def write(self, value: dict[str, Any], out: bytearray) -> None:
        """Append the bytes that :meth:`read` reads as ``value``.

        Raises:
            WireError: a field is missing, has a wrong value, or is not in this version.
        """
        self._write(value, out)
