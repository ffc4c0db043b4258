"""Errors in the bytes of Kafka's protocol, with their position.

Not here: files of a log dir (``logdir.errors``).

Spec: design §2 law 8, style §5.6.
"""

from __future__ import annotations

from typing import ClassVar

from logdir.errors import FormatError, LogDirError


class WireError(FormatError):
    """Bytes or a JSON document are no valid batch, record or message of Kafka's protocol."""

    code: ClassVar[str] = "wire-format"

    def __init__(
        self, path: str = "", *, expected: str, found: object, position: int | None = None, fix: str = ""
    ) -> None:
        """Create the error with its position.

        Args:
            path: The file or message; empty if the reader does not know it.
            expected: The expected content.
            found: The actual content.
            position: Byte position in ``path``, from 0; ``None`` if there are no bytes.
            fix: What the operator should do; empty: nothing is known.
        """
        self.position = position
        place = "" if position is None else f" at byte {position}"
        super().__init__(f"{path or 'bytes'}{place}", expected=expected, found=found, fix=fix)

    def within(self, path: str, base: int = 0) -> WireError:
        """Return the same error relative to the enclosing file or message.

        Args:
            path: The enclosing file or message.
            base: Position of these bytes in the enclosing file or message.
        """
        position = base + (self.position or 0)
        return type(self)(path, expected=self.expected, found=self.found, position=position, fix=self.fix)


class CorruptBatchError(WireError):
    """A record batch has an impossible header or a wrong checksum."""

    code: ClassVar[str] = "corrupt-batch"


class UnknownRecordTypeError(WireError):
    """A metadata or control record has a type or version that this release does not know."""

    code: ClassVar[str] = "unknown-record-type"

    def __init__(self, path: str = "", *, record_type: int, version: int, position: int | None = None) -> None:
        """Create the error with type and version; ``position`` as in :class:`WireError`."""
        self.type = record_type
        self.version = version
        super().__init__(
            path,
            expected="a record type and version known to this release",
            found=f"type {record_type}, version {version}",
            position=position,
            fix="read it with a newer logdird release",
        )

    def within(self, path: str, base: int = 0) -> UnknownRecordTypeError:
        """Return the same error relative to the enclosing file or message; see :meth:`WireError.within`."""
        position = base + (self.position or 0)
        return UnknownRecordTypeError(path, record_type=self.type, version=self.version, position=position)


class UnknownMessageError(WireError):
    """A message has an API or version that this release does not know."""

    code: ClassVar[str] = "unknown-message"


class CodecMissingError(LogDirError):
    """A batch is compressed, and the library to decompress it is missing."""

    code: ClassVar[str] = "codec-missing"
