"""Layout status: the layout of each log dir of a broker, the progress of a layout change, and whether a broker can
start.

Needs no work root, no lock and no plan. A problem of one log dir does not stop the status of the others, because the
caller may not know what is wrong. Only reads.

Spec: design §3.1, §6, §8; attacks A21, A37.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from logdir.decide.layout.action import LayoutView
from logdir.disk.kernel.host import HostDisk
from logdir.disk.record import start_block
from logdir.disk.record.start_block import StartBlockState
from logdir.disk.replica.layout_view import look
from logdir.disk.root.open_log_dir import OpenTop
from logdir.disk.root.work_root import open_log_dir
from logdir.errors import LogDirError, Problem
from logdir.formats.own.layout_file import LayoutState
from logdir.paths import LAYOUT
from logdir.refusal_slug import Why
from logdir.service.log_dirs.os_errors import map_os_errors
from logdir.service.log_dirs.ports import connected
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.table import Column
from logdir.worker_call import worker_call

_NOT_READ = frozenset((LayoutState.ROLLING_BACK, LayoutState.FINALIZING, LayoutState.FINAL))
"""Layout states that, for a released Kafka, only a rollback ends."""
_NO_START = "no broker starts until logdirctl layout rollback has finished"
_GOES_ON = "the same command again goes on with the change"
_WAYS_ON = f"{_GOES_ON}, logdirctl layout rollback takes everything back"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirLayout:
    """The layout of one log dir."""

    log_dir: str
    seen: LayoutView | None = None
    """``None``: the log dir cannot be read."""
    start_block: StartBlockState | None = None
    """``None``, as ``seen``."""
    problem: Problem | None = None

    @property
    def layout(self) -> str | None:
        """``topic-name``, ``topic-id``, ``mixed``, or ``empty`` without replicas; ``None``: it cannot be read."""
        if self.seen is None:
            return None
        under_ids = {replica.is_under_id for replica in self.seen.replicas}
        if len(under_ids) == 2:
            return "mixed"
        return "topic-id" if True in under_ids else "topic-name" if under_ids else "empty"

    @property
    def is_inside(self) -> bool:
        """Whether a work root, or a partial capture, lies inside the log dir, so that a stock broker does not start."""
        return self.seen is not None and bool(self.seen.inside)

    @property
    def state(self) -> LayoutState | None:
        """The state in ``layout.json``; ``None``: there is no such file, or the log dir cannot be read."""
        return None if self.seen is None or self.seen.file is None else self.seen.file.state

    @property
    def plan_sha256(self) -> str | None:
        """SHA-256 of the plan, from ``layout.json``; ``None``, as ``state``."""
        return None if self.seen is None or self.seen.file is None else self.seen.file.plan_sha256

    @property
    def for_broker(self) -> str | None:
        """The broker that reads topic-id directories, from ``layout.json``; ``None``: *finalize* has named none."""
        return None if self.seen is None or self.seen.file is None else self.seen.file.for_broker

    @property
    def counts(self) -> tuple[int, int, int] | tuple[None, None, None]:
        """Number of replicas under topic names, under topic ids, and of both those that may not be changed.

        All three are ``None`` if the log dir cannot be read.
        """
        if self.seen is None:
            return None, None, None
        replicas = self.seen.replicas
        under_ids = sum(replica.is_under_id for replica in replicas)
        return len(replicas) - under_ids, under_ids, sum(bool(replica.trouble) for replica in replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStatusItem:
    """One log dir in a result; all but its path is ``None`` where it cannot be looked at."""

    log_dir: str
    layout: str | None
    state: LayoutState | None
    """From ``layout.json``, as ``plan_sha256``; both are ``None`` also where there is no such file."""
    plan_sha256: str | None
    for_broker: str | None
    """From ``layout.json``; ``None`` also until *finalize* names a broker."""
    cluster_id: str | None
    """The original one, as ``node_id``, also behind a start block."""
    node_id: int | None
    start_block: StartBlockState | None
    by_name: int | None
    """Number of live replicas under topic names."""
    by_id: int | None
    """Number of live replicas under topic ids."""
    held: int | None
    """Number of live replicas, in either layout, that may not be changed."""

    @classmethod
    def of(cls, one: LogDirLayout) -> LayoutStatusItem:
        """Return the item of a log dir."""
        by_name, by_id, held = one.counts
        return cls(
            log_dir=one.log_dir,
            layout=one.layout,
            state=one.state,
            plan_sha256=one.plan_sha256,
            for_broker=one.for_broker,
            cluster_id=None if one.seen is None else one.seen.cluster_id,
            node_id=None if one.seen is None else one.seen.node_id,
            start_block=one.start_block,
            by_name=by_name,
            by_id=by_id,
            held=held,
        )


def _change(one: LayoutStatusItem) -> str:
    state = "none" if one.state is None else one.state.value
    return state if one.for_broker is None else f"{state} for {one.for_broker}"


COLUMNS: Final[tuple[Column[LayoutStatusItem], ...]] = (
    Column("log dir", "log_dir"),
    Column("layout", lambda one: one.layout or "?"),
    Column("change", lambda one: "?" if one.layout is None else _change(one)),
    Column("start block", lambda one: one.start_block or "?"),
    Column("by name", lambda one: "?" if one.by_name is None else one.by_name, is_number=True),
    Column("by id", lambda one: "?" if one.by_id is None else one.by_id, is_number=True),
    Column("held", lambda one: "?" if one.held is None else one.held, is_number=True),
)
"""The table of log dirs, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStatusResult:
    """The layout of every log dir of a broker."""

    items: tuple[LayoutStatusItem, ...]
    """In the order of the broker's configuration."""


