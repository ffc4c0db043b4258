"""One call for each of several items, a few at a time, where the kernel takes longer than we do.

Every thread has ended when this returns, however it returns: nobody works on a directory that its opener has closed.

Not here: what may be done side by side (the operations); all of them are called from one thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread
from typing import Final, TypeVar

from logdir.observe.awaited import awaiting

_T = TypeVar("_T")
_HANDLERS_RUN_S: Final = 0.1


def for_each(items: Iterable[_T], call: Callable[[_T], None], at_once: int) -> None:
    """Call for every item, begun in their order.

    Args:
        items: What for.
        call: Bears being called from several threads, if there are to be several.
        at_once: How many calls may be under way; 1: no thread is made.

    Raises:
        BaseException: the first that a call raised; what was not begun by then is not begun.
    """
    left = iter(tuple(items))  # a tuple's hands each item to one thread only
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for item in left:
                if errors:
                    return
                call(item)
        except BaseException as error:  # noqa: BLE001 - raised below, when nobody works any more
            errors.append(error)

    threads: list[Thread] = []
    try:
        for number in range(1, at_once):
            threads.append(Thread(target=work, name=f"side by side {number}"))
            threads[-1].start()
    except RuntimeError:
        pass  # no more of them may be made: with fewer, then
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
            # Without a limit no handler of a signal runs until the end where signals restart calls, as in a worker.
            thread.join(_HANDLERS_RUN_S)
        except KeyboardInterrupt as error:
            errors.append(error)
