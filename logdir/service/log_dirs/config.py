"""The log dirs of one broker, from its ``server.properties`` or a list of paths.

Not here: opening them (``opening``). Few imports: every command imports this module first.

Spec: design §6; attacks A45.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from logdir.errors import ConfigError, FormatError, Problem
from logdir.observe.named_file import read_named
from logdir.text import utf8

if TYPE_CHECKING:
    from collections.abc import Mapping

_ONCE = "list it once: a broker does not start with the same log dir twice"

_MAX_BYTES = 1 << 20
"""Size limit of a ``server.properties``, which usually has some thousand bytes."""


class BrokerConfig(NamedTuple):
    """The settings of a broker that concern its log dirs."""

    log_dirs: tuple[str, ...]
    """Absolute, in the order given."""
    rack: str | None
    node_id: int | None = None
    """``None`` if it is not set."""
    metadata_log_dir: str | None = None
    is_kraft: bool | None = None
    """``None`` if it is not known."""
    unknown: tuple[str, ...] = ()
    """Configuration keys whose value is a variable, and therefore not known."""
    may_be_only_voter: bool = False
    """Whether the broker is also a controller and its configuration names no other voter."""


def read_config(server_properties: str | None, log_dirs: str | None) -> BrokerConfig:
    """Read the log dirs of a broker from its configuration or from a list.

    Args:
        server_properties: Path of the broker's configuration; ``None`` if its log dirs are listed.
        log_dirs: The paths, separated by commas; used if there is no configuration.

    Raises:
        ConfigError: the file cannot be read, or names no usable log dir.
    """
    rack: str | None = None
    node_id: int | None = None
    metadata: str | None = None
    is_kraft: bool | None = None
    unknown: tuple[str, ...] = ()
    may_be_only_voter = False
    if server_properties is None:
        dirs = [part.strip() for part in (log_dirs or "").split(",")]
    else:
        from logdir.formats.kafka.server_properties import parse

        path = server_properties
        data = read_named(path, _MAX_BYTES, "a server.properties to read")
        try:
            value = parse(data, path)
        except FormatError as error:
            raise ConfigError((error.problem()._replace(slug=ConfigError.code),)) from error
        dirs, rack, node_id, metadata = list(value.log_dirs), value.rack, value.node_id, value.metadata_log_dir
        is_kraft, unknown, may_be_only_voter = value.is_kraft, value.unknown, value.may_be_only_voter
    where = server_properties or "--log-dirs"
    problems = [Problem("config-error", where, "a path between the commas", "nothing") for part in dirs if not part]
    fit = [part for part in dirs if part and _is_path(part)]
    problems += [
        Problem("config-error", where, "paths of log dirs without NUL or surrogates", part)
        for part in dirs
        if part and part not in fit
    ]
    absolute = [os.path.abspath(part) for part in fit]
    # Compared as an inventory prints them: paths that differ only in bytes that are not UTF-8 would look equal there.
    texts = [utf8(path) for path in absolute]
    twice = sorted({text for text in texts if texts.count(text) > 1})
    problems += [Problem("config-error", where, "each log dir once", f"{text} more than once") for text in twice]
    if problems:
        raise ConfigError(tuple(problems))
    return BrokerConfig(tuple(absolute), rack, node_id, metadata, is_kraft, unknown, may_be_only_voter)


def require_distinct(identities: Mapping[str, tuple[int, int]], where: str) -> None:
    """Check that no two log dirs are the same directory, through links or mounts.

    Args:
        identities: Identity of each log dir that answers, by path, in the order of the configuration.
        where: The option or file that names them, for the message.

    Raises:
        ConfigError: two log dirs are the same directory.
    """
    first: dict[tuple[int, int], str] = {}
    problems = []
    for path, identity in identities.items():
        other = first.setdefault(identity, path)
        if other != path:
            found = f"{path}: the same directory as {other}"
            problems.append(Problem("config-error", where, "each log dir once", found, _ONCE))
    if problems:
        raise ConfigError(tuple(problems))


def require_text(named: BrokerConfig) -> None:
    """Check that every log dir path is valid UTF-8, because the files of a work root record it.

    Raises:
        ConfigError: a path is not UTF-8; such a log dir can be read, but not changed.
    """
    problems = tuple(
        Problem(
            "config-error",
            path,
            "a log dir whose path is UTF-8",
            "bytes that are no UTF-8",
            "while the broker is stopped, rename the directory or mount its disk elsewhere, and correct log.dirs",
        )
        for path in named.log_dirs
        if not _is_text(path)
    )
    if problems:
        raise ConfigError(problems)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
