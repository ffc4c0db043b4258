"""Allow list of the file systems on which this program changes anything, by name.

What a rename, a lock or a sync guarantees was measured on these file systems; on others our promises may not hold.

Not here: which file system holds a path (``observe.mounts``).

Spec: design §3.4; attacks A7.
"""

from __future__ import annotations

import os

from logdir.errors import RefusedError
from logdir.observe import mounts
from logdir.refusal_slug import Why
from logdir.worker_call import worker_call

SUPPORTED = ("ext4", "xfs", "btrfs", "tmpfs")


@worker_call
def fs_type_at(path: str) -> str | None:
    """Return the type of the file system that holds an absolute path of this host; ``None`` if it is not known."""
    return mounts.fs_type_of(mounts.read_mounts(), os.fsencode(os.path.realpath(path)))


def require_supported_fs(path: str, fs_type: str | None, *, unsupported_fs: bool = False) -> None:
    """Check that this program may change data on this file system.

    Args:
        path: The log dir, for the error.
        fs_type: The type, as ``fs_type_at`` returns it.
        unsupported_fs: Whether the operator allows any file system.

    Raises:
        RefusedError: the file system is not on the list.
    """
    if fs_type not in SUPPORTED and not unsupported_fs:
        raise RefusedError(
            path,
            why=Why.UNSUPPORTED_FILE_SYSTEM,
            expected=f"one of the file systems {', '.join(SUPPORTED)}",
            found=fs_type or "a file system of unknown type",
            fix="logdird only reads there; logdirctl init --even-on-unsupported-fs allows changes, at your own risk",
        )
