"""``--from URI``: the source of the cluster image, as an option and in the next command to type.

Spec: design §4, §6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.service.cluster.source import OWN_LOG, SourceRequest
from logdir.text import quoted

if TYPE_CHECKING:
    import argparse


def add_source(parser: Any, *, is_required: bool = False) -> None:
    """Add ``--from``, ``--high-watermark`` and ``--leader-epoch``."""
    default = "" if is_required else " (default metadata:, the broker's own log)"
    parser.add_argument(
        "--from",
        dest="source",
        metavar="URI",
        required=is_required,
        default=None if is_required else str(OWN_LOG),
        help=f"where to read what the cluster assigns: metadata:[DIR], request:FILE or znodes:FILE{default}",
    )
    parser.add_argument(
        "--high-watermark",
        type=int,
        metavar="OFFSET",
        help="HighWatermark that kafka-metadata-quorum describe --status prints; needs --leader-epoch",
    )
    parser.add_argument("--leader-epoch", type=int, metavar="EPOCH", help="LeaderEpoch, from the same output")


def source_argv(arguments: argparse.Namespace) -> str:
    """Return ``--from`` and its options as typed, for the next command to type."""
    words = f"--from {quoted(source_of(arguments).uri)}"
    if arguments.high_watermark is not None:
        words += f" --high-watermark {arguments.high_watermark} --leader-epoch {arguments.leader_epoch}"
    return words


def named_words(arguments: argparse.Namespace) -> str:
    """Return ``source_argv`` after a blank; empty if the source is the default, the broker's own metadata log."""
    is_default = getattr(arguments, "source", None) in (None, str(OWN_LOG))
    return "" if is_default and getattr(arguments, "high_watermark", None) is None else f" {source_argv(arguments)}"


def source_of(arguments: argparse.Namespace) -> SourceRequest:
    """Return the source that the arguments of ``add_source`` name."""
    uri = str(OWN_LOG) if arguments.source is None else arguments.source
    return SourceRequest(uri, arguments.high_watermark, arguments.leader_epoch)
