"""A broker's disk as facts, and what actions make of it: a model, for there are millions of cases.

Not here: whether real directories go where the model says (``tests/crash``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from logdir.clock import Instant
from logdir.decide.reconcile_action import Action, GiveId, HoldStaged, StageReplica
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import WorkDir, render_work_dir
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.replica_ref import ReplicaRef

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
NODE = 1
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
WALL_MS = 1_800_000_000_000
HOUR_MS = 60 * 60 * 1000
NOW = Instant(boot_id="boot-1", boottime_ms=5 * HOUR_MS, wall_ms=WALL_MS, is_synchronised=True)
BORN_MS = WALL_MS - HOUR_MS


def live(
    topic: str | None,
    topic_id: str | None,
    partition: int = 0,
    *,
    log_dir: str = "/d1",
    layout: str = "topic-name",
    problems: tuple[str, ...] = (),
) -> Replica:
    """A live replica; in the topic-id layout its path is made of the id."""
    path = f"{topic}-{partition}" if layout == "topic-name" else f"{topic_id[:2]}/{topic_id}_{partition}"  # type: ignore[index] # that layout has an id
    if topic_id is None and not problems:
        problems = ("partition-metadata-missing",)
    return Replica(
        log_dir=log_dir,
        path=path,
        kind=Kind.LIVE,
        ref=ReplicaRef(
            topic=topic, topic_id=None if topic_id is None else TopicId.parse(topic_id), partition=partition
        ),
        inode=77,
        log_bytes=1000,
        segments=1,
        first_offset=0,
        checkpoints=Checkpoints(),
        problems=problems,
    )


def staged(marker: ReplicaMarker, *, log_dir: str = "/d1", counter: int = 1) -> StagedReplica:
    topic = marker.topic if marker.topic_id is None else None
    return StagedReplica(
        log_dir=log_dir,
        name=render_work_dir(WorkDir(marker.topic_id, topic, marker.partition, counter, "")),
        kind=Kind.STAGED,
        ref=ReplicaRef(topic=marker.topic, topic_id=marker.topic_id, partition=marker.partition),
        inode=marker.birth_inode,
        marker=marker,
        problem=None,
        log_bytes=1000,
    )


def disk(
    *replicas: Replica,
    log_dir: str = "/d1",
    staged: tuple[StagedReplica, ...] = (),
    layout: str = "topic-name",
) -> LogDirFacts:
    return LogDirFacts(
        log_dir=log_dir,
        problem=None,
        cluster_id=CLUSTER,
        node_id=NODE,
        directory_id=DIRECTORY,
        layout=layout,
        has_clean_marker=True,
        replicas=replicas,
        staged=staged,
    )


def births(facts: Iterable[LogDirFacts], born_ms: int = BORN_MS) -> dict[tuple[str, str], int]:
    return {(one.log_dir, replica.path): born_ms for one in facts for replica in one.replicas}


def apply(facts: Sequence[LogDirFacts], actions: Iterable[Action]) -> tuple[LogDirFacts, ...]:
    """Return the disks after some actions."""
    by_dir = {one.log_dir: one for one in facts}
    for action in actions:
        one = by_dir[action.log_dir]
        match action:
            case StageReplica():
                (gone,) = [replica for replica in one.replicas if replica.path == action.path]
                item = staged(action.stage.marker, log_dir=one.log_dir)
                counter = 1 + sum(other.name.split(".")[0] == item.name for other in one.staged)
                if counter > 1:
                    item = staged(action.stage.marker, log_dir=one.log_dir, counter=counter)
                one = replace(
                    one,
                    replicas=tuple(replica for replica in one.replicas if replica is not gone),
                    staged=(*one.staged, item),
                )
            case GiveId():
                one = replace(
                    one,
                    replicas=tuple(
                        replace(replica, ref=replace(replica.ref, topic_id=action.ref.topic_id), problems=())
                        if replica.path == action.path
                        else replica
                        for replica in one.replicas
                    ),
                )
            case HoldStaged():
                one = replace(
                    one,
                    staged=tuple(
                        replace(item, marker=replace(item.marker, delay_ms=None))
                        if item.name == action.name and item.marker is not None
                        else item
                        for item in one.staged
                    ),
                )
        by_dir[action.log_dir] = one
    return tuple(by_dir[one.log_dir] for one in facts)
