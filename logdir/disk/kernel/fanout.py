"""Thread fan-out: one blocking system call per item, a few items at a time.

All threads have ended when ``for_each`` returns or raises, so no thread uses a directory that its opener has closed.

Not here: which calls may run in parallel (the operations decide). ``for_each`` itself is called from one thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread
from typing import Final, TypeVar

from logdir.observe.awaited import awaiting

_T = TypeVar("_T")
_HANDLERS_RUN_S: Final = 0.1


def for_each(items: Iterable[_T], call: Callable[[_T], None], at_once: int) -> None:
    """Make one call per item, started in the order of the items.

    Args:
        items: The items.
        call: The call; must be thread-safe if ``at_once`` is above 1.
        at_once: How many calls may run at a time; 1: no thread is started.

    Raises:
        BaseException: the first exception of a call; items not started by then are not started.
    """
    left = iter(tuple(items))  # A tuple's iterator gives each item to one thread only.
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for item in left:
                if errors:
                    return
                call(item)
        except BaseException as error:  # noqa: BLE001 - raised below, once no thread works any more
            errors.append(error)

    threads: list[Thread] = []
    try:
        for number in range(1, at_once):
            threads.append(Thread(target=work, name=f"side by side {number}"))
            threads[-1].start()
    except RuntimeError:
        pass  # No more threads may be started: go on with fewer.
    except KeyboardInterrupt as error:
        errors.append(error)
    work()
    with awaiting(*(f"/proc/self/task/{thread.native_id}/schedstat" for thread in threads)):
        for thread in threads:
            _join(thread, errors)
    if errors:
        raise errors[0]


def _join(thread: Thread, errors: list[BaseException]) -> None:
    while thread.is_alive():
        try:
            # Without a timeout no signal handler would run until the end where signals restart calls, as in a worker.
            thread.join(_HANDLERS_RUN_S)
        except KeyboardInterrupt as error:
            errors.append(error)
