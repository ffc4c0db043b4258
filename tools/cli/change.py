"""The frame of the commands that change replicas one by one: run the use case, here or in the daemon, and print.

Not here: what is asked and what follows from it (``logdir.service``), how one is declared (``command.Change``).

Spec: design §5 "A use case", §6; docs/json.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace

from logdir.errors import Problem
from logdir.service.batch import use_cases
from logdir.service.batch.use_cases import Spec, spec_of
from logdir.service.log_dirs.first_change import begin
from logdir.service.report.exit_status import Exit
from logdir.service.report.following import Next, NextOf, after_change, is_planned
from logdir.service.report.result import ITEM_COLUMNS, ItemsResult, ItemState, status_of
from logdir.service.report.table import Table
from logdir.service.report.use_case import Asked, Ran
from tools.cli.arguments import Streams, answer
from tools.cli.broker import argv_of, has_override, next_argv, request_of, said_of_override
from tools.cli.option import Again, filled, typed
from tools.cli.progress import TerminalReporter

_LISTINGS = (Next.STAGED_LS, Next.INVENTORY, Next.DESCRIBE)
"""They have no ``--skip-log-dir``."""


def next_line(arguments: argparse.Namespace, following: Next, again: Sequence[Again]) -> str:
    """Return the next command to type; ``again``: the options that it repeats if it is the same."""
    if following is Next.SAME:
        return f"logdirctl {arguments.title} {typed(arguments, *again)} --apply"
    return f"logdirctl {following.value} {argv_of(arguments) if following in _LISTINGS else next_argv(arguments)}"


def run(
    arguments: argparse.Namespace,
    streams: Streams,
    again: Sequence[Again],
    next_of: NextOf | None,
    *,
    are_said: bool,
    are_overrides_said: bool,
) -> Exit:
    """Show what the use case of a command would do, or with ``--apply`` do it; arguments as of ``command.Change``."""
    spec = spec_of(arguments.title)
    ran = ran_of(arguments, streams, spec.name, spec.request(**filled(arguments, arguments.options)))
    result, rows = ran.result, ran.result.items
    override = said_of_override(arguments, is_planned=is_planned(rows)) if are_overrides_said else ()
    decide = after_change if next_of is None else next_of
    following = decide(rows, is_applied=arguments.apply, has_override=has_override(arguments))
    return finish(
        arguments,
        streams,
        result,
        ran.problems,
        (*ran.lines, *override, f"next: {next_line(arguments, following, again)}"),
        status=ran.exit,
        are_said=are_said,
    )


def finish(
    arguments: argparse.Namespace,
    streams: Streams,
    result: ItemsResult,
    problems: Sequence[Problem],
    lines: Sequence[str],
    *,
    status: Exit | None = None,
    are_said: bool = False,
) -> Exit:
    """Print what became of every replica, and what to type next; return the exit status.

    Args:
        arguments: Of the command.
        streams: Where to print.
        result: What became of each replica, in order.
        problems: Problems besides those of the replicas.
        lines: Lines for people below the table; the last is the next command.
        status: The exit status; ``None``: it follows from replicas and problems.
        are_said: Whether the details of what is done were printed already; the table then leaves them out.
    """
    rows = result.items
    status = status_of(rows, problems) if status is None else status
    listed = list(dict.fromkeys([*problems, *(row.problem for row in rows if row.problem is not None)]))
    shown = [replace(row, detail="") if are_said and row.state == ItemState.DONE else row for row in rows]
    tables = [Table(ITEM_COLUMNS, shown, is_sparse=True)] if rows else []
    return answer(arguments, streams, result, listed, (*tables, *lines), status=status)


def ran_of(arguments: argparse.Namespace, streams: Streams, name: str, request: Asked) -> Ran:
    """Run a use case by its name in ``use_cases``, in the daemon that has the broker open, or else here."""
    request.require_valid()
    spec = spec_of(name)
    reporter = TerminalReporter(streams, arguments.title)
    ran = _run_there(arguments, spec, request, reporter)
    if ran is None:
        with spec.opening(request_of(arguments), changes=arguments.apply) as broker:
            if arguments.apply:
                begin(broker, reporter)
            ran = use_cases.run(spec, broker, request, is_applied=arguments.apply, reporter=reporter)
    return ran


def require_no_daemon(arguments: argparse.Namespace) -> None:
    """Check that nothing is applied, or no daemon has the broker open. Raises ``WorkRootOwnedError``."""
    if arguments.apply and (path := socket_of_daemon(arguments)) is not None:
        from logdir.daemon.faults import in_use

        raise in_use(arguments.title, path)


def note_in_history(arguments: argparse.Namespace, event: str, problems: Sequence[Problem]) -> None:
    """Append problems to the history of the daemon of ``--config`` if it does not run; a running one does so itself."""
    if problems and arguments.config is not None and socket_of_daemon(arguments) is None:
        from logdir.daemon.config import read_config
        from logdir.daemon.report.history import add_alone

        add_alone(read_config(arguments.config).state_dir, event, [problem.line() for problem in problems])


def socket_of_daemon(arguments: argparse.Namespace) -> str | None:
    """Return the socket of the daemon that has this broker open; ``None``: there is none."""
    if arguments.config is None and not os.path.isdir("/etc/logdird"):  # noqa: PTH112
        return None
    from logdir.daemon.socket.find import socket_of

    return socket_of(arguments.config, arguments.server_properties)


def _run_there(arguments: argparse.Namespace, spec: Spec, request: Asked, reporter: TerminalReporter) -> Ran | None:
    """Let the daemon run a use case; return ``None`` if no daemon has this broker open."""
    if (path := socket_of_daemon(arguments)) is None:
        return None
    from logdir.daemon.socket.find import run_there

    # A request that names log dirs to skip by itself does not open any without them.
    about_opening = ("even_if_stale_disk",) if hasattr(request, "skipped") else ("skip_log_dir", "even_if_stale_disk")
    opening = [f"--{name.replace('_', '-')}" for name in about_opening if vars(arguments).get(name)]
    ran, warnings = run_there(path, spec, request, opening, is_applied=arguments.apply)
    for line in warnings:
        reporter.warn(line)
    return ran
