"""The configuration of one daemon, as the daemon and the commands have it in memory.

Not here: the file (``parsing``), its keys (``keys``).

Spec: design §6 "Configuration".
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

from logdir.decide.capture import LEAST_FREE_PERCENT
from logdir.decide.staged.deadline import DelayPolicy
from logdir.decide.staged.pressure import Pressure
from logdir.decide.staged.removal_reason import KEPT, RemovalReason
from logdir.disk.replica.rate_limiter import BYTES_PER_SECOND
from logdir.service.log_dirs.request import BrokerRequest
from logdir.worker.remote import DEFAULT_PATIENCE_MS

CONFIG_HOME: Final = "/etc/logdird"
STATE_HOME: Final = "/var/lib/logdird"
RUN_HOME: Final = "/run/logdird"
DEFAULT_SWEEP_MS: Final = 10 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonConfig:
    """The configuration of one daemon."""

    name: str
    """The name of its file without ``.yaml``; also names state directory and socket."""
    file: str
    """Absolute path of the configuration file."""
    server_properties: str
    """Absolute path of the broker's configuration."""
    state_dir: str
    """Absolute path of the directory for history and inbox; never on a disk of the broker."""
    socket: str
    """Absolute path of the control socket."""
    client_properties: str | None = None
    """Absolute path of the client properties file by which the cluster is asked; ``None``: it is not asked."""
    delays: DelayPolicy = field(default_factory=DelayPolicy)
    capture_exclude: tuple[str, ...] = ()
    """Topic globs whose deletions are not captured."""
    auto_while_stopped: bool = False
    """Whether captures and purges go on while the broker is stopped (law 4)."""
    capture_reasons: tuple[RemovalReason, ...] = KEPT
    """Why a captured replica was removed, for it to stay until its deadline."""
    least_free_percent: int = LEAST_FREE_PERCENT
    pressure: Pressure = Pressure.PURGE_CAPTURED
    disk_timeout_ms: int = DEFAULT_PATIENCE_MS
    sweep_ms: int = DEFAULT_SWEEP_MS
    purge_bytes_per_second: int = BYTES_PER_SECOND
    status_listen: tuple[str, int] | None = None
    """Loopback address and TCP port of the status page; ``None``: no port is opened."""
    metrics_listen: tuple[str, int] | None = None
    """Address and TCP port at which the metrics are read; ``None``: no port is opened."""
    metrics_textfile: str | None = None
    """Absolute path of the file into which the metrics are written; ``None``: none is."""
    server_unit: str | None = None
    """The systemd unit of the broker, for which ``logdirctl init`` writes a drop-in; ``None``: it is not named."""

    @property
    def named(self) -> dict[str, str | None]:
        """The part of a ``BrokerRequest`` that a command takes from here."""
        named = {"server_properties": self.server_properties, "client_properties": self.client_properties}
        return {**named, "daemon_config": os.path.abspath(self.file)}

    def broker_request(self, *, skipped: tuple[str, ...] = (), accepted_stale: tuple[str, ...] = ()) -> BrokerRequest:
        """Return the request for this broker.

        Args:
            skipped: Log dirs that have failed and are left alone.
            accepted_stale: Stale disks that an operator has accepted.
        """
        return BrokerRequest(
            **self.named,
            skipped=skipped,
            accepted_stale=accepted_stale,
            disk_timeout_ms=self.disk_timeout_ms,
            least_free_percent=self.least_free_percent,
        )
