"""Carrying out a layout decision over all log dirs of a broker, phase by phase.

Each batch of replicas takes Kafka's lock of every log dir again; between batches the start block keeps brokers out. A
failed disk does not stop the others: they finish their phase, and the next phase does not begin. After an interruption
a new scan and a new decision continue.

Not here: whether a layout command is allowed (``logdir.decide.layout.transitions``), the changes of one log dir
(``layout`` and ``relayout`` of ``logdir.disk``), which locks are held (the caller's).

Spec: design §2 laws 4, 6, §3.1, §5 "a port per log dir", §8; attacks A21, A22, A37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final, assert_never

from logdir.decide.layout.action import (
    Action,
    Decision,
    LayoutView,
    LiftStartBlock,
    MoveToTopicIds,
    MoveToTopicNames,
    RemoveLayoutFile,
    SetLayoutState,
    SetStartBlock,
)
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.record import layout, start_block
from logdir.disk.record.layout import map_os_errors
from logdir.disk.replica.batches import Batches
from logdir.disk.replica.layout_view import look
from logdir.disk.replica.outcome import Outcome, Result, undone
from logdir.disk.replica.relayout import to_ids, to_names
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LockHeldError, LogDirError, LogDirReplacedError, RefusedError
from logdir.formats.own.layout_file import LayoutState
from logdir.service.report.reporter import SILENT, Reporter
from logdir.worker.port import RunAt, run_here

BATCH: Final = 4096
"""Largest number of replicas moved under one hold of the locks."""
_LONGEST_MS: Final = 1000
"""A hold that takes longer makes the next batch smaller (law 4: two seconds)."""
Hold = Callable[[], AbstractContextManager[batch_loop.Held]]
"""Takes Kafka's lock of every log dir of the broker, and holds them until the block ends."""
_Step = Callable[[], Mapping[str, Outcome]]


@dataclass(slots=True, kw_only=True)
class LayoutReport:
    """The result of carrying out a layout decision."""

    decision: Decision
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    """Log dir, and the outcome of one replica in it."""
    failed: dict[str, LogDirError] = field(default_factory=dict)
    """The error of each log dir, or other path, where the work could not continue."""
    is_finished: bool = False
    """Whether every phase was done without a failure, and no refused replica keeps the command from finishing."""

    @property
    def refused(self) -> tuple[LogDirError, ...]:
        """Every step or replica that was refused, by the decision or by its directory."""
        return (*self.decision.refused, *(o.error for _, o in self.outcomes if o.error is not None))


def look_all(open_dirs: Sequence[OpenLogDir], run_at: RunAt = run_here) -> tuple[LayoutView, ...]:
    """Return the layout view of every log dir.

    Args:
        open_dirs: All log dirs of the broker.
        run_at: Makes the calls.

    Raises:
        LogDirError: a log dir cannot be read.
    """
    seen = []
    for open_dir in open_dirs:
        with map_os_errors(open_dir):
            seen.append(run_at(look, open_dir))
    return tuple(seen)


def carry_out(
    open_dirs: Sequence[OpenLogDir],
    decision: Decision,
    hold: Hold,
    *,
    reporter: Reporter = SILENT,
    batch: int = BATCH,
    run_at: RunAt = run_here,
) -> LayoutReport:
    """Carry out a decision, or continue an interrupted one.

    Args:
        open_dirs: All log dirs of the broker.
        decision: From ``logdir.decide.layout.transitions``, based on a scan of these log dirs.
        hold: Holds Kafka's lock of every log dir of the broker.
        reporter: Receives progress.
        batch: Largest number of replicas under one hold of the locks; fewer on a slow disk.
        run_at: Makes the calls that move replicas.

    Returns:
        The outcomes, failures and refusals.

    Raises:
        LockHeldError: a broker runs; changes made by then stay.
        LogDirReplacedError: a path leads to another log dir now; changes made by then stay.
        LogDirError: a sync before the end failed, or Kafka's locks cannot be taken; changes made by then stay.
    """
    report = LayoutReport(decision=decision)
    work = _Work(
        open_dirs={open_dir.log_dir: open_dir for open_dir in open_dirs},
        hold=hold,
        batches=Batches(batch, _LONGEST_MS),
        reporter=reporter,
        report=report,
        run_at=run_at,
    )
    reporter.begin("moving replicas", sum(len(_items(action)) for action in decision.actions))
    try:
        work.run()
    finally:
        reporter.end()
    return report


