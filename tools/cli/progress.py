"""Progress of a use case on a terminal, and its warnings.

Not here: the outcome (``change``, ``arguments``).

Spec: design §5 "A use case".
"""

from __future__ import annotations

import threading
import time
from typing import Self

from tools.cli.arguments import Streams, say

_QUIET_S, _NOTE_EVERY_S = 1.0, 0.2


class TerminalReporter:
    """Prints warnings and, on a terminal, one line of progress that replaces itself, after the first second."""

    def __init__(self, streams: Streams, title: str) -> None:
        """Create the reporter of one command.

        Args:
            streams: Where to print.
            title: The command's words, for warnings.
        """
        self._streams, self._err, self._title = streams, streams.err, title
        self._what, self._total, self._done = "", 0, 0
        self._next = 0.0
        self._is_shown = False

    def begin(self, what: str, total: int) -> None:
        """Begin to count items from 0; ``total`` is 0 if their number is not known."""
        self._what, self._total, self._done = what, total, 0
        self._next = time.monotonic() + _QUIET_S

    def advance(self, count: int) -> None:
        """Count ``count`` more items as finished, and show the sum on a terminal."""
        self._done += count
        if self._err.isatty() and time.monotonic() >= self._next:
            self._next = time.monotonic() + _NOTE_EVERY_S
            self._is_shown = True
            of = f" of {self._total}" if self._total else ""
            self._err.write(f"\r{self._what}: {self._done}{of}")
            self._err.flush()

    def end(self) -> None:
        """Remove the line of progress."""
        if self._is_shown:
            self._is_shown = False
            self._err.write("\r\x1b[K")
            self._err.flush()

    def warn(self, line: str) -> None:
        """Print a warning."""
        say(self._streams, f"logdirctl {self._title}: {line}")


class Stages:
    """Shows on a terminal which stage of a fleet command is under way, and for how long, while the body runs."""

    def __init__(self, streams: Streams) -> None:
        self._err = streams.err
        self._shown = streams.err.isatty()
        self._stage = ""
        self._started = 0.0
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        if self._shown:
            self._ticker.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        if self._shown:
            self._ticker.join()
            self._err.write("\r\x1b[K")
            self._err.flush()

    def begin(self, stage: str) -> None:
        """Show the name of the stage that begins, and count its seconds from now."""
        self._stage, self._started = stage, time.monotonic()

    def _tick(self) -> None:
        while not self._over.wait(0.5):
            self._err.write(f"\r\x1b[K{self._stage} … {time.monotonic() - self._started:.0f} s")
            self._err.flush()
