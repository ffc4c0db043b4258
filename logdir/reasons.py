"""Why a replica was staged: one enumeration, used in markers, listings, logs and metrics alike.

Spec: design §3.3 "Reasons"; KIP-516, "Deletion".
"""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why a replica was staged."""

    ABSENT = "absent"
    """Not in an accepted FULL LeaderAndIsr (KIP-516)."""
    TOPIC_ID_MISMATCH = "topic-id-mismatch"
    """A request names its topic with another id (KIP-516)."""
    STOP_REPLICA = "stop-replica"
    """StopReplica with delete named it."""
    TOPIC_REMOVED = "topic-removed"
    """The metadata log removed its topic id."""
    REPLICA_MOVED_AWAY = "replica-moved-away"
    """The metadata gives the partition to other brokers."""
    STRAY = "stray"
    """Claimed by no assignment, and proven so."""
    MOVED = "moved"
    """Its copy on another disk of this broker is published."""
    DUPLICATE = "duplicate"
    """Another live copy of it won."""
    CAPTURED = "captured"
    """Hard links of what a stock broker was about to remove."""
    OPERATOR = "operator"
    """A person said so."""
