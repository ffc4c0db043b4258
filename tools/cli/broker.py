"""Which broker a command is about, by its ``server.properties`` or its log dirs, and overrides for single disks.

Not here: opening its log dirs (``logdir.service.log_dirs.open_broker``).

Spec: design §6; attacks A45.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.text import quoted

if TYPE_CHECKING:
    import argparse

    from logdir.service.log_dirs.request import BrokerRequest

_DISK_TIMEOUT_S, _LEAST_S, _MOST_S = 10, 0.1, 24 * 60 * 60
SAME_WITH_APPLY = "to do this, type the same command with --apply"
"""Line after a plan that an ``--even-…`` option allows: the ``next:`` line never repeats such an option."""


def add_broker(parser: Any) -> None:
    """Add ``--server-properties`` and ``--log-dirs``, of which one names the broker, and ``--disk-timeout``."""
    broker = parser.add_mutually_exclusive_group(required=True)
    broker.add_argument(
        "--server-properties", metavar="FILE", help="the broker's configuration; log.dirs is read there"
    )
    broker.add_argument("--log-dirs", metavar="A,B", help="the log dirs themselves, separated by commas")
    broker.add_argument("--config", metavar="FILE", help="the configuration of logdird, as /etc/logdird/NAME.yaml")
    add_disk_timeout(parser, "it is SUSPECT and the others go on without it")


def add_disk_timeout(parser: Any, then: str) -> None:
    """Add ``--disk-timeout``; ``then`` is, for its help, what becomes of a log dir that gives no answer in time."""
    parser.add_argument(
        "--disk-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=_DISK_TIMEOUT_S,
        help=f"how long a log dir may give no answer before {then} (default {_DISK_TIMEOUT_S})",
    )


def _seconds(text: str) -> float:
    """Return a time from a tenth of a second to a day. Raises ``ValueError``, which argparse reports."""
    seconds = float(text)
    if not _LEAST_S <= seconds <= _MOST_S:
        raise ValueError(text)
    return seconds


def timeout_ms(arguments: argparse.Namespace) -> int:
    """Return ``--disk-timeout`` in milliseconds."""
    seconds: float = arguments.disk_timeout
    return round(seconds * 1000)


def timeout_words(arguments: argparse.Namespace) -> str:
    """Return ``--disk-timeout`` for the next command to type, after a blank; empty if it is the default."""
    seconds = arguments.disk_timeout
    return "" if seconds == _DISK_TIMEOUT_S else f" --disk-timeout {seconds:g}"


def argv_of(arguments: argparse.Namespace) -> str:
    """Return the options that name the broker, and ``--disk-timeout``, as typed, for the next command to type."""
    timeout = timeout_words(arguments)
    if getattr(arguments, "config", None) is not None:
        return f"--config {quoted(arguments.config)}{timeout}"
    if arguments.server_properties is not None:
        return f"--server-properties {quoted(arguments.server_properties)}{timeout}"
    return f"--log-dirs {quoted(arguments.log_dirs)}{timeout}"


def request_of(arguments: argparse.Namespace) -> BrokerRequest:
    """Return which broker the arguments name, with the disks that they skip, accept or select."""
    from logdir.service.log_dirs.request import BrokerRequest

    server_properties = arguments.server_properties
    if arguments.config is not None:
        from logdir.daemon.config import read_config

        server_properties = read_config(arguments.config).server_properties
    return BrokerRequest(
        server_properties=server_properties,
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
    if hasattr(arguments, "apply") and hasattr(arguments, "log_dirs"):
        from logdir.service.log_dirs.owner import become_owner

        become_owner(request_of(arguments))


def add_selector(parser: Any, if_absent: str = "") -> None:
    """Add the argument that selects partitions.

    Args:
        parser: Of the command.
        if_absent: What an absent selector selects, for the help text; empty: a selector is required.
    """
    text = "a topic name, a topic id, NAME-PARTITION, ID_PARTITION or a glob"
    optional = {"nargs": "?", "help": f"{text}; {if_absent}"} if if_absent else {"help": text}
    parser.add_argument("selector", metavar="SELECTOR", **optional)


def add_change(parser: Any, *, changes: bool = True) -> None:
    """Add the options of every command about a broker's replicas; ``changes`` adds ``--apply`` and failed disks."""
    add_broker(parser)
    if changes:
        parser.add_argument(
            "--skip-log-dir",
            metavar="DIR",
            action="append",
            default=[],
            help="a log dir that has failed: go on without it, where the command can",
        )
        parser.add_argument(
            "--even-if-stale-disk",
            metavar="DIR",
            action="append",
            default=[],
            help="change this log dir although it was away and is back: you have checked what is on it",
        )
        parser.add_flag(
            "--apply", "do it; without --apply the plan is only printed. Root becomes the owner of the log dirs first"
        )
    parser.add_flag("--json", "one JSON object on standard output")


def next_argv(arguments: argparse.Namespace) -> str:
    """Return ``argv_of``, and ``--skip-log-dir`` as typed; never an ``--even-…`` option."""
    skipped = [f"--skip-log-dir {quoted(one)}" for one in getattr(arguments, "skip_log_dir", ())]
    return " ".join([argv_of(arguments), *skipped])


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