class StatusNext(Enum):
    """The recommended next command."""

    INVENTORY = "inventory"
    """An inventory: the input of a plan, and the way to see why a log dir cannot be read."""
    UNINSTALL = "uninstall"
    """Uninstall: it removes a work root inside a log dir, which blocks a rollback, and then lifts the start block."""
    ROLLBACK = "rollback"
    """Rollback: it needs no plan document, whose path is not known here."""


class BrokerStart(Enum):
    """Whether a broker can start on the log dirs."""

    SET = "blocked"
    """A start block keeps every broker from starting."""
    UNKNOWN = "unknown"
    """Not every log dir can be read."""
    UNDER_IDS = "under ids"
    """No start block, but replicas under topic ids, which stop a stock broker."""
    INSIDE = "inside"
    """No start block, but a work root inside a log dir, which stops a stock broker."""
    FREE = "free"
    """Nothing on the log dirs keeps a broker from starting."""

    @property
    def sentence(self) -> str:
        """For people, after a layout change was interrupted: whether a broker can start, and which command goes on."""
        match self:
            case BrokerStart.SET:
                return f"the log dirs are blocked, and {_NO_START}; {_WAYS_ON}"
            case BrokerStart.UNKNOWN:
                return f"not every log dir can be looked at: take it that {_NO_START}; {_WAYS_ON}"
            case BrokerStart.UNDER_IDS:
                return f"no log dir is blocked, and replicas lie under topic ids: {_NO_START}; {_WAYS_ON}"
            case BrokerStart.INSIDE:
                stops = "a work root lies inside a log dir: no stock broker starts until logdirctl uninstall"
                return f"no log dir is blocked, and {stops} has taken it away; {_GOES_ON}"
            case BrokerStart.FREE:
                can = "every replica lies under its name, and a broker can start"
                return f"no log dir is blocked, {can}; {_GOES_ON}"
            case never:
                assert_never(never)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStatus:
    """The layout status of a broker."""

    log_dirs: tuple[LogDirLayout, ...]
    """In the order of the broker's configuration."""

    @property
    def result(self) -> LayoutStatusResult:
        """The result: one item per log dir."""
        return LayoutStatusResult(items=tuple(map(LayoutStatusItem.of, self.log_dirs)))

    @property
    def problems(self) -> list[Problem]:
        """The problems of all log dirs."""
        found = self.log_dirs
        known = [one for one in found if one.problem is None]
        problems = [one.problem for one in found if one.problem is not None] + _bar_problems(known)
        for one in known:
            if one.seen is not None and one.seen.file is None and one.seen.is_under_ids:
                code = Why.LAYOUT_FILE_MISSING.value
                expected = "layout.json, because this log dir has topic-id directories"
                fix = f"if the replicas are this broker's: logdirctl layout rollback, with --even-if-found {code}"
                problems.append(Problem(code, f"{one.log_dir}/{LAYOUT}", expected, "no such file", fix))
        plans = {one.plan_sha256 for one in known if one.plan_sha256 is not None}
        if len(plans) > 1:
            where = ", ".join(one.log_dir for one in known if one.state is not None)
            fix = "logdirctl layout apply again with the plan that was applied last; its footer has that sha256"
            problems.append(Problem(Why.LAYOUT_PLAN_DIFFERS.value, where, "one plan", " and ".join(sorted(plans)), fix))
        return problems

    @property
    def goes_on_with(self) -> str | None:
        """The verb that continues the change with its plan, ``apply`` or ``verify``; ``None``: neither does."""
        states = {one.state for one in self.log_dirs}
        if states & {None, *_NOT_READ} or states == {LayoutState.VERIFIED} or not states:
            return None
        return "verify" if states <= {LayoutState.APPLIED, LayoutState.VERIFIED} else "apply"

    @property
    def next(self) -> StatusNext:
        """The recommended next command."""
        found = self.log_dirs
        if any(one.problem is not None for one in found):
            return StatusNext.INVENTORY
        if any(one.is_inside for one in found) and (_are_names_back(found) or _is_not_begun(found)):
            return StatusNext.UNINSTALL
        states = {one.state for one in found}
        is_lost = any(one.seen is not None and one.seen.is_under_ids and one.state is None for one in found)
        if is_lost or states != {None} or any(one.start_block is not StartBlockState.NONE for one in found):
            return StatusNext.ROLLBACK
        return StatusNext.INVENTORY

    @property
    def start(self) -> BrokerStart:
        """Whether a broker can start."""
        found = self.log_dirs
        # A start-block.json alone keeps no broker out: the node id in meta.properties does.
        if any(one.start_block is StartBlockState.SET for one in found):
            return BrokerStart.SET
        if not found or any(one.start_block is None for one in found):
            return BrokerStart.UNKNOWN
        if any(one.layout in ("mixed", "topic-id") for one in found):
            return BrokerStart.UNDER_IDS
        return BrokerStart.INSIDE if any(one.is_inside for one in found) else BrokerStart.FREE


