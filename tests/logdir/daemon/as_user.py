"""Starts a program as a broker and its daemon run on a host: as a user who is not root and has no capabilities.

Where the tests already run as such a user, nothing changes. Where root runs them, a program is put into a user
namespace of its own, as ``.ci/as-user`` puts a whole run. The files of root belong to user 1000 there, so that what a
test makes, mounts or renames needs no new owner. That user differs from one of a host in one way: ext4 lets it write
the blocks that are reserved for root. Where no user namespace can be made, it is root without capabilities; CI refuses
that.

Not here: running the broker as that user, too (``.ci/as-user``, ``tests.kafka.no_rights``).

Spec: design §5 (the daemon runs as the owner of the log dirs, without capabilities); attacks A9; user_namespaces(7).
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.kafka.no_rights import rights
from tests.proof.sizes import SIZE, Size

_USER: Final = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_NO_CAPABILITIES: Final = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


class Rights(NamedTuple):
    """As whom a process runs."""

    users: tuple[int, ...]
    """Real, effective, saved, and of files, as its user namespace numbers them."""
    capabilities: int
    """Effective ones, as bits."""

    @property
    def are_none(self) -> bool:
        """Whether it has no capability and is not root; root it may be by hand, where no user namespace can be made."""
        is_root_allowed = SIZE is Size.SAMPLE and _prefix() == _NO_CAPABILITIES
        return not self.capabilities and (is_root_allowed or 0 not in self.users)


def as_user(*command: str) -> list[str]:
    """Return a command that runs a program as a user without capabilities, in the process that it is started as."""
    return [*_prefix(), *command]


@cache
def _prefix() -> tuple[str, ...]:
    if os.geteuid() != 0:
        return ()
    is_made = subprocess.run([*_USER, "true"], capture_output=True, check=False).returncode == 0
    return _USER if is_made else _NO_CAPABILITIES


def rights_of(pid: int) -> Rights:
    """Return as whom a process runs, also one that has ended and was not waited for. Raises ``FileNotFoundError``."""
    users, capabilities = rights(Path(f"/proc/{pid}/status").read_text())
    if os.geteuid() != 0:  # Then it is in the namespace of this process.
        return Rights(users, capabilities)
    lines = Path(f"/proc/{pid}/uid_map").read_text().splitlines()
    ranges = [tuple(map(int, line.split())) for line in lines]
    return Rights(tuple(_inside(user, ranges) for user in users), capabilities)


def _inside(user: int, ranges: list[tuple[int, ...]]) -> int:
    """Return the number of a user in a namespace; one that it does not map keeps its own."""
    return next((first + user - start for first, start, count in ranges if 0 <= user - start < count), user)
