"""Whether a place lies in a log dir or work root, where whatever is written may keep a broker from starting.

Read-only; few imports: ``logdirctl inventory`` starts with this.

Spec: design §2 law 7, §3.2 (any other sub-directory of a log dir is fatal to a stock broker), §7.1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from logdir.errors import RefusedError
from logdir.observe.classify import META_PROPERTIES, WORK_ROOT_FILE

_MARKS = (META_PROPERTIES, WORK_ROOT_FILE)
"""Files by which a log dir, or a work root, of any broker is known."""
BESIDE = ".logdird"
"""What is added to the path of a log dir for the work root beside it."""


def require_outside(path: str, log_dirs: Sequence[str] = ()) -> None:
    """Return if what is written at a path would lie in no log dir and in no work root. Reads only.

    Args:
        path: Where something is to be written; it need not exist.
        log_dirs: Log dirs that are known by name. Others on this host are known by their ``meta.properties``.

    Raises:
        RefusedError: it would lie in one.
    """
    around = _around(os.path.realpath(path), log_dirs)
    if around is not None:
        raise RefusedError(
            path,
            expected="a place outside all log dirs and work roots",
            found=f"one in {around}",
            fix="a broker would stop over it; name another place",
        )


def _around(real: str, log_dirs: Sequence[str]) -> str | None:
    """Return the log dir or work root in which a path without links lies, ``None`` if in none."""
    known = [place for log_dir in log_dirs for place in (log_dir, f"{log_dir.rstrip('/')}{BESIDE}")]
    by_identity = {identity: place for place in known if (identity := _identity(place)) is not None}
    by_path = {os.path.realpath(place): place for place in known}
    for above in _upwards(real):
        # A bind mount has another path, a place that is not there yet has no identity.
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
