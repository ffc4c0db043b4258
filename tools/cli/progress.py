"""Progress of a use case on a terminal, and its warnings.

Not here: the outcome (``report``).

Spec: design §5 "A use case".
"""

from __future__ import annotations

import time

from tools.cli.arguments import Streams, say

_QUIET_S, _NOTE_EVERY_S = 1.0, 0.2


class TerminalReporter:
    """Prints warnings, and on a terminal one line of progress that is written over, after a second."""

    def __init__(self, streams: Streams, title: str) -> None:
        """Begin.

        Args:
            streams: Where to.
            title: Of the command.
        """
        self._streams, self._err, self._title = streams, streams.err, title
        self._what, self._total, self._done = "", 0, 0
        self._next = 0.0
        self._is_shown = False

    def begin(self, what: str, total: int) -> None:
        """Count from 0."""
        self._what, self._total, self._done = what, total, 0
        self._next = time.monotonic() + _QUIET_S

    def advance(self, count: int) -> None:
        """Show how far it is."""
        self._done += count
        if self._err.isatty() and time.monotonic() >= self._next:
            self._next = time.monotonic() + _NOTE_EVERY_S
            self._is_shown = True
            of = f" of {self._total}" if self._total else ""
            self._err.write(f"\r{self._what}: {self._done}{of}")
            self._err.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._is_shown = False
            self._err.write("\r\x1b[K")
            self._err.flush()

    def warn(self, line: str) -> None:
        """Print it."""
        say(self._streams, f"logdirctl {self._title}: {line}")
