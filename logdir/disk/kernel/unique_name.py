"""Allocation of unique names under ``deleting/`` and ``incoming/``.

Not here: the grammar of names (``names``), renaming (``replica.replica_dir``).

Spec: design §3.3 "a name already taken under ``deleting/``".
"""

from __future__ import annotations

from collections.abc import Callable

from logdir.disk.kernel.calls import Directory
from logdir.errors import RefusedError
from logdir.names import MAX_NAME, WorkDir, render_work_dir
from logdir.refusal_slug import Why

MARKS = frozenset(("", "purging", "ready"))
"""All suffixes of a name under ``deleting/`` or ``incoming/``."""
TOO_LONG = "a topic with such a long name can only be staged by its topic id"
_COUNTERS = 10_000


def free_name(directory: Directory, parts: WorkDir, claim: Callable[[str], None], marks: frozenset[str] = MARKS) -> str:
    """Claim the first free name under ``deleting/`` or ``incoming/``: its counter goes up until the name is free.

    Args:
        directory: The open directory, ``deleting/`` or ``incoming/``.
        parts: The parts of the name; its counter starts at 1.
        claim: Creates the given name or renames something to it, or raises ``FileExistsError``.
        marks: Suffixes with which the name must be free as well.

    Returns:
        The claimed name.

    Raises:
        RefusedError: the free name is too long with one of the suffixes.
        RefusedError: thousands of names are taken.
        OSError: as ``claim``.
    """
    others = marks - {parts.mark}
    for counter in range(1, _COUNTERS):
        name = render_work_dir(parts._replace(counter=counter))
        taken_by = [render_work_dir(parts._replace(counter=counter, mark=mark)) for mark in others]
        longest = max(len(one) for one in (name, *taken_by))
        if longest > MAX_NAME:
            raise RefusedError(
                f"{directory.path}/{name}",
                why=Why.NAME_TOO_LONG,
                expected=f"a name of at most {MAX_NAME} bytes",
                found=longest,
                fix=TOO_LONG,
            )
        if any(is_there(directory, other) for other in taken_by):
            continue
        try:
            claim(name)
        except FileExistsError:
            continue
        return name
    raise RefusedError(
        directory.path,
        why=Why.NO_FREE_NAME,
        expected="a free name",
        found=f"{_COUNTERS} names of one replica, all taken",
        fix="purge what is staged of that replica: logdirctl staged purge",
    )


def is_there(directory: Directory, name: str) -> bool:
    """Whether a name exists in a directory.

    Raises:
        OSError: the directory cannot be read.
    """
    try:
        directory.stat(name)
    except FileNotFoundError:
        return False
    return True
