"""Which broker a command is about: by its ``server.properties``, or by its log dirs themselves.

Spec: design §6; attacks A45.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.service.config import BrokerConfig, read_config
from logdir.text import quoted

if TYPE_CHECKING:
    import argparse


def add_broker(parser: Any) -> None:
    """Add the two ways to name a broker."""
    broker = parser.add_mutually_exclusive_group(required=True)
    broker.add_argument(
        "--server-properties", metavar="FILE", help="the broker's configuration; log.dirs is read there"
    )
    broker.add_argument("--log-dirs", metavar="A,B", help="the log dirs themselves, separated by commas")


def words_of(arguments: argparse.Namespace) -> str:
    """Return the broker as it was named, for the next command to type."""
    if arguments.server_properties is not None:
        return f"--server-properties {quoted(arguments.server_properties)}"
    return f"--log-dirs {quoted(arguments.log_dirs)}"


def broker_of(arguments: argparse.Namespace) -> BrokerConfig:
    """Find out which log dirs are meant. Reads the broker's configuration.

    Raises:
        ConfigError: the file cannot be read or names nothing usable.
    """
    return read_config(arguments.server_properties, arguments.log_dirs)
