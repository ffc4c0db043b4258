"""Conversion of ``os.stat`` results to the types of ``calls``.

Not here: the call of ``stat`` itself (``host``).

Spec: ``logdir.disk.kernel.calls``; stat(2).
"""

from __future__ import annotations

import os
import stat as st

from logdir.disk.kernel.calls import Owner, Stat
from logdir.observe.classify import Type

PERMISSIONS = 0o7777


def type_of(mode: int) -> Type:
    """Return the entry type that a mode stands for."""
    if st.S_ISDIR(mode):
        return Type.DIRECTORY
    if st.S_ISREG(mode):
        return Type.FILE
    return Type.SYMLINK if st.S_ISLNK(mode) else Type.OTHER


def stat_of(found: os.stat_result) -> Stat:
    """Convert a result of ``os.stat``."""
    return Stat(
        type_of(found.st_mode),
        found.st_dev,
        found.st_ino,
        found.st_nlink,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        Owner(found.st_uid, found.st_gid, found.st_mode & PERMISSIONS),
    )
