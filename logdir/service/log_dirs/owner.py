"""Root becomes the owner of a broker's log dirs before a command changes them.

Then no file of root's can be left where the broker would have to read it, and the kernel refuses what the owner may not
do. The owners are asked of worker processes, so a log dir that hangs stops no command.

Not here: the owner that each new file gets anyway (``disk.kernel.host``).

Spec: design §2 law 9; attacks A9; credentials(7).
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from logdir.errors import LogDirError, LogDirSuspectError, RefusedError
from logdir.observe.mounts import owner_at
from logdir.refusal_slug import Why
from logdir.service.log_dirs.request import BrokerRequest, skipped_of
from logdir.worker.remote import gather
from logdir.worker.start import close_all, start

_SILENT_MS: Final = 250
"""A working worker gives a sign of life every 200 ms. What a log dir that hangs costs here, its command waits beside
``--disk-timeout``: it has a second for all of that.
"""


class Identity(NamedTuple):
    """The user and groups of a process."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    """Its supplementary groups, sorted."""


def become_owner(request: BrokerRequest) -> None:
    """Make this process, which runs as root, one of the owner of a broker's log dirs; for good.

    Does nothing if the log dirs belong to root, or none of them exists. Log dirs of ``--skip-log-dir`` are not asked.

    Raises:
        ConfigError: the broker's configuration is invalid.
        LogDirSuspectError: no log dir answers, so that their owner is not known.
        RefusedError: the log dirs have different owners, or their owner cannot read this installation.
    """
    identity = identity_of(_owners(request))
    if identity is None or identity.uid == 0:
        return
    os.setgroups(identity.groups)
    os.setresgid(identity.gid, identity.gid, identity.gid)
    os.setresuid(identity.uid, identity.uid, identity.uid)
    for file in (os.__file__, __file__):
        if not os.access(file, os.R_OK):  # Modules that are imported later would be missing in the middle of a change.
            raise RefusedError(
                file,
                why=Why.NO_PERMISSION,
                expected=f"an installation that user {identity.uid}, the owner of the log dirs, can read",
                found="a missing permission",
                fix="install logdird and its Python where that user can read them",
            )


def identity_of(owners: Mapping[str, tuple[int, int]]) -> Identity | None:
    """Return as whom a process changes some log dirs; ``None``: there is no log dir.

    Args:
        owners: User and group of each log dir, by path.

    Raises:
        RefusedError: they belong to different users.
    """
    if not owners:
        return None
    first, (uid, gid) = next(iter(owners.items()))
    for log_dir, (other, _) in owners.items():
        if other != uid:
            raise RefusedError(
                log_dir,
                why=Why.OWNERS_DIFFER,
                expected=f"a log dir of user {uid}, as {first}",
                found=f"one of user {other}",
                fix="is its disk mounted? Give every log dir to the user of the broker, or use --skip-log-dir",
            )
    try:
        named = os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        named = []  # A user of a container may have no entry.
    # An owner may give a file only to a group that it is in.
    groups = {*named, *(its_gid for _, its_gid in owners.values())}
    return Identity(uid, gid, tuple(sorted(groups)))


def _owners(request: BrokerRequest) -> dict[str, tuple[int, int]]:
    """Return user and group of each log dir that exists and answers. Raises as ``become_owner``."""
    named = request.config()
    asked = [log_dir for log_dir in named.log_dirs if log_dir not in skipped_of(request, named)]
    # One answer is enough, so a log dir that hangs costs the command no second ``--disk-timeout``.
    found, silent = _asked(asked, min(_SILENT_MS, request.disk_timeout_ms))
    if silent and not found:
        found, silent = _asked(asked, request.disk_timeout_ms)
    if silent and not found:
        raise silent[0]
    return found


def _asked(log_dirs: Sequence[str], patience_ms: int) -> tuple[dict[str, tuple[int, int]], list[LogDirSuspectError]]:
    """Return user and group of each log dir that exists and answers, and the errors of those that do not answer."""
    ports = start(log_dirs, patience_ms)
    found: dict[str, tuple[int, int]] = {}
    silent: list[LogDirSuspectError] = []
    try:
        begun = {port.log_dir: port.begin(owner_at, port.log_dir) for port in ports}
        gather(begun.values())
        for log_dir, pending in begun.items():
            try:
                owner = pending.result()
            except LogDirSuspectError as error:
                silent.append(error)
                continue
            except (LogDirError, OSError):
                continue  # The command itself reports what is wrong there.
            if owner is not None:
                found[log_dir] = owner
    finally:
        close_all(ports)
    return found, silent
