"""``logdirctl stage``: stage replicas, to be restored or purged later.

Not here: deciding and staging (``logdir.service.stage``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

from logdir.service.report.result import ItemResult, ItemState
from logdir.service.stage import StageRequest
from logdir.text import quoted
from tools.cli.arguments import Streams
from tools.cli.broker import add_change, add_selector, argv_of, has_override, next_argv
from tools.cli.change import change
from tools.cli.delay import add_delay, add_hold, delay_words, delays_of
from tools.cli.protection import add_protection, protected_of, protection_words
from tools.cli.source import add_source, named_words, source_of


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "stage",
        description="Move live replicas of a stopped broker to the work root. They can be restored until purged.",
        epilog="exit status: 0 done, 1 not all was done, 2 usage or configuration, 3 a broker runs, 4 refused",
    )
    add_selector(parser)
    add_change(parser)
    add_delay(parser)
    add_hold(parser)
    add_protection(parser)
    add_source(parser)
    parser.add_flag("--even-if-last", "also the only in-sync replica; it never gets a deadline")
    parser.add_flag(
        "--even-if-unknown", "also where it is not known whether the cluster assigns it here; it never gets a deadline"
    )
    parser.add_flag("--even-over-limit", "also stage what exceeds the staging limit")
    parser.set_defaults(run=act, title="stage")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    request = StageRequest(
        source=source_of(arguments),
        selector=arguments.selector,
        delays=delays_of(arguments),
        is_held=arguments.hold,
        protected=protected_of(arguments),
        is_even_over_limit=arguments.even_over_limit,
        is_even_if_last=arguments.even_if_last,
        is_even_if_unknown=arguments.even_if_unknown,
    )
    return change(arguments, streams, request, partial(_next, arguments))


def _next(arguments: argparse.Namespace, rows: Sequence[ItemResult]) -> str:
    states = {row.state for row in rows}
    if not rows:  # nothing was selected
        return f"logdirctl describe {argv_of(arguments)}"
    if arguments.apply and ItemState.DONE in states:
        return f"logdirctl staged ls {argv_of(arguments)}"
    if ItemState.WAITING in states or (ItemState.PLANNED in states and has_override(arguments)):
        return f"logdirctl staged ls {argv_of(arguments)}"  # what counts to the limit
    if ItemState.PLANNED not in states:
        return f"logdirctl inventory {argv_of(arguments)}"
    flags = delay_words(arguments) + protection_words(arguments) + named_words(arguments)
    return f"logdirctl stage {quoted(arguments.selector)} {next_argv(arguments)}{flags} --apply"
