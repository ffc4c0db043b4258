"""The ports of a broker whose calls are made in this process, on a disk of the test's."""

from __future__ import annotations

from collections.abc import Iterable

from logdir.disk.kernel.host import HostDisk
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.ports import BrokerPorts
from logdir.worker.port import LocalPort
from logdir.worker.remote import DEFAULT_PATIENCE_MS


def ports_here(log_dirs: Iterable[str], disk: HostDisk | None = None) -> BrokerPorts:
    """Return the ports of log dirs.

    Args:
        log_dirs: Their paths, in the order of the configuration.
        disk: What opens their directories; may watch the calls.
    """
    paths = tuple(log_dirs)
    ports = tuple(LocalPort(path, disk) for path in paths)
    return BrokerPorts(named=BrokerConfig(paths, None), ports=ports, patience_ms=DEFAULT_PATIENCE_MS)
