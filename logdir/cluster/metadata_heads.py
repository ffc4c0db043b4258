"""What the headers of a segment's batches say, remembered by a reading that is asked for them more than once.

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
    """What the header of a batch says; its checksum held when it was read."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    position: int
    """Where it starts in its segment, in bytes."""
    size: int
    is_control: int
    """1: it holds control records; 0: it holds none."""


@dataclass(slots=True)
class Heads:
    """The heads of a segment from a byte on, as far as it was walked."""

    start: int
    _numbers: array[int] = field(default_factory=lambda: array("q"))
    """Of one head after the other: a big log has tens of thousands of batches."""
    end: int = 0
    """Behind the last of them."""
    error: WireError | None = None
    is_whole: bool = False
    """There are no more."""

    def add(self, head: Head) -> None:
        """Remember the next one."""
        self._numbers.extend(head)
        self.end = head.position + head.size

    def since(self, position: int) -> Iterator[Head]:
        """Yield those that are remembered by now, from a byte on."""
        numbers = self._numbers
        for at in range(0, len(numbers), len(Head._fields)):
            head = Head(*numbers[at : at + len(Head._fields)])
            if head.position >= position:
                yield head
