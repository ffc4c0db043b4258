"""``logdirctl init --systemd``: write the drop-ins of the units of logdird and of its broker.

Not here: what stands in them, and which files are left alone (``logdir.service.systemd``).

Spec: design §6.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from logdir.daemon.config import read_config
from logdir.errors import ConfigError, Problem
from logdir.service.report.table import Table
from logdir.service.systemd import drop_ins, set_up
from logdir.service.systemd.set_up import DropIn, SystemdRequest, SystemdResult
from tools.cli.arguments import Streams, answer
from tools.cli.broker import next_argv, request_of
from tools.cli.option import Flag, Option, typed

_UNIT = Option("--unit", "with --systemd: the unit of the broker, where server.unit does not name it", "NAME")
_ROOT = Option("--root", "with --systemd: write below DIR, for an image of a host", "DIR")
OPTIONS = (Flag("--systemd", "write the drop-ins that the units need on this host, as root"), _UNIT, _ROOT)


def require_none_typed(arguments: argparse.Namespace) -> None:
    """Check that no option was typed that says something only with ``--systemd``. Raises ``ConfigError``."""
    if found := typed(arguments, _UNIT, _ROOT):
        raise ConfigError((Problem("config-error", "init", "--systemd beside it", found, "add --systemd"),))


def act(arguments: argparse.Namespace, streams: Streams) -> int:
    """Run the command; return the exit status."""
    shown = set_up.plan(_request(arguments))
    found = set_up.apply(shown) if arguments.apply else shown
    return answer(arguments, streams, found, found.problems, _shown(arguments, found), status=found.exit)


def _request(arguments: argparse.Namespace) -> SystemdRequest:
    if arguments.config is None:
        fix = "write one first: server.properties: FILE is enough"
        raise ConfigError((Problem("config-error", "--systemd", "--config /etc/logdird/NAME.yaml", "none", fix),))
    config = read_config(arguments.config)
    return SystemdRequest(
        broker=request_of(arguments),
        name=config.name,
        unit=arguments.unit or getattr(config, "server_unit", None),
        programs=os.path.dirname(os.path.abspath(sys.executable)),
        root=arguments.root or "/",
        state_dir=config.state_dir,
        socket=config.socket,
        textfile=getattr(config, "metrics_textfile", None),
        status_listen=getattr(config, "status_listen", None),
        metrics_listen=getattr(config, "metrics_listen", None),
    )


def _shown(arguments: argparse.Namespace, found: SystemdResult) -> Iterator[str | Table[DropIn]]:
    yield from drop_ins.shown({one.path: one.content or "" for one in found.items if one.is_changed})
    yield Table(set_up.COLUMNS, found.items)
    if found.unit is None:
        yield "no start gate: name the unit of the broker with server.unit in the configuration, or with --unit"
    if not arguments.apply:
        yield f"next: logdirctl init --systemd {typed(arguments, next_argv, _UNIT, _ROOT)} --apply"
    elif not found.problems:
        yield "next: systemctl daemon-reload"
