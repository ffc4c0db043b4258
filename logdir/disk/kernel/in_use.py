"""Detection of files that a process has open or mapped, by ``F_SETLEASE``; ``/proc`` may be hidden.

The kernel grants a write lease only if the file has no other open descriptor on this host. The lease is released at
once. If no lease can be requested (missing permission, other file system), the file counts as in use: it is then
unlinked whole instead of being truncated in steps, which harms no reader.

Also here: the proof that this process may take a lease on a file (``disk.root.probe``).

Spec: design §3.3 "Purge"; attacks A17; fcntl(2), F_SETLEASE.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.host import HostDirectory


def in_use(directory: Directory, name: str) -> bool:
    """Whether a regular file is open or mapped anywhere on this host; true if that is not known."""
    if not isinstance(directory, HostDirectory):
        return True
    try:
        descriptor = directory.open_lock(name)
    except OSError:
        return True
    try:
        # A process that opens the file at this instant makes the kernel send a signal; the default one would end this
        # process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def prove_lease(directory: Directory, name: str) -> None:
    """Take a read lease on a regular file, and give it back.

    Returns without a proof for a directory of another kind than ``HostDirectory``: it has no leases.

    Raises:
        OSError: ``EACCES``: this process is not the owner of the file and has not ``CAP_LEASE``; ``EINVAL``: the file
            system has no leases.
    """
    if not isinstance(directory, HostDirectory):
        return
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(name, flags, dir_fd=directory.descriptor)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        # Another process has it open for writing at this instant: the kernel checks the permission before that.
        if error.errno != errno.EAGAIN:
            raise
    finally:
        os.close(descriptor)
