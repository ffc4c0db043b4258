"""Decompression of record batches: Kafka's four codecs, with a size limit.

gzip is part of Python; the others need ``cramjam``, imported on first use. Metadata logs are never compressed. Snappy
data has Kafka's framing (xerial) or, as its reader accepts too, is one raw block.

Spec: kafka-formats §7.3; org.apache.kafka.common.compress.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from enum import IntEnum
from types import ModuleType
from typing import Any, Final

from logdir.wire.errors import CodecMissingError, WireError
from logdir.wire.primitives import read_unsigned_varint, too_short

DEFAULT_LIMIT: Final = 256 * 1024 * 1024
"""Maximum decompressed size of a record batch, in bytes."""

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16
_FIRST_ROOM: Final = 64 * 1024

_FULL: Final = "whole buffer"
"""Message of ``cramjam`` for data longer than the buffer."""


class Codec(IntEnum):
    """The codec number in a record batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: Codec, data: bytes, limit: int = DEFAULT_LIMIT) -> bytes:
    """Return the decompressed data.

    Args:
        codec: The codec.
        data: The compressed data.
        limit: Maximum size of the result in bytes; at most that much (and a buffer) is allocated.

    Raises:
        WireError: the data cannot be decompressed, or exceeds the limit; positions are in ``data``.
        CodecMissingError: ``cramjam`` is needed but not installed.
    """
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return _gunzip(data, limit)
        case Codec.SNAPPY:
            return _unsnap(data, limit)
        case Codec.LZ4 | Codec.ZSTD:
            return _into_room(_library(codec), codec, data, limit)


def _library(codec: Codec) -> Any:
    try:
        library: ModuleType = importlib.import_module("cramjam")
    except ImportError:
        raise CodecMissingError(
            f"codec {codec.name.lower()}",
            expected="the library cramjam",
            found="no such library",
            fix="pip install 'logdird[compression]'",
        ) from None
    return library


def _too_large(limit: int) -> WireError:
    return WireError(expected=f"at most {limit} bytes when decompressed", found="more bytes", position=0)


def _gunzip(data: bytes, limit: int) -> bytes:
    pieces: list[bytes] = []
    size, start = 0, 0
    while start < len(data) or not pieces:
        member = zlib.decompressobj(wbits=31)
        try:
            piece = member.decompress(data[start:], limit - size + 1)
        except zlib.error as error:
            raise WireError(expected="gzip data", found=str(error), position=start) from None
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        if not member.eof:
            raise too_short(data, len(data), "the end of gzip data")
        pieces.append(piece)
        start = len(data) - len(member.unused_data)
    return b"".join(pieces)


def _unsnap(data: bytes, limit: int) -> bytes:
    library = _library(Codec.SNAPPY)
    if not data.startswith(_XERIAL):
        return _unsnap_block(library, data, 0, 0, limit)
    out = bytearray()
    position = _XERIAL_HEADER
    if len(data) < position:
        raise too_short(data, len(data), "a snappy header")
    while position < len(data):
        if data.startswith(_XERIAL, position):
            # Several streams may follow each other.
            position += _XERIAL_HEADER
            continue
        try:
            (size,) = struct.unpack_from(">i", data, position)
        except struct.error:
            raise too_short(data, position, "the length of a snappy block") from None
        start = position + 4
        if not 0 <= size <= len(data) - start:
            raise WireError(expected=f"a snappy block of at most {len(data) - start} bytes", found=size, position=start)
        out += _unsnap_block(library, data[start : start + size], start, len(out), limit)
        position = start + size
    return bytes(out)


def _unsnap_block(library: Any, block: bytes, position: int, before: int, limit: int) -> bytes:
    try:
        size, _ = read_unsigned_varint(block, 0)
    except WireError as error:
        raise error.within("", position) from None
    # A raw block contains its length; it is checked before any allocation.
    if before + size > limit:
        raise _too_large(limit)
    try:
        return bytes(library.snappy.decompress_raw(block))
    except library.DecompressionError as error:
        raise WireError(expected="a snappy block", found=str(error), position=position) from None


def _into_room(library: Any, codec: Codec, data: bytes, limit: int) -> bytes:
    """Decompress into a buffer that never exceeds the limit.

    Kafka's frames do not contain their decompressed size: the buffer grows until the data fits.
    """
    name = codec.name.lower()
    decompress_into = getattr(library, name).decompress_into
    room = min(limit, max(_FIRST_ROOM, 8 * len(data)))
    while True:
        buffer = bytearray(room)
        try:
            size = decompress_into(data, buffer)
        except library.DecompressionError as error:
            if _FULL not in str(error):
                raise WireError(expected=f"{name} data", found=str(error), position=0) from None
            if room >= limit:
                raise _too_large(limit) from None
            room = min(limit, room * 8)
        else:
            return bytes(memoryview(buffer)[:size])
