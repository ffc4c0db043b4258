"""The batch loop: take the locks, scan and decide again, act, report, and repeat with the items that are left.

The loop always ends, whatever its callables return. Each turn removes at least one item from the list; otherwise the
loop stops and reports every remaining item as undecided. A turn carries out at most as many steps as there were items
when it began. So n items take at most n turns, and each turn takes the locks once.

Not here: holding Kafka's locks, and ending a batch after two seconds (``service.log_dirs.kafka_locks``); which locks a
command takes, what is decided and done, what is printed (all the caller's).

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
"""The type of an item's key."""
R = TypeVar("R")
"""The type of an item's result."""


class Held(Protocol):
    """What a turn holds: Kafka's locks, or, for a command that takes none, only the permission to go on."""

    def require_held(self) -> None:
        """Check that changes are still allowed; called before each step. Raises ``LogDirError``."""

    def expired(self, now_boottime_ms: int, /) -> bool:
        """Return whether the turn must end after the step that was just carried out."""


def _no_steps() -> Iterable[Callable[[], Mapping[K, R]]]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Generic[K, R]):
    """The decision of one turn about the items that are left."""

    settled: Mapping[K, R] = field(default_factory=dict)
    """Results of items that need no step: refused, or changed since they were planned."""
    steps: Callable[[], Iterable[Callable[[], Mapping[K, R]]]] = _no_steps
    """Returns the steps, in order. Each step acts and returns the results of the items it finishes, done or not."""
    is_over: bool = False
    """Whether the loop stops here and leaves the remaining items as they are; the caller knows the reason."""


def run(
    items: Iterable[K],
    *,
    hold: Callable[[], AbstractContextManager[Held]],
    decide: Callable[[KeysView[K]], Turn[K, R]],
    undecided: Callable[[K], R],
    report: Callable[[Sequence[R]], None],
    now_ms: Callable[[], int] = clock.boottime_ms,
) -> None:
    """Process items in turns until none is left.

    Args:
        items: Keys of the items; no key twice.
        hold: Takes the locks of one turn; they are released before ``report`` is called.
        decide: Scans and decides about the items that are left, under the locks.
        undecided: Returns the result of an item that no turn decided.
        report: Called after each turn with the results of its items, also if the turn ends in an error.
        now_ms: The boot-time clock, milliseconds.

    Raises:
        LogDirError: a callable raised it; the steps done by then stay done and are reported.
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
    """Return the problem of an item about which a turn decided nothing; ``path`` is absolute."""
    return Problem(
        "undecided", path, "an action or a refusal", "neither", "it is unchanged; report this message as a bug"
    )
