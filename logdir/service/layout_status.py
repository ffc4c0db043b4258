"""Look which layout each log dir of a broker is in, how far a change of it is, and whether a broker can start.

Needs no work root, no lock and no plan, and goes on where one log dir is in trouble: the caller may not know what is
wrong. Reads only.

Spec: design §3.1, §6, §8; attacks A21, A37.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum

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

_NOT_READ = frozenset((LayoutState.ROLLING_BACK, LayoutState.FINALIZING, LayoutState.FINAL))
"""What only a rollback ends for a released Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirLayout:
    """One log dir."""

    log_dir: str
    seen: LayoutView | None = None
    """``None``: it cannot be looked at."""
    start_block: StartBlockState | None = None
    problem: Problem | None = None

    @property
    def layout(self) -> str | None:
        """Which layout its replicas are in."""
        if self.seen is None:
            return None
        under_ids = {replica.is_under_id for replica in self.seen.replicas}
        if len(under_ids) == 2:
            return "mixed"
        return "topic-id" if True in under_ids else "topic-name" if under_ids else "empty"

    @property
    def is_inside(self) -> bool:
        """Whether a work root, or a part of one, lies inside the log dir: a stock broker stops over it."""
        return self.seen is not None and bool(self.seen.inside)

    @property
    def state(self) -> LayoutState | None:
        """What ``layout.json`` says."""
        return None if self.seen is None or self.seen.file is None else self.seen.file.state

    @property
    def plan_sha256(self) -> str | None:
        """Of the plan ``layout.json`` is bound to."""
        return None if self.seen is None or self.seen.file is None else self.seen.file.plan_sha256

    @property
    def for_broker(self) -> str | None:
        """The broker that reads topic-id directories, as ``layout.json`` says."""
        return None if self.seen is None or self.seen.file is None else self.seen.file.for_broker

    @property
    def counts(self) -> tuple[int, int, int] | tuple[None, None, None]:
        """How many replicas lie under their name, how many under their topic id, how many of both may not be touched.

        Three times ``None`` where the log dir cannot be looked at.
        """
        if self.seen is None:
            return None, None, None
        replicas = self.seen.replicas
        under_ids = sum(replica.is_under_id for replica in replicas)
        return len(replicas) - under_ids, under_ids, sum(bool(replica.trouble) for replica in replicas)


class StatusNext(Enum):
    """What follows a look at the layout."""

    INVENTORY = "inventory"
    """What a plan is made of; and what says why a log dir cannot be looked at."""
    UNINSTALL = "uninstall"
    """A rollback is refused over a work root inside a log dir; it removes that, and lifts the start block after it."""
    ROLLBACK = "rollback"
    """Where the plan lies is not known here; the way back needs none."""