def _items(action: Action) -> Sequence[object]:
    return action.items if isinstance(action, MoveToTopicIds | MoveToTopicNames) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """The state of carrying out one decision."""

    open_dirs: Mapping[str, OpenLogDir]
    hold: Hold
    batches: Batches
    reporter: Reporter
    report: LayoutReport
    run_at: RunAt

    def run(self) -> None:
        """Carry out phase after phase, up to the first phase with a failure."""
        decision = self.report.decision
        is_finalized = any(
            isinstance(action, SetLayoutState) and action.state is LayoutState.FINAL for action in decision.actions
        )
        for phase in decision.phases:
            if is_finalized and any(isinstance(action, LiftStartBlock) for action in phase):
                # "finalizing", found on a disk as a killed process left it, is durable everywhere before the start
                # block is lifted, and so before the first "final".
                self._sync_all()
            is_well = True
            for action in phase:
                is_well &= self._try(action)
            if not is_well:
                return
        # The last change of a killed process needs no action any more, but may not be durable yet.
        self._sync_all()
        self.report.is_finished = not decision.is_blocked

    def _sync_all(self) -> None:
        for open_dir in self.open_dirs.values():
            with self.hold():
                layout.sync(open_dir)

    def _try(self, action: Action) -> bool:
        """Carry out one action; return whether it succeeded."""
        try:
            return self._do(action)
        except (LockHeldError, LogDirReplacedError):
            raise  # A broker runs, or another disk is mounted: nothing more may be changed anywhere.
        except LogDirError as error:
            self.report.failed[error.path if isinstance(action, SetStartBlock | LiftStartBlock) else action.log_dir] = (
                error
            )
            return False

    def _do(self, action: Action) -> bool:
        match action:
            case SetStartBlock():
                with self.hold():
                    start_block.set_block(tuple(self.open_dirs.values()))
            case LiftStartBlock():
                with self.hold():
                    start_block.lift_block(tuple(self.open_dirs.values()))
            case SetLayoutState() | MoveToTopicIds() | MoveToTopicNames() | RemoveLayoutFile():
                if action.log_dir in self.report.failed:
                    return False
                open_dir = self.open_dirs[action.log_dir]
                with map_os_errors(open_dir):
                    return self._do_here(open_dir, action)
            case never:
                assert_never(never)
        return True

    def _do_here(
        self, open_dir: OpenLogDir, action: SetLayoutState | MoveToTopicIds | MoveToTopicNames | RemoveLayoutFile
    ) -> bool:
        match action:
            case SetLayoutState():
                with self.hold():
                    layout.write_state(open_dir, action.state, self.report.decision.plan_sha256, action.for_broker)
            case MoveToTopicIds():
                items = {item.path: item for item in action.items}
                self._move(
                    open_dir, items, lambda paths: self.run_at(to_ids, open_dir, [items[path] for path in paths])
                )
            case MoveToTopicNames():
                back = {item.path: item for item in action.items}
                is_well = self._move(
                    open_dir, back, lambda paths: self.run_at(to_names, open_dir, [back[path] for path in paths])
                )
                with self.hold():
                    layout.require_no_prefixes(open_dir)
                return is_well
            case RemoveLayoutFile():
                with self.hold():
                    layout.remove_state(open_dir)
            case never:
                assert_never(never)
        return True

    def _move(
        self, open_dir: OpenLogDir, items: Mapping[str, object], move: Callable[[Sequence[str]], tuple[Outcome, ...]]
    ) -> bool:
        """Move replicas of one log dir in batches; return whether all are in their target layout.

        Args:
            open_dir: The log dir.
            items: The replicas, by path relative to the log dir.
            move: Checks and moves the replicas of some paths; returns one outcome per path.
        """
        first = len(self.report.outcomes)

        def step(paths: Sequence[str]) -> Mapping[str, Outcome]:
            return {outcome.path: outcome for outcome in move(paths)}

        def steps(left: KeysView[str]) -> Iterator[_Step]:
            # A batch may grow to one second: with another batch the hold might outlast its two seconds.
            return (partial(step, paths) for paths in islice(self.batches.of(tuple(left)), 1))

        def report(outcomes: Sequence[Outcome]) -> None:
            self.report.outcomes += [(open_dir.log_dir, outcome) for outcome in outcomes]
            self.reporter.advance(len(outcomes))

        batch_loop.run(
            items,
            hold=self.hold,
            decide=lambda left: Turn(steps=partial(steps, left)),
            undecided=lambda path: undone(path, RefusedError.of(nothing_decided(open_dir.path_of(path)))),
            report=report,
        )
        return all(outcome.result is Result.DONE for _, outcome in self.report.outcomes[first:])
