"""The names of a metadata log's files: its segments and snapshots, and those with which a reading begins.

Not here: opening them (``metadata_files``).

Spec: kafka-formats §8.1, §8.3; org.apache.kafka.snapshot.Snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from logdir.paths import SEGMENT_SUFFIX

SNAPSHOT_SUFFIX: Final = ".checkpoint"
_SEGMENT: Final = re.compile(r"([0-9]{20})\.log", re.ASCII)
_SNAPSHOT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint", re.ASCII)


class Snapshot(NamedTuple):
    """A snapshot file; the newest is the greatest: by epoch first, then by offset (kafka-formats §8.1)."""

    epoch: int
    offset: int
    """Offset after the last record that it replaces."""
    name: str


def base_of(name: str) -> int | None:
    """Return the base offset in the file name of a segment; ``None`` for any other name."""
    matched = _SEGMENT.fullmatch(name)
    return None if matched is None else int(matched[1])


def bases_of(names: Iterable[str]) -> list[int]:
    """Return the base offsets of the segments among file names, ascending."""
    return sorted(base for name in names if (base := base_of(name)) is not None)


def segment_name(base: int) -> str:
    """Return the file name of the segment with a base offset."""
    return f"{base:020d}{SEGMENT_SUFFIX}"


def snapshot_of(name: str) -> Snapshot | None:
    """Return the snapshot that a file name stands for; ``None`` for any other name (``.part``, ``.deleted``)."""
    matched = _SNAPSHOT.fullmatch(name)
    return None if matched is None else Snapshot(int(matched[2]), int(matched[1]), name)


def snapshots_of(names: Iterable[str]) -> list[Snapshot]:
    """Return the snapshots among file names, the newest last."""
    return sorted(one for name in names if (one := snapshot_of(name)) is not None)


def newest(names: Iterable[str], log_start: int, *, at_most: int | None = None) -> Snapshot | None:
    """Return the newest snapshot from which a log can be read; ``None``: there is none.

    Args:
        names: The names of all files of the log.
        log_start: Base offset of the first segment; a snapshot that ends before it is not used.
        at_most: The highest offset at which the snapshot may end; ``None``: any.
    """
    for one in reversed(snapshots_of(names)):
        # The snapshot of offset 0 holds voters only.
        if one.offset >= max(log_start, 1) and (at_most is None or one.offset <= at_most):
            return one
    return None


def segments_behind(bases: Sequence[int], start: int) -> list[int]:
    """Return the base offsets of the segments that may hold records from an offset on.

    Args:
        bases: Base offsets of all segments, ascending.
        start: The offset.
    """
    following: list[int | None] = [*bases[1:], None]
    # No segment at all has nothing behind it either.
    return [base for base, after in zip(bases, following, strict=False) if after is None or after > start]
