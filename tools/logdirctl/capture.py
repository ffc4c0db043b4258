"""``logdirctl capture``: keep ``-delete`` and ``-stray`` directories before the broker removes them.

Not here: which directories are captured, and how (``logdir.service.capture``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

from logdir.service.capture import CaptureRequest
from logdir.service.report.result import ItemResult
from logdir.text import quoted
from tools.cli.arguments import Streams
from tools.cli.broker import add_change, add_selector, argv_of, has_override, next_argv
from tools.cli.change import change
from tools.cli.delay import add_delay, add_hold, delay_words, delays_of
from tools.cli.report import is_planned


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "capture",
        description="Keep the -delete and -stray directories that lie in the log dirs now, by hard links in the work "
        "root: a -delete directory is gone a minute after its topic was deleted. A broker may run; nothing of it is "
        "changed. What was captured can be exported, and stays until its deadline.",
        epilog="exit status: 0 done, 1 not all was done, 2 usage or configuration, 4 refused",
    )
    add_selector(parser, "everything if there is none")
    add_change(parser)
    add_delay(parser)
    add_hold(parser)
    parser.set_defaults(run=act, title="capture")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    request = CaptureRequest(selector=arguments.selector, delays=delays_of(arguments), is_held=arguments.hold)
    return change(arguments, streams, request, partial(_next, arguments))


def _next(arguments: argparse.Namespace, rows: Sequence[ItemResult]) -> str:
    if arguments.apply or not is_planned(rows) or has_override(arguments):
        return f"logdirctl staged ls {argv_of(arguments)}"
    selector = "" if arguments.selector is None else f"{quoted(arguments.selector)} "
    return f"logdirctl capture {selector}{next_argv(arguments)}{delay_words(arguments)} --apply"
