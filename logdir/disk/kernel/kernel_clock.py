"""Whether the kernel calls the wall clock right, and one moment as all clocks tell it. Changes nothing.

``adjtimex`` speaks of ``CLOCK_REALTIME``, which no namespace shifts. It is asked for nothing (``modes`` 0) and so needs
no right. Whoever sets the clock by hand makes the kernel say *unsynchronised* until something keeps it again.

Not here: the clocks themselves (``clock``), what rests on them (``decide.deadline``).

Spec: design §3.3; attacks A24; adjtimex(2).
"""

from __future__ import annotations

import ctypes

from logdir import clock
from logdir.clock import Instant

_LIBC = ctypes.CDLL(None, use_errno=True)
_TIME_ERROR = 5
_STA_UNSYNC = 0x40
_REST = 512
"""More than what follows ``status`` on any architecture."""


class _Timex(ctypes.Structure):
    """``struct timex`` up to what is read of it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * _REST),
    )


def is_synchronised() -> bool:
    """Whether the kernel calls the wall clock synchronised; not if it may not be asked."""
    timex = _Timex()
    state: int = _LIBC.adjtimex(ctypes.byref(timex))
    return says_synchronised(state, timex.status)


def says_synchronised(state: int, status: int) -> bool:
    """Whether an answer of ``adjtimex`` says so.

    Args:
        state: What it returned; below 0 it may not be asked.
        status: The field of that name.
    """
    return state >= 0 and state != _TIME_ERROR and not status & _STA_UNSYNC


def read_instant() -> Instant:
    """Return this moment.

    Raises:
        OSError: the kernel does not tell which boot this is.
    """
    return Instant(
        boot_id=clock.boot_id(),
        boottime_ms=clock.boottime_ms(),
        wall_ms=clock.now_ms(),
        is_synchronised=is_synchronised(),
    )
