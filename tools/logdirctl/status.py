"""``logdirctl status``: what a daemon does, what waits for an operator, and what is purged next.

Not here: where the status is made (``logdir.daemon.status``).

Spec: design §6.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from logdir.daemon.config import read_config
from logdir.daemon.socket import client
from logdir.daemon.status import LogDirStatus, StatusResult
from logdir.text import quoted, size, utc
from tools.cli.arguments import Exit, Streams, answered, put
from tools.cli.columns import Column, table


def add_parser(commands: Any) -> None:
    """Add ``status`` to the parser."""
    parser = commands.add_parser(
        "status",
        description="Show the daemon of one broker: its log dirs, the undo window, what waits for an operator.",
        epilog="exit status: 0 done, 1 something waits for an operator, 2 usage or configuration, 4 no daemon answers",
    )
    add_where(parser)
    parser.add_flag("--watch", "again every two seconds, until Ctrl-C")
    parser.add_flag("--json", "one JSON object on standard output")
    parser.set_defaults(run=act, title="status")


def add_where(parser: Any) -> None:
    """Add ``--config`` and ``--socket``, of which one names a daemon."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--config", metavar="FILE", help="the configuration of the daemon, as /etc/logdird/NAME.yaml")
    where.add_argument("--socket", metavar="PATH", help="its control socket")


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
    status = Exit.PROBLEMS if found.waiting else Exit.DONE
    if answered(arguments, streams, status, found.waiting, found):
        return status
    runs = {True: "runs", False: "is stopped", None: "is not known to run"}[found.broker_runs]
    head = (
        f"{found.name}: {found.state} since {utc(found.since_ms)}; node {found.node_id} of cluster {found.cluster_id}"
    )
    done = f"captured {found.captured}, missed {found.missed}, purged {found.purged}; {found.queued} requests wait"
    put(streams, f"{head}; its broker {runs}", f"{done}; next purge {utc(found.next_due_ms)}")
    table(streams.out, _COLUMNS, found.log_dirs)
    for event in found.events[-5:]:
        put(streams, f"{utc(event.at_ms)} {event.event} {event.detail}")
    if arguments.config:
        put(streams, f"next: logdirctl staged ls --config {quoted(arguments.config)}")
    return status


_COLUMNS: tuple[Column[LogDirStatus], ...] = (
    Column("log dir", "log_dir"),
    Column("state", "state"),
    Column("free", lambda one: size(one.free_bytes), is_number=True),
    Column("undo", lambda one: "off: below floor" if one.is_undo_off else "on"),
    Column("staged", "staged", is_number=True),
    Column("bytes", lambda one: size(one.staged_bytes), is_number=True),
    Column("held", "held", is_number=True),
    Column("next purge (UTC)", lambda one: utc(one.next_due_ms)),
)
