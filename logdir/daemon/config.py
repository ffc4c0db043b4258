"""The configuration of the daemon: one YAML file for one broker, ``/etc/logdird/NAME.yaml``.

Log dirs, node id and delete delay are read from the broker's own configuration and never repeated here. Unknown
keys are refused, and all problems are reported at once.

Not here: the broker's configuration (``service.log_dirs.config``), YAML (``formats.strict_yaml``).

Spec: design §6 "Configuration", §3.3; style §5.9.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, NamedTuple, TypeVar

from logdir.decide.capture import LEAST_FREE_PERCENT
from logdir.decide.staged.deadline import DEFAULT_DELAY_MS, SETTING, DelayPolicy, check_delay
from logdir.decide.staged.pressure import Pressure
from logdir.decide.staged.removal_reason import KEPT, RemovalReason
from logdir.disk.replica.rate_limiter import BYTES_PER_SECOND
from logdir.errors import ConfigError, Problem, shown
from logdir.formats import duration
from logdir.formats.kafka import java_properties
from logdir.formats.strict_yaml import found_value, load_document
from logdir.java_number import parse_java_int
from logdir.observe.named_file import read_named
from logdir.paths import BESIDE
from logdir.service.log_dirs.config import BrokerConfig
from logdir.service.log_dirs.request import BrokerRequest
from logdir.suggestion import did_you_mean
from logdir.worker.remote import DEFAULT_PATIENCE_MS

_T = TypeVar("_T")
_SLUG: Final = "config-error"
_MAX_BYTES: Final = 1 << 20
_DELETE_DELAY: Final = "log.segment.delete.delay.ms"
_ALIAS: Final = "delete.stale.topic.delay.ms"
"""The name that an earlier text of KIP-516 gives ``delete.topic.delay.ms``."""
_DELAY: Final = f"how long a staged replica stays; 0: a deletion is not captured; alias {_ALIAS}"
DEFAULT_SWEEP_MS: Final = 10 * 1000
LEAST_DELETE_DELAY_MS: Final = 20 * 1000
"""Below this delete delay of the broker the daemon warns."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
STATE_HOME: Final = "/var/lib/logdird"
RUN_HOME: Final = "/run/logdird"
CONFIG_HOME: Final = "/etc/logdird"


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


def _words(kind: type[Enum], between: str = ", ") -> str:
    """Return the values of an enumeration, for people."""
    return between.join(str(one.value) for one in kind)


class Key(NamedTuple):
    """One key of the file, for the parser and for people."""

    name: str
    type: str
    unit: str
    default: str
    text: str


KEYS: Final = (
    Key("server.properties", "path", "-", "required", "the broker's configuration, from which log.dirs is read"),
    Key("state.dir", "path", "-", f"{STATE_HOME}/NAME", "history, inbox, gaps.json; not on a disk of the broker"),
    Key("socket", "path", "-", f"{RUN_HOME}/NAME.sock", "the control socket; its lock file lies beside it"),
    Key("client.properties", "path", "-", "none", "how the cluster is asked (docs/client.md); without it, it is not"),
    Key(SETTING, "whole number", "ms", str(DEFAULT_DELAY_MS), _DELAY),
    Key("topics", "mapping", "-", "none", f"topic glob to a mapping with {SETTING}; the longest that matches counts"),
    Key("capture.exclude", "list of globs", "-", "none", "topics of which neither a deletion nor a -stray is captured"),
    Key(
        "capture.reasons",
        "list of reasons",
        "-",
        ", ".join(one.value for one in KEPT),
        f"what is captured for another reason is due at once; the reasons: {_words(RemovalReason)}",
    ),
    Key(
        "staged.min.free",
        "whole number",
        "%",
        str(LEAST_FREE_PERCENT),
        "free bytes and inodes of a disk below which nothing is captured there",
    ),
    Key(
        "pressure",
        _words(Pressure, " or "),
        "-",
        Pressure.PURGE_CAPTURED.value,
        "below staged.min.free: purge captured replicas before their deadline, oldest first, or keep them",
    ),
    Key(
        "auto.while.stopped",
        "true or false",
        "-",
        "false",
        "whether it works beside a stopped broker: captures, purges, documents of the inbox, and what the broker's own "
        "metadata log removed before the stop",
    ),
    Key("disk.timeout.ms", "whole number", "ms", str(DEFAULT_PATIENCE_MS), "when a log dir without answer is SUSPECT"),
    Key("sweep.interval.ms", "whole number", "ms", str(DEFAULT_SWEEP_MS), "time between two looks for deletions"),
    Key("purge.bytes.per.second", "whole number", "bytes/s", str(BYTES_PER_SECOND), "purge rate per disk; 0: no limit"),
)
"""Every key; ``docs/config.md`` lists them."""


