"""What brokers answered, as values; a body that contradicts itself or the request is refused. Pure.

Not here: sending requests (``cluster_client``).

Spec: KIP-516, "Describe Topics" (an id is looked up before the right to see its topic is); KIP-595, KIP-113;
kafka-formats §11.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from logdir.ids import TopicId
from logdir.replica_ref import ReplicaRef
from logdir.wire.client import error_codes
from logdir.wire.client.errors import BrokerAnswerError, MalformedAnswerError
from logdir.wire.client.settings import Address


class Node(NamedTuple):
    """A broker as the cluster advertises it to this listener."""

    node_id: int
    address: Address
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster and its brokers."""

    cluster_id: str
    controller_id: int | None
    """``None``: none is known; in KRaft mode this is a broker that forwards to it."""
    nodes: tuple[Node, ...]
    """By node id; without fenced brokers."""


class Existence(Enum):
    """How a broker answers about a topic id."""

    PRESENT = "present"
    GONE = "gone"
    """It knows no such topic id (error 100)."""
    HIDDEN = "hidden"
    """The topic exists, and this user may not see it (error 29)."""
    UNKNOWN = "unknown"
    """Another error; ``TopicState.error`` holds its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """One partition of a topic."""

    partition: int
    leader: int | None
    """Node id; ``None``: no leader."""
    leader_epoch: int
    """-1: not known."""
    replicas: tuple[int, ...]
    """Node ids, those of a reassignment in progress included."""
    in_sync: tuple[int, ...]
    """Node ids."""
    error: int
    """0, or for example 5 without a leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A broker's answer about one topic id."""

    topic_id: TopicId
    existence: Existence
    name: str | None
    """Set if and only if it is present."""
    partitions: tuple[PartitionState, ...]
    """By number; not empty if it is present, else empty."""
    error: int
    """Of the topic; 0 if it is present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The answer of one broker about topic ids."""

    cluster_id: str | None
    topics: Mapping[TopicId, TopicState]
    """Every topic id that was asked for, and no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The metadata quorum, as its leader sees it."""

    leader_id: int
    leader_epoch: int
    high_watermark: int | None
    """First offset of the metadata log that is not committed; ``None``: a new leader does not know it yet."""
    voters: tuple[int, ...]
    """Node ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedReplica:
    """A replica in a log dir, as its broker reports it."""

    ref: ReplicaRef
    """By name alone: a broker does not report the topic id here."""
    is_future: bool
    size_bytes: int
    offset_lag: int
    """Of a replica behind the high watermark, or of a future replica behind the current one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedLogDir:
    """A log dir, as its broker reports it."""

    log_dir: str
    error: int
    """0, or for example 56 for an offline log dir."""
    replicas: tuple[ReportedReplica, ...]
    total_bytes: int | None
    usable_bytes: int | None
    """Both ``None`` if the broker is older than 3.3, or does not know them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """Offsets of partitions of one topic."""

    offsets: Mapping[int, int]
    """By partition number."""
    errors: Mapping[int, int]
    """Error numbers of the other partitions."""


def require_no_error(where: str, number: int, expected: str, fix: str = "") -> None:
    """Check that an answer as a whole has no error number.

    Raises:
        BrokerAnswerError: it has one.
    """
    if number != error_codes.NONE:
        name = error_codes.name_of(number)
        raise BrokerAnswerError(where, number=number, name=name, expected=expected, fix=fix)


def cluster_of(where: str, body: dict[str, Any]) -> Cluster:
    """Return the answer to DescribeCluster.

    Raises:
        AskError: it has an error, or is malformed.
    """
    require_no_error(where, body["errorCode"], "a description of the cluster")
    nodes = tuple(sorted((_node(where, one) for one in body["brokers"]), key=lambda node: node.node_id))
    _require_distinct(where, "brokers", [node.node_id for node in nodes])
    if not nodes or not body["clusterId"]:
        raise _malformed(where, "a cluster id and at least one broker", "none")
    controller_id = body["controllerId"]
    return Cluster(
        cluster_id=body["clusterId"], controller_id=None if controller_id < 0 else controller_id, nodes=nodes
    )


def _node(where: str, one: dict[str, Any]) -> Node:
    if not one["host"] or not 0 < one["port"] <= 0xFFFF:
        raise _malformed(where, f"host and port of broker {one['brokerId']}", f"{one['host']}:{one['port']}")
    return Node(one["brokerId"], Address(one["host"], one["port"]), one["rack"])


def topics_of(where: str, body: dict[str, Any], asked: Collection[TopicId]) -> Topics:
    """Return the answer to Metadata by topic ids.

    Raises:
        AskError: it has an error, is malformed, or is not about the ids that were asked for.
    """
    require_no_error(where, body.get("errorCode", error_codes.NONE), "the metadata of topics")
    states = [_topic(where, one) for one in body["topics"]]
    _require_distinct(where, "topic ids", [state.topic_id for state in states])
    if {state.topic_id for state in states} != set(asked):
        raise _malformed(
            where, f"an answer about each of {len(asked)} topic ids", f"one about {len(states)}: others, or too few"
        )
    return Topics(cluster_id=body["clusterId"], topics={state.topic_id: state for state in states})


def _topic(where: str, one: dict[str, Any]) -> TopicState:
    topic_id = TopicId(one["topicId"])
    number = one["errorCode"]
    if number != error_codes.NONE:
        existence = {
            error_codes.UNKNOWN_TOPIC_ID: Existence.GONE,
            error_codes.TOPIC_AUTHORIZATION_FAILED: Existence.HIDDEN,
        }.get(number, Existence.UNKNOWN)
        return TopicState(topic_id=topic_id, existence=existence, name=None, partitions=(), error=number)
    if not one["name"] or not one["partitions"]:
        raise _malformed(where, f"the name and the partitions of topic {topic_id}", "none")
    partitions = tuple(sorted(map(_partition, one["partitions"]), key=lambda state: state.partition))
    _require_distinct(where, f"partitions of {one['name']}", [state.partition for state in partitions])
    return TopicState(
        topic_id=topic_id, existence=Existence.PRESENT, name=one["name"], partitions=partitions, error=number
    )


def _partition(one: dict[str, Any]) -> PartitionState:
    return PartitionState(
        partition=one["partitionIndex"],
        leader=None if one["leaderId"] < 0 else one["leaderId"],
        leader_epoch=one["leaderEpoch"],
        replicas=one["replicaNodes"],
        in_sync=one["isrNodes"],
        error=one["errorCode"],
    )


def quorum_of(where: str, body: dict[str, Any], topic: str) -> Quorum:
    """Return the answer to DescribeQuorum for partition 0 of the metadata topic.

    Raises:
        AskError: it has an error, or is malformed.
    """
    expected = "the state of the metadata quorum"
    require_no_error(where, body["errorCode"], expected)
    one = _only_partition(where, body, "topicName", topic)
    require_no_error(where, one["errorCode"], expected)
    if one["leaderId"] < 0 or one["leaderEpoch"] < 0:
        raise _malformed(where, "the leader of the metadata quorum", "none")
    watermark = one["highWatermark"]
    return Quorum(
        leader_id=one["leaderId"],
        leader_epoch=one["leaderEpoch"],
        high_watermark=None if watermark < 0 else watermark,
        voters=tuple(voter["replicaId"] for voter in one["currentVoters"]),
    )


def _only_partition(where: str, body: dict[str, Any], key: str, topic: str) -> dict[str, Any]:
    found = [(one[key], part["partitionIndex"], part) for one in body["topics"] for part in one["partitions"]]
    if [names[:2] for names in found] != [(topic, 0)]:
        raise _malformed(where, f"an answer about {topic}-0", f"one about {len(found)} partitions")
    part: dict[str, Any] = found[0][2]
    return part


def log_dirs_of(where: str, body: dict[str, Any]) -> tuple[ReportedLogDir, ...]:
    """Return the answer to DescribeLogDirs, by path.

    Raises:
        AskError: it has an error, or is malformed.
    """
    expected = "the log dirs of the broker"
    fix = "the user needs DESCRIBE on the cluster"
    require_no_error(where, body.get("errorCode", error_codes.NONE), expected, fix)
    # Up to version 2 a user without the right gets an empty list, and every broker has a log dir.
    if not body["results"]:
        raise _malformed(where, expected, "none", fix)
    found = sorted(map(_log_dir, body["results"]), key=lambda one: one.log_dir)
    _require_distinct(where, "log dirs", [one.log_dir for one in found])
    return tuple(found)


def _log_dir(one: dict[str, Any]) -> ReportedLogDir:
    total, usable = one.get("totalBytes", -1), one.get("usableBytes", -1)
    return ReportedLogDir(
        log_dir=one["logDir"],
        error=one["errorCode"],
        replicas=tuple(
            ReportedReplica(
                ref=ReplicaRef(topic=topic["name"], topic_id=None, partition=part["partitionIndex"]),
                is_future=part["isFutureKey"],
                size_bytes=part["partitionSize"],
                offset_lag=part["offsetLag"],
            )
            for topic in one["topics"]
            for part in topic["partitions"]
        ),
        total_bytes=None if total < 0 else total,
        usable_bytes=None if usable < 0 else usable,
    )


def offsets_of(where: str, body: dict[str, Any], topic: str, asked: Collection[int]) -> Offsets:
    """Return the answer to ListOffsets for partitions of one topic.

    Raises:
        AskError: it is malformed, or is not about the partitions that were asked for.
    """
    found = [(one["name"], part["partitionIndex"], part) for one in body["topics"] for part in one["partitions"]]
    if sorted(names[:2] for names in found) != sorted((topic, partition) for partition in asked):
        raise _malformed(
            where, f"an answer about {len(asked)} partitions of {topic}", f"one about {len(found)}: others, or too few"
        )
    errors = {number: part["errorCode"] for _, number, part in found if part["errorCode"] != error_codes.NONE}
    offsets = {number: part["offset"] for _, number, part in found if number not in errors}
    if any(offset < 0 for offset in offsets.values()):
        raise _malformed(where, f"an offset of each partition of {topic}", "a negative number")
    return Offsets(offsets=offsets, errors=errors)


def _require_distinct(where: str, what: str, found: Iterable[object]) -> None:
    listed = list(found)
    if len(set(listed)) != len(listed):
        raise _malformed(where, f"{what} that are each named once", "one that is named twice")


def _malformed(where: str, expected: str, found: str, fix: str = "") -> MalformedAnswerError:
    return MalformedAnswerError(where, expected=expected, found=found, fix=fix)
