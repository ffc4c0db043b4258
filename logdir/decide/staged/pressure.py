"""Which captured replicas may go before their deadline when a disk is nearly full, and in which order.

What a broker deletes frees no space as long as its files are captured, and a broker whose disk is full goes offline. So
captured replicas go first, oldest first, one after the other, until enough is free. A captured ``-stray``, a replica
that an operator holds, and whatever was staged rather than captured stay.

Not here: how much is free, and whether the files of a replica have other names (``service.batch.pressure``).

Spec: design §3.3 "pressure"; attacks A14, A50.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Intent
from logdir.names import DirForm, parse_partition_dir
from logdir.observe.facts import StagedReplica


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


def oldest_first(staged: Sequence[StagedReplica]) -> tuple[StagedReplica, ...]:
    """Return those that may go, in the order in which they go."""
    going = [item for item in staged if may_go_first(item)]
    return tuple(sorted(going, key=lambda item: (0 if item.marker is None else item.marker.staged_at_ms, item.name)))
