"""``logdirctl init``: make the work root of every log dir of one broker, or put back its missing parts.

Not here: making and mending it (``logdir.service.init``), the units of systemd (``init_systemd``).

Spec: design §3.2, §6.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from logdir.formats.own.work_root_file import WorkRootKind
from logdir.refusal_slug import Why
from logdir.service import init
from logdir.service.init import InitRequest, InitResult, SeveralError, WorkRootItem
from logdir.service.log_dirs.first_change import what_is_kept
from logdir.service.log_dirs.ports import connected
from logdir.service.report.exit_status import exit_for, problems_of
from logdir.service.report.table import Column, Table
from logdir.text import size
from tools.cli.arguments import Streams, answer, failed, say
from tools.cli.broker import CHANGED, SAME_WITH_APPLY, argv_of, has_override, next_argv, request_of
from tools.cli.change import require_no_daemon
from tools.cli.command import Command
from tools.cli.option import Flag, Option, typed
from tools.logdirctl import init_systemd


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    if arguments.systemd:
        return init_systemd.act(arguments, streams)
    init_systemd.require_none_typed(arguments)
    require_no_daemon(arguments)
    asked = InitRequest(
        broker=request_of(arguments),
        kind=None if arguments.work_root == "auto" else WorkRootKind(arguments.work_root),
        is_any_fs=arguments.even_on_unsupported_fs,
        is_without_stock_broker=Why.WORK_ROOT_INSIDE.value in arguments.even_if_found,
    )
    try:
        with connected(asked.broker, needs_all=True) as ports:
            shown = init.plan(ports, asked)
            if shown.is_first:
                say(streams, what_is_kept(one.path for one in shown.made()))
            made, problems = init.apply(ports, shown) if arguments.apply else (shown.made(), shown.problems)
    except SeveralError as several:
        found = tuple(problem for error in several.errors for problem in problems_of(error))
        return failed("init", max(map(exit_for, several.errors)), found, streams, as_json=arguments.json)
    result = InitResult(applied=arguments.apply, work_roots=made)
    return answer(arguments, streams, result, problems, _shown(arguments, made))


def _shown(arguments: argparse.Namespace, made: Sequence[WorkRootItem]) -> Iterator[str | Table[WorkRootItem]]:
    yield Table(_COLUMNS, made)
    if arguments.apply:
        yield f"next: logdirctl staged ls {argv_of(arguments)}"
    elif has_override(arguments):
        yield from (SAME_WITH_APPLY, f"next: logdirctl inventory {argv_of(arguments)}")
    else:
        yield f"next: logdirctl init {typed(arguments, next_argv, _WORK_ROOT)} --apply"


_COLUMNS: tuple[Column[WorkRootItem], ...] = (
    Column("log dir", "log_dir"),
    Column("state", lambda one: "is there" if one.is_whole and not one.is_mended else one.state),
    Column("kind", "kind"),
    Column("work root", "path"),
    Column("reserve", lambda one: size(one.reserve_bytes), is_number=True),
    Column("detail", "whole_detail"),
)
_WORK_ROOT = Option(
    "--work-root",
    "where the work root lies; auto: inside a log dir that no stock broker reads, beside any other, or else in-place",
    choices=["auto", *(kind.value for kind in WorkRootKind)],
    default="auto",
)
_FOUND = f"{Why.WORK_ROOT_INSIDE.value}: you confirm that no broker will ever start on these log dirs"
COMMAND = Command(
    title="init",
    run=act,
    description="Make, beside or in every log dir of one broker, the place where replicas are staged. "
    "Nothing else is changed; a broker may run. With --systemd write instead what the units of logdird and of the "
    "broker need on this host.",
    ends="0 done, 1 a disk is in trouble, 2 usage or configuration, "
    "3 a broker runs, where an owner.lock is to be put back, 4 refused",
    options=(
        *CHANGED,
        _WORK_ROOT,
        Flag("--even-on-unsupported-fs", "also on unsupported file systems (not ext4, XFS, btrfs), at your own risk"),
        Option("--even-if-found", _FOUND, "SLUG", is_repeated=True, choices=[Why.WORK_ROOT_INSIDE.value]),
        *init_systemd.OPTIONS,
    ),
)
