"""Carrying out a layout decision over all log dirs of a broker, phase by phase.

Each batch of replicas takes Kafka's lock of every log dir again; between batches the start block keeps brokers out. A
failed disk does not stop the others: they finish their phase, and the next phase does not begin. After an interruption
a new scan and a new decision continue.

Not here: whether a layout command is allowed (``logdir.decide.layout.transitions``), moving replicas
(``layout_moves``), the changes of one log dir (``layout`` and ``relayout`` of ``logdir.disk``), which locks are held
(the caller's).

Spec: design §2 laws 4, 6, §3.1, §5 "a port per log dir", §8; attacks A21, A22, A37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from logdir.disk.record import layout, start_block
from logdir.disk.record.layout import map_os_errors
from logdir.disk.replica.batches import Batches
from logdir.disk.replica.layout_view import look
from logdir.disk.replica.outcome import Outcome, Result
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LockHeldError, LogDirError, LogDirReplacedError
from logdir.formats.own.layout_file import LayoutState
from logdir.service.batch.layout_moves import Hold, Move, Moves
from logdir.service.report.reporter import SILENT, Reporter
from logdir.worker.port import BeginAt, begin_here
from logdir.worker.remote import gather

BATCH: Final = 4096
"""Largest number of replicas moved under one hold of the locks."""
_LONGEST_MS: Final = 1000
"""A hold that takes longer makes the next batch smaller (law 4: two seconds)."""
_Other = SetStartBlock | LiftStartBlock | SetLayoutState | RemoveLayoutFile


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


def look_all(open_dirs: Sequence[OpenLogDir], begin_at: BeginAt = begin_here) -> tuple[LayoutView, ...]:
    """Return the layout view of every log dir.

    Args:
        open_dirs: All log dirs of the broker.
        begin_at: Starts the calls.

    Raises:
        LogDirError: a log dir cannot be read.
    """
    begun = [begin_at(look, open_dir) for open_dir in open_dirs]
    gather(begun)
    seen = []
    for open_dir, pending in zip(open_dirs, begun, strict=True):
        with map_os_errors(open_dir):
            seen.append(pending.result())
    return tuple(seen)


def carry_out(
    open_dirs: Sequence[OpenLogDir],
    decision: Decision,
    hold: Hold,
    *,
    reporter: Reporter = SILENT,
    batch: int = BATCH,
    begin_at: BeginAt = begin_here,
) -> LayoutReport:
    """Carry out a decision, or continue an interrupted one.

    Args:
        open_dirs: All log dirs of the broker.
        decision: From ``logdir.decide.layout.transitions``, based on a scan of these log dirs.
        hold: Holds Kafka's lock of every log dir of the broker.
        reporter: Receives progress.
        batch: Largest number of replicas under one hold of the locks; fewer on a slow disk.
        begin_at: Starts the calls that move replicas.

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
        begin_at=begin_at,
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
    begin_at: BeginAt

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
            is_well = self._move([action for action in phase if isinstance(action, Move)])
            for action in phase:
                if not isinstance(action, Move):
                    is_well &= self._do(action)
            if not is_well:
                return
        # The last change of a killed process needs no action any more, but may not be durable yet.
        self._sync_all()
        self.report.is_finished = not decision.is_blocked

    def _sync_all(self) -> None:
        for open_dir in self.open_dirs.values():
            with self.hold():
                layout.sync(open_dir)

    def _move(self, actions: Sequence[Move]) -> bool:
        """Move replicas of all log dirs; return whether the next phase may begin.

        An apply goes on beside a refused replica: its step is stale, as if the plan had refused it. A rollback stops.
        """
        failed, first = self.report.failed, len(self.report.outcomes)
        moves = Moves(
            open_dirs=self.open_dirs,
            actions=[action for action in actions if action.log_dir not in failed],
            begin_at=self.begin_at,
            batches=self.batches,
            report=self._moved,
            failed=failed,
        )
        self._try([action.log_dir for action in moves.actions], lambda: moves.carry_out(self.hold))
        rolled_back = [action.log_dir for action in actions if isinstance(action, MoveToTopicNames)]
        for log_dir in rolled_back:
            self._try_at(log_dir, layout.require_no_prefixes)
        return failed.keys().isdisjoint(action.log_dir for action in actions) and all(
            outcome.result is Result.DONE for log_dir, outcome in self.report.outcomes[first:] if log_dir in rolled_back
        )

    def _moved(self, moved: Sequence[tuple[str, Outcome]]) -> None:
        self.report.outcomes += moved
        self.reporter.advance(len(moved))

    def _do(self, action: _Other) -> bool:
        """Carry out one action; return whether it succeeded."""
        match action:
            case SetStartBlock():
                return self._try_at_all(start_block.set_block)
            case LiftStartBlock():
                return self._try_at_all(start_block.lift_block)
            case SetLayoutState():
                plan = self.report.decision.plan_sha256
                return self._try_at(
                    action.log_dir, lambda one: layout.write_state(one, action.state, plan, action.for_broker)
                )
            case RemoveLayoutFile():
                return self._try_at(action.log_dir, layout.remove_state)
            case never:
                assert_never(never)

    def _try_at_all(self, change: Callable[[Sequence[OpenLogDir]], object]) -> bool:
        """Change all log dirs under the locks; return whether it succeeded."""

        def held() -> None:
            with self.hold():
                change(tuple(self.open_dirs.values()))

        return self._try((), held)

    def _try_at(self, log_dir: str, change: Callable[[OpenLogDir], object]) -> bool:
        """Change one log dir under the locks, unless it has failed; return whether it succeeded."""
        open_dir = self.open_dirs[log_dir]

        def held() -> None:
            with map_os_errors(open_dir), self.hold():
                change(open_dir)

        return log_dir not in self.report.failed and self._try((log_dir,), held)

    def _try(self, log_dirs: Sequence[str], change: Callable[[], object]) -> bool:
        """Make a change; note its error for these log dirs, or else for its path; return whether it succeeded."""
        try:
            change()
        except (LockHeldError, LogDirReplacedError):
            raise  # A broker runs, or another disk is mounted: nothing more may be changed anywhere.
        except LogDirError as error:
            for where in log_dirs or (error.path,):
                self.report.failed.setdefault(where, error)
            return False
        return True
