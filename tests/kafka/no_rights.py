"""Whether processes run as a broker and its daemon do on a host: as one user who is not root, without capabilities.

``.ci/as-user`` starts the tests so. Where a machine makes no user namespace it goes on as root, and what a daemon may
not do on a host would succeed unnoticed; this refuses such a run.

Spec: issue "The daemon" (it runs as the owner of the log dirs, with no capabilities); attacks A9.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from tests.proof.sizes import SIZE, Size


def require_no_rights(*pids: int | None) -> None:
    """Return if this process, and these, run as one user who is not root and has no effective capability.

    Raises:
        AssertionError: They do not, or one has ended.
    """
    assert None not in pids, "expected a process, found that it has ended"
    statuses = {pid: Path(f"/proc/{pid}/status").read_text() for pid in (os.getpid(), *pids)}
    found = {pid: rights(status) for pid, status in statuses.items()}
    assert is_one_user(statuses.values()), f"expected one user without capabilities (.ci/as-user), found {found}"


def require_no_rights_in_proof(*pids: int | None) -> None:
    """Call ``require_no_rights`` where the run counts: in CI and in ``make proof``. By hand one may be root."""
    if SIZE is not Size.SAMPLE:
        require_no_rights(*pids)


def is_one_user(statuses: Collection[str]) -> bool:
    """Whether processes run as one user, not root, without effective capabilities; each its ``/proc/PID/status``."""
    found = [rights(status) for status in statuses]
    users = {user for users, _ in found for user in users}
    return len(users) == 1 and 0 not in users and not any(capabilities for _, capabilities in found)


def rights(status: str) -> tuple[tuple[int, ...], int]:
    """Return the users of a process (real, effective, saved, of files) and its effective capabilities, as bits."""
    values = dict(line.split(":", 1) for line in status.splitlines())
    return tuple(map(int, values["Uid"].split())), int(values["CapEff"], 16)
