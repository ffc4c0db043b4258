"""Sources of cluster metadata: ``metadata:[DIR]``, ``cluster:FILE``, ``request:FILE`` or ``znodes:FILE``.

Not here: reading them (``image_source``). Few imports: every command with ``--from`` imports this module first.

Spec: design §4, §6.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import NamedTuple

from logdir.errors import ConfigError, Problem


class Scheme(Enum):
    """The schemes of a source URI."""

    METADATA = "metadata"
    REQUEST = "request"
    ZNODES = "znodes"
    CLUSTER = "cluster"
    """The live cluster, by a client properties file."""


class Uri(NamedTuple):
    """The URI of a source."""

    scheme: Scheme
    path: str
    """The path; empty for the broker's own metadata log."""

    def __str__(self) -> str:
        """Return the URI as it is typed."""
        return f"{self.scheme.value}:{self.path}"


OWN_LOG = Uri(Scheme.METADATA, "")


class SourceRequest(NamedTuple):
    """The source of cluster metadata for a use case, and the operator's statement about the quorum."""

    uri: str = str(OWN_LOG)
    """What ``--from`` takes; ``metadata:`` alone is the broker's own metadata log."""
    high_watermark: int | None = None
    """``HighWatermark`` of ``kafka-metadata-quorum describe --status``; requires ``leader_epoch``."""
    leader_epoch: int | None = None
    """``LeaderEpoch`` of the same output; requires ``high_watermark``."""


class QuorumWord(NamedTuple):
    """How far the quorum has committed its log, by the statement of the operator."""

    high_watermark: int
    leader_epoch: int


def quorum_word(source: SourceRequest) -> QuorumWord | None:
    """Return the operator's statement about the quorum; ``None`` if there is none.

    Raises:
        ConfigError: one of the two values is missing, or is no valid number.
    """
    offset, epoch = source.high_watermark, source.leader_epoch
    if offset is None and epoch is None:
        return None
    if offset is None or epoch is None:
        missing = "--leader-epoch" if epoch is None else "--high-watermark"
        raise ConfigError(
            (Problem("config-error", missing, "--high-watermark and --leader-epoch, or neither", "only the other"),)
        )
    if offset < 0 or epoch < 0:
        raise ConfigError(
            (
                Problem(
                    "config-error", "--high-watermark", "an offset and an epoch of 0 or more", f"{offset} and {epoch}"
                ),
            )
        )
    return QuorumWord(offset, epoch)


def parse_uri(text: str) -> Uri:
    """Parse a source URI.

    Raises:
        ConfigError: its scheme is not known.
    """
    scheme, colon, path = text.partition(":")
    known = {one.value: one for one in Scheme}
    if not colon or scheme not in known or "\0" in path:
        raise ConfigError((asked("metadata:[DIR], cluster:FILE, request:FILE or znodes:FILE", text),))
    if not path and known[scheme] is not Scheme.METADATA:
        raise ConfigError((asked(f"a file behind {scheme}:", "none"),))
    return Uri(known[scheme], os.path.abspath(path) if path else "")


def asked(expected: str, found: str, fix: str = "") -> Problem:
    """Return the problem of a wrong ``--from`` value."""
    return Problem("config-error", "--from", expected, found, fix)
