"""Which broker a command is about, by its ``server.properties`` or its log dirs, and overrides for single disks.

Not here: opening its log dirs (``logdir.service.log_dirs.open_broker``).

Spec: design §6; attacks A45.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tools.cli.option import Flag, OneOf, Option, typed

if TYPE_CHECKING:
    import argparse

    from logdir.service.log_dirs.request import BrokerRequest

_DISK_TIMEOUT_S, _LEAST_S, _MOST_S = 10, 0.1, 24 * 60 * 60
SAME_WITH_APPLY = "to do this, type the same command with --apply"
"""Line after a plan that an ``--even-…`` option allows: the ``next:`` line never repeats such an option."""


def seconds(text: str) -> float:
    """Return a time from a tenth of a second to a day. Raises ``ValueError``, which argparse reports."""
    seconds = float(text)
    if not _LEAST_S <= seconds <= _MOST_S:
        raise ValueError(text)
    return seconds


def disk_timeout(then: str) -> Option:
    """Return ``--disk-timeout``; ``then`` is, for its help, what becomes of a log dir that gives no answer in time."""
    text = f"how long a log dir may give no answer before {then} (default {_DISK_TIMEOUT_S})"
    default, render = _DISK_TIMEOUT_S, "{:g}".format
    return Option("--disk-timeout", text, "SECONDS", type=seconds, default=default, render=render)


def selector(if_absent: str = "", field: str = "selector", **more: Any) -> Option:
    """Return the argument that selects partitions.

    Args:
        if_absent: What an absent selector selects, for the help text; empty: a selector is required.
        field: As of ``Option``, like ``more``.
        more: Further settings.
    """
    text = "a topic name, a topic id, NAME-PARTITION, ID_PARTITION or a glob"
    text, nargs = (f"{text}; {if_absent}", "?") if if_absent else (text, None)
    return Option("selector", text, "SELECTOR", field=field, nargs=nargs, **more)


_NAMED = OneOf("the broker")
BROKER = (
    Option("--server-properties", "the broker's configuration, from which log.dirs is read", "FILE", one_of=_NAMED),
    Option("--log-dirs", "the log dirs themselves, separated by commas", "A,B", one_of=_NAMED),
    Option("--config", "the configuration of logdird, as /etc/logdird/NAME.yaml", "FILE", one_of=_NAMED),
    disk_timeout("it is SUSPECT and the others go on without it"),
)
"""What names the broker, and ``--disk-timeout``."""
SKIPPED = Option(
    "--skip-log-dir", "a log dir that has failed: go on without it, where the command can", "DIR", is_repeated=True
)
_STALE = "change this log dir although it was away and is back: you have checked what is on it"
JSON = Flag("--json", "one JSON object on standard output")
CHANGED = (
    *BROKER,
    SKIPPED,
    Option("--even-if-stale-disk", _STALE, "DIR", is_repeated=True),
    Flag(
        "--apply", "do it; without it the plan is only printed. Run as root, it becomes the owner of the log dirs first"
    ),
    JSON,
)
"""The options of every command that changes the log dirs of a broker."""


def even_if_unknown(text: str) -> Flag:
    """Return ``--even-if-unknown``; what it allows differs, as ``text`` says."""
    return Flag("--even-if-unknown", text, "is_even_if_unknown")


def timeout_ms(arguments: argparse.Namespace) -> int:
    """Return ``--disk-timeout`` in milliseconds."""
    seconds: float = arguments.disk_timeout
    return round(seconds * 1000)


def argv_of(arguments: argparse.Namespace) -> str:
    """Return the options that name the broker, and ``--disk-timeout``, as typed, for the next command to type."""
    return typed(arguments, *BROKER)


def next_argv(arguments: argparse.Namespace) -> str:
    """Return ``argv_of``, and ``--skip-log-dir`` as typed; never an ``--even-…`` option."""
    return typed(arguments, *BROKER, SKIPPED)


def request_of(arguments: argparse.Namespace) -> BrokerRequest:
    """Return which broker the arguments name, with the disks that they skip, accept or select."""
    from logdir.service.log_dirs.request import BrokerRequest

    named = {"server_properties": arguments.server_properties}
    if arguments.config is not None:
        from logdir.daemon.config import read_config

        named = read_config(arguments.config).named
    return BrokerRequest(
        **named,
        log_dirs=arguments.log_dirs,
        skipped=tuple(getattr(arguments, "skip_log_dir", ())),
        accepted_stale=tuple(getattr(arguments, "even_if_stale_disk", ())),
        named_disk=arguments.disk if isinstance(getattr(arguments, "disk", None), str) else None,
        disk_timeout_ms=timeout_ms(arguments),
        source=getattr(arguments, "source", None),
    )


def as_owner(arguments: argparse.Namespace) -> None:
    """Make this process, which runs as root, one of the owner of the log dirs that a command may change; for good.

    Raises:
        LogDirError: as ``become_owner``.
    """
    # Units are root's, and their drop-ins too.
    is_of_root = getattr(arguments, "systemd", False) or is_gate_skipped(arguments)
    if hasattr(arguments, "apply") and hasattr(arguments, "log_dirs") and not is_of_root:
        from logdir.service.log_dirs.owner import become_owner

        become_owner(request_of(arguments))


def is_gate_skipped(arguments: argparse.Namespace) -> bool:
    """Return whether an operator lets the broker start without a look at its log dirs."""
    if arguments.title != "handover" or not arguments.apply:
        return False
    from logdir.daemon.socket.gate import is_skipped

    return is_skipped(os.environ)


def has_override(arguments: argparse.Namespace) -> bool:
    """Return whether an ``--even-…`` option or ``--include-held`` was typed."""
    return any(bool(value) for name, value in vars(arguments).items() if name.startswith(("even_", "include_held")))


def said_of_override(arguments: argparse.Namespace, *, is_planned: bool) -> tuple[str, ...]:
    """Return the line *type the same with --apply* if the plan rests on an ``--even-…`` option; else none.

    Args:
        arguments: Of the command.
        is_planned: Whether the plan has something to do.
    """
    return (SAME_WITH_APPLY,) if is_planned and not arguments.apply and has_override(arguments) else ()
