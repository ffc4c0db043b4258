"""``--from URI``: how a command is told where what the cluster says comes from.

Not here: reading it (``desired_source``). Few imports: every command that may be told it starts with this.

Spec: design §4, §6.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from logdir.errors import ConfigError, Problem

if TYPE_CHECKING:
    import argparse


class Scheme(Enum):
    """What a URI begins with."""

    METADATA = "metadata"
    REQUEST = "request"
    ZNODES = "znodes"


class Uri(NamedTuple):
    """Where an image comes from."""

    scheme: Scheme
    path: str
    """Empty: the broker's own metadata log."""

    def __str__(self) -> str:
        """Return it as it is typed."""
        return f"{self.scheme.value}:{self.path}"


OWN_LOG = Uri(Scheme.METADATA, "")


def add_source(parser: Any, *, is_required: bool = False) -> None:
    """Add what says where an image comes from."""
    default = "" if is_required else " (default metadata:, the broker's own log)"
    parser.add_argument(
        "--from",
        dest="source",
        metavar="URI",
        required=is_required,
        default=None if is_required else str(OWN_LOG),
        help=f"what the cluster says: metadata:[DIR], request:FILE or znodes:FILE{default}",
    )
    parser.add_argument(
        "--high-watermark",
        type=int,
        metavar="OFFSET",
        help="HighWatermark that kafka-metadata-quorum describe --status prints; needs --leader-epoch",
    )
    parser.add_argument("--leader-epoch", type=int, metavar="EPOCH", help="LeaderEpoch that stands beside it")


def source_words(arguments: argparse.Namespace) -> str:
    """Return the source as it was named, for the next command to type."""
    from tools.render import quoted

    words = f"--from {quoted(arguments.source)}"
    if arguments.high_watermark is not None:
        words += f" --high-watermark {arguments.high_watermark} --leader-epoch {arguments.leader_epoch}"
    return words


def named_words(arguments: argparse.Namespace) -> str:
    """Return the source for the next command to type, with a blank before it; empty where it is the default."""
    is_default = getattr(arguments, "source", None) in (None, str(OWN_LOG))
    return "" if is_default and getattr(arguments, "high_watermark", None) is None else f" {source_words(arguments)}"


class QuorumWord(NamedTuple):
    """How far the quorum says that its log is committed."""

    high_watermark: int
    leader_epoch: int


def quorum_word(arguments: argparse.Namespace) -> QuorumWord | None:
    """Return what an operator says of the quorum, ``None`` if nothing.

    Raises:
        ConfigError: one of the two without the other, or a number that is none.
    """
    offset, epoch = arguments.high_watermark, arguments.leader_epoch
    if offset is None and epoch is None:
        return None
    if offset is None or epoch is None:
        missing = "--leader-epoch" if epoch is None else "--high-watermark"
        raise ConfigError((Problem("config-error", missing, "both or neither of the two", "one"),))
    if offset < 0 or epoch < 0:
        raise ConfigError((Problem("config-error", "--high-watermark", "0 or more", f"{offset} of epoch {epoch}"),))
    return QuorumWord(offset, epoch)


def parse_uri(text: str) -> Uri:
    """Read a URI.

    Raises:
        ConfigError: it is none of those that are known.
    """
    scheme, colon, path = text.partition(":")
    known = {one.value: one for one in Scheme}
    if not colon or scheme not in known or "\0" in path:
        fix = "cluster: is not there yet" if text.startswith("cluster:") else ""
        raise ConfigError((asked("metadata:[DIR], request:FILE or znodes:FILE", text, fix),))
    if not path and known[scheme] is not Scheme.METADATA:
        raise ConfigError((asked(f"a file behind {scheme}:", "none"),))
    return Uri(known[scheme], os.path.abspath(path) if path else "")


def asked(expected: str, found: str, fix: str = "") -> Problem:
    """Return what is wrong with what ``--from`` names."""
    return Problem("config-error", "--from", expected, found, fix)
