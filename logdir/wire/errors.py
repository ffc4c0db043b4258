"""What can be wrong with bytes of Kafka's protocol, each with the place where it is wrong.

Not here: files of a log dir (``logdir.errors``).

Spec: design §2 law 8, style §5.6.
"""

from __future__ import annotations

from typing import ClassVar

from logdir.errors import FormatError, LogDirError


class WireError(FormatError):
    """Bytes or a JSON document that are no batch, record or message of Kafka's protocol."""

    code: ClassVar[str] = "wire-format"

    def __init__(
        self, path: str = "", *, expected: str, found: object, position: int | None = None, fix: str = ""
    ) -> None:
        """Name the place.

        Args:
            path: The file or message; a reader below the one that knows it leaves it empty.
            expected: What should have been there.
            found: What was there.
            position: Byte in what ``path`` names, from 0; ``None`` where there are no bytes.
            fix: What to do.
        """
        self.position = position
        place = "" if position is None else f" at byte {position}"
        super().__init__(f"{path or 'bytes'}{place}", expected=expected, found=found, fix=fix)

    def within(self, path: str, base: int = 0) -> WireError:
        """Return the same error as seen from outside.

        Args:
            path: What the bytes lie in.
            base: Where in it they start, in bytes.
        """
        position = base + (self.position or 0)
        return type(self)(path, expected=self.expected, found=self.found, position=position, fix=self.fix)


class CorruptBatchError(WireError):
    """A record batch whose header or checksum cannot be true."""

    code: ClassVar[str] = "corrupt-batch"


class UnknownRecordTypeError(WireError):
    """A metadata or control record of a type or version that this release does not know."""

    code: ClassVar[str] = "unknown-record-type"

    def __init__(self, path: str = "", *, record_type: int, version: int, position: int | None = None) -> None:
        """Name type and version, ``position`` as in :class:`WireError`."""
        self.type = record_type
        self.version = version
        super().__init__(
            path,
            expected="a record type and version known to this release",
            found=f"type {record_type}, version {version}",
            position=position,
            fix="read it with a newer release",
        )

    def within(self, path: str, base: int = 0) -> UnknownRecordTypeError:
        """Return the same error as seen from outside; see :meth:`WireError.within`."""
        position = base + (self.position or 0)
        return UnknownRecordTypeError(path, record_type=self.type, version=self.version, position=position)


class UnknownMessageError(WireError):
    """A message of an API or version that this release does not know."""

    code: ClassVar[str] = "unknown-message"


class CodecMissingError(LogDirError):
    """A compressed batch, and no library that can decompress it."""

    code: ClassVar[str] = "codec-missing"
