"""Which broker a command is about: by its ``server.properties``, or by its log dirs themselves.

Spec: design §6; attacks A45.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.text import quoted

if TYPE_CHECKING:
    import argparse

    from logdir.service.log_dirs.request import BrokerRequest


_DISK_TIMEOUT_S, _LEAST_S, _MOST_S = 10, 0.1, 24 * 60 * 60


def add_broker(parser: Any) -> None:
    """Add the two ways to name a broker, and how long its log dirs are waited for."""
    broker = parser.add_mutually_exclusive_group(required=True)
    broker.add_argument(
        "--server-properties", metavar="FILE", help="the broker's configuration; log.dirs is read there"
    )
    broker.add_argument("--log-dirs", metavar="A,B", help="the log dirs themselves, separated by commas")
    add_disk_timeout(parser, "it is SUSPECT and the others go on without it")


def add_disk_timeout(parser: Any, then: str) -> None:
    """Add how long a log dir is waited for, and what follows."""
    parser.add_argument(
        "--disk-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=_DISK_TIMEOUT_S,
        help=f"how long a log dir may give no answer before {then} (default {_DISK_TIMEOUT_S})",
    )


def _seconds(text: str) -> float:
    """Return a time of at least a tenth of a second. Raises ``ValueError``, which argparse reports."""
    seconds = float(text)
    if not _LEAST_S <= seconds <= _MOST_S:
        raise ValueError(text)
    return seconds


def timeout_ms(arguments: argparse.Namespace) -> int:
    """Return how long a log dir is waited for."""
    seconds: float = arguments.disk_timeout
    return round(seconds * 1000)


def timeout_words(arguments: argparse.Namespace) -> str:
    """Return the same for the next command to type, behind a blank; nothing where it is as ever."""
    seconds = arguments.disk_timeout
    return "" if seconds == _DISK_TIMEOUT_S else f" --disk-timeout {seconds:g}"


def argv_of(arguments: argparse.Namespace) -> str:
    """Return the broker as it was named, for the next command to type."""
    timeout = timeout_words(arguments)
    if arguments.server_properties is not None:
        return f"--server-properties {quoted(arguments.server_properties)}{timeout}"
    return f"--log-dirs {quoted(arguments.log_dirs)}{timeout}"


def request_of(arguments: argparse.Namespace) -> BrokerRequest:
    """Return which broker is meant, and what an operator says of its disks."""
    from logdir.service.log_dirs.request import BrokerRequest

    return BrokerRequest(
        server_properties=arguments.server_properties,
        log_dirs=arguments.log_dirs,
        skipped=tuple(getattr(arguments, "skip_log_dir", ())),
        accepted_stale=tuple(getattr(arguments, "even_if_stale_disk", ())),
        named_disk=arguments.disk if isinstance(getattr(arguments, "disk", None), str) else None,
        disk_timeout_ms=timeout_ms(arguments),
        source=getattr(arguments, "source", None),
    )
