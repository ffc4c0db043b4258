"""Facts, markers and moments in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from logdir.clock import Instant
from logdir.cluster.image import AbsenceMeaning, Image, Partition, Source, Topic
from logdir.decide.image.still_assigned import ClusterState
from logdir.evidence import Proof, Removed
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import WorkDir, render_work_dir
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.reasons import Reason
from logdir.replica_ref import ReplicaRef

ID = TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw")
OTHER_ID = TopicId.parse("MkU3OEVBNTcwNTJENDM2Qg")
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
WALL_MS = 1_800_000_000_000
HOUR_MS = 60 * 60 * 1000
NOW = Instant(boot_id="boot-1", boottime_ms=5 * HOUR_MS, wall_ms=WALL_MS, is_synchronised=True)
MARKER = ReplicaMarker(
    intent=Intent.STAGED,
    cluster_id=CLUSTER,
    node_id=1,
    directory_id="JEXY6aqzQY-32P5TStzaFg",
    topic="orders",
    topic_id=ID,
    partition=3,
    birth_inode=77,
    path="orders-3",
    reason=Reason.OPERATOR,
    evidence=Removed(proof=Proof.OPERATOR, as_of_ms=WALL_MS),
    staged_at_ms=WALL_MS,
    delay_ms=4 * HOUR_MS,
    boot_id=NOW.boot_id,
    boottime_ms=NOW.boottime_ms,
    checkpoints=Checkpoints(recovery_point=100, log_start=40),
    clean=True,
)
NOT_ASSIGNED = ClusterState(
    image=Image(
        source=Source.METADATA_LOG, origin="/m", node_id=1, cluster_id=CLUSTER, absence_meaning=AbsenceMeaning.REMOVED
    )
)
"""What the cluster says where it assigns nothing to node 1."""


def assigning(
    *, isr: tuple[int, ...] = (1, 2), replicas: tuple[int, ...] = (1, 2, 3), is_current: bool = True, **changed: Any
) -> ClusterState:
    """Return what the cluster says where it assigns ``orders-3`` to these nodes; up to offset 100."""
    topic = Topic("orders", bytes(ID), {3: Partition(replicas, isr)})
    made = Image(
        source=Source.METADATA_LOG,
        origin="/m",
        node_id=1,
        cluster_id=CLUSTER,
        epoch=1,
        offset=100,
        as_of_ms=WALL_MS,
        topics={bytes(ID): topic},
        names={"orders": bytes(ID)},
    )
    image = replace(made, **changed)
    return ClusterState(image=image, latest=image, is_current=is_current, known_offset=image.offset)


def replica(path: str = "orders-3", *, log_dir: str = "/d1", **changed: Any) -> Replica:
    topic, _, partition = path.split(".", 1)[0].rpartition("-")
    made = Replica(
        log_dir=log_dir,
        path=path,
        kind=Kind.LIVE,
        ref=ReplicaRef(topic=topic, topic_id=ID if topic == "orders" else None, partition=int(partition)),
        inode=77,
        log_bytes=1000,
        segments=2,
        first_offset=40,
        checkpoints=Checkpoints(recovery_point=100, log_start=40),
    )
    return altered(made, **changed)


_Replica = TypeVar("_Replica", Replica, StagedReplica)


def altered(made: _Replica, **changed: Any) -> _Replica:
    """Return a replica with other fields, or with other fields of its ``ref``."""
    ref = {name: changed.pop(name) for name in ("topic", "topic_id", "partition") if name in changed}
    return replace(made, ref=replace(made.ref, **ref), **changed)


def future(path: str, *, log_dir: str = "/d2", **changed: Any) -> Replica:
    return replica(f"{path}.{'0' * 32}-future", log_dir=log_dir, kind=Kind.FUTURE, **changed)


def staged_replicas(
    marker: ReplicaMarker = MARKER, *, log_dir: str = "/d1", counter: int = 1, **changed: Any
) -> StagedReplica:
    kind = changed.get("kind", Kind.STAGED)
    mark = "purging" if kind is Kind.PURGING else ""
    topic = marker.topic if marker.topic_id is None else None
    made = StagedReplica(
        log_dir=log_dir,
        name=render_work_dir(WorkDir(marker.topic_id, topic, marker.partition, counter, mark)),
        kind=kind,
        ref=ReplicaRef(topic=marker.topic, topic_id=marker.topic_id, partition=marker.partition),
        inode=marker.birth_inode,
        marker=marker,
        problem=None,
    )
    return altered(made, **changed)


def facts(
    *replicas: Replica, log_dir: str = "/d1", staged_replicas: tuple[StagedReplica, ...] = (), **changed: Any
) -> LogDirFacts:
    made = LogDirFacts(
        log_dir=log_dir,
        problem=None,
        cluster_id=CLUSTER,
        node_id=1,
        directory_id="JEXY6aqzQY-32P5TStzaFg",
        layout="topic-name" if replicas else "empty",
        has_clean_marker=True,
        replicas=replicas,
        staged=staged_replicas,
    )
    return replace(made, **changed)
