"""``history.jsonl``: one line of JSON for each event, for people; it rotates and never stops the daemon.

Nothing is decided by it (design §2 law 2). A line that cannot be written is counted and dropped.

Spec: design §2 law 2; issue "The daemon", Socket.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from logdir import clock
from logdir.paths import HISTORY

MOST_BYTES: Final = 10 * 1024 * 1024
"""Size at which the file is rotated."""
KEPT: Final = 5
"""How many files there are: ``history.jsonl`` and ``history.jsonl.1`` to ``.4``."""
_SHOWN = 20


class History:
    """Appends events; used by several threads."""

    def __init__(
        self, state_dir: str, *, now_ms: Callable[[], int] = clock.now_ms, most_bytes: int = MOST_BYTES
    ) -> None:
        """Take the directory; the file is opened with the first event.

        Args:
            state_dir: An existing directory.
            now_ms: The wall clock.
            most_bytes: Size at which the file is rotated.
        """
        self._path = os.path.join(state_dir, HISTORY)
        self._now_ms = now_ms
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._last: deque[dict[str, object]] = deque(maxlen=_SHOWN)
        self.dropped = 0
        """How many lines could not be written."""

    def add(self, event: str, **values: object) -> None:
        """Append one event with its values, which have a JSON form."""
        line: dict[str, object] = {"at_ms": self._now_ms(), "event": event, **values}
        with self._lock:
            self._last.append(line)
            try:
                self._write(json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n")
            except OSError:
                self.dropped += 1

    def last(self) -> tuple[Mapping[str, object], ...]:
        """Return the newest events of this run, oldest first."""
        with self._lock:
            return tuple(self._last)

    def _write(self, line: str) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        try:
            if os.fstat(descriptor).st_size + len(line) <= self._most_bytes:
                os.write(descriptor, line.encode("ascii"))
                return
        finally:
            os.close(descriptor)
        self._rotate()
        with open(self._path, "a", encoding="ascii") as file:
            file.write(line)

    def _rotate(self) -> None:
        for number in range(KEPT - 1, 0, -1):
            source = Path(self._path if number == 1 else f"{self._path}.{number - 1}")
            if source.exists():
                source.replace(f"{self._path}.{number}")
