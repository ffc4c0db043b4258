"""Clock readings: whether the kernel calls the wall clock synchronised, and one instant on all clocks. Changes nothing.

``adjtimex`` reports on ``CLOCK_REALTIME``, which no namespace shifts. It is called with ``modes`` 0, which needs no
permission. After the clock is set by hand the kernel reports *unsynchronised* until a time service synchronises it
again.

Not here: the clocks themselves (``clock``), the deadlines that depend on them (``decide.staged.deadline``).

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
"""Buffer for the fields after ``status``; larger than they are on any architecture."""


class _Timex(ctypes.Structure):
    """``struct timex`` up to the last field that is read."""

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
    """Whether the kernel calls the wall clock synchronised; false if ``adjtimex`` is not permitted."""
    timex = _Timex()
    state: int = _LIBC.adjtimex(ctypes.byref(timex))
    return says_synchronised(state, timex.status)


def says_synchronised(state: int, status: int) -> bool:
    """Whether a result of ``adjtimex`` means that the clock is synchronised.

    Args:
        state: Its return value; below 0 the call failed.
        status: The field ``status`` of ``struct timex``.
    """
    return state >= 0 and state != _TIME_ERROR and not status & _STA_UNSYNC


def read_instant() -> Instant:
    """Return the current instant on all clocks.

    Raises:
        OSError: the kernel does not report its boot id.
    """
    return Instant(
        boot_id=clock.boot_id(),
        boottime_ms=clock.boottime_ms(),
        wall_ms=clock.now_ms(),
        is_synchronised=is_synchronised(),
    )
