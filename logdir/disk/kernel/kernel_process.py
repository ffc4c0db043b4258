"""Settings of this process in the kernel.

Spec: prctl(2), PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import ctypes
import os
import signal

_LIBC = ctypes.CDLL(None, use_errno=True)
_PDEATHSIG = 1


def end_with_starter(starter: int) -> None:
    """Make the kernel kill this process when the process that started it ends.

    Args:
        starter: Process id of the process that started this one; if it has ended already, this process exits at once.
    """
    _LIBC.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != starter:
        os._exit(0)
