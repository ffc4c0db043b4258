"""Whether somebody has a file open or mapped: asked of the kernel, which counts, not of ``/proc``, which may be hidden.

A write lease is granted only to the one descriptor a file has on this host. It is given back at once. Where it cannot
be asked for (no right, another kind of file system) the file counts as in use: it is then unlinked whole instead of
being truncated in steps, which harms nobody who reads it.

Spec: design §3.3 "Purge"; attacks A17; fcntl(2), F_SETLEASE.
"""

from __future__ import annotations

import fcntl
import os
import signal

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.host import HostDirectory


def in_use(directory: Directory, name: str) -> bool:
    """Whether a regular file is open or mapped anywhere on this host, or that cannot be told."""
    if not isinstance(directory, HostDirectory):
        return True
    try:
        descriptor = directory.open_lock(name)
    except OSError:
        return True
    try:
        # Who opens it in this instant makes the kernel send a signal; that of its own choice would end this process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
