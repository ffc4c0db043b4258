"""Check that an output path lies outside all log dirs and work roots, where it could keep a broker from starting.

Read-only; few imports: ``logdirctl inventory`` imports this module first.

Spec: design §2 law 7, §3.2 (any other sub-directory of a log dir is fatal to a stock broker), §7.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from logdir.errors import RefusedError
from logdir.paths import BESIDE, META_PROPERTIES, WORK_ROOT_FILE
from logdir.refusal_slug import Why
from logdir.worker_call import worker_call

_MARKS = (META_PROPERTIES, WORK_ROOT_FILE)
"""Files that identify a log dir or a work root of any broker."""


class KeptFree(NamedTuple):
    """A log dir or work root in which no output may lie; compared without reading it again."""

    path: str
    real: str
    """Its path without links."""
    identity: tuple[int, int] | None
    """Device and inode; ``None``: not known."""


@worker_call
def kept_free(log_dir: str) -> tuple[KeptFree, ...]:
    """Return a log dir and the place of a work root beside it. Only reads."""
    return tuple(KeptFree(place, os.path.realpath(place), _identity(place)) for place in _places(log_dir))


def kept_free_unseen(log_dir: str) -> tuple[KeptFree, ...]:
    """Return the same places for a log dir that does not answer, by their paths alone."""
    return tuple(KeptFree(place, os.path.abspath(place), None) for place in _places(log_dir))


def _places(log_dir: str) -> tuple[str, str]:
    return log_dir, f"{log_dir.rstrip('/')}{BESIDE}"


def require_outside(path: str, log_dirs: Sequence[str] = ()) -> None:
    """Raise unless a path lies outside all log dirs and work roots. Only reads.

    Args:
        path: The output path; it need not exist.
        log_dirs: Known log dirs. Others on this host are recognised by their ``meta.properties``.

    Raises:
        RefusedError: it lies in a log dir or work root.
    """
    require_outside_of(path, tuple(place for log_dir in log_dirs for place in kept_free(log_dir)))


@worker_call
def require_outside_of(path: str, places: tuple[KeptFree, ...]) -> None:
    """Check a path as ``require_outside``; reads only the path, not the log dirs.

    Raises:
        RefusedError: it lies in a log dir or work root.
    """
    around = _around(os.path.realpath(path), places)
    if around is not None:
        raise RefusedError(
            path,
            why=Why.INSIDE_LOG_DIR,
            expected="a place outside all log dirs and work roots",
            found=f"a place in {around}",
            fix="name another place for this output: with it in a log dir a broker could not start",
        )


def _around(real: str, places: Sequence[KeptFree]) -> str | None:
    """Return the log dir or work root that contains a path without links; ``None`` if there is none."""
    by_identity = {place.identity: place.path for place in places if place.identity is not None}
    by_path = {place.real: place.path for place in places}
    for above in _upwards(real):
        # A bind mount has another path, and a place that does not exist yet has no identity.
        identity = _identity(above)
        found = by_path.get(above) or (None if identity is None else by_identity.get(identity))
        if found is not None:
            return found
        if any(os.path.lexists(os.path.join(above, name)) for name in _MARKS):
            return above
    return None


def _upwards(path: str) -> Iterator[str]:
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - few imports, here
    except OSError:
        return None
    return found.st_dev, found.st_ino
