"""The end of a child process, without waiting for one that hangs in the kernel.

Spec: design §2 law 6; pidfd_open(2).
"""

from __future__ import annotations

import os
import select


def has_ended(pid: int, wait_ms: int) -> bool:
    """Wait at most ``wait_ms`` for the end of a child process, and reap it; return whether it ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        descriptor = -1
    try:
        if descriptor >= 0:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(wait_ms)
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
    finally:
        if descriptor >= 0:
            os.close(descriptor)
