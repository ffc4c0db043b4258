"""A change of layout over all log dirs of a broker: looking, and doing what ``decide.relayout`` says, phase by phase.

Each batch runs under the broker's locks and lets go of them; between batches the bar keeps brokers out. A disk that
fails harms nobody else: the others finish their phase, the next one is not begun. Whatever is cut off is taken up by
looking again.

The bar is lifted when a change becomes final: what lies there stops a stock broker by itself (design §8).

Not here: taking locks and finding log dirs (the caller's), whether a verb is allowed (``decide.relayout``).

Spec: design §2 laws 4, 6, §3.1, §8; attacks A21, A22, A37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import assert_never

from logdir.decide import relayout as decide
from logdir.decide.layout_action import Action, Bar, Decision, Forget, Say, Seen, TakeToIds, TakeToNames, Unbar
from logdir.disk import bar
from logdir.disk.batches import Batches
from logdir.disk.failure import calling, full_disk, is_full, syncing
from logdir.disk.look_layout import identity, look
from logdir.disk.outcome import Outcome, Result
from logdir.disk.relayout import remove_empty_prefixes, to_ids, to_names
from logdir.disk.site import Site
from logdir.disk.small_file import TEMPORARY, read_file, remove_file, replace_file
from logdir.errors import DiskError, LockHeldError, LogDirError, LogDirReplacedError, RefusedError
from logdir.formats import layout_file
from logdir.formats.layout_file import FILE_NAME, LayoutFile, LayoutState
from logdir.formats.plan_document import PlanDocument

BATCH = 4096
"""Replicas moved under one hold of the locks, at most."""
_LONGEST_MS = 1000
"""Of a hold, before the next one has fewer (law 4: two seconds)."""
Locked = Callable[[], AbstractContextManager[object]]
"""Holds every lock of the broker while it is open."""
Told = Callable[[int], None]
"""Hears after each hold of the locks how many replicas were gone through so far."""


def _nobody(count: int) -> None:
    """Tell nobody."""


@dataclass(slots=True, kw_only=True)
class Report:
    """What became of a verb."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How a decision is carried out."""

    locked: Locked
    batches: Batches
    told: Told = _nobody


def _batches(limit: int) -> Batches:
    return Batches(limit, _LONGEST_MS)


def apply(
    sites: Sequence[Site],
    plan: PlanDocument,
    locked: Locked,
    *,
    confirmed: bool = False,
    batch: int = BATCH,
    told: Told = _nobody,
) -> Report:
    """Bring a plan about, or go on with it.

    Args:
        sites: All log dirs of the broker.
        plan: Its document.
        locked: Holds every lock of the broker.
        confirmed: As ``decide.relayout.apply``.
        batch: Replicas under one hold of the locks, at most; fewer where that takes long.
        told: Hears how far it is.

    Returns:
        What was done and what was not.

    Raises:
        RefusedError: nothing may be done; nothing was.
        LogDirError: a log dir cannot be looked at, or a lock not be taken; what was done stays, do it again.
    """
    way = _Way(locked=locked, batches=_batches(batch), told=told)
    return _run(sites, decide.apply(plan, look_all(sites), confirmed=confirmed), way)


def verify(sites: Sequence[Site], plan: PlanDocument, locked: Locked) -> Report:
    """Look whether all of a plan came about, and say so in every log dir. Otherwise as ``apply``."""
    return _run(sites, decide.verify(plan, look_all(sites)), _Way(locked=locked, batches=_batches(BATCH)))


def finalize(sites: Sequence[Site], for_broker: str, locked: Locked) -> Report:
    """Lift the bar for the broker that reads topic-id directories. Otherwise as ``apply``."""
    return _run(sites, decide.finalize(look_all(sites), for_broker), _Way(locked=locked, batches=_batches(BATCH)))


def rollback(
    sites: Sequence[Site], locked: Locked, *, confirmed: bool = False, batch: int = BATCH, told: Told = _nobody
) -> Report:
    """Take everything back to names and lift the bar, wherever a change of layout stands. Otherwise as ``apply``."""
    way = _Way(locked=locked, batches=_batches(batch), told=told)
    return _run(sites, decide.rollback(look_all(sites), confirmed=confirmed), way)


