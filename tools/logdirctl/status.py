"""``logdirctl status``: what a daemon does, what waits for an operator, and what is purged next.

Not here: where the status is made (``logdir.daemon.report.status``), the page (``logdir.daemon.page.render``).

Spec: design §6.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace

from logdir import clock
from logdir.daemon.former_config import socket_of
from logdir.daemon.report.status import COLUMNS, StatusResult
from logdir.daemon.socket import client
from logdir.errors import ConfigError, Problem
from logdir.service.report.table import Table
from logdir.text import utc
from tools.cli.arguments import Exit, Streams, answer, tell
from tools.cli.broker import JSON
from tools.cli.command import Command
from tools.cli.option import Flag, OneOf, Option, typed
from tools.cli.streams import as_utf8

_STDOUT = "-"


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``status``; return the exit status."""
    if arguments.html == _STDOUT and arguments.json:
        found, fix = "both on standard output", "leave --json out, or name a file"
        raise ConfigError((Problem("config-error", "--html -", "--html - without --json", found, fix),))
    path, problems = (arguments.socket, ()) if arguments.socket else socket_of(arguments.config)
    again = "" if problems or not arguments.config else f"next: logdirctl staged ls {typed(arguments, *DAEMON)}"
    while (status := _show(arguments, streams, _asked(path, problems), again)) is not None and arguments.watch:
        streams.out.flush()
        time.sleep(2)
    return status


def _asked(path: str, problems: tuple[Problem, ...]) -> StatusResult:
    found = client.status(path)
    return replace(found, waiting=tuple(dict.fromkeys((*problems, *found.waiting))))


def _show(arguments: argparse.Namespace, streams: Streams, found: StatusResult, again: str) -> Exit:
    if arguments.html == _STDOUT:
        tell(arguments.title, found.waiting, streams)
        as_utf8(streams.out)
        streams.out.write(_page(found))
        return Exit.PROBLEMS if found.waiting else Exit.DONE
    if arguments.html is not None:
        _write(arguments.html, found)
        shown = (*found.summary, f"wrote {arguments.html}", "next: open it in a browser")
        return answer(arguments, streams, found, found.waiting, shown)
    whole = (
        *found.summary,
        Table(COLUMNS, found.log_dirs),
        *(f"{utc(event.at_ms)} {event.event} {event.detail}" for event in found.events[-5:]),
        *((again,) if again else ()),
    )
    return answer(arguments, streams, found, found.waiting, whole)


def _page(found: StatusResult) -> str:
    from logdir.daemon.page.render import render

    return render(found, clock.now_ms())


def _write(output: str, found: StatusResult) -> None:
    """Write the page, or replace an older one; a failure leaves that as it was."""
    from pathlib import Path

    from logdir.observe.outside import require_outside
    from migrate.plan.publish import write_file  # It writes what lies outside all log dirs, of whatever half.

    path = Path(os.path.abspath(output))
    if path.is_dir():
        problem = Problem("config-error", f"--html {output}", "a file to write", "a directory", "name a file in it")
        raise ConfigError((problem,))
    require_outside(str(path))
    write_file(path, _page(found).encode())


_WHERE = OneOf("the daemon")
DAEMON = (
    Option("--config", "the configuration of the daemon, as /etc/logdird/NAME.yaml", "FILE", one_of=_WHERE),
    Option("--socket", "its control socket", "PATH", one_of=_WHERE),
)
"""What names a daemon."""
_SHOWN = OneOf("how it is shown", is_required=False)
_HTML = "write the status page, for a browser; - is standard output, and an older FILE is replaced"
COMMAND = Command(
    title="status",
    run=act,
    description="Show the daemon of one broker: its log dirs, the undo window, what waits for an operator.",
    ends="0 done, 1 something waits for an operator, 2 usage or configuration, 4 no daemon answers",
    options=(
        *DAEMON,
        Flag("--watch", "again every two seconds, until Ctrl-C", one_of=_SHOWN),
        Option("--html", _HTML, "FILE", one_of=_SHOWN),
        JSON,
    ),
)
