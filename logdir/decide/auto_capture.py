"""Decide which ``-delete`` and ``-stray`` directories the daemon passes over instead of capturing them.

A directory is passed over if ``capture.exclude`` names its topic. A ``-delete`` also is if the delay of its topic is 0,
or if a move between two disks of this broker left it behind: the replica lives on, with the same topic id. A ``-stray``
proves no removal, so no delay, not even 0, sets a deadline for it: it is captured and held. What is not certain is
captured: a live replica on a quarantined disk, or on one not read in full, may be older than the deletion.

Not here: refusals that hold for an operator as well (``capture``).

Spec: design §3.3; kafka-behaviour §3.2, §3.4; attacks A25.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from logdir.decide.staged.deadline import DelayPolicy
from logdir.formats.own.inventory import Kind
from logdir.names import parse_partition_dir
from logdir.observe.facts import Replica, ReplicaIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePolicy:
    """What an operator wants to be captured without being asked."""

    delays: DelayPolicy = field(default_factory=DelayPolicy)
    excluded: tuple[str, ...] = ()
    """Topic globs."""


def passed_over(replica: Replica, known: ReplicaIndex, policy: CapturePolicy) -> str | None:
    """Return why a directory is not captured; ``None``: it is.

    Args:
        replica: A ``-delete`` or ``-stray`` directory.
        known: The replicas of every log dir of the broker.
        policy: The operator's policy.
    """
    parts = parse_partition_dir(replica.path)
    topic = replica.ref.topic if parts is None or not parts.is_truncated else None
    if topic is not None:
        if any(fnmatchcase(topic, glob) for glob in policy.excluded):
            return "capture.exclude names its topic"
        if replica.kind is Kind.DELETE and policy.delays.delay_ms(topic) == 0:
            return "the delay of its topic is 0"
    if replica.kind is not Kind.DELETE or replica.ref.topic_id is None:
        return None
    for live in known.copies(replica.ref):
        if live.ref.topic_id == replica.ref.topic_id and live.log_dir != replica.log_dir:
            return f"moved to {live.log_dir}"
    return None
