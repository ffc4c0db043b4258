"""Which broker a use case is about, and what an operator says of its disks.

Spec: design §6; attacks A23, A25.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from logdir.errors import ConfigError, Problem
from logdir.service.log_dirs.config import BrokerConfig, read_config
from logdir.worker.remote import DEFAULT_PATIENCE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRequest:
    """Which broker a use case is about, and what an operator says of its disks."""

    server_properties: str | None = None
    """Path of the broker's configuration; ``None`` where its log dirs are listed."""
    log_dirs: str | None = None
    """The log dirs themselves, separated by commas."""
    skipped: tuple[str, ...] = ()
    """Log dirs that ``--skip-log-dir`` names; they may not answer."""
    accepted_stale: tuple[str, ...] = ()
    """Log dirs that were away and are back, and that an operator has looked at since."""
    named_disk: str | None = None
    """A log dir to which a selection is narrowed; checked only for being one of the broker's."""
    disk_timeout_ms: int = DEFAULT_PATIENCE_MS
    """How long a log dir may give no sign of life before it is SUSPECT."""
    source: str | None = None
    """What the cluster says comes from there (``source.Uri``): its disk is asked beside the log dirs."""

    def config(self) -> BrokerConfig:
        """Read the broker's configuration.

        Raises:
            ConfigError: it cannot be read or names nothing usable.
        """
        return read_config(self.server_properties, self.log_dirs)


def skipped_of(request: BrokerRequest, config: BrokerConfig) -> frozenset[str]:
    """Return the absolute paths of the log dirs that ``--skip-log-dir`` names.

    Raises:
        ConfigError: one of them is not among the broker's log dirs.
    """
    return require_log_dirs("--skip-log-dir", request.skipped, config)


def accepted_of(request: BrokerRequest, config: BrokerConfig) -> frozenset[str]:
    """Return the absolute paths of the log dirs that were away, and that an operator has looked at since.

    Raises:
        ConfigError: one of them is not among the broker's log dirs.
    """
    return require_log_dirs("--even-if-stale-disk", request.accepted_stale, config)


def require_log_dirs(option: str, paths: Sequence[str], config: BrokerConfig) -> frozenset[str]:
    """Return absolute paths, each of which is one of the broker's log dirs; ``option`` is for the message.

    Raises:
        ConfigError: one is not.
    """
    absolute = [os.path.abspath(path) for path in paths]
    strange = [path for path in absolute if path not in config.log_dirs]
    if strange:
        expected = "one of the broker's log dirs"
        raise ConfigError(tuple(Problem("config-error", option, expected, path) for path in strange))
    return frozenset(absolute)
