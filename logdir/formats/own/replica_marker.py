"""``replica.json``: why a partition directory was moved, and until when that can be undone.

The marker is written into the directory and synced before every rename of it. It moves with the data, so a restart
needs only a scan. A marker in a live directory means nothing. A marker that does not match this host and log dir is
foreign, and its replica is held.

Not here: when a deadline has passed (``decide.staged.deadline``), writing it to a disk (``disk.replica``).

Spec: design §3.3; attacks A8, A25.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from logdir.errors import InvalidIdError, MalformedFileError
from logdir.evidence import Absent, Evidence, Present, Proof, Removed, Unknown
from logdir.formats.own import own_json
from logdir.ids import TopicId
from logdir.names import MAX_PARTITION, is_legal_topic
from logdir.paths import MARKER_FILE
from logdir.reasons import Reason
from logdir.replica_ref import ReplicaRef

FILE_NAME = MARKER_FILE
VERSION = 1
BY_HAND = "the replica is held: no command changes it; docs/undo.md shows how to take its files out by hand"
"""Fix for a staged replica whose marker cannot be used."""


class Intent(Enum):
    """Why a directory has a marker."""

    STAGED = "staged"
    INCOMING = "incoming"
    CAPTURED = "captured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """The replica's entries in the log dir's four checkpoint files; ``None`` for a missing entry."""

    recovery_point: int | None = None
    log_start: int | None = None
    high_watermark: int | None = None
    cleaner: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaMarker:
    """The content of ``replica.json``. Instants and durations are milliseconds."""

    intent: Intent
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    topic: str
    topic_id: TopicId | None
    partition: int
    birth_inode: int
    """Inode of the partition directory when it was marked: a copied marker does not match the copy."""
    path: str
    """The original path of the directory, relative to its log dir."""
    reason: Reason
    evidence: Evidence
    staged_at_ms: int
    """Wall clock, for people; deadlines depend on the next three fields."""
    delay_ms: int | None
    """Time from the staging to the deadline; ``None``: held, without a deadline."""
    boot_id: str
    boottime_ms: int
    checkpoints: Checkpoints = Checkpoints()
    clean: bool
    """Whether the broker had closed the log cleanly (``.kafka_cleanshutdown``)."""
    tiered: bool = False
    """Whether the topic has remote storage, so that the local log is only a part."""

    def __post_init__(self) -> None:
        if self.delay_ms is not None and not isinstance(self.evidence, Removed):
            raise ValueError("a deadline (delay_ms) without proof of removal (law 1)")

    @property
    def ref(self) -> ReplicaRef:
        """The replica that the marker is about."""
        return ReplicaRef(topic=self.topic, topic_id=self.topic_id, partition=self.partition)


def _evidence_values(evidence: Evidence) -> dict[str, object]:
    match evidence:
        case Removed():
            return {"kind": "removed", "proof": evidence.proof.value, "as_of_ms": evidence.as_of_ms}
        case Absent():
            return {"kind": "absent", "proof": None, "as_of_ms": evidence.as_of_ms}
        case Present():
            return {"kind": "present", "proof": None, "as_of_ms": evidence.as_of_ms}
        case Unknown():
            return {"kind": "unknown", "proof": None, "as_of_ms": None}
        case never:
            assert_never(never)


def render(marker: ReplicaMarker) -> bytes:
    """Return the bytes of ``replica.json``.

    Raises:
        ValueError: the file would exceed ``own_json.MAX_BYTES``, or a value has no JSON form.
    """
    points = marker.checkpoints
    data = own_json.render(
        "replica",
        VERSION,
        {
            "intent": marker.intent.value,
            "cluster_id": marker.cluster_id,
            "node_id": marker.node_id,
            "directory_id": marker.directory_id,
            "topic": marker.topic,
            "topic_id": None if marker.topic_id is None else str(marker.topic_id),
            "partition": marker.partition,
            "birth_inode": marker.birth_inode,
            "path": marker.path,
            "reason": marker.reason.value,
            "evidence": _evidence_values(marker.evidence),
            "staged_at_ms": marker.staged_at_ms,
            "delay_ms": marker.delay_ms,
            "boot_id": marker.boot_id,
            "boottime_ms": marker.boottime_ms,
            "checkpoints": {
                "recovery_point": points.recovery_point,
                "log_start": points.log_start,
                "high_watermark": points.high_watermark,
                "cleaner": points.cleaner,
            },
            "clean": marker.clean,
            "tiered": marker.tiered,
        },
    )
    if len(data) > own_json.MAX_BYTES:
        raise ValueError(f"a marker has at most {own_json.MAX_BYTES} bytes, not {len(data)}")
    return data


def parse(data: bytes, path: str = "") -> ReplicaMarker:
    """Parse the bytes of ``replica.json``.

    Args:
        data: The whole file.
        path: Where it lies, for the error.

    Raises:
        MalformedFileError: cut off, altered, or a key is missing or has a wrong value.
        UnsupportedVersionError: the file has another version.
    """
    values = own_json.parse(data, path, "replica", VERSION)
    points = values.inner("checkpoints")
    topic, topic_id = values.text("topic"), values.text_or_none("topic_id")
    if not is_legal_topic(topic):
        raise MalformedFileError(path, expected="a legal topic name in topic", found=topic)
    try:
        return ReplicaMarker(
            intent=values.one_of("intent", Intent),
            cluster_id=values.text_or_none("cluster_id"),
            node_id=values.number_or_none("node_id"),
            directory_id=values.text_or_none("directory_id"),
            topic=topic,
            topic_id=None if topic_id is None else TopicId.parse(topic_id, path),
            partition=values.number("partition", MAX_PARTITION),
            birth_inode=values.number("birth_inode", 2**64 - 1),
            path=values.text("path"),
            reason=values.one_of("reason", Reason),
            evidence=_evidence(values.inner("evidence")),
            staged_at_ms=values.number("staged_at_ms"),
            delay_ms=values.number_or_none("delay_ms"),
            boot_id=values.text("boot_id"),
            boottime_ms=values.number("boottime_ms"),
            checkpoints=Checkpoints(
                recovery_point=points.number_or_none("recovery_point"),
                log_start=points.number_or_none("log_start"),
                high_watermark=points.number_or_none("high_watermark"),
                cleaner=points.number_or_none("cleaner"),
            ),
            clean=values.flag("clean"),
            tiered=values.flag("tiered"),
        )
    except InvalidIdError as error:
        raise MalformedFileError(path, expected=error.expected, found=topic_id) from None
    except ValueError as error:
        raise MalformedFileError(path, expected="a deadline only with proof of removal", found=str(error)) from None


def _evidence(values: own_json.Values) -> Evidence:
    match values.text("kind"):
        case "removed":
            return Removed(proof=values.one_of("proof", Proof), as_of_ms=values.number("as_of_ms"))
        case "absent":
            return Absent(as_of_ms=values.number("as_of_ms"))
        case "present":
            return Present(as_of_ms=values.number("as_of_ms"))
        case "unknown":
            return Unknown()
        case _:
            raise values.refused("kind", "removed, absent, present or unknown")
