"""What is known about whether a replica is still wanted. Evidence is a type: only ``Removed`` may set a deadline.

Not here: where it comes from (``desired``), what follows from it (``decide``).

Spec: design §2 law 1, §4; KIP-516, "Delete topics".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Proof(Enum):
    """What shows that something was removed."""

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
    """An operator staged what the cluster assigns here, while another broker was in its ISR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The id is gone from the cluster, or the replica from this broker, and this shows it."""

    proof: Proof
    as_of_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Something did not name it. Silence is no deletion: this sets no deadline."""

    as_of_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The cluster wants it."""

    as_of_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Nothing is known."""


Evidence = Removed | Absent | Present | Unknown


def words(evidence: Evidence) -> str:
    """Return evidence for people: its kind, and its proof where there is one.

    >>> words(Unknown())
    'unknown'
    """
    kind = type(evidence).__name__.lower()
    return f"{kind} ({evidence.proof.value})" if isinstance(evidence, Removed) else kind
