"""``logdirctl init --systemd``: write the drop-ins of the units of logdird and of its broker.

Not here: what stands in them, and which files are left alone (``logdir.service.systemd``).

Spec: design §6.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from logdir.errors import ConfigError, Problem
from logdir.service.report.table import Table
from tools.cli.arguments import Streams, answer
from tools.cli.broker import next_argv, request_of
from tools.cli.option import Flag, Option, typed

if TYPE_CHECKING:
    from logdir.service.systemd.set_up import SystemdRequest

_UNIT = Option("--unit", "with --systemd: the unit of the broker, where server.unit does not name it", "NAME")
_ROOT = Option("--root", "with --systemd: write below DIR, for an image of a host", "DIR")
OPTIONS = (Flag("--systemd", "write the drop-ins that the units need on this host, as root"), _UNIT, _ROOT)
_NO_GATE = "no start gate: name the unit of the broker with server.unit in the configuration, or with --unit"


def require_none_typed(arguments: argparse.Namespace) -> None:
    """Check that no option was typed that says something only with ``--systemd``. Raises ``ConfigError``."""
    if found := typed(arguments, _UNIT, _ROOT):
        raise ConfigError((Problem("config-error", "init", "--systemd beside it", found, "add --systemd"),))


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    from logdir.service.systemd import set_up  # the other way of init needs none of it

    found = set_up.plan(_request(arguments))
    if arguments.apply:
        found = set_up.apply(found)
    lines: list[str | Table[set_up.DropIn]] = [*set_up.texts(found), Table(set_up.COLUMNS, found.items)]
    if found.unit is None:
        lines.append(_NO_GATE)
    if not arguments.apply:
        lines.append(f"next: logdirctl init --systemd {typed(arguments, next_argv, _UNIT, _ROOT)} --apply")
    elif not found.problems:
        lines.append("next: systemctl daemon-reload")
    return answer(arguments, streams, found, found.problems, lines, status=found.exit)


def _request(arguments: argparse.Namespace) -> SystemdRequest:
    from logdir.daemon.config import read_config
    from logdir.service.systemd.set_up import SystemdRequest

    if arguments.config is None:
        fix = "write one first: server.properties: FILE is enough"
        raise ConfigError((Problem("config-error", "--systemd", "--config /etc/logdird/NAME.yaml", "none", fix),))
    config = read_config(arguments.config)
    # A link that was typed outlives an upgrade.
    program = sys.argv[0] if os.path.basename(sys.argv[0]) == "logdirctl" else sys.executable
    return SystemdRequest(
        broker=request_of(arguments),
        name=config.name,
        unit=arguments.unit or config.server_unit,
        programs=os.path.dirname(os.path.abspath(program)),
        root=arguments.root or "/",
        state_dir=config.state_dir,
        socket=config.socket,
        textfile=config.metrics_textfile,
        status_listen=config.status_listen,
        metrics_listen=config.metrics_listen,
    )
