"""Two processes on one model disk that take turns at every call: which goes on is said from outside.

Each runs in a thread of its own, and only one of them at a time: it stops before each call it is about to make, that
is after all it has looked at for it. So every gap between a look and what follows it can be filled by the other.

Not here: what they do (``actors``).

Spec: reliability §7 row 8.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from tests.crash.model import Killed, ModelHost

Actor = Callable[[], None]
_WAITS_S = 30


class _Turn:
    """One process: waits before each call until it is let go on."""

    def __init__(self, act: Actor) -> None:
        self._act = act
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self.is_over = False
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        self._go.acquire()
        try:
            self._act()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the turns are given
            self.error = error
        self.is_over = True
        self._stopped.release()

    def pause(self) -> None:
        """Stop, from within."""
        self._stopped.release()
        self._go.acquire()

    def go_on(self) -> None:
        """Let it make one call and look at what it needs for the next."""
        self._go.release()
        if not self._stopped.acquire(timeout=_WAITS_S):
            raise TimeoutError("a process waits for something else than its turn")


def interleave(host: ModelHost, actors: Sequence[Actor], choices: Sequence[int]) -> tuple[int, ...]:
    """Run processes to their ends, by turns.

    Args:
        host: Whose calls are the turns.
        actors: What each does.
        choices: Which goes on, as long as there are two that could; then the first of them.

    Returns:
        The choices made, those given among them.

    Raises:
        Killed: the host was stopped; nobody goes on.
    """
    turns = [_Turn(act) for act in actors]
    perform = host.perform
    by_thread = {turn.thread: turn for turn in turns}

    def performing(call, system, act, short):  # type: ignore[no-untyped-def]
        by_thread[threading.current_thread()].pause()
        perform(call, system, act, short)

    host.perform = performing  # type: ignore[method-assign]
    made: list[int] = []
    try:
        for turn in turns:
            turn.go_on()
        while alive := [number for number, turn in enumerate(turns) if not turn.is_over]:
            number = alive[0]
            if len(alive) > 1:
                number = choices[len(made)] if len(made) < len(choices) else alive[0]
                made.append(number)
            turns[number].go_on()
        for turn in turns:
            if turn.error is not None:
                raise turn.error
    finally:
        host.perform = perform  # type: ignore[method-assign]
        for turn in turns:
            while not turn.is_over:  # after a kill: every further call of it raises, too
                turn.go_on()
            turn.thread.join(_WAITS_S)
    return tuple(made)


def every(run: Callable[[Sequence[int]], tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Yield the choices of every interleaving of two processes.

    Args:
        run: Makes the choices given, then always the first, and returns those it made.
    """
    pending: list[tuple[int, ...]] = [()]
    while pending:
        given = pending.pop()
        made = run(given)
        yield made
        # Up to what was given others have seen to it; from there on the second could have gone on each time.
        pending += [(*made[:at], 1) for at in range(len(given), len(made)) if made[at] == 0]


__all__ = ("Actor", "Killed", "every", "interleave")
