"""``logdirctl handover``: the gate before a broker's start, which ends what is unfinished on its log dirs.

For ``ExecStartPre=`` of the broker's unit and for an init container, so it acts without ``--apply``.

Not here: what is ended, and what keeps a broker from its start (``logdir.service.batch.handover``), the time limit and
the way round (``logdir.daemon.socket.gate``).

Spec: design §6, §8; attacks A22, A30.
"""

from __future__ import annotations

import argparse

from logdir.daemon.socket.gate import AT_MOST_S, handed_over, skipped, with_way_round
from logdir.errors import LogDirError
from logdir.service.batch.checkpoint_losses import LOSSES, LogStarts
from logdir.service.batch.handover import HandoverRequest
from logdir.service.report.exit_status import Exit, exit_for, problems_of
from tools.cli.arguments import Streams, answer, failed, tell
from tools.cli.broker import BROKER, JSON, argv_of, is_gate_skipped, next_argv, seconds
from tools.cli.change import note_in_history, ran_of
from tools.cli.command import Command
from tools.cli.option import Flag, Option


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    if is_gate_skipped(arguments):
        return failed(arguments.title, Exit.DONE, (skipped(),), streams, as_json=arguments.json)
    request = HandoverRequest(
        skipped=tuple(arguments.skip_log_dir),
        log_starts=None if arguments.log_starts is None else LogStarts(arguments.log_starts),
        is_recovery_only=arguments.recover_only,
    )
    try:
        ran = handed_over(lambda: ran_of(arguments, streams, arguments.title, request), arguments.at_most)
    except LogDirError as error:
        found, status = problems_of(error), exit_for(error)
        if arguments.apply and not arguments.recover_only and status != Exit.BROKER_RUNS:
            found = tuple(map(with_way_round, found))
        return failed(arguments.title, status, found, streams, as_json=arguments.json)
    if arguments.apply:
        note_in_history(arguments, "checkpoints-lost", [one for one in ran.problems if one.slug in LOSSES])
    if arguments.quiet and not arguments.json and ran.exit == Exit.DONE:
        tell(arguments.title, ran.problems, streams)
        return ran.exit
    unfinished = [f"{one.log_dir}: {one.detail}" for one in ran.result.items]
    lines = (*unfinished, *ran.lines, f"next: logdirctl {_next(arguments)}")
    return answer(arguments, streams, ran.result, ran.problems, lines, status=ran.exit)


def _next(arguments: argparse.Namespace) -> str:
    is_last = arguments.apply and not arguments.recover_only
    return f"layout status {argv_of(arguments)}" if is_last else f"handover {next_argv(arguments)}"


_LACKING = "a log dir that has failed: hand over the others without it. Its partitions come back empty on other disks"
_LOG_STARTS = (
    "what becomes of log starts that a failed start of the broker lost: restore writes back those that do not lie "
    "behind the end of their logs; accept leaves it so"
)
COMMAND = Command(
    title="handover",
    run=act,
    description="Before a broker starts: finish or undo what is unfinished on its log dirs, lift a start block, "
    "compare its checkpoint files with the last copies, and copy them. For ExecStartPre= of the broker's unit, or an "
    "init container. A running logdird is asked to do it.",
    ends="0 a broker may start, 1 a file or a disk is in trouble, 2 usage or configuration, 3 a broker runs, "
    "4 refused: it should not start",
    options=(
        *BROKER,
        Option("--skip-log-dir", _LACKING, "DIR", is_repeated=True),
        Option("--log-starts", _LOG_STARTS, choices=[one.value for one in LogStarts]),
        Flag("--recover-only", "only finish or undo what was interrupted; no broker starts next"),
        Option(
            "--at-most",
            f"how long all of it may take before the start is refused (default {AT_MOST_S})",
            "SECONDS",
            type=seconds,
            default=AT_MOST_S,
            render="{:g}".format,
        ),
        Flag("--plan", "only print what would be done", dest="apply", action="store_false"),
        Flag("--quiet", "print nothing but what is wrong"),
        JSON,
    ),
)
