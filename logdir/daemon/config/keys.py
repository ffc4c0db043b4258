"""Every key of the configuration: its field, its value, its default, and when a change takes effect.

Reading (``parsing``), the suggestion for a misspelled key and the table of ``docs/config.md`` follow from ``KEYS``.

Spec: design §6 "Configuration", §3.3.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Final

from logdir.daemon.config import values
from logdir.daemon.config.daemon_config import RUN_HOME, STATE_HOME, DaemonConfig
from logdir.daemon.config.values import Read
from logdir.decide.staged.deadline import DEFAULT_DELAY_MS, SETTING
from logdir.decide.staged.pressure import Pressure
from logdir.decide.staged.removal_reason import RemovalReason

ALIAS: Final = "delete.stale.topic.delay.ms"
"""The name that an earlier text of KIP-516 gives ``delete.topic.delay.ms``."""
TOPICS: Final = "topics"
DELAYS: Final = "delays"
"""The field that two keys fill: the delay of every topic, and those of ``topics``."""


class When(Enum):
    """When a change of a key in the file takes effect."""

    AT_ONCE = "at once"
    """When the file is read again (SIGHUP), and for the next command that reads it."""
    RESTART = "restart"
    """When the daemon is started again; until then a file with another value is not taken."""


_BUILT_IN: Final = {one.name: one.default for one in fields(DaemonConfig)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of the file, for the parser and for people."""

    name: str
    field: str
    """The field of ``DaemonConfig`` that it fills."""
    read: Read | None
    """Reads its value; ``None``: a mapping, whose keys ``parsing`` reads one by one."""
    type: str
    text: str
    """What it is for."""
    unit: str = "-"
    default: str | None = None
    """What counts without the key, for people; ``None``: the default of the field."""
    when: When = When.AT_ONCE

    @property
    def default_text(self) -> str:
        """What counts without the key, for people."""
        return _shown(_BUILT_IN[self.field]) if self.default is None else self.default


def _shown(value: object) -> str:
    """Return a default for people."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    return str(value.value if isinstance(value, Enum) else value)


KEYS: Final = (
    Key(
        name="server.properties",
        field="server_properties",
        read=values.path,
        type="path",
        default="required",
        text="the broker's configuration, from which log.dirs is read",
    ),
    Key(
        name="state.dir",
        field="state_dir",
        read=values.path,
        type="path",
        default=f"{STATE_HOME}/NAME",
        when=When.RESTART,
        text="history, inbox, gaps.json; not on a disk of the broker",
    ),
    Key(
        name="socket",
        field="socket",
        read=values.socket_path,
        type="path",
        default=f"{RUN_HOME}/NAME.sock",
        when=When.RESTART,
        text="the control socket; its lock file lies beside it",
    ),
    Key(
        name="client.properties",
        field="client_properties",
        read=values.path,
        type="path",
        text="the client properties file by which the cluster is asked (docs/client.md); none: it is not asked",
    ),
    Key(
        name=SETTING,
        field=DELAYS,
        read=values.delay,
        type="whole number",
        unit="ms",
        default=str(DEFAULT_DELAY_MS),
        text=f"how long a staged replica stays; 0: a deletion is not captured; alias {ALIAS}",
    ),
    Key(
        name=TOPICS,
        field=DELAYS,
        read=None,
        type="mapping",
        default="none",
        text=f"topic glob to a mapping with {SETTING}; the longest that matches counts",
    ),
    Key(
        name="capture.exclude",
        field="capture_exclude",
        read=values.globs,
        type="list of globs",
        text="topics of which neither a deletion nor a -stray is captured",
    ),
    Key(
        name="capture.reasons",
        field="capture_reasons",
        read=values.reasons,
        type="list of reasons",
        text=f"what is captured for another reason is due at once; the reasons: {values.words(RemovalReason)}",
    ),
    Key(
        name="staged.min.free",
        field="least_free_percent",
        read=values.number(0, 99),
        type="whole number",
        unit="%",
        text="free bytes and inodes of a disk below which nothing is captured there",
    ),
    Key(
        name="pressure",
        field="pressure",
        read=values.pressure,
        type=values.words(Pressure, " or "),
        text="below staged.min.free: purge captured replicas before their deadline, oldest first, or keep them",
    ),
    Key(
        name="auto.while.stopped",
        field="auto_while_stopped",
        read=values.flag,
        type="true or false",
        text="whether logdird works by itself while the broker is stopped: captures, purges, documents of the inbox, "
        "and what the broker's own metadata log removed before the stop",
    ),
    Key(
        name="disk.timeout.ms",
        field="disk_timeout_ms",
        read=values.number(100, 24 * 60 * 60 * 1000),
        type="whole number",
        unit="ms",
        text="after how long without an answer a log dir is SUSPECT",
    ),
    Key(
        name="sweep.interval.ms",
        field="sweep_ms",
        read=values.number(500, 60 * 1000),
        type="whole number",
        unit="ms",
        text="time between two looks for deletions",
    ),
    Key(
        name="purge.bytes.per.second",
        field="purge_bytes_per_second",
        read=values.number(0, 1 << 50),
        type="whole number",
        unit="bytes/s",
        text="purge rate per disk; 0: no limit",
    ),
    Key(
        name="status.listen",
        field="status_listen",
        read=values.loopback_address,
        type="loopback address and port",
        when=When.RESTART,
        text="where a browser on this host gets the status page, as 127.0.0.1:9470; from elsewhere by ssh -L "
        "(docs/status-page.md). Every user of this host may read it",
    ),
    Key(
        name="metrics.listen",
        field="metrics_listen",
        read=values.listen_address,
        type="address and port",
        when=When.RESTART,
        text="where Prometheus reads the metrics, as 0.0.0.0:9471 (docs/metrics.md). Whoever reaches the port may "
        "read them",
    ),
    Key(
        name="metrics.textfile",
        field="metrics_textfile",
        read=values.path,
        type="path",
        text="a file into which the metrics are written for node_exporter, whose textfile collector reads *.prom "
        "alone; not on a disk of the broker",
    ),
    Key(
        name="server.unit",
        field="server_unit",
        read=values.unit_name,
        type="systemd service",
        text="the broker's own unit, as kafka.service, for which logdirctl init --systemd writes the start gate",
    ),
)
"""Every key, in the order of ``docs/config.md``."""


def needing_restart(before: DaemonConfig, after: DaemonConfig) -> tuple[str, ...]:
    """Return the names of the keys that differ and take effect only when the daemon is started again."""
    moved = (key for key in KEYS if key.when is When.RESTART)
    return tuple(key.name for key in moved if getattr(before, key.field) != getattr(after, key.field))
