"""Clocks; no other module reads one, so that decisions can be tested at any instant.

Deadlines depend on ``CLOCK_BOOTTIME``, which counts while the host sleeps and is never set. A time namespace shifts it
for a container; this module subtracts the shift, so that all processes of one boot agree. The wall clock is for people,
and for the gap between two boots.

Not here: whether the wall clock is synchronised (``disk.kernel.kernel_clock``), deadlines (``decide.staged.deadline``).

Spec: design §3.3; attacks A24; time_namespaces(7).
"""

from __future__ import annotations

import time
from typing import NamedTuple

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_OFFSETS = "/proc/self/timens_offsets"


class Instant(NamedTuple):
    """One instant on all clocks of the host.

    No dataclass: a scan of a disk starts a process that needs this module, and ``dataclasses`` is a third of its start.
    """

    boot_id: str
    boottime_ms: int
    """Time since the host started."""
    wall_ms: int
    """Epoch, UTC; may be wrong."""
    is_synchronised: bool
    """Whether the kernel reports that a time service keeps the wall clock right."""


def now_ms() -> int:
    """Return the wall clock in milliseconds since the epoch (UTC)."""
    return time.time_ns() // 1_000_000


def wall_ahead_ms() -> int:
    """Return how far the wall clock is ahead of ``CLOCK_BOOTTIME``, in milliseconds; opens no file.

    It stays as it is while the host sleeps, and moves where the wall clock is set or corrected. A difference of two
    calls means something, one call does not: a time namespace shifts it.
    """
    return (time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) // 1_000_000


def monotonic_ms() -> int:
    """Return milliseconds since an arbitrary instant of this boot, for durations within one process; opens no file."""
    return time.monotonic_ns() // 1_000_000


def monotonic_ns() -> int:
    """Return nanoseconds as ``monotonic_ms`` returns milliseconds, for what takes less than a few of these."""
    return time.monotonic_ns()


def boot_id(path: str = _BOOT_ID) -> str:
    """Return the random id of the current boot; the same in every namespace.

    Raises:
        OSError: the boot id cannot be read.
    """
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def boottime_ms(offsets: str = _OFFSETS) -> int:
    """Return milliseconds since the host started, sleep included, the same in every time namespace.

    Raises:
        OSError: the time shift of this namespace cannot be read.
    """
    return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - _shift_ns(offsets)) // 1_000_000


def _shift_ns(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return 0  # kernels before 5.6, and those built without, have no time namespaces
    for line in lines:
        name, seconds, nanoseconds = line.split()
        if name == "boottime":
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return 0
