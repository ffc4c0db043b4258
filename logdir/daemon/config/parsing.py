"""Reading the configuration file: every key by the table of keys, all problems at once.

Not here: the keys (``keys``), how a value is read (``values``), YAML (``formats.strict_yaml``).

Spec: style §5.9.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from logdir.daemon.config import values
from logdir.daemon.config.daemon_config import RUN_HOME, STATE_HOME, DaemonConfig
from logdir.daemon.config.keys import ALIAS, DELAYS, KEYS, TOPICS
from logdir.daemon.config.values import DoesNotFitError, Read
from logdir.decide.staged.deadline import DEFAULT_DELAY_MS, SETTING, DelayPolicy
from logdir.errors import ConfigError, Problem, shown
from logdir.formats.strict_yaml import found_value, load_document
from logdir.observe.named_file import read_named
from logdir.suggestion import did_you_mean

_SLUG: Final = "config-error"
_MAX_BYTES: Final = 1 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


def read_config(path: str) -> DaemonConfig:
    """Read a configuration file.

    Args:
        path: As typed; relative paths in the file start at its folder.

    Raises:
        ConfigError: it cannot be read, or does not fit; all problems at once.
    """
    return parse(read_named(path, _MAX_BYTES, "a configuration of logdird to read"), os.path.abspath(path))


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
    typed = reader.mapping(document, "", {key.name for key in KEYS} | {ALIAS})
    name = PurePath(path).stem
    if _NAME.fullmatch(name) is None:
        reader.wrong("", "a file named NAME.yaml, with letters, digits, '.', '_' and '-' in NAME", shown(name))
    if "server.properties" not in typed and not reader.problems:
        reader.wrong("server.properties", "the path of the broker's configuration", "no such key")
    found: dict[str, Any] = {
        "server_properties": "",
        "state_dir": f"{STATE_HOME}/{name}",
        "socket": f"{RUN_HOME}/{name}.sock",
        DELAYS: _delays(reader, typed),
    }
    for key in KEYS:
        if key.read is not None and key.field != DELAYS and key.name in typed:
            found[key.field] = reader.take(typed, key.name, key.read, found.get(key.field))
    config = DaemonConfig(name=name, file=path, **found)
    if config.status_listen is not None and config.status_listen == config.metrics_listen:
        host, port = config.status_listen
        expected = "another address or port than that of status.listen"
        reader.wrong("metrics.listen", expected, f"{host} and {port}", "name another port")
    if reader.problems:
        raise ConfigError(tuple(reader.problems))
    return config


def _delays(reader: _Reader, typed: Mapping[str, Any]) -> DelayPolicy:
    if SETTING in typed and ALIAS in typed:
        reader.wrong(ALIAS, f"{SETTING} or its alias", "both", "keep one of them")
    default = reader.take(typed, SETTING, values.delay, reader.take(typed, ALIAS, values.delay, DEFAULT_DELAY_MS))
    patterns: list[tuple[str, int]] = []
    for glob, inner in reader.mapping(typed.get(TOPICS, {}), TOPICS, None).items():
        where = f"{TOPICS}.{shown(glob)}"
        own = reader.mapping(inner, where, {SETTING, ALIAS})
        delay = reader.take(own, SETTING, values.delay, reader.take(own, ALIAS, values.delay, -1, where), where)
        if not own.keys() & {SETTING, ALIAS}:
            reader.wrong(where, SETTING, "no such key")
        patterns.append((str(glob), delay))
    return DelayPolicy(default_ms=default, patterns=tuple(patterns))


class _Reader:
    """Takes values out of the document and collects every problem."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def wrong(self, where: str, expected: str, found: str, fix: str = "") -> None:
        """Note a problem; ``where``: the key, empty for the file as a whole."""
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

    def take(self, typed: Mapping[Any, Any], key: str, read: Read, default: Any, where: str = "") -> Any:
        """Return a value, or the default if the key is missing or its value does not fit."""
        if key not in typed:
            return default
        try:
            return read(typed[key], os.path.dirname(self.file))
        except DoesNotFitError as error:
            found = error.found or found_value(typed[key])
            self.wrong(f"{where}.{key}" if where else key, error.expected, found, error.fix)
            return default
