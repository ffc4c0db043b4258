"""``logdirctl stage``: stage replicas, to be restored or purged later.

Not here: what is staged (``logdir.service.stage``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from logdir.decide.staged.deadline import DelayPolicy
from logdir.service import stage
from logdir.service.log_dirs.opening import opened
from logdir.service.report.result import ItemResult, ItemState
from logdir.service.stage import StageRequest
from logdir.text import quoted
from tools.cli.arguments import Exit, Streams
from tools.cli.broker import add_change, has_override, next_argv, said_of_override
from tools.cli.delay import add_delay, delay_of, delay_words, require_no_delay
from tools.cli.progress import TerminalReporter
from tools.cli.protection import add_protection, protected_of, protection_words
from tools.cli.report import finish, is_planned
from tools.cli.source import add_source, named_words, source_of
from tools.cli.target import argv_of, request_of


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "stage",
        description="Set live replicas of a stopped broker aside. They can be restored until they are purged.",
        epilog="exit status: 0 done, 1 not all was done, 2 usage or configuration, 3 a broker runs, 4 refused",
        allow_abbrev=False,
    )
    parser.add_argument("selector", metavar="SELECTOR", help="a topic name, a topic id, name-p, id_p or a glob")
    add_change(parser)
    add_delay(parser)
    parser.add_argument("--hold", action="store_true", help="without a deadline: until an operator purges it")
    add_protection(parser)
    add_source(parser)
    parser.add_argument(
        "--even-if-last", action="store_true", help="also the only in-sync replica; it never gets a deadline"
    )
    parser.add_argument(
        "--even-if-unknown",
        action="store_true",
        help="also where nothing says whether the cluster assigns it here; it never gets a deadline",
    )
    parser.add_argument("--even-over-limit", action="store_true", help="yes to what the staging limit held back")
    parser.set_defaults(run=act, title="stage")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    if arguments.hold:
        require_no_delay(arguments, "--hold")
    request = StageRequest(
        source=source_of(arguments),
        selector=arguments.selector,
        delays=DelayPolicy(default_ms=delay_of(arguments)),
        is_held=arguments.hold,
        protected=protected_of(arguments),
        is_even_over_limit=arguments.even_over_limit,
        is_even_if_last=arguments.even_if_last,
        is_even_if_unknown=arguments.even_if_unknown,
    )
    request.require_valid()
    with opened(request_of(arguments), changes=arguments.apply, needs_all=False) as broker:
        if arguments.apply:
            broker.recover()
        shown = stage.plan(broker, request)
        if shown.plan is None:
            line, problems = f"logdirctl describe {argv_of(arguments)}", [*broker.notes, *shown.problems]
            return finish(arguments, streams, [], problems, line, status=Exit.PROBLEMS)
        rows, problems = list(shown.items), list(shown.problems)
        if arguments.apply:
            rows, problems = stage.apply(broker, shown, TerminalReporter(streams, arguments.title))
        lines = said_of_override(arguments, is_planned=is_planned(rows))
        return finish(arguments, streams, rows, [*broker.notes, *problems], _next(arguments, rows), lines=lines)


def _next(arguments: argparse.Namespace, rows: Sequence[ItemResult]) -> str:
    where = next_argv(arguments)
    if arguments.apply and any(row.state is ItemState.DONE for row in rows):
        return f"logdirctl staged ls {argv_of(arguments)}"
    flags = delay_words(arguments) + (" --hold" if arguments.hold else "") + protection_words(arguments)
    flags += named_words(arguments)
    states = {row.state for row in rows}
    if ItemState.WAITING in states or (ItemState.PLANNED in states and has_override(arguments)):
        return f"logdirctl staged ls {argv_of(arguments)}"  # what counts to the limit
    if ItemState.PLANNED not in states:
        return f"logdirctl inventory {argv_of(arguments)}"
    return f"logdirctl stage {quoted(arguments.selector)} {where}{flags} --apply"
