"""One codec for every table: a struct of one version, from all of some bytes and back.

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
        """Put the codec together.

        Args:
            fields: The table.
            version: The one to read and write.
            flexible: Whether that version is.
        """
        self._read: Read = struct_reader(fields, version, flexible=flexible)
        self._write: Write = struct_writer(fields, version, flexible=flexible)

    def read(self, data: bytes, position: int = 0) -> dict[str, Any]:
        """Return the fields of this version; tagged ones that are absent with their defaults.

        Ids are 16 bytes, arrays tuples, structs dictionaries; tagged fields the table does not know stand under
        ``_tags``.

        Args:
            data: To be read to its end.
            position: Where the struct starts.

        Raises:
            WireError: the bytes are not such a struct, or go on behind it.
        """
        value, end = self._read(data, position)
        if end != len(data):
            raise WireError(expected="the end", found=f"{len(data) - end} more bytes", position=end)
        fields: dict[str, Any] = value
        return fields

    def read_part(self, data: bytes, position: int) -> tuple[dict[str, Any], int]:
        """Return the fields, and the position behind them; see :meth:`read`.

        Raises:
            WireError: the bytes are not such a struct.
        """
        return self._read(data, position)

    def write(self, value: dict[str, Any], out: bytearray) -> None:
        """Append what :meth:`read` would read as ``value``.

        Raises:
            WireError: a field is missing, cannot be written, or is not of this version.
        """
        self._write(value, out)
