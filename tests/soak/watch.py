"""The changes below some directories as the kernel reports them: inotify, by its calls in the C library."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_MODIFY, _ATTRIB, _FROM, _TO, _CREATE, _DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
_MASK = _MODIFY | _ATTRIB | _FROM | _TO | _CREATE | _DELETE
_IS_DIRECTORY = 0x40000000
_HEAD = struct.Struct("iIII")


class Watch:
    """Counts what is created, removed, renamed, written and given away."""

    def __init__(self, tops: Iterable[Path]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._paths: dict[int, str] = {}
        for top in tops:
            for path, _, _ in os.walk(top):
                self._add(path)

    def _add(self, path: str) -> None:
        # One that is gone again is none to watch.
        number = self._libc.inotify_add_watch(self.descriptor, os.fsencode(path), _MASK)
        if number >= 0:
            self._paths[number] = path

    def count(self) -> int:
        """Return how many changes there were since the last call; directories made meanwhile are watched, too."""
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return 0
        seen = at = 0
        while at < len(data):
            number, mask, _, length = _HEAD.unpack_from(data, at)
            name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
            at += _HEAD.size + length
            seen += 1
            if mask & _IS_DIRECTORY and mask & (_CREATE | _TO) and number in self._paths:
                self._add(f"{self._paths[number]}/{os.fsdecode(name)}")
        return seen

    def close(self) -> None:
        """Give the watches back."""
        os.close(self.descriptor)
