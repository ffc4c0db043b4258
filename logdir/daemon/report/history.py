"""``history.jsonl``: one line of JSON for each event, for people; it rotates and never delays the daemon.

A thread of its own writes the lines, and when the daemon last looked for deletions, and how often too late (``looks``).
If the disk of the state directory is slow the lines wait in memory; the oldest that wait are dropped once there are too
many, and lines that cannot be written are dropped, too. The next line that is written comes after one with the number
of those dropped. Nothing is decided by this file (design §2 law 2).

Spec: design §2 law 2; issue "The daemon", Socket.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from logdir import clock
from logdir.paths import GAPS, HISTORY, LAST_LOOK, TEMPORARY

LOG: Final = logging.getLogger(__name__)
MOST_BYTES: Final = 10 * 1024 * 1024
"""Size at which the file is rotated."""
KEPT: Final = 5
"""How many files there are: ``history.jsonl`` and ``history.jsonl.1`` to ``.4``."""
MOST_WAITING: Final = 4096
"""How many lines wait for the disk at most."""
_SHOWN = 20
_ALONE_S = 1.0
"""How long a command waits for the disk of the state directory."""


class History:
    """Appends events; used by several threads."""

    def __init__(
        self,
        state_dir: str,
        *,
        now_ms: Callable[[], int] = clock.now_ms,
        most_bytes: int = MOST_BYTES,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """Take the directory; the file is opened, and the thread started, with the first event.

        Args:
            state_dir: An existing directory.
            now_ms: The wall clock.
            most_bytes: Size at which the file is rotated.
            most_waiting: How many lines wait for the disk at most.
        """
        self._path = os.path.join(state_dir, HISTORY)
        self._now_ms = now_ms
        self._most_bytes = most_bytes
        self._most_waiting = most_waiting
        self._lock = threading.Condition()
        self._last: deque[dict[str, object]] = deque(maxlen=_SHOWN)
        self._waiting: deque[str] = deque()
        self._state_dir = Path(state_dir)
        self._look: tuple[str, bytes] | None = None
        """What is to be written of the last look, and of the gaps between looks."""
        self._gaps = b""
        """What is written of the gaps."""
        self._is_closing = False
        self._thread: threading.Thread | None = None
        self.dropped = 0
        """How many lines were dropped."""
        self._dropped_before = 0
        """How many of these are written in the file."""

    def add(self, event: str, **values: object) -> None:
        """Append one event with its values, which have a JSON form; returns at once."""
        line: dict[str, object] = {"at_ms": self._now_ms(), "event": event, **values}
        text = _text(line)
        with self._lock:
            self._last.append(line)
            if len(self._waiting) >= self._most_waiting:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(text)
            self._wake()

    def keep_look(self, text: str, gaps: bytes) -> None:
        """Write when the daemon last looked for deletions; returns at once, and only the last one counts.

        Args:
            text: The last look.
            gaps: The gaps that were counted, written before it; empty: nothing is written of them.
        """
        with self._lock:
            self._look = text, gaps
            self._wake()

    def _wake(self) -> None:
        """Let the thread write; the caller holds the lock."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="history", daemon=True)
            with suppress(RuntimeError):  # No more threads can be started: the next event tries again.
                thread.start()
                self._thread = thread
        self._lock.notify_all()

    def last(self) -> tuple[Mapping[str, object], ...]:
        """Return the newest events of this run, oldest first."""
        with self._lock:
            return tuple(self._last)

    def close(self, timeout_s: float) -> bool:
        """Write the lines that wait, and end; return whether that took no longer than ``timeout_s``."""
        with self._lock:
            self._is_closing = True
            self._lock.notify_all()
            thread = self._thread
        if thread is None:
            return True
        thread.join(timeout_s)
        return not thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting or self._look is not None or self._is_closing)
                look, self._look = self._look, None
                if look is None and not self._waiting:
                    return
                line = self._waiting.popleft() if self._waiting else ""
                dropped = self.dropped
            if look is not None:
                with suppress(Exception):
                    self._keep(*look)
            if not line:
                continue
            try:
                if dropped > self._dropped_before:
                    lines = dropped - self._dropped_before
                    self._write(_text({"at_ms": self._now_ms(), "event": "history-dropped", "lines": lines}))
                    self._dropped_before = dropped
                self._write(line)
            except OSError:
                self._drop()
            except Exception:  # If the thread ended, nothing more would be written until a restart.
                LOG.exception("history.fault")
                self._drop()

    def _drop(self) -> None:
        with self._lock:
            self.dropped += 1

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

    def _keep(self, look: str, gaps: bytes) -> None:
        # Where a gap cannot be written down, the look that ended it is not either: a restart counts the gap again.
        if gaps and gaps != self._gaps:
            self._replace(GAPS, gaps, is_synced=True)
            self._gaps = gaps
        # A look comes every few seconds: it is not worth a sync.
        self._replace(LAST_LOOK, look.encode("ascii"), is_synced=False)

    def _replace(self, name: str, data: bytes, *, is_synced: bool) -> None:
        new = self._state_dir / f"{name}{TEMPORARY}"
        with new.open("wb") as file:
            file.write(data)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        new.replace(self._state_dir / name)
        if is_synced:
            place = os.open(self._state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(place)
            finally:
                os.close(place)

    def _rotate(self) -> None:
        for number in range(KEPT - 1, 0, -1):
            source = Path(self._path if number == 1 else f"{self._path}.{number - 1}")
            if source.exists():
                source.replace(f"{self._path}.{number}")


def add_alone(state_dir: str, event: str, problems: Sequence[str]) -> None:
    """Append an event for each problem while no daemon runs; nothing is written if the directory cannot be written.

    Args:
        state_dir: The state directory.
        event: The name of the events.
        problems: The lines of the problems.
    """
    history = History(state_dir)
    for problem in problems:
        history.add(event, problem=problem)
    history.close(_ALONE_S)


def _text(line: Mapping[str, object]) -> str:
    return json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"
