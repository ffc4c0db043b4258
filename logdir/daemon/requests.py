"""The requests that wait for the thread of changes, in the order of their turns.

Not here: the lock under which they are used (``supervisor``), what a use case does (``service``).

Spec: design §5.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from logdir.daemon.faults import fault_of
from logdir.daemon.report.counters import Counters
from logdir.daemon.start_awaited import waiting_error
from logdir.errors import LogDirError
from logdir.service.batch.use_cases import HANDOVER
from logdir.service.report.exit_status import Exit, exit_for
from logdir.service.report.use_case import Ran

if TYPE_CHECKING:
    from logdir.daemon.work import Work

LOG: Final = logging.getLogger(__name__)
Answer: TypeAlias = Future[Any]
"""What a request comes to, or the error that ended it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that waits for its turn."""

    what: str
    run: Callable[[Work], Any]
    answer: Answer

    def do(self, work: Work, counters: Counters) -> None:
        """Answer and count it, unless its client has left before its turn."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            found = self.run(work)
        except BaseException as error:
            counters.note_request(self.what, exit_of(error))
            if isinstance(error, Exception) and not isinstance(error, LogDirError | OSError):
                LOG.exception("request.fault %s", self.what)
                counters.note_error(fault_of(self.what, error), ())
            self.answer.set_exception(error)
        else:
            counters.note_request(self.what, exit_of(found))
            self.answer.set_result(found)

    def refuse(self, error: LogDirError, counters: Counters) -> None:
        """Answer it with an error, and count it, unless its client has left."""
        if self.answer.set_running_or_notify_cancel():
            counters.note_request(self.what, exit_of(error))
            self.answer.set_exception(error)


def exit_of(found: object) -> Exit:
    """Return the exit status of what a request came to.

    Args:
        found: What its function returned, a ``Ran`` with more beside it, or the error that ended it.
    """
    match found:
        case LogDirError():
            return exit_for(found)
        case BaseException():
            return Exit.INTERNAL
        case (Ran() as ran, *_):
            return ran.exit
        case _:
            return Exit.DONE


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
