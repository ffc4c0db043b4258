"""The requests that wait for the thread of changes, in the order of their turns.

Not here: the lock under which they are used (``supervisor``), what a use case does (``service``).

Spec: design §5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from logdir.daemon.start_awaited import waiting_error
from logdir.errors import LogDirError
from logdir.service.batch.use_cases import HANDOVER

if TYPE_CHECKING:
    from logdir.daemon.work import Work

Answer: TypeAlias = Future[Any]
"""What a request comes to, or the error that ended it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that waits for its turn."""

    what: str
    run: Callable[[Work], Any]
    answer: Answer

    def refuse(self, error: LogDirError) -> None:
        """Answer it with an error, unless its client has left."""
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_exception(error)


class Requests:
    """The requests that wait."""

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: deque[Request] = deque()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def add(self, request: Request) -> None:
        """Append a request; a handover comes first, because a broker waits for it."""
        (self._waiting.appendleft if request.what == HANDOVER else self._waiting.append)(request)

    def take(self) -> Request | None:
        """Return the next one; ``None``: none waits."""
        return self._waiting.popleft() if self._waiting else None

    def take_all(self) -> tuple[Request, ...]:
        """Return all of them."""
        left = tuple(self._waiting)
        self._waiting.clear()
        return left

    def start_error(self) -> LogDirError | None:
        """Return the error that a handover waits: a broker is about to start, nothing long begins. ``None``: none."""
        return waiting_error() if any(one.what == HANDOVER for one in self._waiting) else None
