"""The reporters of what the daemon does: warnings go to its log, and captures come between two steps.

Spec: design §5 "A use case"; KIP-516, "Deletion", step 1 (a scheduled loss is logged with its path, id and instant).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

LOG: Final = logging.getLogger("logdir.daemon")


class LossReporter:
    """A reporter of a purge that the daemon does by itself: losses are logged; captures come between its steps."""

    def __init__(self, between: Callable[[], None] | None) -> None:
        """Begin; ``between``: called between two steps; ``None``: nothing is."""
        self._between = between

    def begin(self, what: str, total: int) -> None:
        """Do nothing."""

    def advance(self, count: int) -> None:
        """Capture what is urgent. Raises what ``between`` raises."""
        if self._between is not None:
            self._between()

    def end(self) -> None:
        """Do nothing."""

    def warn(self, line: str) -> None:
        """Log it: a loss of data, before it happens."""
        LOG.warning("replica.loss %s", line)


class RequestReporter(LossReporter):
    """A reporter of a request: warnings are logged, and kept for the answer; captures come between its steps."""

    def __init__(self, between: Callable[[], None] | None) -> None:
        """Begin; ``between``: ``None`` for a request that holds a lock of Kafka."""
        super().__init__(between)
        self.lines: list[str] = []

    def warn(self, line: str) -> None:
        """Keep and log it."""
        self.lines.append(line)
        LOG.warning("request.warning %s", line)
