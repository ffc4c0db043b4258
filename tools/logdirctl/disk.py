"""``logdirctl disk release``: release a disk of a running daemon, so that it can be unmounted.

Not here: what the daemon does (``logdir.daemon.release``).

Spec: design §6.
"""

from __future__ import annotations

import argparse
import os

from logdir.daemon.former_config import socket_of
from logdir.daemon.release import RELEASE, ReleaseRequest
from logdir.daemon.socket import client
from logdir.daemon.socket.client import DaemonUnreachableError
from logdir.service.report.result import ItemsResult
from tools.cli.arguments import Streams, answer
from tools.cli.broker import JSON
from tools.cli.command import Command, Group
from tools.cli.option import Flag, Option, typed
from tools.logdirctl.status import DAEMON


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run ``disk release``; return the exit status."""
    path = arguments.socket or socket_of(arguments.config)[0]
    log_dir = os.path.abspath(arguments.log_dir)
    try:
        ran, _ = client.run(path, RELEASE, ReleaseRequest(log_dir=log_dir), is_applied=arguments.apply)
    except DaemonUnreachableError as error:
        if not isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError):
            raise  # It may run: this process cannot ask it.
        nothing = f"no logdird answers at {path}: nothing of it has {log_dir} open"
        return answer(arguments, streams, ItemsResult(applied=arguments.apply, items=()), (), (nothing,))
    lines = [f"{item.log_dir}: {item.state.value}: {item.detail}" for item in ran.result.items]
    following = f"disk release {typed(arguments, _DIR, *DAEMON)} --apply"
    if arguments.apply:
        following = f"status {typed(arguments, *DAEMON)}"
    shown = (*lines, f"next: logdirctl {following}")
    return answer(arguments, streams, ran.result, ran.problems, shown, status=ran.exit)


_DIR = Option("log_dir", "the log dir on the disk, as log.dirs names it", "DIR")
COMMAND = Group(
    title="disk",
    description="One disk of a broker beside its running logdird.",
    commands=(
        Command(
            title=RELEASE.name,
            run=act,
            help="release a disk, so that it can be unmounted while logdird goes on with the others",
            description="Release a disk, so that it can be unmounted while logdird goes on with the others. It is "
            "taken back when logdird reads its configuration again (SIGHUP) or is started again.",
            ends="0 done, 1 its worker process hangs, 2 usage or configuration, 4 refused",
            options=(_DIR, *DAEMON, Flag("--apply", "do it; without --apply the plan is only printed"), JSON),
        ),
    ),
)
