"""Evidence: what is known about whether a replica is still assigned. Only ``Removed`` may set a deadline.

Not here: its sources (``logdir.cluster``), the decisions (``decide``).

Spec: design §2 law 1, §4; KIP-516, "Delete topics".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Proof(Enum):
    """The kinds of proof of a removal."""

    FULL_REQUEST = "full-request"
    STOP_REPLICA = "stop-replica"
    METADATA_LOG = "metadata-log"
    LIVE_CLUSTER = "live-cluster"
    BROKER_DELETED = "broker-deleted"
    """A stock broker had itself renamed the directory to ``-delete``."""
    PUBLISHED_COPY = "published-copy"
    """A verified copy is live on another disk."""
    OPERATOR = "operator"
    IN_SYNC_ELSEWHERE = "in-sync-elsewhere"
    """An operator staged a replica that the cluster assigns here, while another broker was in its ISR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Proof that the topic id was removed from the cluster, or the replica from this broker."""

    proof: Proof
    as_of_ms: int
    """Time of what proves it, wall clock, as in the classes below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A source of metadata does not name the replica. Absence is no deletion and sets no deadline."""

    as_of_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The cluster assigns the replica here."""

    as_of_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Nothing is known about the assignment."""


Evidence = Removed | Absent | Present | Unknown


def words(evidence: Evidence) -> str:
    """Return evidence for people: its kind, and its proof where there is one.

    >>> words(Unknown())
    'unknown'
    """
    kind = type(evidence).__name__.lower()
    return f"{kind} ({evidence.proof.value})" if isinstance(evidence, Removed) else kind
