"""Where what the cluster says comes from: ``metadata:[DIR]``, ``request:FILE`` or ``znodes:FILE``.

Not here: reading it (``image_source``). Few imports: every command that may be told it starts with this.

Spec: design §4, §6.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import NamedTuple

from logdir.errors import ConfigError, Problem


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


class SourceRequest(NamedTuple):
    """Where a use case reads what the cluster says, and what an operator says of the quorum."""

    uri: str = str(OWN_LOG)
    high_watermark: int | None = None
    """``HighWatermark`` of ``kafka-metadata-quorum describe --status``; with ``leader_epoch`` or not at all."""
    leader_epoch: int | None = None


class QuorumWord(NamedTuple):
    """How far the quorum says that its log is committed."""

    high_watermark: int
    leader_epoch: int


def quorum_word(source: SourceRequest) -> QuorumWord | None:
    """Return what an operator says of the quorum, ``None`` if nothing.

    Raises:
        ConfigError: one of the two without the other, or a number that is none.
    """
    offset, epoch = source.high_watermark, source.leader_epoch
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
