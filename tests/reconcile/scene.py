"""What attacks are played with: a disk at stake, what was staged, and a log that names both topics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from logdir.cluster.image import Image
from logdir.cluster.metadata_log import Watermark
from logdir.decide.staged.purge_recheck import PurgeRecheck, against_purge
from logdir.evidence import Evidence, Proof, Removed
from logdir.formats.own.controller_file import ControllerFile
from logdir.formats.own.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica, ReplicaIndex, StagedReplica
from logdir.reasons import Reason
from tests.logdir.cluster.log_dir import (
    LogDir,
    noop,
)
from tests.reconcile.disk import CLUSTER, DIRECTORY, HOUR_MS, NODE, WALL_MS, disk, live
from tests.reconcile.disk import staged as staged_replicas
from tests.reconcile.stories import FRESH
from tests.reconcile.universe import OTHER, RIGHT

A, B = RIGHT["a"], RIGHT["b"]
A0 = OTHER["a"]
Z = "JXU9oWORQXexuCoDVTCJZg"
EVERY = tuple(range(20))
FULL, INCREMENTAL = 2, 1
MARGIN_MS = 10 * 60 * 1000
OTHERS = tuple(live("z", Z, number, log_dir="/d9") for number in range(20))


def raw(topic_id: str) -> bytes:
    return bytes(TopicId.parse(topic_id))


def item(
    topic_id: str | None,
    *,
    reason: Reason = Reason.ABSENT,
    evidence: Evidence | None = None,
    name: str = "a",
    number: int = 0,
    delay_ms: int | None = 4 * HOUR_MS,
    **changed: Any,
) -> StagedReplica:
    marker = ReplicaMarker(
        intent=Intent.STAGED,
        cluster_id=CLUSTER,
        node_id=NODE,
        directory_id=DIRECTORY,
        topic=name,
        topic_id=None if topic_id is None else TopicId.parse(topic_id),
        partition=number,
        birth_inode=77,
        path=f"{name}-{number}",
        reason=reason,
        evidence=evidence or Removed(proof=Proof.FULL_REQUEST, as_of_ms=WALL_MS - HOUR_MS),
        staged_at_ms=WALL_MS - HOUR_MS,
        delay_ms=delay_ms,
        boot_id="boot-1",
        boottime_ms=0,
        clean=True,
    )
    return replace(staged_replicas(marker), **changed)


def pair(*replicas: Replica, aside: tuple[StagedReplica, ...] = ()) -> tuple[LogDirFacts, LogDirFacts]:
    """The disk at stake, and one that holds enough else."""
    return disk(*replicas, staged=aside), disk(*OTHERS, log_dir="/d9")


def later(log: LogDir, by_ms: int = HOUR_MS - 5000) -> None:
    log.time_ms += by_ms
    log.append(noop())


def watermark(offset: int, epoch: int, *, is_prefix_checked: bool = False) -> Watermark:
    return Watermark(offset=offset, epoch=epoch, is_prefix_checked=is_prefix_checked)


def why_no_purge(
    image: Image | None, one: StagedReplica, facts: tuple[LogDirFacts, ...], last_applied: ControllerFile | None = FRESH
) -> str | None:
    refusal = against_purge(PurgeRecheck(image=image, last_applied=last_applied), one, ReplicaIndex(facts))
    return None if refusal is None else refusal.problem.slug
