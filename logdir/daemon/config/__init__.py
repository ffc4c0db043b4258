"""The configuration of the daemon: one YAML file for one broker, ``/etc/logdird/NAME.yaml``.

Log dirs, node id and delete delay are read from the broker's own configuration and never repeated here. Unknown keys
are refused, and all problems are reported at once. ``keys`` is the table of all keys: reading, suggestions for a
misspelled key and the table of ``docs/config.md`` follow from it.

Not here: the broker's configuration (``service.log_dirs.config``), YAML (``formats.strict_yaml``).

Spec: design §6 "Configuration", §3.3; style §5.9.
"""

from logdir.daemon.config.broker import broker_of, delete_delay_ms, short_delete_delay
from logdir.daemon.config.daemon_config import CONFIG_HOME, DaemonConfig
from logdir.daemon.config.keys import KEYS, needing_restart
from logdir.daemon.config.parsing import parse, read_config

__all__ = [
    "CONFIG_HOME",
    "KEYS",
    "DaemonConfig",
    "broker_of",
    "delete_delay_ms",
    "needing_restart",
    "parse",
    "read_config",
    "short_delete_delay",
]
