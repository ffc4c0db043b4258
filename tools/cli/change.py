"""The frame of the commands that change replicas one by one: run the use case, here or in the daemon, and print.

Not here: what is asked and what follows from it (``logdir.service``), what is printed of it (``report``).

Spec: design §5 "A use case".
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from logdir.service.batch.use_cases import Spec, run, spec_of
from logdir.service.report.exit_status import Exit
from logdir.service.report.result import ItemResult
from logdir.service.report.use_case import Asked, Ran
from tools.cli.arguments import Streams
from tools.cli.broker import request_of, said_of_override
from tools.cli.progress import TerminalReporter
from tools.cli.report import finish, is_planned


def change(
    arguments: argparse.Namespace,
    streams: Streams,
    request: Asked,
    next_line: Callable[[Sequence[ItemResult]], str],
    *,
    are_said: bool = False,
    are_overrides_said: bool = True,
) -> Exit:
    """Show what the use case of a command would do, or with ``--apply`` do it; return the exit status.

    Args:
        arguments: Of the command; ``title`` names the use case.
        streams: Where to write.
        request: The request of the use case.
        next_line: Returns the next command to type, from what became of each replica.
        are_said: As for ``finish``.
        are_overrides_said: Whether a plan that rests on an override says how it is done.
    """
    ran = ran_of(arguments, streams, arguments.title, request)
    items = ran.result.items
    override = said_of_override(arguments, is_planned=is_planned(items)) if are_overrides_said else ()
    result = ran.result
    return finish(
        arguments,
        streams,
        items,
        ran.problems,
        next_line(items),
        status=ran.exit,
        result=lambda **_: result,
        lines=(*ran.lines, *override),
        are_said=are_said,
    )


def ran_of(arguments: argparse.Namespace, streams: Streams, name: str, request: Asked) -> Ran:
    """Run a use case by its name in ``use_cases``, in the daemon that has the broker open, or else here."""
    request.require_valid()
    spec = spec_of(name)
    reporter = TerminalReporter(streams, arguments.title)
    ran = _run_there(arguments, spec, request, reporter)
    if ran is None:
        with spec.opening(request_of(arguments), changes=arguments.apply) as broker:
            ran = run(spec, broker, request, is_applied=arguments.apply, reporter=reporter)
    return ran


def require_no_daemon(arguments: argparse.Namespace) -> None:
    """Return if no daemon has the broker open, or nothing is applied. Raises ``WorkRootOwnedError``."""
    if arguments.apply and (path := _socket_of(arguments)) is not None:
        from logdir.daemon.faults import in_use

        raise in_use(arguments.title, path)


def _socket_of(arguments: argparse.Namespace) -> str | None:
    if arguments.config is None and not os.path.isdir("/etc/logdird"):  # noqa: PTH112
        return None
    from logdir.daemon.socket.find import socket_of

    return socket_of(arguments.config, arguments.server_properties)


def _run_there(arguments: argparse.Namespace, spec: Spec, request: Asked, reporter: TerminalReporter) -> Ran | None:
    """Let the daemon run a use case; return ``None`` if no daemon has this broker open."""
    if (path := _socket_of(arguments)) is None:
        return None
    from logdir.daemon.socket.find import run_there

    opening = [
        f"--{name.replace('_', '-')}" for name in ("skip_log_dir", "even_if_stale_disk") if vars(arguments).get(name)
    ]
    ran, warnings = run_there(path, spec, request, opening, is_applied=arguments.apply)
    for line in warnings:
        reporter.warn(line)
    return ran
