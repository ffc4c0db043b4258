"""Reasons of a staging: one enumeration for markers, listings, logs and metrics.

Spec: design §3.3 "Reasons"; KIP-516, "Deletion".
"""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """The reason of a staging."""

    ABSENT = "absent"
    """Not in an accepted FULL LeaderAndIsr (KIP-516)."""
    TOPIC_ID_MISMATCH = "topic-id-mismatch"
    """A request names its topic with a different id (KIP-516)."""
    STOP_REPLICA = "stop-replica"
    """A StopReplica request with delete named it."""
    TOPIC_REMOVED = "topic-removed"
    """The metadata log removed its topic id."""
    REPLICA_MOVED_AWAY = "replica-moved-away"
    """The metadata gives the partition to other brokers."""
    STRAY = "stray"
    """Claimed by no assignment, with proof."""
    MOVED = "moved"
    """Its copy on another disk of this broker is published."""
    DUPLICATE = "duplicate"
    """A different live copy of the replica is kept."""
    CAPTURED = "captured"
    """Hard links to a directory that a stock broker was about to remove."""
    OPERATOR = "operator"
    """An operator requested it."""