class BrokerStart(Enum):
    """Whether a broker can start on the log dirs."""

    SET = "blocked"
    """A start block keeps every broker out."""
    UNKNOWN = "unknown"
    """Not every log dir can be looked at."""
    UNDER_IDS = "under ids"
    """No start block; a stock broker stops over replicas under topic ids."""
    INSIDE = "inside"
    """No start block; a stock broker stops over a work root inside a log dir."""
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStatus:
    """All log dirs of a broker."""

    log_dirs: tuple[LogDirLayout, ...]
    """In the order given."""

    @property
    def problems(self) -> list[Problem]:
        """What is wrong."""
        found = self.log_dirs
        known = [one for one in found if one.problem is None]
        problems = [one.problem for one in found if one.problem is not None] + _bar_problems(known)
        for one in known:
            if one.seen is not None and one.seen.file is None and one.seen.is_under_ids:
                code = Why.LAYOUT_FILE_MISSING.value
                expected = "the file, since replicas of this log dir lie under topic ids"
                fix = f"if the replicas are this broker's: logdirctl layout rollback, with --even-if-found {code}"
                problems.append(Problem(code, f"{one.log_dir}/{LAYOUT}", expected, "no such file", fix))
        plans = {one.plan_sha256 for one in known if one.plan_sha256 is not None}
        if len(plans) > 1:
            where = ", ".join(one.log_dir for one in known if one.state is not None)
            fix = "apply the later one again"
            problems.append(Problem(Why.LAYOUT_PLAN_DIFFERS.value, where, "one plan", " and ".join(sorted(plans)), fix))
        return problems

    @property
    def goes_on_with(self) -> str | None:
        """The verb that goes on with a plan, ``None`` where no verb does."""
        states = {one.state for one in self.log_dirs}
        if states & {None, *_NOT_READ} or states == {LayoutState.VERIFIED} or not states:
            return None
        return "verify" if states <= {LayoutState.APPLIED, LayoutState.VERIFIED} else "apply"

    @property
    def next(self) -> StatusNext:
        """What follows."""
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
    """Look at the log dirs of a broker; what cannot be read is a problem in what is returned.

    Raises:
        ConfigError: the broker is not named right.
    """
    with connected(request) as ports:
        found = ports.each(lambda port: port.begin(look_at, port.log_dir))
        return LayoutStatus(
            log_dirs=tuple(
                LogDirLayout(log_dir=port.log_dir, problem=one.problem()) if isinstance(one, LogDirError) else one
                for port, one in zip(ports.ports, found, strict=True)
            )
        )


def look_at(log_dir: str) -> LogDirLayout:
    """Look at one log dir."""
    with ExitStack() as stack:
        try:
            with map_os_errors(log_dir):
                one = OpenTop(log_dir, stack.enter_context(open_log_dir(HostDisk(), log_dir)))
                return LogDirLayout(log_dir=log_dir, seen=look(one), start_block=start_block.state([one]))
        except LogDirError as error:
            return LogDirLayout(log_dir=log_dir, problem=error.problem())


def _bar_problems(known: Sequence[LogDirLayout]) -> list[Problem]:
    """Return what is wrong with the start block of these log dirs, and with what is to stop no broker."""
    blocked = [one.log_dir for one in known if one.start_block is StartBlockState.SET]
    if blocked:
        if len(blocked) == len(known):
            return []
        fix = "go on with what was cut off, or logdirctl layout rollback"
        return [
            Problem(
                "start-block-partial",
                ", ".join(blocked),
                "a start block in every log dir, or in none",
                "one in these",
                fix,
            )
        ]
    problems = []
    # Of one log dir alone, half a start block is a start-block.json beside a meta.properties that is true.
    if begun := [one.log_dir for one in known if one.start_block is StartBlockState.PARTIAL]:
        expected = "a start block in every log dir, or no start-block.json"
        found = "start-block.json in these, and no meta.properties that is blocked: they keep no broker out"
        fix = "go on with what was cut off, or logdirctl layout rollback"
        problems.append(Problem("start-block-begun", ", ".join(begun), expected, found, fix))
    for one in known:
        if one.seen is not None and one.seen.inside and one.state not in _NOT_READ:
            expected = "no part of a work root in a log dir on which a stock broker is to start"
            fix = "logdirctl uninstall takes it away"
            path = f"{one.log_dir}/{one.seen.inside[0]}"
            problems.append(Problem(Why.WORK_ROOT_INSIDE.value, path, expected, "a part of a work root", fix))
    return problems


def _are_names_back(found: Sequence[LogDirLayout]) -> bool:
    """Return whether a rollback is at its end, but for what keeps the start block."""
    is_by_name = not any(one.seen is not None and one.seen.is_under_ids for one in found)
    return is_by_name and any(one.state is LayoutState.ROLLING_BACK for one in found)


def _is_not_begun(found: Sequence[LogDirLayout]) -> bool:
    """Return whether nothing of a change of layout is there."""
    return all(one.state is None and one.seen is not None and not one.seen.is_under_ids for one in found)