def look_all(sites: Sequence[Site]) -> tuple[Seen, ...]:
    """Return what lies in every log dir.

    Raises:
        LogDirError: one cannot be looked at.
    """
    seen = []
    for site in sites:
        with _told(site):
            seen.append(look(site))
    return tuple(seen)


@contextmanager
def _told(site: Site) -> Iterator[None]:
    """Say what an error of the kernel means here."""
    try:
        with calling(site.top):
            yield
    except OSError as error:
        if is_full(error):
            raise full_disk(site.log_dir, error) from error
        raise DiskError(
            site.log_dir, expected="a call that succeeds", found=error.strerror or error, fix="see why, then try again"
        ) from error


def _run(sites: Sequence[Site], decision: Decision, way: _Way) -> Report:
    report = Report(decision=decision)
    by_path = {site.log_dir: site for site in sites}
    is_finalized = any(isinstance(action, Say) and action.state is LayoutState.FINAL for action in decision.actions)
    for phase in decision.phases:
        if is_finalized and any(isinstance(action, Unbar) for action in phase):
            # "finalizing", found on a disk as a killed process left it, is durable everywhere before the bar is lifted,
            # and so before the first "final".
            _sync(sites, way)
        is_well = True
        for action in phase:
            is_well &= _do(by_path, action, report, way)
        if not is_well:
            return report
    # What a process that was killed had done last is no action any more; durable it may not be yet.
    _sync(sites, way)
    report.is_finished = not decision.is_blocked
    return report


def _sync(sites: Sequence[Site], way: _Way) -> None:
    for site in sites:
        with way.locked(), syncing(site.top):
            site.top.sync()


def _do(sites: Mapping[str, Site], action: Action, report: Report, way: _Way) -> bool:
    """Do one action; return whether it went well."""
    try:
        match action:
            case Bar():
                with way.locked():
                    bar.bar(tuple(sites.values()))
            case Unbar():
                with way.locked():
                    bar.unbar(tuple(sites.values()))
            case Say() | TakeToIds() | TakeToNames() | Forget():
                if action.log_dir in report.failed:
                    return False
                site = sites[action.log_dir]
                with _told(site):
                    return _do_here(site, action, report, way)
            case never:
                assert_never(never)
    except (LockHeldError, LogDirReplacedError):
        raise  # a broker, or another disk: nothing more may be changed anywhere
    except LogDirError as error:
        report.failed[error.path if isinstance(action, Bar | Unbar) else action.log_dir] = error
        return False
    return True


def _do_here(site: Site, action: Say | TakeToIds | TakeToNames | Forget, report: Report, way: _Way) -> bool:
    match action:
        case Say():
            with way.locked():
                _say(site, action, report.decision.plan_sha256)
        case TakeToIds():
            for few in way.batches.of(action.items):
                with way.locked():
                    _note(report, site, to_ids(site, few))
                way.told(len(report.outcomes))
        case TakeToNames():
            is_well = True
            for few_back in way.batches.of(action.items):
                with way.locked():
                    is_well &= _note(report, site, to_names(site, few_back))
                way.told(len(report.outcomes))
            with way.locked():
                left = remove_empty_prefixes(site)
            if left:
                raise RefusedError(
                    f"{site.log_dir}/{left[0]}",
                    expected="an empty prefix directory",
                    found="something in it",
                    fix="look at it and move it out of the log dir; the bar stays until then",
                )
            return is_well
        case Forget():
            with way.locked():
                for name in (FILE_NAME + TEMPORARY, FILE_NAME):
                    remove_file(site.top, name)
        case never:
            assert_never(never)
    return True


def _note(report: Report, site: Site, outcomes: Sequence[Outcome]) -> bool:
    report.outcomes += [(site.log_dir, outcome) for outcome in outcomes]
    return all(outcome.result is Result.DONE for outcome in outcomes)


def _say(site: Site, action: Say, plan_sha256: str) -> None:
    before = read_file(site.top, FILE_NAME)
    cluster_id, node_id = identity(site)
    data = layout_file.render(LayoutFile(action.state, plan_sha256, cluster_id, node_id, action.for_broker))
    if action.state is LayoutState.APPLIED:
        # Also what a process that was killed had moved is durable before it is said to be. That the sync of the log
        # dir below carries these renames too is measured (reliability §4.1), not promised.
        with syncing(site.top):
            site.top.sync_disk()
    replace_file(site.top, FILE_NAME, data, before=before, owner=site.owner.for_file(), work=site.work, keep=False)
