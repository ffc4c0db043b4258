"""Items of a description: a directory or a missing replica, and its partition's state in the cluster.

Spec: docs/json.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from logdir.cluster.image import NO_LEADER, Partition
from logdir.decide.describe import Described, State
from logdir.formats.own.inventory import Kind
from logdir.replica_ref import ReplicaRef
from logdir.service.report.table import Column
from logdir.text import size


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


COLUMNS: Final[tuple[Column[DescribedItem], ...]] = (
    Column("topic", lambda one: one.ref.topic or "?"),
    Column("p", "ref.partition", is_number=True),
    Column("id", "ref.topic_id"),
    Column("kind", lambda one: None if one.kind is None else one.kind.value + (", tiered" if one.tiered else "")),
    Column("state", lambda one: ", ".join((one.state.value, *one.problems))),
    Column("bytes", lambda one: size(one.log_bytes), is_number=True),
    Column("disk", "log_dir"),
    Column("path", "path"),
)
"""The table of a description, for people."""
CLUSTER_COLUMNS: Final[tuple[Column[DescribedItem], ...]] = (
    Column("leader", lambda one: None if one.cluster is None else one.cluster.leader),
    Column("replicas", lambda one: None if one.cluster is None else one.cluster.replicas),
    Column("isr", lambda one: None if one.cluster is None else one.cluster.isr),
)
"""Its further columns if the cluster metadata was read."""
