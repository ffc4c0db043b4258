"""The outcome of one item (a replica, or a directory of one) of an operation.

Spec: style §4.4; design §2 law 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdir.disk.kernel.failure import UNKNOWN
from logdir.errors import LogDirError


class Result(Enum):
    """The two possible results of an item; a disk whose state is unknown raises one of ``failure.UNKNOWN`` instead."""

    DONE = "done"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an operation did with one item: done, or undone with the reason."""

    path: str
    """The path that was asked for, relative to its log dir or work root."""
    result: Result
    place: str | None = None
    """Its path afterwards, relative likewise; ``None`` if it is removed, or undone and still at ``path``."""
    error: LogDirError | None = None
    """Why it was not done."""


def done(path: str, place: str | None) -> Outcome:
    """Return the outcome of an item that is done."""
    return Outcome(path=path, result=Result.DONE, place=place)


def undone(path: str, error: LogDirError, place: str | None = None) -> Outcome:
    """Return the outcome of an item that is unchanged, or that was only begun.

    Args:
        path: The path that was asked for.
        error: Why it was not done.
        place: Its path now, if the operation was begun: a claimed replica, for example, cannot be restored.

    Raises:
        ReadOnlyDiskError, LogDirSuspectError: ``error`` is one: the state of items on such a disk is unknown.
    """
    if isinstance(error, UNKNOWN):
        raise error
    return Outcome(path=path, result=Result.UNDONE, place=place, error=error)
