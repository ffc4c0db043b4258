"""``--from URI``: where what the cluster says comes from, as it is typed and as it is shown.

Spec: design §4, §6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.service.cluster.source import OWN_LOG, SourceRequest
from logdir.text import quoted

if TYPE_CHECKING:
    import argparse


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


def source_argv(arguments: argparse.Namespace) -> str:
    """Return the source as it was named, for the next command to type."""
    words = f"--from {quoted(source_of(arguments).uri)}"
    if arguments.high_watermark is not None:
        words += f" --high-watermark {arguments.high_watermark} --leader-epoch {arguments.leader_epoch}"
    return words


def named_words(arguments: argparse.Namespace) -> str:
    """Return the source for the next command to type, with a blank before it; empty where it is the default."""
    is_default = getattr(arguments, "source", None) in (None, str(OWN_LOG))
    return "" if is_default and getattr(arguments, "high_watermark", None) is None else f" {source_argv(arguments)}"


def source_of(arguments: argparse.Namespace) -> SourceRequest:
    """Return what the arguments of ``add_source`` say."""
    uri = str(OWN_LOG) if arguments.source is None else arguments.source
    return SourceRequest(uri, arguments.high_watermark, arguments.leader_epoch)
