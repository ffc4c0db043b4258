"""The group of the control socket: whose members may connect and read the status.

It is ``logdird`` where that group exists and this process is in it, as under systemd (``SupplementaryGroups=``);
elsewhere the socket keeps the group of the process. Who may change anything is decided by the user alone
(``connections.is_owner_or_root``).

Spec: issue "The daemon at home on a host", systemd; unix(7).
"""

from __future__ import annotations

import grp
import logging
import os
from typing import Final

LOG: Final = logging.getLogger(__name__)
GROUP: Final = "logdird"


def give_to_group(path: str, group: str = GROUP) -> None:
    """Give a socket to a group, if that exists and this process is in it; else leave it as it is."""
    try:
        gid = grp.getgrnam(group).gr_gid
    except KeyError:
        return
    if gid not in (os.getegid(), *os.getgroups()):
        return
    try:
        os.chown(path, -1, gid)
    except OSError as error:
        # It works for the owner of the log dirs and for root all the same.
        LOG.warning("control.group-not-set path=%s group=%s %s", path, group, error.strerror)
