"""The places of the control socket's clients: who has one, and who loses it to the next client.

A client is *awaited* while it sends its request or takes its answer: only then can it lose its place. Those that may
change nothing lose theirs first, and the last place is never theirs, so that a command of the owner or of root finds
one whatever they do.

Not here: threads, locks and connections (``connections``).

Spec: design §5.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)


class Places(Generic[C]):
    """A limited number of places; used under the lock of its owner."""

    def __init__(self, places: int) -> None:
        """Begin with no client.

        Args:
            places: How many there are, at least two.
        """
        self._places = places
        self._may_change: dict[C, bool] = {}
        """Every client that has a place, and whether it may change anything."""
        self._awaited: dict[C, None] = {}
        """Clients that are sending their request or taking their answer, the longest first."""

    def __len__(self) -> int:
        """Return how many places are taken."""
        return len(self._may_change)

    def take(self, client: C, *, may_change: bool) -> bool:
        """Give a client a place, from which on it is awaited; return whether there was one for it.

        Args:
            client: The client.
            may_change: Whether it is the owner or root: for others the last place is none.
        """
        if len(self._may_change) >= (self._places if may_change else self._places - 1):
            return False
        self._may_change[client] = may_change
        self._awaited[client] = None
        return True

    def keep(self, client: C) -> None:
        """Note that a client has sent its request, and keeps its place while it is worked on."""
        self._awaited.pop(client, None)

    def wait_for(self, client: C) -> None:
        """Note that a client, of which the request was worked on, is awaited again: it takes its answer."""
        if client in self._may_change:
            self._awaited[client] = None

    def drop_slowest(self) -> C | None:
        """Choose the client that is to be sent away; it counts as there until ``leave``.

        Returns:
            The client whose request is awaited the longest: among those that may change nothing, or, without such a
            one, among all. ``None``: no request is awaited.
        """
        found = next((one for one in self._awaited if not self._may_change[one]), next(iter(self._awaited), None))
        if found is not None:
            del self._awaited[found]
        return found

    def leave(self, client: C) -> None:
        """Free the place of a client; a second call does nothing."""
        self._awaited.pop(client, None)
        self._may_change.pop(client, None)
