"""A process that makes a file and is gone at one system call: ``python dying.py PATH CALL WHAT UID GID MODE``.

``WHAT`` is ``write`` or ``lock``. It ends with 9 if it came to the call, with 0 if it never did.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from logdir.disk.kernel import host, libc
from logdir.disk.kernel.calls import Owner


class _Dying:
    """The C library, of which one call is the last."""

    def __init__(self, library: Any, call: str) -> None:
        self._library, self._call = library, call

    def __getattr__(self, name: str) -> Any:
        return _gone if name == self._call else getattr(self._library, name)


def _gone(*_: object, **__: object) -> None:
    os._exit(9)


def main(path: str, call: str, what: str, uid: str, gid: str, mode: str) -> None:
    """Make the file, or a part of it."""
    owner = Owner(int(uid), int(gid), int(mode, 8))
    with host.HostDisk().open_top(path) as top:
        if hasattr(os, call):
            setattr(os, call, _gone)
        libc._LIBC = _Dying(libc._LIBC, call)  # type: ignore[assignment]
        if what == "write":
            top.write("made", b"content", owner, mtime_ns=5)
        else:
            top.open_lock(".lock", owner)


if __name__ == "__main__":
    main(*sys.argv[1:])
