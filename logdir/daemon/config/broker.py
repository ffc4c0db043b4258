"""What the configuration of the daemon says together with that of its broker.

Not here: the configuration of the broker itself (``service.log_dirs.config``).

Spec: design §6 "Configuration"; kafka-behaviour §2.8, §3.2.
"""

from __future__ import annotations

from typing import Final

from logdir.daemon.config.daemon_config import DaemonConfig
from logdir.errors import ConfigError, Problem
from logdir.formats.kafka import java_properties
from logdir.java_number import parse_java_int
from logdir.observe.named_file import read_named
from logdir.paths import BESIDE
from logdir.service.log_dirs.config import BrokerConfig

_MAX_BYTES: Final = 1 << 20
_DELETE_DELAY: Final = "log.segment.delete.delay.ms"
LEAST_DELETE_DELAY_MS: Final = 20 * 1000
"""Below this delete delay of the broker the daemon warns."""


def broker_of(config: DaemonConfig) -> BrokerConfig:
    """Return the broker of a configuration.

    Raises:
        ConfigError: the broker's configuration or the client properties file cannot be read or is invalid; or a file
            or directory of the daemon lies in a log dir or work root: a directory there stops a stock broker, and
            only a worker process may wait for the disk of a log dir (law 6).
    """
    broker = config.broker_request().config()
    own = {"state.dir": config.state_dir, "socket": config.socket, "metrics.textfile": config.metrics_textfile}
    problems = [
        Problem(
            "config-error",
            f"{config.file}: {key}",
            "a path outside every log dir and work root",
            path,
            "name another place",
        )
        for key, path in own.items()
        for top in (place for log_dir in broker.log_dirs for place in (log_dir, f"{log_dir}{BESIDE}"))
        if path is not None and f"{path}/".startswith(f"{top}/")
    ]
    if problems:
        raise ConfigError(tuple(problems))
    if config.client_properties is not None:
        # Loaded only here: TLS takes longer to load than all the rest.
        from logdir.service.cluster.live_source import require_client

        require_client(config.client_properties, f"{config.file}: client.properties")
    return broker


def delete_delay_ms(server_properties: str) -> int | None:
    """Return the broker's ``log.segment.delete.delay.ms``; ``None``: it is not set, and Kafka's 60,000 counts.

    Raises:
        ConfigError: the broker's configuration cannot be read.
    """
    data = read_named(server_properties, _MAX_BYTES, "a server.properties to read")
    return parse_java_int(java_properties.parse(data, server_properties).get(_DELETE_DELAY, "").strip())


def short_delete_delay(server_properties: str) -> Problem | None:
    """Return the warning that the broker removes what it deletes so soon that a capture may come too late.

    Raises:
        ConfigError: the broker's configuration cannot be read.
    """
    found_ms = delete_delay_ms(server_properties)
    if found_ms is None or found_ms >= LEAST_DELETE_DELAY_MS:
        return None
    return Problem(
        "delete-delay-short",
        server_properties,
        f"{_DELETE_DELAY} of {LEAST_DELETE_DELAY_MS} or more: a restart of logdird takes some of it",
        str(found_ms),
        "raise it, or leave it out: Kafka's default is 60000",
    )