def status(request: BrokerRequest) -> LayoutStatus:
    """Return the layout status of a broker; a log dir that cannot be read becomes a problem of the result.

    Raises:
        ConfigError: the broker is invalid.
    """
    with connected(request) as ports:
        found = ports.each(lambda port: port.begin(look_at, port.log_dir))
        return LayoutStatus(
            log_dirs=tuple(
                LogDirLayout(log_dir=port.log_dir, problem=one.problem()) if isinstance(one, LogDirError) else one
                for port, one in zip(ports.ports, found, strict=True)
            )
        )


def start_sentence(request: BrokerRequest) -> str:
    """Return a sentence on whether a broker can start on the log dirs as they are now, readable or not."""
    try:
        return status(request).start.sentence
    except LogDirError:
        return BrokerStart.UNKNOWN.sentence


@worker_call
def look_at(log_dir: str) -> LogDirLayout:
    """Return the layout of one log dir."""
    with ExitStack() as stack:
        try:
            with map_os_errors(log_dir):
                one = OpenTop(log_dir, stack.enter_context(open_log_dir(HostDisk(), log_dir)))
                return LogDirLayout(log_dir=log_dir, seen=look(one), start_block=start_block.state([one]))
        except LogDirError as error:
            return LogDirLayout(log_dir=log_dir, problem=error.problem())


def _bar_problems(known: Sequence[LogDirLayout]) -> list[Problem]:
    """Return the problems of a partial or lost start block, and of work roots that stop a stock broker."""
    blocked = [one.log_dir for one in known if one.start_block is StartBlockState.SET]
    if blocked:
        if len(blocked) == len(known):
            return []
        fix = "go on with logdirctl layout apply and the same plan, or logdirctl layout rollback"
        return [
            Problem(
                "start-block-partial",
                ", ".join(blocked),
                "a start block in every log dir, or in none",
                "a start block in these log dirs only",
                fix,
            )
        ]
    problems = []
    # Within one log dir, a partial start block is a start-block.json beside an unblocked meta.properties.
    if begun := [one.log_dir for one in known if one.start_block is StartBlockState.PARTIAL]:
        expected = "a start block in every log dir, or no start-block.json"
        found = "start-block.json in these log dirs, and no blocked meta.properties: they keep no broker out"
        fix = "go on with logdirctl layout apply and the same plan, or logdirctl layout rollback"
        problems.append(Problem("start-block-begun", ", ".join(begun), expected, found, fix))
    for one in known:
        if one.seen is not None and one.seen.inside and one.state not in _NOT_READ:
            expected = "no part of a work root in a log dir on which a stock broker is to start"
            fix = "logdirctl uninstall removes it"
            path = f"{one.log_dir}/{one.seen.inside[0]}"
            problems.append(Problem(Why.WORK_ROOT_INSIDE.value, path, expected, "a part of a work root", fix))
    return problems


def _are_names_back(found: Sequence[LogDirLayout]) -> bool:
    """Return whether a rollback is complete, except for the cause that keeps the start block."""
    is_by_name = not any(one.seen is not None and one.seen.is_under_ids for one in found)
    return is_by_name and any(one.state is LayoutState.ROLLING_BACK for one in found)


def _is_not_begun(found: Sequence[LogDirLayout]) -> bool:
    """Return whether there is no trace of a layout change."""
    return all(one.state is None and one.seen is not None and not one.seen.is_under_ids for one in found)
