r"""The keys of a broker's ``server.properties`` that concern its log dirs and its identity.

Read as the broker's own configuration layer reads them. Not here: any other key, and whether the directories
exist.

Spec: kafka-behaviour §1.3, §1.4; kafka-formats §3.2 (grammar);
org.apache.kafka.common.config.{ConfigDef,AbstractConfig}.

>>> parse(b"node.id=1\nlog.dirs=/a , /b\nbroker.rack=east\n").log_dirs
('/a', '/b')
"""

from __future__ import annotations

import re
from typing import NamedTuple

from logdir.errors import ConfigError, Problem
from logdir.formats.kafka import java_properties
from logdir.formats.kafka.java_properties import SEPARATORS, shown
from logdir.java_number import parse_java_int

DEFAULT_LOG_DIR = "/tmp/kafka-logs"  # noqa: S108  Kafka's own default
NO_NODE_ID = -1
"""Kafka's value up to 3.9 for a node id that is not set (a ZooKeeper broker then generates one)."""

_SLUG = "config-error"
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_VARIABLE = re.compile(r"\$\{[^}]*?:[^}]*?\}")
_MAY_BE_UNKNOWN = ("metadata.log.dir", "node.id", "broker.id", "broker.rack")
# Java's String.trim() removes every character up to the blank, including control characters.
_TRIMMED = "".join(map(chr, range(0x21)))


class ServerProperties(NamedTuple):
    """A broker's settings for its log dirs and its identity."""

    log_dirs: tuple[str, ...]
    """Paths as written, in order, at least one, each once. Relative ones start at the broker's working directory."""
    node_id: int | None
    """``node.id``, else ``broker.id``; ``None`` if neither is set or it is -1."""
    rack: str | None
    metadata_log_dir: str | None
    """``metadata.log.dir``, else the first log dir; ``None`` if it is one of ``unknown``."""
    is_kraft: bool = False
    """Whether ``process.roles`` is set; otherwise it is a broker of a ZooKeeper cluster."""
    unknown: tuple[str, ...] = ()
    """Keys whose value is a variable of ``config.providers``, so that this file does not contain it."""
    may_be_only_voter: bool = False
    """Whether this node may be the only voter of the metadata quorum: ``process.roles`` includes the controller, and
    ``controller.quorum.voters``, if set, names no other node.
    """


def parse(data: bytes, path: str = "") -> ServerProperties:
    """Parse ``server.properties``.

    Args:
        data: The whole file.
        path: Where it lies, for the errors.

    Returns:
        The value; ``log.dirs`` wins over ``log.dir`` even when empty, and without both it is
        ``/tmp/kafka-logs``.

    Raises:
        MalformedFileError: not a properties file.
        ConfigError: a broker would not start on these values, or they cannot be known from this file alone;
            all of the problems at once.
    """
    properties = java_properties.parse(data, path)
    values = {key: text.strip(_TRIMMED) for key, text in properties.items()}
    problems: list[Problem] = []
    unknown = _unknown(values, path, problems)
    node_id = _node_id(values, path, problems)
    log_dirs = _log_dirs(values, path, problems)
    metadata_log_dir = values.get("metadata.log.dir") or (log_dirs[0] if log_dirs else None)
    if values.get("metadata.log.dir") == "":
        problems.append(
            Problem(
                _SLUG,
                path,
                "a path in metadata.log.dir",
                "an empty value",
                "remove metadata.log.dir, or name a path in it",
            )
        )
    if problems:
        raise ConfigError(tuple(problems))
    is_kraft = bool(values.get("process.roles"))
    rack = None if "broker.rack" in unknown else values.get("broker.rack")
    metadata_log_dir = None if "metadata.log.dir" in unknown else metadata_log_dir
    may_be_only_voter = _may_be_only_voter(values, node_id)
    return ServerProperties(log_dirs, node_id, rack, metadata_log_dir, is_kraft, unknown, may_be_only_voter)


def _may_be_only_voter(values: dict[str, str], node_id: int | None) -> bool:
    roles = {role.strip(_TRIMMED) for role in values.get("process.roles", "").split(",")}
    voters = [voter.strip(_TRIMMED) for voter in values.get("controller.quorum.voters", "").split(",")]
    ids = {voter.partition("@")[0] for voter in voters if voter}
    return "controller" in roles and ids <= {str(node_id)}


def _unknown(values: dict[str, str], path: str, problems: list[Problem]) -> tuple[str, ...]:
    """Return the keys whose value is a variable of ``config.providers``; add a problem if the log dirs are one."""
    # Without config.providers Kafka takes "${…}" literally.
    if not values.get("config.providers"):
        return ()
    needed = "log.dirs" if "log.dirs" in values else "log.dir"
    if _VARIABLE.search(values.get(needed, "")):
        fix = f"write the paths into {needed} without a variable, or name the log dirs with --log-dirs"
        problems.append(Problem(_SLUG, path, f"paths without a variable in {needed}", shown(values[needed]), fix))
    return tuple(key for key in _MAY_BE_UNKNOWN if _VARIABLE.search(values.get(key, "")))


def _node_id(values: dict[str, str], path: str, problems: list[Problem]) -> int | None:
    found: dict[str, int] = {}
    for key in ("node.id", "broker.id"):
        text = values.get(key)
        if text is None or _VARIABLE.search(text):
            continue
        number = parse_java_int(text)
        if number is None or number < NO_NODE_ID:
            problems.append(
                Problem(_SLUG, path, f"a whole number from 0 to 2147483647 in {key}", repr(shown(text, SEPARATORS)))
            )
        else:
            found[key] = number
    if len(set(found.values())) > 1:
        both = " and ".join(f"{key}={number}" for key, number in found.items())
        problems.append(
            Problem(
                _SLUG,
                path,
                "node.id and broker.id of one value",
                both,
                "keep the broker's id in node.id and remove broker.id",
            )
        )
    number = next(iter(found.values()), NO_NODE_ID)
    return None if number == NO_NODE_ID else number


def _log_dirs(values: dict[str, str], path: str, problems: list[Problem]) -> tuple[str, ...]:
    key = "log.dirs" if "log.dirs" in values else "log.dir"
    # Divergence: 4.3 refuses empty elements, releases before drop them; we drop them, for a broker may run on
    # such a file. Equal elements: 4.2 and later keep the first, releases before do not start; we keep the
    # first.
    listed = tuple(dict.fromkeys(entry for entry in _COMMA.split(values.get(key, DEFAULT_LOG_DIR)) if entry))
    if not listed:
        problems.append(Problem(_SLUG, path, f"at least one path in {key}", "no path", f"list the log dirs in {key}"))
    return listed


def render(value: ServerProperties) -> bytes:
    """Return the smallest ``server.properties`` that reads back as ``value``; for brokers in tests, never over a
    broker's own file.

    Raises:
        ValueError: a value that a properties file of a broker cannot hold.
    """
    properties = {"log.dirs": ",".join(value.log_dirs)}
    if value.metadata_log_dir is not None:
        properties["metadata.log.dir"] = value.metadata_log_dir
    if value.node_id is not None:
        properties["node.id"] = str(value.node_id)
    if value.rack is not None:
        properties["broker.rack"] = value.rack
    written = java_properties.render(properties)
    try:
        held = parse(written) == value
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if not held:
        raise ValueError(f"these values do not survive in a properties file: {value}")
    return written
