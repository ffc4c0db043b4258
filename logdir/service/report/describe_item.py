"""The items of a description: a directory, or a replica that is missing, and what the cluster says of it.

Spec: docs/json.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdir.cluster.image import NO_LEADER, Partition
from logdir.decide.describe import Described, State
from logdir.formats.own.inventory import Kind
from logdir.replica_ref import ReplicaRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterItem:
    """What the cluster says of a partition."""

    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @classmethod
    def of(cls, said: Partition) -> ClusterItem:
        """Return what an image has of a partition."""
        return cls(
            leader=None if said.leader == NO_LEADER else said.leader,
            leader_epoch=said.leader_epoch,
            replicas=said.replicas,
            isr=said.isr,
            adding=said.adding,
            removing=said.removing,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedItem:
    """One directory, or a replica that should be here and is not; fields as of ``decide.describe.Described``."""

    ref: ReplicaRef
    state: State
    kind: Kind | None
    log_dir: str | None
    path: str | None
    log_bytes: int | None
    segments: int | None
    first_offset: int | None
    problems: tuple[str, ...]
    tiered: bool
    cluster: ClusterItem | None
    """``None``: nothing is said of it."""

    @classmethod
    def of(cls, row: Described) -> DescribedItem:
        """Return the item of a row."""
        return cls(
            ref=row.ref,
            state=row.state,
            kind=row.kind,
            log_dir=row.log_dir,
            path=row.path,
            log_bytes=row.log_bytes,
            segments=row.segments,
            first_offset=row.first_offset,
            problems=row.problems,
            tiered=row.is_tiered,
            cluster=None if row.said is None else ClusterItem.of(row.said),
        )