def read_config(path: str) -> DaemonConfig:
    """Read a configuration file.

    Args:
        path: As typed; relative paths in the file start at its folder.

    Raises:
        ConfigError: it cannot be read, or does not fit; all problems at once.
    """
    return parse(read_named(path, _MAX_BYTES, "a configuration of logdird to read"), os.path.abspath(path))


def broker_of(config: DaemonConfig) -> BrokerConfig:
    """Return the broker of a configuration.

    Raises:
        ConfigError: the broker's configuration or the client properties file cannot be read or is invalid; or the
            state directory or the socket lies in a log dir or work root: a directory there stops a stock broker.
    """
    broker = config.broker_request().config()
    problems = [
        Problem(
            _SLUG, f"{config.file}: {key}", "a path outside every log dir and work root", path, "name another place"
        )
        for key, path in (("state.dir", config.state_dir), ("socket", config.socket))
        for top in (place for log_dir in broker.log_dirs for place in (log_dir, f"{log_dir}{BESIDE}"))
        if f"{path}/".startswith(f"{top}/")
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


def parse(data: bytes, path: str) -> DaemonConfig:
    """Parse a configuration.

    Args:
        data: The bytes of the file.
        path: Its absolute path.

    Raises:
        ConfigError: it does not fit; all problems at once.

    >>> parse(b"server.properties: /etc/kafka/server.properties", "/etc/logdird/b1.yaml").socket
    '/run/logdird/b1.sock'
    """
    document = load_document(data, path, slug=_SLUG)
    reader = _Reader(path)
    values = reader.mapping(document, "", {key.name for key in KEYS} | {_ALIAS})
    name = PurePath(path).stem
    if _NAME.fullmatch(name) is None:
        reader.wrong("", "a file named NAME.yaml, with letters, digits, '.', '_' and '-' in NAME", shown(name))
    server_properties = reader.take(values, "server.properties", reader.path, "")
    if "server.properties" not in values and not reader.problems:
        reader.wrong("server.properties", "the path of the broker's configuration", "no such key")
    state_dir = reader.take(values, "state.dir", reader.path, f"{STATE_HOME}/{name}")
    socket = reader.take(values, "socket", reader.path, f"{RUN_HOME}/{name}.sock")
    if len(os.fsencode(socket)) > _MOST_SOCKET_BYTES:
        reader.wrong("socket", f"a path of at most {_MOST_SOCKET_BYTES} bytes", f"{len(os.fsencode(socket))} bytes")
    config = DaemonConfig(
        name=name,
        file=path,
        server_properties=server_properties,
        state_dir=state_dir,
        socket=socket,
        client_properties=reader.take(values, "client.properties", reader.path, None),
        delays=_delays(reader, values),
        capture_exclude=reader.take(values, "capture.exclude", reader.globs, ()),
        capture_reasons=reader.take(values, "capture.reasons", reader.reasons, KEPT),
        least_free_percent=reader.take(values, "staged.min.free", reader.number(0, 99), LEAST_FREE_PERCENT),
        pressure=reader.take(values, "pressure", reader.pressure, Pressure.PURGE_CAPTURED),
        auto_while_stopped=reader.take(values, "auto.while.stopped", reader.flag, False),
        disk_timeout_ms=reader.take(
            values, "disk.timeout.ms", reader.number(100, 24 * 60 * 60 * 1000), DEFAULT_PATIENCE_MS
        ),
        sweep_ms=reader.take(values, "sweep.interval.ms", reader.number(500, 60 * 1000), DEFAULT_SWEEP_MS),
        purge_bytes_per_second=reader.take(
            values, "purge.bytes.per.second", reader.number(0, 1 << 50), BYTES_PER_SECOND
        ),
    )
    if reader.problems:
        raise ConfigError(tuple(reader.problems))
    return config


_MOST_SOCKET_BYTES: Final = 107
"""Longest path of a unix socket (unix(7), ``sun_path``)."""


def _delays(reader: _Reader, values: Mapping[str, Any]) -> DelayPolicy:
    if SETTING in values and _ALIAS in values:
        reader.wrong(_ALIAS, f"{SETTING} or its alias", "both", "keep one of them")
    default = reader.take(values, SETTING, reader.delay, reader.take(values, _ALIAS, reader.delay, DEFAULT_DELAY_MS))
    patterns: list[tuple[str, int]] = []
    topics = reader.mapping(values.get("topics", {}), "topics", None)
    for glob, inner in topics.items():
        where = f"topics.{shown(glob)}"
        own = reader.mapping(inner, where, {SETTING, _ALIAS})
        delay = reader.take(own, SETTING, reader.delay, reader.take(own, _ALIAS, reader.delay, -1, where), where)
        if not own.keys() & {SETTING, _ALIAS}:
            reader.wrong(where, SETTING, "no such key")
        patterns.append((str(glob), delay))
    return DelayPolicy(default_ms=default, patterns=tuple(patterns))


class _Reader:
    """Takes values out of the document and collects every problem."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def wrong(self, where: str, expected: str, found: str, fix: str = "") -> None:
        self.problems.append(Problem(_SLUG, f"{self.file}: {where}" if where else self.file, expected, found, fix))

    def mapping(self, value: object, where: str, known: set[str] | None) -> dict[Any, Any]:
        """Return a value as a mapping; note as a problem a value that is none, and each key that is not ``known``."""
        if value is None and not where:
            value = {}
        if not isinstance(value, dict):
            self.wrong(where, "a mapping", found_value(value))
            return {}
        for key in value:
            if not isinstance(key, str):
                self.wrong(where, "keys that are texts", found_value(key))
            elif known is not None and key not in known:
                place = f"{where}.{shown(key)}" if where else shown(key)
                self.wrong(place, "a key that docs/config.md lists", "an unknown key", did_you_mean(key, known))
        return value

    def take(
        self, values: Mapping[Any, Any], key: str, convert: Callable[[object, str], _T], default: _T, where: str = ""
    ) -> _T:
        """Return a value, or the default if the key is missing or its value does not fit."""
        if key not in values:
            return default
        try:
            return convert(values[key], key)
        except _DoesNotFitError as error:
            self.wrong(f"{where}.{key}" if where else key, error.expected, found_value(values[key]), error.fix)
            return default

    def path(self, value: object, key: str) -> str:
        if not isinstance(value, str) or not value or not value.isprintable():
            raise _DoesNotFitError("a path")
        return os.path.normpath(os.path.join(os.path.dirname(self.file), value))

    def flag(self, value: object, key: str) -> bool:
        if not isinstance(value, bool):
            raise _DoesNotFitError("true or false")
        return value

    def globs(self, value: object, key: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise _DoesNotFitError("a list of topic globs")
        return tuple(value)

    def reasons(self, value: object, key: str) -> tuple[RemovalReason, ...]:
        words = value if isinstance(value, list) else []
        found = tuple(one for one in RemovalReason if one.value in words)
        if not words or len(found) != len(words):
            raise _DoesNotFitError(f"a list of reasons: {_words(RemovalReason)}; each at most once")
        if RemovalReason.NOT_KNOWN_YET not in found:
            fix = f"add {RemovalReason.NOT_KNOWN_YET.value}: no reason is known at the moment of a capture"
            raise _DoesNotFitError(f"a list with {RemovalReason.NOT_KNOWN_YET.value}", fix)
        return found

    def pressure(self, value: object, key: str) -> Pressure:
        found = next((one for one in Pressure if one.value == value), None)
        if found is None:
            raise _DoesNotFitError(_words(Pressure, " or "))
        return found

    def delay(self, value: object, key: str) -> int:
        """Return a delay: milliseconds, or a text with a unit, which answers whether milliseconds were meant."""
        if type(value) is int and value >= 0:
            if (question := check_delay(value)) is not None:
                fix = f"{question.fix}; with a unit it is taken as written: {value}ms, or {value}s"
                raise _DoesNotFitError(question.expected, fix)
            return value
        try:
            found = duration.parse(value) if isinstance(value, str) else None
        except ValueError:
            found = None
        if found is None or not found.has_unit or found.ms < 0:
            raise _DoesNotFitError("whole milliseconds, or a text with a unit as 4h or 30m")
        return found.ms

    def number(self, lowest: int, highest: int) -> Callable[[object, str], Any]:
        """Return a converter for whole numbers in a range."""

        def convert(value: object, key: str) -> int:
            if type(value) is not int or not lowest <= value <= highest:
                raise _DoesNotFitError(f"a whole number from {lowest} to {highest}")
            return value

        return convert


class _DoesNotFitError(Exception):
    def __init__(self, expected: str, fix: str = "") -> None:
        super().__init__(expected)
        self.expected, self.fix = expected, fix
