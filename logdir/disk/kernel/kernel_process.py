"""Settings of this process in the kernel and in the C library.

Spec: prctl(2), PR_SET_PDEATHSIG; mallopt(3), M_TRIM_THRESHOLD.
"""

from __future__ import annotations

import ctypes
import os
import signal

_LIBC = ctypes.CDLL(None, use_errno=True)
_PDEATHSIG = 1
_TRIM_THRESHOLD = -1
_KEPT_FREE = 128 * 1024


def end_with_starter(starter: int) -> None:
    """Make the kernel kill this process when the process that started it ends.

    Args:
        starter: Process id of the process that started this one; if it has ended already, this process exits at once.
    """
    _LIBC.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != starter:
        os._exit(0)


def give_back_memory() -> None:
    """Make this process, which runs for weeks, give memory back that it has freed.

    glibc raises the threshold for that with each large block that is freed, up to tens of megabytes, unless it is set.
    """
    if hasattr(_LIBC, "mallopt"):  # glibc alone has it.
        _LIBC.mallopt(_TRIM_THRESHOLD, _KEPT_FREE)
