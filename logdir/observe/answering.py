"""Check whether the disk of a file or directory answers, by reading a few bytes.

Spec: design §2 law 6.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from logdir.worker_call import worker_call

_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_BYTES: Final = 4096
_FILES: Final = 3
"""Number of last files by name to read: in a metadata log the newest snapshot, the newest segment and
``quorum-state``.
"""


@worker_call
def touch(path: str) -> None:
    """Read the beginning of a file, or of a directory's last three files by name; returns once the disk has answered.

    Errors of the disk are ignored.
    """
    with suppress(OSError):
        try:
            names = [os.path.join(path, name) for name in sorted(os.listdir(path))[-_FILES:]]
        except NotADirectoryError:
            names = [path]
        for name in names:
            descriptor = os.open(name, _OPEN)
            try:
                os.read(descriptor, _BYTES)
            finally:
                os.close(descriptor)
