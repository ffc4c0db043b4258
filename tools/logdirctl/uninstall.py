"""``logdirctl uninstall``: remove work roots and start block, so that a stock broker starts on the log dirs.

Not here: removing them, and in which order (``logdir.service.uninstall``).

Spec: design §2 laws 1, 7, §6, §8.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

from logdir.formats.own.inventory import Kind
from logdir.observe.facts import StagedReplica
from logdir.service import uninstall
from logdir.service.cluster.cluster_state import require_source
from logdir.service.log_dirs.opening import opened
from logdir.service.report.result import ItemResult, ItemState, UninstallResult
from logdir.service.uninstall import UninstallRequest
from tools.cli.arguments import Streams
from tools.cli.broker import add_change, argv_of, has_override, next_argv, request_of, said_of_override
from tools.cli.change import require_no_daemon
from tools.cli.progress import TerminalReporter
from tools.cli.report import finish, is_planned
from tools.cli.source import add_source, named_words, source_of


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "uninstall",
        description="List what is staged, lift a start block, and remove the empty work roots of one stopped broker.",
        epilog="exit status: 0 done, 1 something stays, 2 usage or configuration, 3 a broker runs, 4 refused",
    )
    add_change(parser)
    parser.add_flag("--restore", "restore what is staged first, as far as that is possible")
    add_source(parser)
    parser.add_flag(
        "--even-if-unknown", "with --restore: also where it is not known whether the cluster still assigns it here"
    )
    parser.set_defaults(run=act, title="uninstall")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    require_no_daemon(arguments)
    asked = UninstallRequest(
        is_restore=arguments.restore, source=source_of(arguments), is_even_if_unknown=arguments.even_if_unknown
    )
    require_source(asked.source)
    reporter = TerminalReporter(streams, arguments.title)
    request = request_of(arguments)
    with opened(request, changes=arguments.apply, is_start_block_allowed=True, is_root_needed=False) as broker:
        if arguments.apply:
            uninstall.prepare(broker)
        shown = uninstall.plan(broker, asked)
        found = uninstall.apply(broker, shown, reporter) if arguments.apply else shown
        for line in () if arguments.apply else shown.warnings:
            reporter.warn(line)
        nothing = () if found.items else ("nothing of logdird lies in or beside these log dirs",)
        return finish(
            arguments,
            streams,
            found.items,
            [*broker.notes, *found.problems],
            _next(arguments, found.items, found.staying),
            result=partial(UninstallResult, start_block=shown.found_block),
            lines=(*nothing, *said_of_override(arguments, is_planned=is_planned(found.items))),
        )


def _next(arguments: argparse.Namespace, rows: Sequence[ItemResult], staying: Sequence[StagedReplica]) -> str:
    where = next_argv(arguments)
    if staying and all(item.kind is Kind.PURGING for item in staying):
        return f"logdirctl staged purge {where}"
    if not staying and any(row.state == ItemState.REFUSED for row in rows):
        return f"logdirctl uninstall {where}"  # the plan, once what keeps a work root is away
    left = ItemState.WAITING, ItemState.REFUSED, ItemState.UNDONE
    if any(row.state in left for row in rows) or (not arguments.apply and has_override(arguments)):
        return f"logdirctl staged ls {argv_of(arguments)}"
    if arguments.apply:
        return f"logdirctl inventory {argv_of(arguments)}"
    return f"logdirctl uninstall {where}{' --restore' if arguments.restore else ''}{named_words(arguments)} --apply"
