"""``--from URI``: the source of the cluster image, as an option and in the next command to type.

Spec: design §4, §6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdir.service.cluster.source import OWN_LOG, SourceRequest
from logdir.text import quoted
from tools.cli.option import Option

if TYPE_CHECKING:
    import argparse


def source_of(arguments: argparse.Namespace) -> SourceRequest:
    """Return the source that the arguments name."""
    uri = str(OWN_LOG) if arguments.source is None else arguments.source
    return SourceRequest(uri, arguments.high_watermark, arguments.leader_epoch)


def source_argv(arguments: argparse.Namespace) -> str:
    """Return ``--from`` and its options for the next command to type, also where the default was taken."""
    words = f"--from {quoted(source_of(arguments).uri)}"
    if arguments.high_watermark is not None:
        words += f" --high-watermark {arguments.high_watermark} --leader-epoch {arguments.leader_epoch}"
    return words


def named_argv(arguments: argparse.Namespace) -> str:
    """Return ``source_argv``; empty if nothing but the broker's own log was named."""
    is_own_log = arguments.source in (None, str(OWN_LOG)) and arguments.high_watermark is None
    return "" if is_own_log else source_argv(arguments)


def source(default: str | None = str(OWN_LOG), *, is_required: bool = False) -> tuple[Option, ...]:
    """Return ``--from``, ``--high-watermark`` and ``--leader-epoch``; ``default``: the source without ``--from``."""
    text = "where to read what the cluster assigns: metadata:[DIR], or cluster:, request: or znodes:FILE"
    text += "" if is_required else " (default metadata:, the broker's own log)"
    committed = "HighWatermark that kafka-metadata-quorum describe --status prints; needs --leader-epoch"
    filling: dict[str, Any] = {"dest": "source", "field": "source", "value": source_of}
    return (
        Option("--from", text, "URI", default=default, required=is_required, **filling),
        Option("--high-watermark", committed, "OFFSET", type=int),
        Option("--leader-epoch", "LeaderEpoch, from the same output", "EPOCH", type=int),
    )


SOURCE = source()
