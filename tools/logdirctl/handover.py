"""``logdirctl handover``: before a broker starts, end what is unfinished on its log dirs.

For ``ExecStartPre=`` of the broker's unit, so it acts without ``--apply``.

Not here: what is ended, and what keeps a broker from its start (``logdir.service.batch.handover``).

Spec: design §6; attacks A22.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

from logdir import clock
from logdir.daemon.faults import ReopeningError, StoppingError
from logdir.daemon.socket.client import DaemonUnreachableError
from logdir.errors import WorkRootOwnedError
from logdir.refusal_slug import Why
from logdir.service.batch.handover import HandoverRequest
from logdir.service.report.exit_status import AnsweredError, Exit
from logdir.service.report.use_case import Ran
from tools.cli.arguments import Streams, answer, tell
from tools.cli.broker import BROKER, JSON, argv_of, next_argv
from tools.cli.change import ran_of
from tools.cli.command import Command
from tools.cli.option import Flag, Option

_AWAITED_MS: Final = 30 * 1000
_AGAIN_S: Final = 0.5
_PASSING: Final = frozenset((StoppingError.code, ReopeningError.code, Why.CONFIGURATION_CHANGED.value))
"""What a daemon answers that will soon answer otherwise."""


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    ran = _ran(arguments, streams, HandoverRequest(skipped=tuple(arguments.skip_log_dir)))
    if arguments.quiet and not arguments.json and ran.exit == Exit.DONE:
        tell(arguments.title, ran.problems, streams)
        return ran.exit
    unfinished = [f"{one.log_dir}: {one.detail}" for one in ran.result.items]
    lines = (*unfinished, *ran.lines, f"next: logdirctl {_next(arguments)}")
    return answer(arguments, streams, ran.result, ran.problems, lines, status=ran.exit)


def _ran(arguments: argparse.Namespace, streams: Streams, request: HandoverRequest) -> Ran:
    """Hand over. If a daemon runs, it does so; if it is starting, ending or opening its log dirs, it is waited for."""
    until_ms = clock.monotonic_ms() + _AWAITED_MS
    while True:
        try:
            return ran_of(arguments, streams, "handover", request)
        except (WorkRootOwnedError, DaemonUnreachableError, AnsweredError) as error:
            is_passing = not isinstance(error, AnsweredError) or error.problems[0].slug in _PASSING
            if not is_passing or clock.monotonic_ms() >= until_ms:
                raise
            time.sleep(_AGAIN_S)


def _next(arguments: argparse.Namespace) -> str:
    return f"layout status {argv_of(arguments)}" if arguments.apply else f"handover {next_argv(arguments)}"


_LACKING = "a log dir that has failed: hand over the others without it. Its partitions come back empty on other disks"
COMMAND = Command(
    title="handover",
    run=act,
    description="Before a broker starts: finish or undo what is unfinished on its log dirs, lift a start block, and "
    "keep a copy of its checkpoint files. For ExecStartPre= of the broker's unit. A running logdird is asked to do it.",
    ends="0 a broker may start, 2 usage or configuration, 3 a broker runs, 4 refused: it should not start",
    options=(
        *BROKER,
        Option("--skip-log-dir", _LACKING, "DIR", is_repeated=True),
        Flag("--plan", "only print what would be done", dest="apply", action="store_false"),
        Flag("--quiet", "print nothing but what is wrong"),
        JSON,
    ),
)
