r"""Variable-length integers of Kafka's protocol, and the error for truncated bytes.

``varint`` and ``varlong`` are zigzag; ``unsigned varint`` is not. Not here: anything of fixed width: the
standard library's ``struct`` reads it.

Spec: kafka-formats §7.4, §9.2; org.apache.kafka.common.utils.ByteUtils.

>>> unsigned_varint(300).hex(), varint(-65).hex()
('ac02', '8101')
>>> read_unsigned_varint(b"\xac\x02", 0), read_varint(b"\x81\x01", 0)
((300, 2), (-65, 2))
"""

from __future__ import annotations

from logdir.wire.errors import WireError

_BITS_31 = (1 << 31) - 1
_BITS_32 = (1 << 32) - 1
_BITS_64 = (1 << 64) - 1


def too_short(data: bytes, position: int, what: str) -> WireError:
    """Return, for the caller to raise, the error for truncated bytes.

    Args:
        data: The bytes.
        position: Position in ``data`` where the missing part should start.
        what: The name of the missing part, for the message.
    """
    left = max(len(data) - position, 0)
    return WireError(expected=what, found=f"only {left} more bytes", position=position)


def read_unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned number of up to 31 bits and the position after it.

    Raises:
        WireError: the bytes are truncated, or the number has more than 31 bits (Kafka would read a negative one).
    """
    return _read(data, position, 28, _BITS_31)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a signed number of up to 32 bits and the position after it.

    Raises:
        WireError: the bytes are truncated, or the number has more than 32 bits.
    """
    raw, position = _read(data, position, 28, _BITS_32)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Return a signed number of up to 64 bits and the position after it.

    Raises:
        WireError: the bytes are truncated, or the number has more than 64 bits.
    """
    raw, position = _read(data, position, 63, _BITS_64)
    return (raw >> 1) ^ -(raw & 1), position


def _read(data: bytes, start: int, last_shift: int, most: int) -> tuple[int, int]:
    value = shift = 0
    position = start
    while True:
        try:
            byte = data[position]
        except IndexError:
            raise too_short(data, start, "a variable-length number") from None
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > last_shift:
            break
    # Kafka drops higher bits silently; here a number that cannot be written back is refused.
    if byte >= 0x80 or value > most:
        raise WireError(
            expected=f"a number of {most.bit_length()} bits", found=data[start:position].hex(), position=start
        )
    return value, position


def unsigned_varint(value: int) -> bytes:
    """Return the bytes of an unsigned number of up to 64 bits.

    Raises:
        ValueError: the number is negative or has more than 64 bits.
    """
    if not 0 <= value <= _BITS_64:
        raise ValueError(f"no unsigned number of 64 bits: {value}")
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Return the bytes of a signed number (``varint`` and ``varlong`` are written alike).

    Raises:
        ValueError: the number has more than 64 bits.
    """
    return unsigned_varint(value << 1 if value >= 0 else (~value << 1) | 1)
