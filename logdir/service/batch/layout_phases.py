"""Carry out a decision about the layout over all log dirs of a broker, phase by phase.

Each batch of replicas has the broker's locks for itself; between batches the start block keeps brokers out. A disk that
fails stops no other: the other log dirs finish their phase, and the next phase is not begun. Whatever is cut off is
taken up by a new look and a new decision.

Not here: whether a verb is allowed (``logdir.decide.layout.relayout``), what is done to one log dir (``layout`` and
``relayout`` of ``logdir.disk``), which locks are held (the caller's).

Spec: design §2 laws 4, 6, §3.1, §5 "a port per log dir", §8; attacks A21, A22, A37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Final, assert_never

from logdir.decide.layout.action import Action, Bar, Decision, Forget, Say, Seen, TakeToIds, TakeToNames, Unbar
from logdir.disk import batch_loop
from logdir.disk.batch_loop import Turn, nothing_decided
from logdir.disk.record import layout, start_block
from logdir.disk.record.layout import map_os_errors
from logdir.disk.replica.batches import Batches
from logdir.disk.replica.layout_view import look
from logdir.disk.replica.outcome import Outcome, Result, undone
from logdir.disk.replica.relayout import to_ids, to_names
from logdir.disk.root.open_log_dir import Site
from logdir.errors import LockHeldError, LogDirError, LogDirReplacedError, RefusedError
from logdir.formats.own.layout_file import LayoutState
from logdir.service.report.reporter import SILENT, Reporter
from logdir.worker.port import RunAt, run_here

BATCH: Final = 4096
"""Replicas moved under one hold of the locks, at most."""
_LONGEST_MS: Final = 1000
"""Of a hold, before the next one has fewer (law 4: two seconds)."""
Hold = Callable[[], AbstractContextManager[batch_loop.Held]]
"""Holds every lock of the broker while it is open."""
_Step = Callable[[], Mapping[str, Outcome]]


@dataclass(slots=True, kw_only=True)
class LayoutReport:
    """What became of a decision."""

    decision: Decision
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)
    """Log dir, and what became of one replica in it."""
    failed: dict[str, LogDirError] = field(default_factory=dict)
    """Log dirs, or the path an error names, where it could not go on."""
    is_finished: bool = False
    """Whether every phase was done, nothing in it failed, and nothing that was refused keeps the verb from its end."""

    @property
    def refused(self) -> tuple[LogDirError, ...]:
        """Every step or replica left as it was, by the decision or by its directory."""
        return (*self.decision.refused, *(o.error for _, o in self.outcomes if o.error is not None))


def look_all(sites: Sequence[Site], run_at: RunAt = run_here) -> tuple[Seen, ...]:
    """Return what lies in every log dir.

    Args:
        sites: All log dirs of the broker.
        run_at: Makes the calls.

    Raises:
        LogDirError: one cannot be looked at.
    """
    seen = []
    for site in sites:
        with map_os_errors(site):
            seen.append(run_at(look, site))
    return tuple(seen)


def carry_out(
    sites: Sequence[Site],
    decision: Decision,
    hold: Hold,
    *,
    reporter: Reporter = SILENT,
    batch: int = BATCH,
    run_at: RunAt = run_here,
) -> LayoutReport:
    """Carry out a decision, or go on with one that was cut off.

    Args:
        sites: All log dirs of the broker.
        decision: Of ``logdir.decide.layout.relayout``, from a look at these log dirs.
        hold: Holds every lock of the broker.
        reporter: For progress.
        batch: Replicas under one hold of the locks, at most; fewer where that takes long.
        run_at: Makes the calls that move replicas.

    Returns:
        What was done and what was not.

    Raises:
        LockHeldError: a broker runs; what was done stays done.
        LogDirReplacedError: a log dir is another one by now; what was done stays done.
        LogDirError: a sync before the end failed, or its locks cannot be taken; what was done stays done.
    """
    report = LayoutReport(decision=decision)
    work = _Work(
        sites={site.log_dir: site for site in sites},
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
    return action.items if isinstance(action, TakeToIds | TakeToNames) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Where one decision stands."""

    sites: Mapping[str, Site]
    hold: Hold
    batches: Batches
    reporter: Reporter
    report: LayoutReport
    run_at: RunAt

    def run(self) -> None:
        """Do phase after phase; the first in which something fails is the last."""
        decision = self.report.decision
        is_finalized = any(isinstance(action, Say) and action.state is LayoutState.FINAL for action in decision.actions)
        for phase in decision.phases:
            if is_finalized and any(isinstance(action, Unbar) for action in phase):
                # "finalizing", found on a disk as a killed process left it, is durable everywhere before the start
                # block is lifted, and so before the first "final".
                self._sync_all()
            is_well = True
            for action in phase:
                is_well &= self._try(action)
            if not is_well:
                return
        # What a process that was killed had done last is no action any more; durable it may not be yet.
        self._sync_all()
        self.report.is_finished = not decision.is_blocked

    def _sync_all(self) -> None:
        for site in self.sites.values():
            with self.hold():
                layout.sync(site)

    def _try(self, action: Action) -> bool:
        """Do one action; return whether it went well."""
        try:
            return self._do(action)
        except (LockHeldError, LogDirReplacedError):
            raise  # a broker, or another disk: nothing more may be changed anywhere
        except LogDirError as error:
            self.report.failed[error.path if isinstance(action, Bar | Unbar) else action.log_dir] = error
            return False

    def _do(self, action: Action) -> bool:
        match action:
            case Bar():
                with self.hold():
                    start_block.bar(tuple(self.sites.values()))
            case Unbar():
                with self.hold():
                    start_block.unbar(tuple(self.sites.values()))
            case Say() | TakeToIds() | TakeToNames() | Forget():
                if action.log_dir in self.report.failed:
                    return False
                site = self.sites[action.log_dir]
                with map_os_errors(site):
                    return self._do_here(site, action)
            case never:
                assert_never(never)
        return True

    def _do_here(self, site: Site, action: Say | TakeToIds | TakeToNames | Forget) -> bool:
        match action:
            case Say():
                with self.hold():
                    layout.write_state(site, action.state, self.report.decision.plan_sha256, action.for_broker)
            case TakeToIds():
                items = {item.path: item for item in action.items}
                self._move(site, items, lambda paths: self.run_at(to_ids, site, [items[path] for path in paths]))
            case TakeToNames():
                back = {item.path: item for item in action.items}
                is_well = self._move(
                    site, back, lambda paths: self.run_at(to_names, site, [back[path] for path in paths])
                )
                with self.hold():
                    layout.require_no_prefixes(site)
                return is_well
            case Forget():
                with self.hold():
                    layout.remove_state(site)
            case never:
                assert_never(never)
        return True

    def _move(
        self, site: Site, items: Mapping[str, object], move: Callable[[Sequence[str]], tuple[Outcome, ...]]
    ) -> bool:
        """Move replicas of one log dir in batches; return whether all are where they belong.

        Args:
            site: The log dir.
            items: By path relative to it.
            move: Looks at each again, and moves it; returns one outcome per path.
        """
        first = len(self.report.outcomes)

        def step(paths: Sequence[str]) -> Mapping[str, Outcome]:
            return {outcome.path: outcome for outcome in move(paths)}

        def steps(left: KeysView[str]) -> Iterator[_Step]:
            # A batch grows to a second: a second one might outlast the two of a hold.
            return (partial(step, paths) for paths in islice(self.batches.of(tuple(left)), 1))

        def report(outcomes: Sequence[Outcome]) -> None:
            self.report.outcomes += [(site.log_dir, outcome) for outcome in outcomes]
            self.reporter.advance(len(outcomes))

        batch_loop.run(
            items,
            hold=self.hold,
            decide=lambda left: Turn(steps=partial(steps, left)),
            undecided=lambda path: undone(path, RefusedError.of(nothing_decided(site.path_of(path)))),
            report=report,
        )
        return all(outcome.result is Result.DONE for _, outcome in self.report.outcomes[first:])
