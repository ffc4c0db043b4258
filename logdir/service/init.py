"""Make the work root of every log dir of one broker where it can be, or mend it.

All log dirs are looked at first; if one of them cannot have a work root none is made. Doing it again changes nothing
but what is missing: after an interruption, or where a heartbeat was lost.

Not here: where one can be, making one (``logdir.disk``).

Spec: design §3.2, §5 "A use case", §6; attacks A5, A6, A7, A19.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from logdir import clock
from logdir.disk.kernel.file_system import fs_type_at
from logdir.disk.kernel.host import HostDirectory, HostDisk
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.kernel.small_file import read_file
from logdir.disk.locks import OwnerLock, hold_all
from logdir.disk.record import controller, heartbeat, staging_limit
from logdir.disk.root import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import Candidate, InitPlan, plan_init, require_no_stock_broker
from logdir.disk.root.reserve import RESERVE_BYTES
from logdir.disk.root.work_root import open_log_dir, open_root, open_work_root
from logdir.errors import ConfigError, LogDirError, LogDirOfflineError, Problem
from logdir.formats.own import controller_file, heartbeat_file, staging_limit_file
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.observe.classify import OWNER_LOCK
from logdir.observe.mounts import identity_at
from logdir.service.log_dirs.config import require_distinct, require_text
from logdir.service.log_dirs.one_broker import require_one_broker
from logdir.service.log_dirs.os_errors import map_os_errors, map_os_errors_or_quarantine
from logdir.service.log_dirs.quarantine import keep_in_mind, quarantine_of, require_none_quarantined
from logdir.service.log_dirs.refill import refill
from logdir.service.log_dirs.request import BrokerRequest, accepted_of, skipped_of
from logdir.service.report.json_form import HIDDEN, KEY
from logdir.service.report.result import ItemState


@dataclass(frozen=True, slots=True, kw_only=True)
class InitRequest:
    """What is asked."""

    broker: BrokerRequest
    kind: WorkRootKind | None = None
    """Where it is to lie; ``None``: inside a log dir no stock broker reads, else beside, else in-place."""
    is_any_fs: bool = False
    """Also on file systems nothing was proven on."""
    is_without_stock_broker: bool = False
    """No stock broker will ever start on these log dirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitPlanned:
    """What would be made; one plan at least."""

    plans: tuple[InitPlan, ...]
    problems: tuple[Problem, ...]
    """Of log dirs that are said to have failed."""
    without: frozenset[str]
    """These log dirs."""
    accepted: frozenset[str]
    """Those that were away, and that an operator has looked at since."""

    @property
    def is_first(self) -> bool:
        """Whether none of them had one."""
        return not any(plan.is_whole for plan in self.plans)

    def made(self) -> tuple[WorkRootItem, ...]:
        """Return where each would be made first."""
        return tuple(_planned(plan, ItemState.PLANNED) for plan in self.plans)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRootItem:
    """The work root of one log dir, as planned or as it is now."""

    log_dir: str
    state: ItemState
    kind: WorkRootKind
    path: str
    detail: str
    """Why it lies there."""
    layout: str
    """Of the live directories of its log dir."""
    is_whole: bool
    """It was there before."""
    is_mended: bool = field(metadata=HIDDEN)
    """It was there before, and lacks something."""
    reserve_bytes: int = RESERVE_BYTES
    """How much room it keeps for the day the disk is full."""
    passed: tuple[Candidate, ...]
    """Places that did not do."""

    @classmethod
    def of(
        cls, plan: InitPlan, state: ItemState, kind: WorkRootKind, path: str, passed: tuple[Candidate, ...]
    ) -> WorkRootItem:
        """Return the item of a plan, where its work root lies or will."""
        return cls(
            log_dir=plan.log_dir,
            state=state,
            kind=kind,
            path=path,
            detail=next((place.detail for place in plan.candidates if place.kind is kind), ""),
            layout=plan.layout,
            is_whole=plan.is_whole,
            is_mended=plan.is_whole and bool(plan.lacks),
            passed=passed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InitResult:
    """The work root of every log dir."""

    applied: bool
    work_roots: tuple[WorkRootItem, ...] = field(metadata={KEY: "items"})


class SeveralError(Exception):
    """What is wrong with each log dir that cannot have a work root."""

    def __init__(self, errors: Sequence[LogDirError]) -> None:
        """Keep them, in the order of the log dirs."""
        super().__init__(str(errors[0]))
        self.errors = tuple(errors)


def plan(asked: InitRequest) -> InitPlanned:
    """Look at every log dir and decide; changes nothing.

    Raises:
        ConfigError: the broker is not named right, or no log dir is left.
        SeveralError: one log dir or more cannot have a work root.
    """
    named = asked.broker.config()
    require_text(named)
    found = {path: identity for path in named.log_dirs if (identity := identity_at(path)) is not None}
    require_distinct(found, asked.broker.server_properties or "--log-dirs")
    without, accepted = skipped_of(asked.broker, named), accepted_of(asked.broker, named)
    disk = HostDisk()
    plans: list[InitPlan] = []
    problems: list[Problem] = []
    errors: list[LogDirError] = []
    for log_dir in named.log_dirs:
        try:
            with map_os_errors(log_dir):
                one = plan_init(
                    disk,
                    log_dir,
                    requested=asked.kind,
                    fs_type=fs_type_at(log_dir),
                    unsupported_fs=asked.is_any_fs,
                )
            if not asked.is_without_stock_broker:
                require_no_stock_broker(one)
            require_one_broker(named, plans[0].belongs if plans else None, one.belongs, log_dir)
            plans.append(one)
        except LogDirOfflineError as error:
            if log_dir in without:
                problems.append(error.problem())
            else:
                errors.append(error)
        except LogDirError as error:
            errors.append(error)
    if errors:
        raise SeveralError(errors)
    if not plans:
        raise ConfigError(
            (Problem("config-error", "--skip-log-dir", "at least one log dir that answers", "no such log dir"),)
        )
    return InitPlanned(plans=tuple(plans), problems=tuple(problems), without=without, accepted=accepted)


def apply(shown: InitPlanned) -> tuple[tuple[WorkRootItem, ...], tuple[Problem, ...]]:
    """Make what was shown, but for log dirs that are said to have failed and do not take it.

    Args:
        shown: Of ``plan``.

    Returns:
        One for each plan, and what is wrong with disks.

    Raises:
        LockHeldError: a broker runs, where an ``owner.lock`` is to be put back.
        LogDirError: a log dir does not take it, and none was made by then.
    """
    owned: dict[str, OpenLogDir] = {}
    quarantined: dict[str, Problem] = {}
    spent: list[Problem] = []
    lockless: dict[str, OpenLogDir] = {}
    disk = HostDisk()

    def close_returned() -> None:
        with map_os_errors(shown.plans[0].log_dir):
            found = quarantine_of(tuple((lockless | owned).values()), shown.accepted)
        require_none_quarantined({log_dir: why for log_dir, why in found.items() if log_dir not in shown.without})
        quarantined.update(found)

    with ExitStack() as stack:
        for one in shown.plans:
            with map_os_errors_or_quarantine(one.log_dir, shown.without, quarantined.__setitem__):
                if one.is_whole and not one.lacks:  # somebody may be working there
                    owned[one.log_dir] = _own(stack, disk, one.log_dir)
                elif one.lacks == (OWNER_LOCK,):  # nothing is put back on a disk whose sync failed
                    lockless[one.log_dir] = stack.enter_context(open_root(disk, one.log_dir)).open_dir
        close_returned()
        for one in shown.plans:
            if one.lacks and one.log_dir not in quarantined:
                with map_os_errors_or_quarantine(one.log_dir, shown.without, quarantined.__setitem__):
                    owned[one.log_dir] = _put_back(stack, disk, one)
                close_returned()
        made: dict[str, WorkRootItem] = {}
        try:
            for one in shown.plans:
                if one.log_dir not in quarantined:
                    with map_os_errors_or_quarantine(one.log_dir, shown.without, quarantined.__setitem__):
                        made[one.log_dir] = _make(stack, disk, one, owned)
            refill([open_dir for log_dir, open_dir in owned.items() if log_dir not in quarantined], spent)
        except LogDirError as error:
            if all(one.is_whole for one in made.values()):
                raise
            spent.append(error.problem())  # beside it stands what was made by then
        finally:
            keep_in_mind(disk.failed, tuple(owned.values()), quarantined)
    work_roots = tuple(made.get(one.log_dir) or _planned(one, ItemState.UNDONE) for one in shown.plans)
    return work_roots, (*shown.problems, *quarantined.values(), *spent)


def _make(stack: ExitStack, disk: HostDisk, plan: InitPlan, owned: dict[str, OpenLogDir]) -> WorkRootItem:
    done = init.init(disk, plan, made_at_ms=max(0, read_instant().wall_ms))
    if plan.log_dir not in owned:
        owned[plan.log_dir] = _own(stack, disk, plan.log_dir)
    _begin(owned[plan.log_dir])
    return WorkRootItem.of(plan, ItemState.DONE, done.kind, done.path, done.passed)


def _planned(plan: InitPlan, state: ItemState) -> WorkRootItem:
    first = plan.candidates[0]
    return WorkRootItem.of(plan, state, first.kind, first.path, plan.passed)


def _own(stack: ExitStack, disk: HostDisk, log_dir: str) -> OpenLogDir:
    open_dir = stack.enter_context(open_root(disk, log_dir)).open_dir
    if not isinstance(open_dir.work, HostDirectory):
        raise TypeError(f"no directory of this host: {open_dir.work!r}")
    stack.enter_context(OwnerLock.take(open_dir.work))
    return open_dir


def _put_back(stack: ExitStack, disk: HostDisk, plan: InitPlan) -> OpenLogDir:
    """Put back what a whole work root lacks, and own it.

    A process of ours may still hold an ``owner.lock`` that was removed. It changes nothing any more once its batch is
    over (``OpenBroker.require_owned``), and Kafka's lock says that it is in none.

    Raises:
        LockHeldError: a broker runs, or another process of ours is in a batch.
        DiskError: as ``put_back_missing`` and ``hold_all``.
    """
    with ExitStack() as held:
        top = held.enter_context(open_log_dir(disk, plan.log_dir))
        work = held.enter_context(open_work_root(disk, plan.candidates[0].kind, plan.log_dir, top))
        works = {plan.log_dir: work}
        held.enter_context(hold_all(disk, [plan.log_dir], works=works, now_boottime_ms=clock.boottime_ms()))
        with map_os_errors(work.path):
            init.put_back_missing(work, top.own_stat().owner)
        return _own(stack, disk, plan.log_dir)


def _begin(open_dir: OpenLogDir) -> None:
    """Write each file's first content, or fold the heartbeat forward, which comes last."""
    has_counted = read_file(open_dir.work, staging_limit_file.FILE_NAME) is not None
    has_lived = read_file(open_dir.work, heartbeat_file.FILE_NAME) is not None
    # What is lost from a root that has been used stays lost: it holds until an operator confirms.
    if not has_counted and not has_lived and not open_dir.deleting.names():
        if read_file(open_dir.work, controller_file.FILE_NAME) is None:
            controller.begin(open_dir)
        staging_limit.begin(open_dir)
    heartbeat.begin(open_dir, read_instant())
