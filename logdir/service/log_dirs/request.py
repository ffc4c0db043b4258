"""The broker of a use case, and the operator's statements about its disks.

Spec: design §6; attacks A23, A25.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from logdir.errors import ConfigError, Problem
from logdir.service.log_dirs.config import BrokerConfig, read_config
from logdir.worker.reaping import Unreaped
from logdir.worker.remote import DEFAULT_PATIENCE_MS


class LeftOut(NamedTuple):
    """The log dirs for which no worker is started, and what becomes of workers that do not end."""

    problems: Mapping[str, Problem] = {}
    """Why, by log dir as configured; calls on such a log dir are refused with that problem."""
    unreaped: Unreaped | None = None
    """Keeps each port whose worker has not ended when the ports are closed, and each process of ``apart`` that has not
    ended; ``None``: they are forgotten at the end.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRequest:
    """The broker of a use case, and the operator's statements about its disks."""

    server_properties: str | None = None
    """Path of the broker's configuration; ``None`` if its log dirs are listed."""
    log_dirs: str | None = None
    """The log dirs themselves, separated by commas."""
    skipped: tuple[str, ...] = ()
    """Log dirs that ``--skip-log-dir`` names; they may not answer."""
    accepted_stale: tuple[str, ...] = ()
    """Stale disks that an operator has checked and accepted."""
    named_disk: str | None = None
    """The log dir of ``--disk``, which limits a selection; checked only for being one of the broker's."""
    disk_timeout_ms: int = DEFAULT_PATIENCE_MS
    """How long a log dir may give no sign of life before it is SUSPECT."""
    least_free_percent: int | None = None
    """``staged.min.free``: a disk with less free space is nearly full; ``None``: the default."""
    client_properties: str | None = None
    """The client properties file of the daemon's configuration, by which the quorum is asked; ``None``: it is not."""
    daemon_config: str | None = None
    """Path of the daemon's configuration, if that names the broker: commands that are proposed name it, too."""
    source: str | None = None
    """The source of cluster metadata (``source.Uri``): its disk is checked beside the log dirs."""

    def config(self) -> BrokerConfig:
        """Read the broker's configuration.

        Raises:
            ConfigError: it cannot be read, or names no usable log dir.
        """
        return read_config(self.server_properties, self.log_dirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialBroker(BrokerRequest):
    """The broker of a use case that starts no worker for some of its log dirs."""

    left_out: LeftOut


def skipped_of(request: BrokerRequest, config: BrokerConfig) -> frozenset[str]:
    """Return the absolute paths of the log dirs that ``--skip-log-dir`` names.

    Raises:
        ConfigError: a path is no log dir of the broker.
    """
    return require_log_dirs("--skip-log-dir", request.skipped, config)


def accepted_of(request: BrokerRequest, config: BrokerConfig) -> frozenset[str]:
    """Return the absolute paths of the stale disks that an operator has accepted.

    Raises:
        ConfigError: a path is no log dir of the broker.
    """
    return require_log_dirs("--even-if-stale-disk", request.accepted_stale, config)


def require_log_dirs(option: str, paths: Sequence[str], config: BrokerConfig) -> frozenset[str]:
    """Return absolute paths, each of which is a log dir of the broker; ``option`` is for the message.

    Raises:
        ConfigError: a path is no log dir of the broker.
    """
    absolute = [os.path.abspath(path) for path in paths]
    strange = [path for path in absolute if path not in config.log_dirs]
    if strange:
        expected = "one of the broker's log dirs"
        raise ConfigError(tuple(Problem("config-error", option, expected, path) for path in strange))
    return frozenset(absolute)
