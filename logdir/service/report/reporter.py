"""The reporter of a use case: receives progress, and warnings before a change.

Spec: design §5 "A use case".
"""

from __future__ import annotations

from typing import Final, Protocol


class Reporter(Protocol):
    """Receives progress and warnings; may ignore them."""

    def begin(self, what: str, total: int) -> None:
        """Work on ``total`` items begins (0: the number is not known); ``what`` names the work, as in *restoring*."""

    def advance(self, count: int) -> None:
        """``count`` more items are finished."""

    def end(self) -> None:
        """The work has ended, completely or not."""

    def warn(self, line: str) -> None:
        """A warning, shown at once: data that will be removed, or which metadata a change relies on."""


class Silent:
    """A reporter that ignores everything."""

    def begin(self, what: str, total: int) -> None:
        """Do nothing."""

    def advance(self, count: int) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""

    def warn(self, line: str) -> None:
        """Do nothing."""


SILENT: Final = Silent()
