"""Changes of staged replicas without Kafka's locks, one after the other: no broker sees staged replicas.

Spec: design §2 laws 4, 6; attacks A45.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.replica.outcome import Outcome
from logdir.errors import LockHeldError, Problem, WorkRootOwnedError
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.os_errors import sick_disks
from logdir.service.report.reporter import Reporter
from logdir.service.report.result import ItemResult, ItemState, after
from logdir.worker.port import Port


def each(
    broker: OpenBroker, rows: Sequence[tuple[ItemResult, Callable[[Port], Outcome]]], reporter: Reporter
) -> tuple[list[ItemResult], list[Problem]]:
    """Make one change after the other; a failed disk does not stop the others.

    Args:
        broker: Opened for changes.
        rows: The planned result row of each replica, and the call that changes it.
        reporter: Receives progress.

    Returns:
        One row per change with its result, and the problems of disks.
    """
    reporter.begin("done", len(rows))
    problems: list[Problem] = []
    sick = {*broker.missing, *broker.ports.suspect}
    listed: list[ItemResult] = []

    def do(number: int) -> Mapping[int, ItemResult]:
        row, call = rows[number]
        found = replace(row, state=ItemState.UNDONE)
        sick.update(broker.ports.suspect)
        reporter.advance(0)  # A daemon captures what is deleted meanwhile.
        if row.log_dir not in sick:
            with sick_disks(problems, sick, row.log_dir):
                found = after(row, call(broker.ports.port(row.log_dir)))
        return {number: found}

    def undecided(number: int) -> ItemResult:
        row, _ = rows[number]
        return replace(row, state=ItemState.UNDONE, problem=nothing_decided(broker.path_of(row.log_dir, row.path)))

    def report(some: Sequence[ItemResult]) -> None:
        listed.extend(some)
        reporter.advance(len(some))

    batch_loop.run(
        range(len(rows)),
        hold=partial(unlocked, broker),
        decide=lambda left: Turn(steps=lambda: (partial(do, number) for number in tuple(left))),
        undecided=undecided,
        report=report,
    )
    reporter.end()
    return listed, problems


def recover_if_stopped(broker: OpenBroker) -> None:
    """Run crash recovery; skip it if a broker runs, which sees no staged replicas and so no change of this command.

    Raises:
        WorkRootOwnedError: another logdird process works there.
        LogDirError: as ``OpenBroker.recover``.
    """
    try:
        broker.recover()
    except WorkRootOwnedError:
        raise
    except LockHeldError:
        return


@contextmanager
def unlocked(broker: OpenBroker) -> Iterator[batch_loop.Held]:
    """Hold no lock, because no broker sees the changes. The broker's configuration is read again before each step.

    At the end the reserve is restored if a full disk used it.
    """
    yield _Unlocked(broker)
    broker.refill()


@dataclass(frozen=True, slots=True)
class _Unlocked:
    broker: OpenBroker

    def require_held(self) -> None:
        """Check that configuration and owner locks are unchanged. Raises ``RefusedError``, ``LogDirReplacedError``."""
        self.broker.require_unchanged()
        self.broker.require_owned()

    def expired(self, now_boottime_ms: int, /) -> bool:
        """Return ``False``: no process waits for a lock."""
        return False
