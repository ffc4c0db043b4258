"""Changes of staged replicas without Kafka's locks, one after the other: no broker sees what is changed.

Spec: design §2 laws 4, 6; attacks A45.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.outcome import Outcome
from logdir.disk.site import Site
from logdir.errors import Problem
from tools.cli import Streams
from tools.logdirctl.broker import OpenBroker, sick_disks
from tools.logdirctl.report import UNDONE, Progress, Row, after


def each(
    broker: OpenBroker, rows: Sequence[tuple[Row, Callable[[Site], Outcome]]], streams: Streams
) -> tuple[list[Row], list[Problem]]:
    """Do one thing after the other; a disk that takes no more changes does not stop the others."""
    progress = Progress(streams, "done", len(rows))
    problems: list[Problem] = []
    sick = set(broker.missing)
    listed: list[Row] = []

    def do(number: int) -> Mapping[int, Row]:
        row, call = rows[number]
        found = replace(row, state=UNDONE)
        if row.log_dir not in sick:
            site = broker.site_of(row.log_dir)
            with sick_disks(problems, sick, site):
                found = after(row, call(site))
        return {number: found}

    def undecided(number: int) -> Row:
        row, _ = rows[number]
        return replace(row, state=UNDONE, problem=nothing_decided(broker.path_of(row.log_dir, row.path)))

    def report(some: Sequence[Row]) -> None:
        listed.extend(some)
        progress.add(len(some))

    batch_loop.run(
        range(len(rows)),
        hold=partial(unlocked, broker),
        decide=lambda left: Turn(steps=lambda: (partial(do, number) for number in tuple(left))),
        undecided=undecided,
        report=report,
    )
    progress.done()
    return listed, problems


@contextmanager
def unlocked(broker: OpenBroker) -> Iterator[batch_loop.Held]:
    """Hold nothing: no broker sees what is changed. Its configuration is read again before each step.

    What a full disk made us give up is put back at the end.
    """
    yield _Unlocked(broker)
    broker.refill()


@dataclass(frozen=True, slots=True)
class _Unlocked:
    broker: OpenBroker

    def require_held(self) -> None:
        """Return if the configuration of the broker is as it was. Raises ``RefusedError``."""
        self.broker.require_unchanged()

    def expired(self, now_boottime_ms: int, /) -> bool:
        """Return ``False``: nobody waits for a lock."""
        return False
