"""A page of memory in which a worker says at which operation and call it is, and which outlives its ``kill -9``.

Two slots, and a byte that counts the lines: whatever instant the kill comes at, the last whole one can be read.

Not here: what the operations are (``tasks``), what is made of it (``rounds``).

Spec: reliability §4.4 (L4), §7 row 4.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple, Self

from logdir.disk.kernel.host import Call

_PAGE = mmap.PAGESIZE
_SLOTS = (16, _PAGE // 2)
_ROOM = _PAGE // 2 - 32
_SYNCS = frozenset({"fsync", "fsync-dir", "syncfs"})
_SYNC_S = 0.0005
IDLE = "-"
"""The name of doing nothing."""


class At(NamedTuple):
    """Where a worker was."""

    operation: str
    """Its kind; ``IDLE`` between two."""
    calls: int
    """How many calls that change a disk or make it durable the process had told of, this operation or not."""
    within: int
    """How many of them belong to the operation."""
    call: Call | None
    """The last of the operation; whether it was made is not known."""

    @property
    def is_amid(self) -> bool:
        """Whether the operation had begun to change something, and had not come to its end."""
        return self.operation != IDLE and self.within > 0

    @property
    def step(self) -> str:
        """The operation and its call, in words."""
        return f"{self.operation}: {'before its first call' if self.call is None else self.call.name}"


class Page:
    """The page, open."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory

    @classmethod
    def make(cls, path: Path) -> Self:
        """Make it, in a file."""
        path.write_bytes(bytes(_PAGE))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the one another process made."""
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return cls(mmap.mmap(descriptor, _PAGE))
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close it."""
        self._memory.close()

    def put(self, text: str) -> None:
        """Write a line, whole or not at all."""
        data = text.encode("utf-8", "surrogateescape")[:_ROOM]
        count = (self._memory[0] + 1) % 256
        start = _SLOTS[count % 2]
        self._memory[start : start + 2 + len(data)] = len(data).to_bytes(2, "little") + data
        self._memory[0:1] = bytes([count])

    def get(self) -> str:
        """Read the line last written."""
        while True:
            count = self._memory[0]
            start = _SLOTS[count % 2]
            size = int.from_bytes(self._memory[start : start + 2], "little")
            data = self._memory[start + 2 : start + 2 + size]
            # Whoever writes meanwhile writes into the other, and only then into this one.
            if self._memory[0] == count:
                return data.decode("utf-8", "surrogateescape")

    def at(self) -> At:
        """Return where the worker is, or was when it was killed."""
        if not (line := self.get()):
            return At(IDLE, 0, 0, None)
        operation, calls, within, name, path, to = line.split("\t")
        return At(operation, int(calls), int(within), Call(name, path, to) if name else None)


class Progress:
    """What a worker tells the page; an observer of ``logdir.disk.kernel.host``."""

    def __init__(self, page: Page) -> None:
        """Begin."""
        self._page = page
        self._die_at: float | None = None
        self._operation = IDLE
        self._calls = self._within = 0

    def arm(self, die_at: float | None) -> None:
        """For a replay: end this process before the call of this number, or, if it is a half more, after that call.

        Args:
            die_at: Calls are counted from 1, from the start of the process on.
        """
        self._die_at = die_at
        self._die_after()

    def _die_after(self) -> None:
        if self._die_at is not None and self._calls > self._die_at - 0.75:
            self._die()

    def begin(self, operation: str) -> None:
        """Say that an operation begins, or (``IDLE``) that nothing is done."""
        self._die_after()
        self._operation, self._within = operation, 0
        self._put(Call("", ""))

    def tell(self, call: Call) -> None:
        """Say that a call is about to be made."""
        self._calls += 1
        self._within += 1
        self._put(call)
        if self._die_at is not None and self._calls >= self._die_at:
            self._die()
        if call.name in _SYNCS:
            # In memory it would take no time, and no kill would ever come while one is waited for.
            time.sleep(_SYNC_S)

    def _put(self, call: Call) -> None:
        self._page.put(
            f"{self._operation}\t{self._calls}\t{self._within}\t{call.name}\t{call.path}\t{call.to}".replace("\n", " ")
        )

    @staticmethod
    def _die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)
