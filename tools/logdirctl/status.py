"""``logdirctl status``: what a daemon does, what waits for an operator, and what is purged next.

Not here: where the status is made (``logdir.daemon.report.status``).

Spec: design §6.
"""

from __future__ import annotations

import argparse
import time

from logdir.daemon.config import read_config
from logdir.daemon.report.status import COLUMNS, StatusResult
from logdir.daemon.socket import client
from logdir.service.report.table import Table
from logdir.text import utc
from tools.cli.arguments import Exit, Streams, answer
from tools.cli.broker import JSON
from tools.cli.command import Command
from tools.cli.option import Flag, OneOf, Option, typed


def socket_of(arguments: argparse.Namespace) -> str:
    """Return the path of the control socket that the arguments name."""
    return arguments.socket or read_config(arguments.config).socket


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``status``; return the exit status."""
    path = socket_of(arguments)
    while (status := _show(arguments, streams, client.status(path))) is not None and arguments.watch:
        streams.out.flush()
        time.sleep(2)
    return status


def _show(arguments: argparse.Namespace, streams: Streams, found: StatusResult) -> Exit:
    shown = (
        *found.summary,
        Table(COLUMNS, found.log_dirs),
        *(f"{utc(event.at_ms)} {event.event} {event.detail}" for event in found.events[-5:]),
        *((f"next: logdirctl staged ls {typed(arguments, *DAEMON)}",) if arguments.config else ()),
    )
    return answer(arguments, streams, found, found.waiting, shown)


_WHERE = OneOf("the daemon")
DAEMON = (
    Option("--config", "the configuration of the daemon, as /etc/logdird/NAME.yaml", "FILE", one_of=_WHERE),
    Option("--socket", "its control socket", "PATH", one_of=_WHERE),
)
"""What names a daemon."""
COMMAND = Command(
    title="status",
    run=act,
    description="Show the daemon of one broker: its log dirs, the undo window, what waits for an operator.",
    ends="0 done, 1 something waits for an operator, 2 usage or configuration, 4 no daemon answers",
    options=(
        *DAEMON,
        Flag("--watch", "again every two seconds, until Ctrl-C"),
        JSON,
    ),
)
