"""``logdirctl uninstall``: remove work roots and start block, so that a stock broker starts on the log dirs.

Not here: removing them, and in which order (``logdir.service.uninstall``).

Spec: design §2 laws 1, 7, §6, §8.
"""

from __future__ import annotations

import argparse

from logdir.service import uninstall
from logdir.service.cluster.cluster_state import require_source
from logdir.service.log_dirs.first_change import begin
from logdir.service.log_dirs.opening import opened
from logdir.service.report.following import after_uninstall, is_planned
from logdir.service.report.result import UninstallResult
from logdir.service.uninstall import UninstallRequest
from tools.cli.arguments import Streams
from tools.cli.broker import CHANGED, even_if_unknown, has_override, next_argv, request_of, said_of_override
from tools.cli.change import finish, next_line, require_no_daemon
from tools.cli.command import Command
from tools.cli.option import Flag, filled
from tools.cli.progress import TerminalReporter
from tools.cli.source import SOURCE, named_argv


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    require_no_daemon(arguments)
    asked = UninstallRequest(**filled(arguments, arguments.options))
    require_source(asked.source)
    reporter = TerminalReporter(streams, arguments.title)
    request = request_of(arguments)
    with opened(request, changes=arguments.apply, is_start_block_allowed=True, is_root_needed=False) as broker:
        if arguments.apply:
            begin(broker, reporter)
            uninstall.prepare(broker)
        shown = uninstall.plan(broker, asked)
        found = uninstall.apply(broker, shown, reporter) if arguments.apply else shown
        for line in () if arguments.apply else shown.warnings:
            reporter.warn(line)
        rows, applied = found.items, arguments.apply
        following = after_uninstall(rows, found.staying, is_applied=applied, has_override=has_override(arguments))
        lines = (
            *(() if rows else ("nothing of logdird lies in or beside these log dirs",)),
            *said_of_override(arguments, is_planned=is_planned(rows)),
            f"next: {next_line(arguments, following, (next_argv, _RESTORE, named_argv))}",
        )
        result = UninstallResult(applied=applied, items=rows, start_block=shown.found_block)
        return finish(arguments, streams, result, [*broker.notes, *found.problems], lines)


_RESTORE = Flag("--restore", "restore what is staged first, as far as that is possible", "is_restore")
_UNKNOWN = "with --restore: also where it is not known whether the cluster still assigns it here"
COMMAND = Command(
    title="uninstall",
    run=act,
    description="List what is staged, lift a start block, and remove the empty work roots of one stopped broker.",
    ends="0 done, 1 something stays, 2 usage or configuration, 3 a broker runs, 4 refused",
    options=(*CHANGED, _RESTORE, *SOURCE, even_if_unknown(_UNKNOWN)),
)
