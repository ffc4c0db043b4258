"""Make the work root of every log dir of one broker where it can be, or mend it.

All log dirs are looked at first; if one of them cannot have a work root, or does not answer, none is made. Doing it
again changes nothing but what is missing: after an interruption, or where a heartbeat was lost.

Not here: where one can be, making one (``logdir.disk``).

Spec: design §3.2, §5 "A use case", §6; attacks A5, A6, A7, A19.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.kernel.small_file import read_file
from logdir.disk.record import controller, heartbeat, staging_limit
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import Candidate, InitPlan, require_no_stock_broker
from logdir.disk.root.reserve import RESERVE_BYTES
from logdir.errors import ConfigError, LogDirError, LogDirOfflineError, LogDirSuspectError, Problem
from logdir.formats.own import controller_file, heartbeat_file, staging_limit_file
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.paths import OWNER_LOCK
from logdir.service.log_dirs.config import require_text
from logdir.service.log_dirs.one_broker import require_one_broker
from logdir.service.log_dirs.os_errors import map_os_errors, map_os_errors_or_quarantine
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.service.log_dirs.quarantine import keep_in_mind, quarantine_of, require_none_quarantined
from logdir.service.log_dirs.refill import refill
from logdir.service.log_dirs.request import BrokerRequest, accepted_of
from logdir.service.report.json_form import HIDDEN, KEY
from logdir.service.report.result import ItemState
from logdir.worker.remote import gather
from logdir.worker.state import release_kafka_lock, take_owner_lock
from logdir.worker.work_root import make_root, plan_root, put_back


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


def plan(ports: BrokerPorts, asked: InitRequest) -> InitPlanned:
    """Look at every log dir, side by side, and decide; changes nothing.

    Args:
        ports: Of the broker that is asked about; a log dir that does not answer ends the command.
        asked: What is asked.

    Raises:
        ConfigError: a path is no UTF-8, or no log dir is left.
        SeveralError: one log dir or more cannot have a work root, or does not answer.
    """
    named, without = ports.named, ports.skipped
    require_text(named)
    accepted = accepted_of(asked.broker, named)
    begun = [
        port.begin_opened(plan_root, port.log_dir, asked.kind, unsupported_fs=asked.is_any_fs) for port in ports.ports
    ]
    gather(begun)
    plans: list[InitPlan] = []
    problems: list[Problem] = []
    errors: list[LogDirError] = []
    for log_dir, pending in zip(named.log_dirs, begun, strict=True):
        try:
            with map_os_errors(log_dir):
                one = pending.result()
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


def apply(ports: BrokerPorts, shown: InitPlanned) -> tuple[tuple[WorkRootItem, ...], tuple[Problem, ...]]:
    """Make what was shown, but for log dirs that are said to have failed and do not take it.

    Args:
        ports: As of ``plan``.
        shown: Of ``plan``.

    Returns:
        One for each plan, and what is wrong with disks.

    Raises:
        LockHeldError: a broker runs, where an ``owner.lock`` is to be put back.
        LogDirError: a log dir does not take it, or does not answer, and none was made by then.
    """
    owned: dict[str, OpenLogDir] = {}
    quarantined: dict[str, Problem] = {}
    spent: list[Problem] = []
    lockless: dict[str, OpenLogDir] = {}

    def close_returned() -> None:
        with map_os_errors(shown.plans[0].log_dir):
            found = ports.on_all(lockless | owned, lambda open_dirs: quarantine_of(open_dirs, shown.accepted))
        require_none_quarantined({log_dir: why for log_dir, why in found.items() if log_dir not in shown.without})
        quarantined.update(found)

    for one in shown.plans:
        with _map_os_errors(shown, quarantined, one.log_dir):
            if one.is_whole and not one.lacks:  # somebody may be working there
                owned[one.log_dir] = _own(ports, one.log_dir)
            elif one.lacks == (OWNER_LOCK,):  # nothing is put back on a disk whose sync failed
                lockless[one.log_dir] = _opened(ports, one.log_dir)
    close_returned()
    for one in shown.plans:
        if one.lacks and one.log_dir not in quarantined:
            with _map_os_errors(shown, quarantined, one.log_dir):
                owned[one.log_dir] = _put_back(ports, one)
            close_returned()
    made: dict[str, WorkRootItem] = {}
    try:
        for one in shown.plans:
            if one.log_dir not in quarantined:
                with _map_os_errors(shown, quarantined, one.log_dir):
                    made[one.log_dir] = _make(ports, one, owned)
        refill([open_dir for log_dir, open_dir in owned.items() if log_dir not in quarantined], spent)
    except LogDirError as error:
        if all(one.is_whole for one in made.values()):
            raise
        spent.append(error.problem())  # beside it stands what was made by then
    finally:
        answering = tuple(open_dir for log_dir, open_dir in owned.items() if log_dir not in ports.suspect)
        keep_in_mind(ports.failed_syncs(), answering, quarantined)
    work_roots = tuple(made.get(one.log_dir) or _planned(one, ItemState.UNDONE) for one in shown.plans)
    return work_roots, (*shown.problems, *quarantined.values(), *spent)


@contextmanager
def _map_os_errors(shown: InitPlanned, quarantined: dict[str, Problem], log_dir: str) -> Iterator[None]:
    """As ``map_os_errors_or_quarantine``; one that is said to have failed is closed where it stops answering, too."""
    try:
        with map_os_errors_or_quarantine(log_dir, shown.without, quarantined.__setitem__):
            yield
    except LogDirSuspectError as error:
        if log_dir not in shown.without:
            raise
        quarantined[log_dir] = error.problem()


def _make(ports: BrokerPorts, plan: InitPlan, owned: dict[str, OpenLogDir]) -> WorkRootItem:
    done = ports.port(plan.log_dir).run_opened(make_root, plan, max(0, read_instant().wall_ms))
    if plan.log_dir not in owned:
        owned[plan.log_dir] = _own(ports, plan.log_dir)
    _begin(owned[plan.log_dir])
    return WorkRootItem.of(plan, ItemState.DONE, done.kind, done.path, done.passed)


def _planned(plan: InitPlan, state: ItemState) -> WorkRootItem:
    first = plan.candidates[0]
    return WorkRootItem.of(plan, state, first.kind, first.path, plan.passed)


def _opened(ports: BrokerPorts, log_dir: str) -> OpenLogDir:
    # A start block does not hinder: a work root may have been lost behind one.
    return ports.port(log_dir).begin_root(is_start_block_allowed=True).result().open_dir


def _own(ports: BrokerPorts, log_dir: str) -> OpenLogDir:
    open_dir = _opened(ports, log_dir)
    ports.port(log_dir).run_opened(take_owner_lock)
    return open_dir


def _put_back(ports: BrokerPorts, plan: InitPlan) -> OpenLogDir:
    """Put back what a whole work root lacks, and own it.

    A process of ours may still hold an ``owner.lock`` that was removed. It changes nothing any more once its batch is
    over (``OpenBroker.require_owned``), and Kafka's lock says that it is in none.

    Raises:
        LockHeldError: a broker runs, or another process of ours is in a batch.
        LogDirError: as ``put_back`` and ``take_owner_lock``.
    """
    port = ports.port(plan.log_dir)
    try:
        port.run_opened(put_back, plan)
        return _own(ports, plan.log_dir)
    finally:
        if port.is_idle:
            with suppress(LogDirError, OSError):
                port.run_opened(release_kafka_lock)


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
