"""``logdirctl init``: the work root of every log dir of one broker, made where it can be, or mended.

All log dirs are looked at first; if one of them cannot have a work root none is made. Doing it again changes nothing
but what is missing: after an interruption, or where a heartbeat was lost.

Spec: design §3.2, §6; attacks A5, A6, A7, A19.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from logdir import clock
from logdir.disk import brake, controller, heartbeat
from logdir.disk.file_system import fs_type_at
from logdir.disk.io import HostDirectory, HostDisk
from logdir.disk.kernel_clock import read_instant
from logdir.disk.locks import OwnerLock, hold_all
from logdir.disk.reserve import RESERVE_BYTES
from logdir.disk.site import Site
from logdir.disk.small_file import read_file
from logdir.disk.work_root import open_log_dir, open_root, open_work_root
from logdir.disk.work_root_init import init, put_back_missing
from logdir.disk.work_root_plan import Candidate, InitPlan, plan_init, require_no_stock_broker
from logdir.errors import ConfigError, LogDirError, LogDirOfflineError, Problem, WorkRootInsideError
from logdir.formats import brake_file, controller_file, heartbeat_file
from logdir.formats.work_root_file import WorkRootKind
from logdir.observe.classify import OWNER_LOCK
from logdir.service.broker import accepted_of, skipped_of
from logdir.service.config import BrokerConfig, require_text
from logdir.service.os_errors import told, told_or_closed
from logdir.service.quarantine import closed_of, keep_in_mind, require_none_closed
from logdir.service.refill import refill
from logdir.service.result import ItemState
from logdir.service.true_root import require_one_broker
from logdir.text import printable, utf8
from tools import render
from tools.cli import Exit, Streams, envelope, exit_for, failed, problems_of, say
from tools.logdirctl.broker import add_change, next_words, request_of, said_of_override
from tools.logdirctl.naming import broker_of, words_of

_KEPT = """\
What is kept on this host, and where (logdirctl uninstall takes it back):
  in the work root of each log dir, and nowhere else:
  deleting/   replicas set aside, whole, until their deadline or until you restore or purge them
  incoming/   copies on their way in
  reserve     {reserve}, given up when the disk is full; probe/, owner.lock, work-root.json
  heartbeat.json, brake.json, controller.json   when this host lived, what went, how far the cluster was followed
  in a replica that is set aside: replica.json, which says why and until when"""


class _Made(NamedTuple):
    """One log dir, as planned or as it is now."""

    plan: InitPlan
    state: ItemState
    kind: WorkRootKind
    path: str
    passed: tuple[Candidate, ...]


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "init",
        help="make the work root of every log dir",
        description="Make, beside or in every log dir of one broker, the place where replicas are set aside. "
        "Nothing else is changed; a broker may run.",
        epilog="exit status: 0 done, 1 a disk is in trouble, 2 usage or configuration, "
        "3 a broker runs, where an owner.lock is to be put back, 4 refused",
        allow_abbrev=False,
    )
    add_change(parser)
    parser.add_argument(
        "--work-root",
        choices=["auto", *(kind.value for kind in WorkRootKind)],
        default="auto",
        help="where it lies; auto: inside a log dir no stock broker reads, else beside, else in-place",
    )
    parser.add_argument(
        "--even-on-unsupported-fs",
        action="store_true",
        help="also on file systems nothing was proven on, at your own risk",
    )
    parser.add_argument(
        "--even-if-found",
        metavar="SLUG",
        action="append",
        default=[],
        choices=[WorkRootInsideError.code],
        help=f"{WorkRootInsideError.code}: no broker will ever start on these log dirs",
    )
    parser.set_defaults(run=act, title="init")


def _plans(
    arguments: argparse.Namespace, disk: HostDisk, named: BrokerConfig, without: Collection[str]
) -> tuple[list[InitPlan], list[Problem]]:
    """Look at every log dir.

    Raises:
        _SeveralError: one log dir or more cannot have a work root.
    """
    requested = None if arguments.work_root == "auto" else WorkRootKind(arguments.work_root)
    plans: list[InitPlan] = []
    notes: list[Problem] = []
    errors: list[LogDirError] = []
    for log_dir in named.log_dirs:
        try:
            with told(log_dir):
                plan = plan_init(
                    disk,
                    log_dir,
                    requested=requested,
                    fs_type=fs_type_at(log_dir),
                    unsupported_fs=arguments.even_on_unsupported_fs,
                )
            if WorkRootInsideError.code not in arguments.even_if_found:
                require_no_stock_broker(plan)
            require_one_broker(named, plans[0].belongs if plans else None, plan.belongs, log_dir)
            plans.append(plan)
        except LogDirOfflineError as error:
            if log_dir in without:
                notes.append(error.problem())
            else:
                errors.append(error)
        except LogDirError as error:
            errors.append(error)
    if errors:
        raise _SeveralError(errors)
    return plans, notes


class _SeveralError(Exception):
    """What is wrong with each log dir."""

    def __init__(self, errors: list[LogDirError]) -> None:
        super().__init__(str(errors[0]))
        self.errors = errors


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    disk = HostDisk()
    named = broker_of(arguments)
    require_text(named)
    request = request_of(arguments)
    without, accepted = skipped_of(request, named), accepted_of(request, named)
    try:
        plans, notes = _plans(arguments, disk, named, without)
    except _SeveralError as several:
        found = tuple(problem for error in several.errors for problem in problems_of(error))
        return failed("init", max(map(exit_for, several.errors)), found, streams, as_json=arguments.json)
    is_first = bool(plans) and not any(plan.is_whole for plan in plans)
    if not plans:
        problem = Problem("config-error", "--skip-log-dir", "at least one log dir that answers", "none")
        raise ConfigError((problem,))
    if arguments.apply:
        made, closed = _make_all(disk, plans, accepted, without)
        notes += closed
    else:
        made = [_planned(plan, ItemState.PLANNED) for plan in plans]
    if is_first:
        say(streams, _KEPT.format(reserve=render.size(RESERVE_BYTES)))
    status = Exit.PROBLEMS if notes else Exit.DONE
    for problem in notes:
        say(streams, f"logdirctl init: {problem.line()}")
    if arguments.json:
        result = {"applied": arguments.apply, "work_roots": [_json(one) for one in made]}
        streams.out.write(envelope("init", status, notes, result))
        return status
    _table(made, streams)
    where = next_words(arguments)
    flags = "" if arguments.work_root == "auto" else f" --work-root {arguments.work_root}"
    line = f"logdirctl staged ls {words_of(arguments)}" if arguments.apply else f"logdirctl init {where}{flags} --apply"
    for said in said_of_override(arguments, is_planned=True):
        line = f"logdirctl inventory {words_of(arguments)}"
        streams.out.write(said + "\n")
    streams.out.write(printable(f"next: {line}") + "\n")
    return status


def _make_all(
    disk: HostDisk, plans: Sequence[InitPlan], accepted: Collection[str], without: Collection[str]
) -> tuple[list[_Made], list[Problem]]:
    """Make all that are planned, but for those that are said to have failed and do not take it: of these say why."""
    owned: dict[str, Site] = {}
    closed: dict[str, Problem] = {}
    spent: list[Problem] = []

    lockless: dict[str, Site] = {}

    def close_returned() -> None:
        with told(plans[0].log_dir):
            found = closed_of(tuple((lockless | owned).values()), accepted)
        require_none_closed({log_dir: why for log_dir, why in found.items() if log_dir not in without})
        closed.update(found)

    with ExitStack() as stack:
        for plan in plans:
            with told_or_closed(plan.log_dir, without, closed.__setitem__):
                if plan.is_whole and not plan.lacks:  # somebody may be working there
                    owned[plan.log_dir] = _own(stack, disk, plan.log_dir)
                elif plan.lacks == (OWNER_LOCK,):  # nothing is put back on a disk whose sync failed
                    lockless[plan.log_dir] = stack.enter_context(open_root(disk, plan.log_dir)).site
        close_returned()
        for plan in plans:
            if plan.lacks and plan.log_dir not in closed:
                with told_or_closed(plan.log_dir, without, closed.__setitem__):
                    owned[plan.log_dir] = _put_back(stack, disk, plan)
                close_returned()
        made = {}
        try:
            for plan in plans:
                if plan.log_dir not in closed:
                    with told_or_closed(plan.log_dir, without, closed.__setitem__):
                        made[plan.log_dir] = _make(stack, disk, plan, owned)
            refill([site for log_dir, site in owned.items() if log_dir not in closed], spent)
        finally:
            keep_in_mind(disk, tuple(owned.values()), closed)
    return [made.get(plan.log_dir) or _planned(plan, ItemState.UNDONE) for plan in plans], [*closed.values(), *spent]


def _make(stack: ExitStack, disk: HostDisk, plan: InitPlan, owned: dict[str, Site]) -> _Made:
    done = init(disk, plan, made_at_ms=max(0, read_instant().wall_ms))
    if plan.log_dir not in owned:
        owned[plan.log_dir] = _own(stack, disk, plan.log_dir)
    _begin(owned[plan.log_dir])
    return _Made(plan, ItemState.DONE, done.kind, done.path, done.passed)


def _planned(plan: InitPlan, state: ItemState) -> _Made:
    """Return where it would be made first."""
    return _Made(plan, state, plan.candidates[0].kind, plan.candidates[0].path, plan.passed)


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
            put_back_missing(work, top.own_stat().owner)
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


def _json(one: _Made) -> dict[str, object]:
    return {
        "log_dir": utf8(one.plan.log_dir),
        "state": one.state.value,
        "kind": one.kind.value,
        "path": utf8(one.path),
        "why": _why(one),
        "layout": one.plan.layout,
        "is_whole": one.plan.is_whole,
        "reserve_bytes": RESERVE_BYTES,
        "passed": [{"kind": place.kind.value, "path": utf8(place.path), "why": place.why} for place in one.passed],
    }


def _why(one: _Made) -> str:
    return next((place.why for place in one.plan.candidates if place.kind is one.kind), "")


def _table(made: Sequence[_Made], streams: Streams) -> None:
    rows = []
    for one in made:
        state = "is there" if one.plan.is_whole and not one.plan.lacks else one.state.value
        why = _why(one) + "".join(f"; not {place.kind.value}: {place.why}" for place in one.passed)
        rows.append([one.plan.log_dir, state, one.kind.value, one.path, render.size(RESERVE_BYTES), why])
    render.table(streams.out, ["log dir", "state", "kind", "work root", "reserve", "why"], rows, frozenset((4,)))
