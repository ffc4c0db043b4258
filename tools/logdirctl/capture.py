"""``logdirctl capture``: keep ``-delete`` and ``-stray`` directories before the broker removes them.

Not here: what is captured (``logdir.service.capture``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from logdir.decide.staged.deadline import DelayPolicy
from logdir.service import capture
from logdir.service.batch.unlocked import recover_if_stopped
from logdir.service.capture import CaptureRequest
from logdir.service.log_dirs.opening import opened
from logdir.service.report.result import ItemResult
from logdir.text import quoted
from tools.cli.arguments import Exit, Streams
from tools.cli.broker import add_change, has_override, next_argv, said_of_override
from tools.cli.delay import add_delay, delay_of, delay_words, require_no_delay
from tools.cli.progress import TerminalReporter
from tools.cli.report import finish, is_planned
from tools.cli.target import argv_of, request_of


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "capture",
        description="Keep the -delete and -stray directories that lie in the log dirs now, by hard links in the work "
        "root: a -delete is gone a minute after its topic was deleted. A broker may run; nothing of it is changed. "
        "What was captured can be exported, or held until its deadline.",
        epilog="exit status: 0 done, 1 not all was done, 2 usage or configuration, 4 refused",
        allow_abbrev=False,
    )
    parser.add_argument(
        "selector", metavar="SELECTOR", nargs="?", help="a topic name, a topic id, name-p, id_p or a glob; else all"
    )
    add_change(parser)
    add_delay(parser)
    parser.add_argument("--hold", action="store_true", help="without a deadline: until an operator purges it")
    parser.set_defaults(run=act, title="capture")


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    if arguments.hold:
        require_no_delay(arguments, "--hold")
    delays = DelayPolicy(default_ms=delay_of(arguments))
    request = CaptureRequest(selector=arguments.selector, delays=delays, is_held=arguments.hold)
    request.require_valid()
    with opened(request_of(arguments), changes=arguments.apply, needs_all=False) as broker:
        if arguments.apply:
            recover_if_stopped(broker)
        shown = capture.plan(broker, request)
        rows, problems = list(shown.items), list(shown.problems)
        if arguments.apply:
            rows, problems = capture.apply(broker, shown, TerminalReporter(streams, arguments.title))
        lines = [] if rows or not shown.is_found else ["there is no -delete and no -stray directory"]
        lines += said_of_override(arguments, is_planned=is_planned(rows))
        status = None if shown.is_found else Exit.PROBLEMS
        line = _next(arguments, rows)
        return finish(arguments, streams, rows, [*broker.notes, *problems], line, status=status, lines=lines)


def _next(arguments: argparse.Namespace, rows: Sequence[ItemResult]) -> str:
    if arguments.apply or not is_planned(rows) or has_override(arguments):
        return f"logdirctl staged ls {argv_of(arguments)}"
    selector = "" if arguments.selector is None else f"{quoted(arguments.selector)} "
    flags = delay_words(arguments) + (" --hold" if arguments.hold else "")
    return f"logdirctl capture {selector}{next_argv(arguments)}{flags} --apply"
