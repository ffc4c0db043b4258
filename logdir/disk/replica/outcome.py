"""What became of one item of an operation.

Spec: style §4.4; design §2 law 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdir.errors import LogDirError, ReadOnlyDiskError


class Result(Enum):
    """How an item ended. There is no third way: a disk that cannot say raises ``ReadOnlyDiskError``."""

    DONE = "done"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One item of an operation, after it."""

    path: str
    """What it was asked for, relative to its log dir or work root."""
    result: Result
    place: str | None = None
    """Where it lies now, relative likewise; ``None`` if it is gone, or undone and where it lay."""
    error: LogDirError | None = None
    """Why it was not done."""


def done(path: str, place: str | None) -> Outcome:
    """Return the outcome of an item that is done."""
    return Outcome(path=path, result=Result.DONE, place=place)


def undone(path: str, error: LogDirError, place: str | None = None) -> Outcome:
    """Return the outcome of an item that is as it was, or was only begun.

    Args:
        path: What it was asked for.
        error: Why it was not done.
        place: Where it lies now, if it was begun: a purge that claimed it has taken its way back.

    Raises:
        ReadOnlyDiskError: that is the error: of such a disk nobody knows how an item is.
    """
    if isinstance(error, ReadOnlyDiskError):
        raise error
    return Outcome(path=path, result=Result.UNDONE, place=place, error=error)
