"""``logdirctl disk release``: let a running daemon let go one disk, so that it can be unmounted.

Not here: what the daemon does (``logdir.daemon.release``).

Spec: design §6.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from logdir.daemon.release import RELEASE, ReleaseRequest
from logdir.daemon.socket import client
from logdir.daemon.socket.client import DaemonUnreachableError
from logdir.service.report.result import ItemsResult
from logdir.text import quoted
from tools.cli.arguments import Exit, Streams, answered, put
from tools.logdirctl.status import add_where, socket_of


def add_parser(commands: Any) -> None:
    """Add ``disk`` and its command to the parser."""
    group = commands.add_parser("disk", description="One disk of a broker beside its running logdird.")
    parser = group.add_subparsers(dest="disk_command", metavar="COMMAND", required=True).add_parser(
        "release",
        help="let logdird let go a disk, so that it can be unmounted while the others go on",
        description="Let logdird let go a disk, so that it can be unmounted while the others go on. It is taken back "
        "when logdird reads its configuration again (SIGHUP) or is started again.",
        epilog="exit status: 0 done, 1 its worker process hangs, 2 usage or configuration, 4 refused",
    )
    parser.add_argument("log_dir", metavar="DIR", help="the log dir on the disk, as log.dirs names it")
    add_where(parser)
    parser.add_flag("--apply", "do it; without --apply the plan is only printed")
    parser.add_flag("--json", "one JSON object on standard output")
    parser.set_defaults(run=act, title=RELEASE.name)


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``disk release``; return the exit status."""
    path, log_dir = socket_of(arguments), os.path.abspath(arguments.log_dir)
    try:
        ran, _ = client.run(path, RELEASE, ReleaseRequest(log_dir=log_dir), is_applied=arguments.apply)
    except DaemonUnreachableError as error:
        if not isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError):
            raise  # It may run: this process cannot ask it.
        if not answered(arguments, streams, Exit.DONE, (), ItemsResult(applied=arguments.apply, items=())):
            put(streams, f"no logdird answers at {path}: nothing of it has {log_dir} open")
        return Exit.DONE
    if answered(arguments, streams, ran.exit, ran.problems, ran.result):
        return ran.exit
    put(streams, *(f"{item.log_dir}: {item.state.value}: {item.detail}" for item in ran.result.items))
    where = f"--config {quoted(arguments.config)}" if arguments.config else f"--socket {quoted(arguments.socket)}"
    words = "status" if arguments.apply else f"disk release {quoted(arguments.log_dir)}"
    put(streams, f"next: logdirctl {words} {where}{'' if arguments.apply else ' --apply'}")
    return ran.exit
