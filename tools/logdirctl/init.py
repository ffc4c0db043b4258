"""``logdirctl init``: the work root of every log dir of one broker, made where it can be, or mended.

Not here: what is made (``logdir.service.init``).

Spec: design §3.2, §6.
"""

from __future__ import annotations

import argparse
from typing import Any

from logdir.disk.root.reserve import RESERVE_BYTES
from logdir.formats.own.work_root_file import WorkRootKind
from logdir.refusal_slug import Why
from logdir.service import init
from logdir.service.init import InitRequest, InitResult, SeveralError, WorkRootItem
from logdir.service.log_dirs.ports import connected
from logdir.service.report.json_text import envelope
from logdir.text import printable, size
from tools.cli.arguments import Exit, Streams, exit_for, failed, problems_of, say
from tools.cli.broker import add_change, next_argv, said_of_override
from tools.cli.columns import Column, table
from tools.cli.target import argv_of, request_of

_KEPT = """\
What is kept on this host, and where (logdirctl uninstall takes it back):
  in the work root of each log dir, and nowhere else:
  deleting/   replicas staged, whole, until their deadline or until you restore or purge them
  incoming/   copies on their way in
  reserve     {reserve}, given up when the disk is full; probe/, owner.lock, work-root.json
  heartbeat.json, staging-limit.json, controller.json   when this host lived, what was staged, what was last applied
  in a replica that is staged: replica.json, which says why and until when"""


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
        choices=[Why.WORK_ROOT_INSIDE.value],
        help=f"{Why.WORK_ROOT_INSIDE.value}: no broker will ever start on these log dirs",
    )
    parser.set_defaults(run=act, title="init")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
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
        say(streams, _KEPT.format(reserve=size(RESERVE_BYTES)))
    status = Exit.PROBLEMS if problems else Exit.DONE
    for problem in problems:
        say(streams, f"logdirctl init: {problem.line()}")
    if arguments.json:
        result = InitResult(applied=arguments.apply, work_roots=made)
        streams.out.write(envelope("init", status, problems, result))
        return status
    table(streams.out, _COLUMNS, made)
    where = next_argv(arguments)
    flags = "" if arguments.work_root == "auto" else f" --work-root {arguments.work_root}"
    line = f"logdirctl staged ls {argv_of(arguments)}" if arguments.apply else f"logdirctl init {where}{flags} --apply"
    for said in said_of_override(arguments, is_planned=True):
        line = f"logdirctl inventory {argv_of(arguments)}"
        streams.out.write(said + "\n")
    streams.out.write(printable(f"next: {line}") + "\n")
    return status


def _detail(one: WorkRootItem) -> str:
    return one.detail + "".join(f"; not {place.kind.value}: {place.detail}" for place in one.passed)


_COLUMNS: tuple[Column[WorkRootItem], ...] = (
    Column("log dir", "log_dir"),
    Column("state", lambda one: "is there" if one.is_whole and not one.is_mended else one.state),
    Column("kind", "kind"),
    Column("work root", "path"),
    Column("reserve", lambda one: size(one.reserve_bytes), is_number=True),
    Column("detail", _detail),
)
