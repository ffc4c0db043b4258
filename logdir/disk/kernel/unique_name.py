"""Names in a directory: whether one is taken, and the first that is not.

Not here: what a name says (``names``), renaming (``replica_dir.rename``).

Spec: design §3.3 "a name already taken under ``deleting/``".
"""

from __future__ import annotations

from collections.abc import Callable

from logdir.disk.kernel.calls import Directory
from logdir.errors import RefusedError
from logdir.names import MAX_NAME, WorkDir, render_work_dir
from logdir.refusal_slug import Why

MARKS = frozenset(("", "purging", "ready"))
"""All that a name under ``deleting/`` or ``incoming/`` may end in."""
TOO_LONG = "a topic with so long a name needs a topic id to be called by"
_COUNTERS = 10_000


def free_name(directory: Directory, parts: WorkDir, claim: Callable[[str], None], marks: frozenset[str] = MARKS) -> str:
    """Take the first name that is free, in all its marks.

    Args:
        directory: ``deleting/`` or ``incoming/``.
        parts: Of the name; counted up from 1.
        claim: Makes or renames something to the name it is given, or raises ``FileExistsError``.
        marks: Those under which the name must be free too.

    Returns:
        The name.

    Raises:
        RefusedError: what is free is too long a name, in one of its marks.
        RefusedError: thousands are taken.
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
        found=f"{_COUNTERS} taken",
        fix="purge what is staged",
    )


def is_there(directory: Directory, name: str) -> bool:
    """Whether a name is taken.

    Raises:
        OSError: nobody can say.
    """
    try:
        directory.stat(name)
    except FileNotFoundError:
        return False
    return True
