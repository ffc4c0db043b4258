"""One directory of handled documents, ``done`` or ``refused``: their names there, and which are kept.

The newest are kept, up to a number and a size, so that a program that writes documents for years fills no disk. A
document whose name is taken there gets the instant behind its name: to find a free name takes no longer the more there
are. What has another name than a document, and a directory, is never removed.

Not here: moving documents (``folder``).

Spec: design §4 "A request document".
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from logdir import clock
from logdir.errors import shown

LOG: Final = logging.getLogger("logdir.daemon")
MOST_DOCUMENTS: Final = 1000
"""How many documents are kept in each directory."""
MOST_BYTES: Final = 256 * 1024 * 1024
"""How much of the disk they take together at most; the newest one is kept whatever its size."""
MOST_AT_ONCE: Final = 64
"""How many are removed at most when another comes: captures wait meanwhile."""
_LONGEST: Final = 220
"""Bytes of a document's name that are kept where an instant follows it."""
_LONGEST_OF_ERROR: Final = 240
"""Bytes of a document's name that the name of its ``.error`` file keeps: with the suffix a file system takes it."""
_SUFFIX: Final = ".json"
_ERROR: Final = ".error"
_BLOCK_BYTES: Final = 512
"""The unit of ``st_blocks`` (stat(2))."""
_DOCUMENT: Final = re.compile(r"\.json(\.\d+)?\Z")


def error_name(name: str) -> str:
    """Return the name of the file that says why a document was refused.

    >>> error_name("1.json")
    '1.json.error'
    """
    return _cut(name, _LONGEST_OF_ERROR) + _ERROR


def is_in(place: int, name: str) -> bool:
    """Whether a directory has an entry of a name. Raises ``OSError``: it cannot be looked at."""
    try:
        os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


class Handled:
    """The documents in a directory of handled requests; only this thread puts documents there."""

    def __init__(self, now_ms: Callable[[], int] = clock.now_ms, *, most_bytes: int = MOST_BYTES) -> None:
        """Know no document yet: the directory is listed when the first one comes.

        Args:
            now_ms: The wall clock.
            most_bytes: How much of the disk the documents take at most.
        """
        self._most_bytes = most_bytes
        self._now_ms = now_ms
        self._last_ms = 0
        """The instant that was given to a name last."""
        self._kept: deque[tuple[str, int]] | None = None
        """Name of each and bytes that it takes, the oldest first; ``None``: not listed yet."""
        self._bytes = 0

    def free_name(self, place: int, name: str) -> str:
        """Return a name that is free in the directory: that of the document, or with the instant behind it.

        Args:
            place: Descriptor of the directory.
            name: Of the document in the inbox.

        Raises:
            OSError: the directory cannot be looked at.
        """
        free = name
        while is_in(place, free):
            # Later than the last one given, also where the clock was set back: no name is tried twice.
            self._last_ms = max(self._now_ms(), self._last_ms + 1)
            free = f"{_cut(name.removesuffix(_SUFFIX), _LONGEST)}{_SUFFIX}.{self._last_ms}"
        return free

    def add(self, place: int, name: str) -> None:
        """Note a document that was moved here, and remove the oldest where there are too many; never raises."""
        with suppress(OSError):  # The next one tries again: what was handled is so all the same.
            if self._kept is None:
                self._list(place)
            else:
                self._append(name, os.stat(name, dir_fd=place, follow_symlinks=False))
            self._remove_oldest(place)

    def _list(self, place: int) -> None:
        """Read the directory, the new document among the others."""
        found: list[tuple[int, str, os.stat_result]] = []
        with os.scandir(place) as entries:
            for entry in entries:
                if _DOCUMENT.search(entry.name):
                    with suppress(FileNotFoundError):
                        seen = entry.stat(follow_symlinks=False)
                        # Its rename into this directory was its last change.
                        found.append((seen.st_ctime_ns, entry.name, seen))
        self._kept, self._bytes = deque(), 0
        for _, name, seen in sorted(found, key=lambda one: one[:2]):
            self._append(name, seen)

    def _append(self, name: str, seen: os.stat_result) -> None:
        if self._kept is not None and not stat.S_ISDIR(seen.st_mode):
            size = seen.st_blocks * _BLOCK_BYTES  # Holes take nothing.
            self._kept.append((name, size))
            self._bytes += size

    def _remove_oldest(self, place: int) -> None:
        for _ in range(MOST_AT_ONCE):
            kept = self._kept
            if kept is None or len(kept) <= 1 or (len(kept) <= MOST_DOCUMENTS and self._bytes <= self._most_bytes):
                return
            name, size = kept.popleft()
            self._bytes -= size
            _remove(place, (name, error_name(name)))
            LOG.info("document.removed name=%s", shown(name))


def _remove(place: int, names: Iterable[str]) -> None:
    for name in names:
        with suppress(OSError):  # It is gone, or cannot be removed: the others are.
            os.unlink(name, dir_fd=place)


def _cut(name: str, most: int) -> str:
    return os.fsdecode(os.fsencode(name)[:most])
