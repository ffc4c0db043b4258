"""Items of a description: a directory or a missing replica, and its partition's state in the cluster.

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
    """The cluster metadata of a partition."""

    leader: int | None
    """Its node id; ``None``: the partition has no leader."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @classmethod
    def of(cls, partition: Partition) -> ClusterItem:
        """Return the item of a partition in an image."""
        return cls(
            leader=None if partition.leader == NO_LEADER else partition.leader,
            leader_epoch=partition.leader_epoch,
            replicas=partition.replicas,
            isr=partition.isr,
            adding=partition.adding,
            removing=partition.removing,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedItem:
    """One directory, or a replica that is missing here; fields as in ``decide.describe.Described``."""

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
    """``None``: the cluster metadata was not read, or does not contain the partition."""

    @classmethod
    def of(cls, row: Described) -> DescribedItem:
        """Return the item of one row of a description."""
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
            cluster=None if row.in_image is None else ClusterItem.of(row.in_image),
        )
