"""``logdirctl init``: make the work root of every log dir of one broker, or put back its missing parts.

Not here: making and mending it (``logdir.service.init``).

Spec: design §3.2, §6.
"""

from __future__ import annotations

import argparse
from typing import Any

from logdir.formats.own.work_root_file import WorkRootKind
from logdir.refusal_slug import Why
from logdir.service import init
from logdir.service.init import InitRequest, InitResult, SeveralError, WorkRootItem
from logdir.service.log_dirs.ports import connected
from logdir.service.report.exit_status import Exit, exit_for, problems_of
from logdir.text import size
from tools.cli.arguments import Streams, answered, failed, put, say
from tools.cli.broker import SAME_WITH_APPLY, add_change, argv_of, has_override, next_argv, request_of
from tools.cli.change import require_no_daemon
from tools.cli.columns import Column, table


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "init",
        description="Make, beside or in every log dir of one broker, the place where replicas are staged. "
        "Nothing else is changed; a broker may run.",
        epilog="exit status: 0 done, 1 a disk is in trouble, 2 usage or configuration, "
        "3 a broker runs, where an owner.lock is to be put back, 4 refused",
    )
    add_change(parser)
    parser.add_argument(
        "--work-root",
        choices=["auto", *(kind.value for kind in WorkRootKind)],
        default="auto",
        help="where the work root lies; auto: inside a log dir no stock broker reads, else beside, else in-place",
    )
    parser.add_flag(
        "--even-on-unsupported-fs", "also on unsupported file systems (not ext4, XFS, btrfs), at your own risk"
    )
    parser.add_argument(
        "--even-if-found",
        metavar="SLUG",
        action="append",
        default=[],
        choices=[Why.WORK_ROOT_INSIDE.value],
        help=f"{Why.WORK_ROOT_INSIDE.value}: you confirm that no broker will ever start on these log dirs",
    )
    parser.set_defaults(run=act, title="init")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
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
            made, problems = init.apply(ports, shown) if arguments.apply else (shown.made(), shown.problems)
    except SeveralError as several:
        found = tuple(problem for error in several.errors for problem in problems_of(error))
        return failed("init", max(map(exit_for, several.errors)), found, streams, as_json=arguments.json)
    if shown.is_first:
        say(streams, init.KEPT)
    status = Exit.PROBLEMS if problems else Exit.DONE
    if answered(arguments, streams, status, problems, InitResult(applied=arguments.apply, work_roots=made)):
        return status
    table(streams.out, _COLUMNS, made)
    flags = "" if arguments.work_root == "auto" else f" --work-root {arguments.work_root}"
    line = f"init {next_argv(arguments)}{flags} --apply"
    if arguments.apply:
        line = f"staged ls {argv_of(arguments)}"
    elif has_override(arguments):
        put(streams, SAME_WITH_APPLY)
        line = f"inventory {argv_of(arguments)}"
    put(streams, f"next: logdirctl {line}")
    return status


_COLUMNS: tuple[Column[WorkRootItem], ...] = (
    Column("log dir", "log_dir"),
    Column("state", lambda one: "is there" if one.is_whole and not one.is_mended else one.state),
    Column("kind", "kind"),
    Column("work root", "path"),
    Column("reserve", lambda one: size(one.reserve_bytes), is_number=True),
    Column("detail", "whole_detail"),
)
