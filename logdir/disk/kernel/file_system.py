"""On which file systems we change anything, by name: an allow list.

What a rename, a lock or a sync keeps was measured on these; on others a promise of ours may not hold.

Not here: which file system holds a path (``observe.mounts``).

Spec: design §3.4; attacks A7.
"""

from __future__ import annotations

import os

from logdir.errors import RefusedError
from logdir.observe import mounts
from logdir.refusal_slug import Why

SUPPORTED = ("ext4", "xfs", "btrfs", "tmpfs")


def fs_type_at(path: str) -> str | None:
    """Return the type of the file system that holds an absolute path of this host, ``None`` if none says so."""
    return mounts.fs_type_of(mounts.read_mounts(), os.fsencode(os.path.realpath(path)))


def require_supported_fs(path: str, fs_type: str | None, *, unsupported_fs: bool = False) -> None:
    """Return if we may change what lies on this file system.

    Args:
        path: A log dir, for the error.
        fs_type: As ``fs_type_at`` says.
        unsupported_fs: The operator's word that it may be any.

    Raises:
        RefusedError: it is not on the list.
    """
    if fs_type not in SUPPORTED and not unsupported_fs:
        raise RefusedError(
            path,
            why=Why.UNSUPPORTED_FILE_SYSTEM,
            expected=f"one of the file systems {', '.join(SUPPORTED)}",
            found=fs_type or "one that is not named",
            fix="it is read-only to us; --even-on-unsupported-fs changes that at your own risk",
        )
