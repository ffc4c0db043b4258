"""The headers of a segment's record batches, kept in memory while a log is read more than once.

Not here: walking a file (``metadata_file``), which batches follow each other (``metadata_files``).

Spec: kafka-formats §7.3.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from logdir.wire.errors import WireError


class Head(NamedTuple):
    """Fields of the header of a record batch; its checksum was right when it was read."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    position: int
    """Where the batch starts in its segment, in bytes."""
    size: int
    is_control: int
    """1: it holds control records; 0: it holds none."""


@dataclass(slots=True)
class Heads:
    """The heads of one segment from byte ``start`` on, as far as it was walked."""

    start: int
    _numbers: array[int] = field(default_factory=lambda: array("q"))
    """The fields of all heads in a row, to save memory: a big log has tens of thousands of batches."""
    end: int = 0
    """Position after the last batch, in bytes."""
    error: WireError | None = None
    """The damage that ends the batches; ``None``: none was found yet."""
    is_whole: bool = False
    """Whether the segment was walked to its end or to damage: there are no more heads."""

    def add(self, head: Head) -> None:
        """Append the head of the next batch."""
        self._numbers.extend(head)
        self.end = head.position + head.size

    def since(self, position: int) -> Iterator[Head]:
        """Yield the heads in memory whose batches start at a byte or behind it."""
        numbers = self._numbers
        for at in range(0, len(numbers), len(Head._fields)):
            head = Head(*numbers[at : at + len(Head._fields)])
            if head.position >= position:
                yield head
