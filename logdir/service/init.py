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
from logdir.disk import brake, controller, heartbeat, work_root_init
from logdir.disk.file_system import fs_type_at
from logdir.disk.io import HostDirectory, HostDisk
from logdir.disk.kernel_clock import read_instant
from logdir.disk.locks import OwnerLock, hold_all
from logdir.disk.reserve import RESERVE_BYTES
from logdir.disk.site import Site
from logdir.disk.small_file import read_file
from logdir.disk.work_root import open_log_dir, open_root, open_work_root
from logdir.disk.work_root_plan import Candidate, InitPlan, plan_init, require_no_stock_broker
from logdir.errors import ConfigError, LogDirError, LogDirOfflineError, Problem
from logdir.formats import brake_file, controller_file, heartbeat_file
from logdir.formats.work_root_file import WorkRootKind
from logdir.observe.classify import OWNER_LOCK
from logdir.observe.mounts import identity_at
from logdir.service.broker_request import BrokerRequest, accepted_of, skipped_of
from logdir.service.config import require_distinct, require_text
from logdir.service.json_form import HIDDEN, KEY
from logdir.service.one_broker import require_one_broker
from logdir.service.os_errors import told, told_or_closed
from logdir.service.quarantine import closed_of, keep_in_mind, require_none_closed
from logdir.service.refill import refill
from logdir.service.result import ItemState


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
            with told(log_dir):
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
    owned: dict[str, Site] = {}
    closed: dict[str, Problem] = {}
    spent: list[Problem] = []
    lockless: dict[str, Site] = {}
    disk = HostDisk()

    def close_returned() -> None:
        with told(shown.plans[0].log_dir):
            found = closed_of(tuple((lockless | owned).values()), shown.accepted)
        require_none_closed({log_dir: why for log_dir, why in found.items() if log_dir not in shown.without})
        closed.update(found)

    with ExitStack() as stack:
        for one in shown.plans:
            with told_or_closed(one.log_dir, shown.without, closed.__setitem__):
                if one.is_whole and not one.lacks:  # somebody may be working there
                    owned[one.log_dir] = _own(stack, disk, one.log_dir)
                elif one.lacks == (OWNER_LOCK,):  # nothing is put back on a disk whose sync failed
                    lockless[one.log_dir] = stack.enter_context(open_root(disk, one.log_dir)).site
        close_returned()
        for one in shown.plans:
            if one.lacks and one.log_dir not in closed:
                with told_or_closed(one.log_dir, shown.without, closed.__setitem__):
                    owned[one.log_dir] = _put_back(stack, disk, one)
                close_returned()
        made: dict[str, WorkRootItem] = {}
        try:
            for one in shown.plans:
                if one.log_dir not in closed:
                    with told_or_closed(one.log_dir, shown.without, closed.__setitem__):
                        made[one.log_dir] = _make(stack, disk, one, owned)
            refill([site for log_dir, site in owned.items() if log_dir not in closed], spent)
        except LogDirError as error:
            if all(one.is_whole for one in made.values()):
                raise
            spent.append(error.problem())  # beside it stands what was made by then
        finally:
            keep_in_mind(disk.failed, tuple(owned.values()), closed)
    work_roots = tuple(made.get(one.log_dir) or _planned(one, ItemState.UNDONE) for one in shown.plans)
    return work_roots, (*shown.problems, *closed.values(), *spent)


def _make(stack: ExitStack, disk: HostDisk, plan: InitPlan, owned: dict[str, Site]) -> WorkRootItem:
    done = work_root_init.init(disk, plan, made_at_ms=max(0, read_instant().wall_ms))
    if plan.log_dir not in owned:
        owned[plan.log_dir] = _own(stack, disk, plan.log_dir)
    _begin(owned[plan.log_dir])
    return WorkRootItem.of(plan, ItemState.DONE, done.kind, done.path, done.passed)


def _planned(plan: InitPlan, state: ItemState) -> WorkRootItem:
    first = plan.candidates[0]
    return WorkRootItem.of(plan, state, first.kind, first.path, plan.passed)


def _own(stack: ExitStack, disk: HostDisk, log_dir: str) -> Site:
    site = stack.enter_context(open_root(disk, log_dir)).site
    if not isinstance(site.work, HostDirectory):
        raise TypeError(f"no directory of this host: {site.work!r}")
    stack.enter_context(OwnerLock.take(site.work))
    return site


def _put_back(stack: ExitStack, disk: HostDisk, plan: InitPlan) -> Site:
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
        with told(work.path):
            work_root_init.put_back_missing(work, top.own_stat().owner)
        return _own(stack, disk, plan.log_dir)


def _begin(site: Site) -> None:
    """Write what is first of each file, or fold the heartbeat forward; that comes last, and the brake before it."""
    has_counted = read_file(site.work, brake_file.FILE_NAME) is not None
    has_lived = read_file(site.work, heartbeat_file.FILE_NAME) is not None
    # What is lost from a root that has been used stays lost: it holds until an operator confirms.
    if not has_counted and not has_lived and not site.deleting.names():
        if read_file(site.work, controller_file.FILE_NAME) is None:
            controller.begin(site)
        brake.begin(site)
    heartbeat.begin(site, read_instant())
