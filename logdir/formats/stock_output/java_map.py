"""Iteration order of Java's ``HashMap``, in which stock tools print their results.

The order has no meaning; it is kept so that our output can be compared with theirs.

Not here: ``Properties``, which has its own order (``formats.kafka.java_properties``).

Spec: java.util.HashMap, java.lang.String.hashCode, org.apache.kafka.common.TopicPartition.hashCode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

FIRST_TABLE: Final = 16
"""Initial number of bins of a map created without a size."""
_BITS: Final = 0xFFFFFFFF
_T = TypeVar("_T")


def text_hash(text: str) -> int:
    """Return Java's ``hashCode`` of a text: 32 bits, unsigned.

    >>> text_hash("plain")
    106748362
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & _BITS
    return value


def partition_hash(topic: str, partition: int) -> int:
    """Return Java's ``hashCode`` of a ``TopicPartition``: 32 bits, unsigned."""
    return (31 * (31 + partition) + text_hash(topic)) & _BITS


def map_order(keys: Iterable[_T], hash_of: Callable[[_T], int], *, bins: int = FIRST_TABLE) -> list[_T]:
    """Return keys in the order of a ``HashMap``'s bins; those of one bin stay in the order given.

    Args:
        keys: Each once.
        hash_of: Returns the 32-bit hash of a key.
        bins: Initial number of bins.
    """
    listed = list(keys)
    while len(listed) > bins * 3 // 4:
        bins *= 2

    def bin_of(key: _T) -> int:
        value = hash_of(key)
        return (value ^ (value >> 16)) & (bins - 1)

    return sorted(listed, key=bin_of)
