"""What a use case tells while it works: how far it is, and what is to be known before something is done.

Spec: design §5 "A use case".
"""

from __future__ import annotations

from typing import Final, Protocol


class Reporter(Protocol):
    """Hears progress and warnings; may do nothing with them."""

    def begin(self, what: str, total: int) -> None:
        """Work on ``total`` items begins, 0: as many as there are; ``what`` names it, as in *restoring*."""

    def advance(self, count: int) -> None:
        """So many more items are through."""

    def end(self) -> None:
        """The work is over, done or not."""

    def warn(self, line: str) -> None:
        """Something is to be known now: a loss that is scheduled, or on what a change rests."""


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
