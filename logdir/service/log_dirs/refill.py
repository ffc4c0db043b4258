"""Restoring the reserves that a full disk used, after a command has changed something.

Spec: design §3.2, §3.4; attacks A10.
"""

from __future__ import annotations

from collections.abc import Iterable

from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.reserve import SLUG_SPENT, put_back
from logdir.errors import LogDirError, Problem


def refill(open_dirs: Iterable[OpenLogDir], notes: list[Problem]) -> None:
    """Restore the reserve and the spare inodes of some log dirs. Never raises: changes made by then stay.

    Args:
        open_dirs: Log dirs that may be changed; their owner locks are held.
        notes: Gets a problem for each reserve that cannot be restored, and loses problems that are solved now.
    """
    for open_dir in open_dirs:
        above = f"{open_dir.work.path}/"
        notes[:] = [note for note in notes if note.slug != SLUG_SPENT or not note.path.startswith(above)]
        try:
            spent = put_back(open_dir.work, open_dir.owner.for_file())
        except LogDirError as error:
            spent = error.problem()
        if spent is not None and spent not in notes:
            notes.append(spent)
