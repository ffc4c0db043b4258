r"""``leader-epoch-checkpoint``: at which offset each leader epoch of a partition began.

Not here: which entries the log end makes stale (Kafka drops those when it loads the log).

Spec: kafka-formats §4; org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile.

>>> parse(b"0\n2\n0 0\n3 120\n")
(EpochEntry(epoch=0, start_offset=0), EpochEntry(epoch=3, start_offset=120))
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from logdir.formats.kafka.checkpoint_text import parse_entries, parse_number, render_entries
from logdir.paths import LEADER_EPOCHS

NAME = LEADER_EPOCHS

_FIELDS = ("epoch", "startOffset")
_MAX_EPOCH = 2**31 - 1
_MAX_OFFSET = 2**63 - 1


class EpochEntry(NamedTuple):
    """One leader epoch and the first offset written in it."""

    epoch: int
    start_offset: int


def parse(data: bytes, path: str = "") -> tuple[EpochEntry, ...]:
    """Parse ``leader-epoch-checkpoint``; an empty one has no entries, as for Kafka.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Returns:
        Entries by ascending epoch, of a repeated epoch the last one, as a broker keeps them. Offsets need not
        ascend.

    Raises:
        MalformedFileError: the file is malformed; Kafka refuses it, too (with an IOException or otherwise).
        UnsupportedVersionError: a version other than 0.
    """
    starts = {}
    for line, (epoch, offset) in parse_entries(data, path, _FIELDS):
        starts[parse_number(epoch, 32, path, line)] = parse_number(offset, 64, path, line)
    return tuple(EpochEntry(epoch, starts[epoch]) for epoch in sorted(starts))


def render(value: Sequence[EpochEntry]) -> bytes:
    """Return the bytes of ``leader-epoch-checkpoint``.

    Raises:
        ValueError: a number out of range, or epochs or offsets that do not strictly ascend.
    """
    for entry in value:
        if not (0 <= entry.epoch <= _MAX_EPOCH and 0 <= entry.start_offset <= _MAX_OFFSET):
            raise ValueError(f"out of range: {entry}")
    for one, other in pairwise(value):
        if one.epoch >= other.epoch or one.start_offset >= other.start_offset:
            raise ValueError(f"epochs and offsets must strictly ascend: {one}, then {other}")
    return render_entries([f"{entry.epoch} {entry.start_offset}" for entry in value])
