"""Moving the replicas of a layout change in batches, on all log dirs side by side.

One hold of the locks moves one batch on each log dir, so it lasts as long as the slowest of them. A log dir that fails
ends with its batch; the others go on.

Not here: which replicas are moved (``logdir.decide.layout.transitions``), the moves of one log dir
(``disk.replica.relayout``), what comes before and after (``layout_phases``).

Spec: design §2 laws 4, 6, §5 "A port per log dir", §8; attacks A22.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest

from logdir.decide.layout.action import MoveToTopicIds, MoveToTopicNames
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.record.layout import map_os_errors
from logdir.disk.replica.batches import Batches
from logdir.disk.replica.outcome import Outcome, undone
from logdir.disk.replica.relayout import to_ids, to_names
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LockHeldError, LogDirError, LogDirReplacedError, RefusedError
from logdir.worker.port import BeginAt, Pending
from logdir.worker.remote import gather

Move = MoveToTopicIds | MoveToTopicNames
Hold = Callable[[], AbstractContextManager[batch_loop.Held]]
"""Takes Kafka's lock of every log dir of the broker, and holds them until the block ends."""
_Place = tuple[str, str]
"""Log dir, and path relative to it."""
_Moved = tuple[str, Outcome] | None
"""Log dir, and the outcome of one replica; ``None``: its log dir failed."""
_Rows = Sequence[Sequence[_Place | None]]
"""A batch: in each row at most one replica of each log dir."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The moves of one phase."""

    open_dirs: Mapping[str, OpenLogDir]
    """At least those of the actions."""
    actions: Sequence[Move]
    """At most one per log dir."""
    begin_at: BeginAt
    batches: Batches
    """Sizes of a batch of one log dir."""
    report: Callable[[Sequence[tuple[str, Outcome]]], None]
    """Receives the log dir and the outcome of each replica of a batch."""
    failed: dict[str, LogDirError]
    """Gets the error of each log dir that failed."""

    def carry_out(self, hold: Hold) -> None:
        """Move all replicas, batch by batch.

        Raises:
            LockHeldError: a broker runs; changes made by then stay.
            LogDirReplacedError: a path leads to another log dir now; changes made by then stay.
            LogDirError: as ``hold``.
        """
        batch_loop.run(
            [(action.log_dir, item.path) for action in self.actions for item in action.items],
            hold=hold,
            decide=lambda left: Turn(steps=partial(self._steps, left)),
            undecided=self._undecided,
            report=self._report,
        )

    def _steps(self, left: KeysView[_Place]) -> Iterator[Callable[[], Mapping[_Place, _Moved]]]:
        of_each = [[place for place in left if place[0] == action.log_dir] for action in self.actions]
        # A batch may grow to one second: with another batch the hold might outlast its two seconds.
        return (partial(self._step, rows, left) for rows in islice(self.batches.of(tuple(zip_longest(*of_each))), 1))

    def _step(self, rows: _Rows, left: KeysView[_Place]) -> Mapping[_Place, _Moved]:
        begun: dict[str, Pending[tuple[Outcome, ...]]] = {}
        for action, places in zip(self.actions, zip(*rows, strict=True), strict=True):
            paths = {place[1] for place in places if place is not None}
            open_dir = self.open_dirs[action.log_dir]
            if paths and isinstance(action, MoveToTopicIds):
                begun[action.log_dir] = self.begin_at(to_ids, open_dir, [i for i in action.items if i.path in paths])
            elif paths and isinstance(action, MoveToTopicNames):
                begun[action.log_dir] = self.begin_at(to_names, open_dir, [i for i in action.items if i.path in paths])
        gather(begun.values())
        found: dict[_Place, _Moved] = {}
        stop: LogDirError | None = None
        for log_dir, pending in begun.items():
            try:
                with map_os_errors(self.open_dirs[log_dir]):
                    found |= {(log_dir, outcome.path): (log_dir, outcome) for outcome in pending.result()}
            except (LockHeldError, LogDirReplacedError) as error:
                stop = stop or error  # A broker runs, or another disk is mounted: nothing more may be changed anywhere.
            except LogDirError as error:
                self.failed[log_dir] = error
                found |= dict.fromkeys(place for place in left if place[0] == log_dir)
        if stop is not None:
            self._report(tuple(found.values()))
            raise stop
        return found

    def _report(self, moved: Sequence[_Moved]) -> None:
        self.report([one for one in moved if one is not None])

    def _undecided(self, place: _Place) -> _Moved:
        log_dir, path = place
        return log_dir, undone(path, RefusedError.of(nothing_decided(self.open_dirs[log_dir].path_of(path))))
