"""The three identities Kafka keeps on disk: topic ids, directory ids, cluster ids.

A topic id and a directory id are 128 bits, written as 22 characters of URL-safe base64 without padding. They
are distinct types here so that one can never stand where the other is meant. A cluster id is free text since
3.7.

Not here: who may hold which id (``formats``), how many ids a topic may have (``migrate``).

Spec: kafka-formats §1; KIP-516, "Topic identifiers"; org.apache.kafka.common.{Uuid,DirectoryId}.
"""

from __future__ import annotations

import binascii
import os
import re
from collections.abc import Callable
from typing import NewType, Self

from logdir.errors import InvalidIdError

ClusterId = NewType("ClusterId", str)
"""Compared as a string, never trimmed."""

_BASE64 = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?", re.ASCII)
_HEX = re.compile(r"[0-9A-Fa-f]{32}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_RESERVED = 100  # hi == 0 and a signed lo below this: DirectoryId.reserved


class Uuid:
    """128 bits with Kafka's text form; ordered as Kafka orders them (signed halves)."""

    __slots__ = ("_bits",)

    def __init__(self, bits: bytes) -> None:
        if len(bits) != 16:
            raise ValueError(f"an id has 16 bytes, not {len(bits)}")
        self._bits = bits

    @classmethod
    def parse(cls, text: str, path: str = "") -> Self:
        """Read the base64 form, as tolerant as Kafka: optional ``==``, spare bits of the last character
        dropped.

        Raises:
            InvalidIdError: anything else; nothing is trimmed.
        """
        if _BASE64.fullmatch(text) is None:
            raise InvalidIdError(
                path,
                expected="an id of 22 base64 characters (A-Z a-z 0-9 - _)",
                found=text or "an empty text",
            )
        return cls(binascii.a2b_base64(text[:22].encode("ascii").translate(_TO_STANDARD) + b"=="))

    @classmethod
    def parse_any(cls, text: str, path: str = "") -> Self:
        """Read base64, plain hex or dashed hex (KIP-516's example writes hex).

        Raises:
            InvalidIdError: the text is none of the three.
        """
        if _HEX.fullmatch(text):
            return cls(bytes.fromhex(text.replace("-", "")))
        return cls.parse(text, path)

    def __bytes__(self) -> bytes:
        return self._bits

    def __str__(self) -> str:
        """Return the 22-character text."""
        return binascii.b2a_base64(self._bits, newline=False).translate(_TO_URL_SAFE)[:22].decode("ascii")

    def hex(self) -> str:
        """Return 32 lower-case hex digits."""
        return self._bits.hex()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self!s})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._bits == self._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def __lt__(self, other: Self) -> bool:
        return self._halves() < other._halves()

    def _halves(self) -> tuple[int, int]:
        return (
            int.from_bytes(self._bits[:8], "big", signed=True),
            int.from_bytes(self._bits[8:], "big", signed=True),
        )

    @property
    def is_zero(self) -> bool:
        """Whether all bits are zero, Kafka's "no id"."""
        return not any(self._bits)

    @property
    def is_reserved(self) -> bool:
        """Whether the value lies in the block Kafka keeps for itself (high half 0, signed low half below
        100).
        """
        high, low = self._halves()
        return high == 0 and low < _RESERVED


def _version_4(bits: bytes) -> bytes:
    drawn = bytearray(bits)
    drawn[6] = (drawn[6] & 0x0F) | 0x40
    drawn[8] = (drawn[8] & 0x3F) | 0x80
    return bytes(drawn)


class TopicId(Uuid):
    """The identity of a topic over its whole life; a re-created topic has another.

    >>> TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw").hex()
    '7973b2eb18fe43c8afad6025b191a793'
    >>> str(TopicId.parse_any("7973b2eb-18fe-43c8-afad-6025b191a793"))
    'eXOy6xj-Q8ivrWAlsZGnkw'
    """

    __slots__ = ()

    @classmethod
    def from_random(cls, bits: bytes) -> TopicId | None:
        """Return the v4 id made of 16 random bytes, or ``None`` if Kafka would draw again."""
        drawn = cls(_version_4(bits))
        return None if drawn.is_reserved or str(drawn).startswith("-") else drawn

    @classmethod
    def random(cls, draw: Callable[[int], bytes] = os.urandom) -> TopicId:
        """Return a random v4 id, never reserved, never starting with ``-``. Reads the system's randomness.

        Spec: Uuid.randomUuid (since 3.2).
        """
        while (drawn := cls.from_random(draw(16))) is None:
            pass
        return drawn


class DirectoryId(Uuid):
    """The identity of one log dir (``directory.id``, since 3.7)."""

    __slots__ = ()

    @classmethod
    def random(cls, draw: Callable[[int], bytes] = os.urandom) -> DirectoryId:
        """Return 128 raw random bits (not v4, as Kafka), never reserved, never starting with ``-``.

        Spec: MetaPropertiesEnsemble / PropertiesUtils, kafka-formats §1 "Generation".
        """
        while True:
            drawn = cls(draw(16))
            if not drawn.is_reserved and not str(drawn).startswith("-"):
                return drawn


METADATA_TOPIC_ID = TopicId(bytes(15) + b"\x01")
"""The topic id of ``__cluster_metadata``."""
