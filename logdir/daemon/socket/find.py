"""Finding the daemon that has a broker open, by its own configuration file or by that of the broker, and asking it.

Spec: design §6.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from logdir.daemon.config import CONFIG_HOME, read_config
from logdir.daemon.socket import client
from logdir.daemon.socket.client import is_answering
from logdir.errors import ConfigError, LogDirError, Problem
from logdir.service.batch.use_cases import Spec
from logdir.service.cluster.source import parse_uri
from logdir.service.report.use_case import Ran


def socket_of(config: str | None, server_properties: str | None, home: str = CONFIG_HOME) -> str | None:
    """Return the control socket of the daemon that manages a broker; ``None``: no such daemon answers.

    Args:
        config: The configuration file of the daemon, if it is named.
        server_properties: Otherwise the configuration file of the broker: in ``home`` the configuration of the daemon
            is looked for that names this file.
        home: The directory of the configuration files.

    Raises:
        ConfigError: ``config`` cannot be read, or does not fit.
    """
    if config is not None:
        path = read_config(config).socket
        return path if is_answering(path) else None
    if server_properties is None:
        return None
    wanted = os.path.realpath(server_properties)
    for file in sorted(Path(home).glob("*.yaml")):
        try:
            found = read_config(str(file))
        except LogDirError:
            continue  # It is of another broker, or its daemon does not start either.
        if os.path.realpath(found.server_properties) == wanted and is_answering(found.socket):
            return found.socket
    return None


def run_there(
    path: str, spec: Spec, request: Any, opening: Sequence[str], *, is_applied: bool
) -> tuple[Ran, tuple[str, ...]]:
    """Let a daemon run a use case; return what came of it, and the warnings that came before a change.

    Args:
        path: Its socket.
        spec: The use case.
        request: Its request; paths start at the current directory.
        opening: Options that were typed, and are about how log dirs are opened.
        is_applied: Whether to do it.

    Raises:
        ConfigError: there are such options, and the daemon has the log dirs open already.
        LogDirError: as ``client.run``.
    """
    if opening:
        fix = "leave it out, or stop logdird first"
        expected, found = "no such option while logdird has the log dirs open", "the option"
        raise ConfigError(tuple(Problem("config-error", option, expected, found, fix) for option in opening))
    return client.run(path, spec, _absolute(request), is_applied=is_applied)


def _absolute(request: Any) -> Any:
    """Return a request whose paths do not depend on the current directory."""
    source = getattr(request, "source", None)
    if source is not None:
        request = replace(request, source=source._replace(uri=str(parse_uri(source.uri))))
    for key in ("listings", "skipped"):
        if paths := getattr(request, key, None):
            request = replace(request, **{key: tuple(map(os.path.abspath, paths))})
    return request
