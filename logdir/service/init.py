"""Create or repair the work root of every log dir of one broker.

All log dirs are checked first; if one cannot have a work root or does not answer, no work root is created. A repetition
only creates what is missing, for example after an interruption or a lost heartbeat.

Not here: the choice of a place, and creating one work root (``logdir.disk.root``).

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
    """A request to create work roots."""

    broker: BrokerRequest
    kind: WorkRootKind | None = None
    """The kind of work root; ``None``: inside a log dir that no stock broker reads, else beside, else in-place."""
    is_any_fs: bool = False
    """Whether file systems without proven guarantees are allowed."""
    is_without_stock_broker: bool = False
    """Whether the operator states that no stock broker will ever start on these log dirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitPlanned:
    """The plan of ``init``: one per log dir that answers, at least one."""

    plans: tuple[InitPlan, ...]
    problems: tuple[Problem, ...]
    """Problems of log dirs that ``--skip-log-dir`` names."""
    without: frozenset[str]
    """The log dirs that ``--skip-log-dir`` names."""
    accepted: frozenset[str]
    """Stale disks that an operator has accepted."""

    @property
    def is_first(self) -> bool:
        """Whether no log dir had a work root."""
        return not any(plan.is_whole for plan in self.plans)

    def made(self) -> tuple[WorkRootItem, ...]:
        """Return the planned work root of each log dir, at the place that is tried first."""
        return tuple(_planned(plan, ItemState.PLANNED) for plan in self.plans)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRootItem:
    """The work root of one log dir, as planned or as it is now."""

    log_dir: str
    state: ItemState
    kind: WorkRootKind
    path: str
    detail: str
    """Why it lies at this place."""
    layout: str
    """The layout of its log dir's live directories."""
    is_whole: bool
    """Whether it existed before, perhaps with missing parts."""
    is_mended: bool = field(metadata=HIDDEN)
    """Whether it existed before with missing parts."""
    reserve_bytes: int = RESERVE_BYTES
    """Size of its reserve for a full disk."""
    passed: tuple[Candidate, ...]
    """Places that could not be used."""

    @classmethod
    def of(
        cls, plan: InitPlan, state: ItemState, kind: WorkRootKind, path: str, passed: tuple[Candidate, ...]
    ) -> WorkRootItem:
        """Return the item of a plan, with the current or planned place of its work root."""
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

    @property
    def whole_detail(self) -> str:
        """For people: why it lies at this place, and why at no other."""
        return self.detail + "".join(f"; not {place.kind.words}: {place.detail}" for place in self.passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitResult:
    """The result of ``init``: the work root of every log dir, as planned or as it is now."""

    applied: bool
    work_roots: tuple[WorkRootItem, ...] = field(metadata={KEY: "items"})


class SeveralError(Exception):
    """The errors of all log dirs that cannot have a work root."""

    def __init__(self, errors: Sequence[LogDirError]) -> None:
        """Store the errors, in the order of the log dirs."""
        super().__init__(str(errors[0]))
        self.errors = tuple(errors)


def plan(ports: BrokerPorts, asked: InitRequest) -> InitPlanned:
    """Check every log dir in parallel and return the plan; changes nothing.

    Args:
        ports: Ports of the broker; a log dir that does not answer ends the command.
        asked: The request.

    Raises:
        ConfigError: a path is not UTF-8, or no log dir is left.
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
    """Create the planned work roots; log dirs that ``--skip-log-dir`` names may fail.

    Args:
        ports: As for ``plan``.
        shown: The plan, from ``plan``.

    Returns:
        One item per plan, and the problems of disks.

    Raises:
        LockHeldError: a broker runs, and an ``owner.lock`` must be recreated.
        LogDirError: a log dir fails or does not answer, before any work root was created.
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
            if one.is_whole and not one.lacks:  # Another process may be working there.
                owned[one.log_dir] = _own(ports, one.log_dir)
            elif one.lacks == (OWNER_LOCK,):  # Nothing is recreated on a disk whose sync failed.
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
        spent.append(error.problem())  # The result also lists the work roots created by then.
    finally:
        answering = tuple(open_dir for log_dir, open_dir in owned.items() if log_dir not in ports.suspect)
        keep_in_mind(ports.failed_syncs(), answering, quarantined)
    work_roots = tuple(made.get(one.log_dir) or _planned(one, ItemState.UNDONE) for one in shown.plans)
    return work_roots, (*shown.problems, *quarantined.values(), *spent)


@contextmanager
def _map_os_errors(shown: InitPlanned, quarantined: dict[str, Problem], log_dir: str) -> Iterator[None]:
    """Translate errors as ``map_os_errors_or_quarantine``; also quarantine a skipped log dir that stops answering."""
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
    # A start block is allowed: a work root may have been lost behind one.
    return ports.port(log_dir).begin_root(is_start_block_allowed=True).result().open_dir


def _own(ports: BrokerPorts, log_dir: str) -> OpenLogDir:
    open_dir = _opened(ports, log_dir)
    ports.port(log_dir).run_opened(take_owner_lock)
    return open_dir


def _put_back(ports: BrokerPorts, plan: InitPlan) -> OpenLogDir:
    """Recreate the missing files of a whole work root, and take its owner lock.

    Another logdird process may still hold an ``owner.lock`` that was removed. That process changes nothing after its
    current batch (``OpenBroker.require_owned``), and taking Kafka's ``.lock`` shows that it is in no batch.

    Raises:
        LockHeldError: a broker runs, or another logdird process is in a batch.
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
    """Write the first records of a new work root, ``heartbeat.json`` last; of a used one only advance that file."""
    has_counted = read_file(open_dir.work, staging_limit_file.FILE_NAME) is not None
    has_lived = read_file(open_dir.work, heartbeat_file.FILE_NAME) is not None
    # A record lost from a used work root is not recreated: staged data is held until an operator confirms.
    if not has_counted and not has_lived and not open_dir.deleting.names():
        if read_file(open_dir.work, controller_file.FILE_NAME) is None:
            controller.begin(open_dir)
        staging_limit.begin(open_dir)
    heartbeat.begin(open_dir, read_instant())
