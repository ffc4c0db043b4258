"""The batch loop: lock, look and decide again, do, report, and go on with what is left.

It ends whatever its callables answer. Each turn takes at least one item out of the list, or the loop stops and reports
every item that is left as undecided. A turn carries out at most as many steps as there were items when it began. So n
items take at most n turns, and each turn takes the locks once.

Not here: which locks are taken, what is decided and done, what is printed (all the caller's).

Spec: design §2 law 4, §5 "One batch loop"; attacks A22, A38.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, KeysView, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, Protocol, TypeVar

from logdir import clock
from logdir.errors import Problem

K = TypeVar("K", bound=Hashable)
"""What names an item."""
R = TypeVar("R")
"""What is reported of an item."""


class Held(Protocol):
    """What a turn holds: Kafka's locks, or nothing but the right to go on."""

    def require_held(self) -> None:
        """Return if something may still be changed; asked before each step. Raises ``LogDirError``."""

    def expired(self, now_boottime_ms: int, /) -> bool:
        """Return whether the turn ends after this step."""


def _no_steps() -> Iterable[Callable[[], Mapping[K, R]]]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Generic[K, R]):
    """What one look decides about the items that are left."""

    settled: Mapping[K, R] = field(default_factory=dict)
    """Items that need nothing more: refused, or changed since."""
    steps: Callable[[], Iterable[Callable[[], Mapping[K, R]]]] = _no_steps
    """Begins the steps, in order. Each does something and returns the items it takes out, done or not."""
    is_over: bool = False
    """Nothing is done with what is left, and the caller knows why."""


def run(
    items: Iterable[K],
    *,
    hold: Callable[[], AbstractContextManager[Held]],
    decide: Callable[[KeysView[K]], Turn[K, R]],
    undecided: Callable[[K], R],
    report: Callable[[Sequence[R]], None],
    now_ms: Callable[[], int] = clock.boottime_ms,
) -> None:
    """Go through items in turns until none is left.

    Args:
        items: What names them; none twice.
        hold: Takes the locks of one turn; they are let go before ``report`` is called.
        decide: Looks and decides about the items that are left, under the locks.
        undecided: What is reported of an item that no decision takes out.
        report: Called after each turn with what became of its items, also where the turn ends in an error.
        now_ms: The boot-time clock, milliseconds.

    Raises:
        LogDirError: of a callable; what was done by then is done and reported.
    """
    left = dict.fromkeys(items)
    while left:
        count = len(left)
        results: list[R] = []
        try:
            with hold() as held:
                turn = decide(left.keys())
                _take_out(left, turn.settled, results)
                if turn.is_over:
                    return
                for step in islice(turn.steps(), count):
                    if not left:
                        break
                    held.require_held()
                    _take_out(left, step(), results)
                    if held.expired(now_ms()):
                        break
        finally:
            report(results)
        if len(left) == count:
            report([undecided(key) for key in left])
            return


def _take_out(left: dict[K, None], handled: Mapping[K, R], results: list[R]) -> None:
    for key, result in handled.items():
        if key in left:
            del left[key]
            results.append(result)


def nothing_decided(path: str) -> Problem:
    """Return the problem of an item, by its absolute path, about which a turn decided nothing."""
    return Problem("undecided", path, "an action or a refusal", "neither", "it is as it was; report this line")
