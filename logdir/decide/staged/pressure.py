"""Which captured replicas may go before their deadline when a disk is nearly full, and in which order.

What a broker deletes frees no space as long as its files are captured, and a broker whose disk is full goes offline. So
captured replicas go first, oldest first, one after the other, until enough is free. A captured ``-stray``, a replica
that an operator holds, and whatever was staged rather than captured stay.

A removal that goes on is awaited before another one begins. One that failed frees nothing, and does not keep the next
replica from being purged; but each such replica is lost for its operator, so after a few of them on a disk no other one
is claimed there.

Not here: how much is free, and whether the files of a replica have other names (``service.batch.pressure``).

Spec: design §3.3 "pressure"; attacks A14, A50.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Final

from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent
from logdir.names import DirForm, parse_partition_dir
from logdir.observe.facts import StagedReplica

MOST_FAILED: Final = 3
"""How many replicas of a disk may be claimed without being removed before no other one is claimed."""


class Pressure(Enum):
    """What happens on a disk with less free space than ``staged.min.free``; the value of ``pressure``."""

    PURGE_CAPTURED = "purge-captured"
    HOLD = "hold"
    """Nothing goes before its deadline."""


def may_go_first(item: StagedReplica) -> bool:
    """Whether a staged replica may be purged before its deadline on a nearly full disk."""
    marker = item.marker
    if item.kind is not Kind.STAGED or marker is None or item.problem is not None:
        return False
    parts = parse_partition_dir(marker.path)
    is_deleted = parts is not None and parts.form is DirForm.DELETE
    return marker.intent is Intent.CAPTURED and marker.delay_ms is not None and is_deleted


def going(staged: Sequence[StagedReplica], failed: Collection[str]) -> tuple[StagedReplica, ...]:
    """Return those of a log dir that may go now, in the order in which they go.

    Args:
        staged: All that is staged there.
        failed: Paths of those whose removal failed.

    Returns:
        None of them while a removal goes on, or after ``MOST_FAILED`` that failed.
    """
    begun = {item.path for item in staged if item.kind is Kind.PURGING}
    if begun.difference(failed) or len(begun) >= MOST_FAILED:
        return ()
    return oldest_first(staged)


def oldest_first(staged: Sequence[StagedReplica]) -> tuple[StagedReplica, ...]:
    """Return those that may go, in the order in which they go."""
    going = [item for item in staged if may_go_first(item)]
    return tuple(sorted(going, key=lambda item: (0 if item.marker is None else item.marker.staged_at_ms, item.name)))
