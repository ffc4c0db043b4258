"""Topics of ZooKeeper-era clusters, from znode documents: one JSON object of path to value.

``{"/brokers/topics/t": {…}}`` in schema versions 1 to 3 gives names, replicas and, in version 3, the id;
``/brokers/topics/t/partitions/0/state`` leader and ISR; ``/cluster/id`` the cluster. Other paths are ignored.

A znode shows that its topic exists. A missing znode proves nothing, so nothing counts as removed.

Not here: asking ZooKeeper.

Spec: design §4; KIP-516, "Proposed Changes" (``/brokers/topics/[topic]``, schema version 3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from logdir.cluster.image import AbsenceMeaning, Image, Partition, Source, Topic
from logdir.errors import InvalidIdError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own import own_json
from logdir.ids import TopicId
from logdir.names import is_legal_topic, parse_index

VERSIONS = range(1, 4)
MAX_BYTES = 256 << 20
_TOPIC = re.compile(r"/brokers/topics/([^/]+)")
_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/([^/]+)/state")
_CLUSTER = "/cluster/id"
_ID_KEYS = ("id", "topic_id")
"""The key of the topic id, as KIP-516 writes it, and as Kafka releases shipped it."""
_INT32 = 2**31 - 1


def parse(data: bytes, path: str, *, node_id: int, as_of_ms: int) -> Image:
    """Parse a znode document.

    Args:
        data: The whole file.
        path: Path of the file, for errors.
        node_id: The node whose replicas are looked up in the image.
        as_of_ms: When the document was taken (epoch, milliseconds).

    Raises:
        MalformedFileError: no JSON object, or an invalid value.
        UnsupportedVersionError: a topic's schema version is not 1, 2 or 3.
    """
    if len(data) > MAX_BYTES:
        raise MalformedFileError(path, expected=f"at most {MAX_BYTES} bytes", found=len(data))
    try:
        znodes = own_json.parse_json(data)
    except (ValueError, RecursionError) as error:
        raise MalformedFileError(path, expected="one JSON object", found=str(error)) from None
    if not isinstance(znodes, dict):
        raise MalformedFileError(path, expected="an object of path to value", found=znodes)
    topics: dict[bytes, Topic] = {}
    names: dict[str, bytes] = {}
    without_id: dict[str, Topic] = {}
    states = _states(znodes, path)
    for znode, value in znodes.items():
        matched = _TOPIC.fullmatch(znode)
        if matched is None:
            continue
        topic = _topic(matched[1], _Znode(value, path, znode), states)
        if not any(topic.topic_id):
            without_id[topic.name] = topic
            continue
        if topic.topic_id in topics:
            both = f'"{topics[topic.topic_id].name}" and "{topic.name}"'
            raise MalformedFileError(path, expected=f"one topic of id {TopicId(topic.topic_id)}", found=both)
        topics[topic.topic_id] = topic
        names[topic.name] = topic.topic_id
    if not topics and not without_id:
        # An empty listing is an error, not an answer (design §2 law 1).
        raise MalformedFileError(path, expected="at least one /brokers/topics/…", found="no such key")
    return Image(
        source=Source.ZNODES,
        origin=path,
        node_id=node_id,
        cluster_id=_cluster_id(znodes, path),
        as_of_ms=as_of_ms,
        topics=topics,
        names=names,
        without_id=without_id,
        absence_meaning=AbsenceMeaning.ABSENT,
    )


class _Znode:
    """The value of one znode; every method raises ``MalformedFileError`` for a missing or wrong value."""

    def __init__(self, value: object, path: str, znode: str) -> None:
        if not isinstance(value, dict):
            raise MalformedFileError(path, expected=f"an object in {znode}", found=value)
        self.value: Mapping[str, Any] = value
        self.path, self.znode = path, znode

    def refused(self, key: str, expected: str) -> MalformedFileError:
        found = self.value.get(key, "no such key")
        return MalformedFileError(self.path, expected=f"{expected} in {self.znode} {key}", found=found)

    def number(self, key: str, lowest: int = 0) -> int:
        value = self.value.get(key)
        if type(value) is not int or not lowest <= value <= _INT32:
            raise self.refused(key, f"a whole number from {lowest}")
        return value

    def nodes(self, key: str, listed: object) -> tuple[int, ...]:
        if not isinstance(listed, list) or not all(type(one) is int and 0 <= one <= _INT32 for one in listed):
            raise self.refused(key, "a list of node ids")
        if len(set(listed)) != len(listed):
            raise self.refused(key, "each node once")
        return tuple(listed)

    def by_partition(self, key: str, *, is_optional: bool = False) -> dict[int, tuple[int, ...]]:
        value = self.value.get(key, {} if is_optional else None)
        if not isinstance(value, dict):
            raise self.refused(key, "an object of partition to node ids")
        found = {}
        for index, listed in value.items():
            partition = parse_index(index)
            if partition is None:
                raise self.refused(key, "partition numbers as keys")
            found[partition] = self.nodes(key, listed)
        return found


def _topic(name: str, znode: _Znode, states: Mapping[tuple[str, int], Partition]) -> Topic:
    if not is_legal_topic(name):
        raise MalformedFileError(znode.path, expected="a legal topic name", found=znode.znode)
    version = znode.number("version")
    if version not in VERSIONS:
        raise UnsupportedVersionError(znode.path, expected=f"schema version 1 to 3 in {znode.znode}", found=version)
    adding = znode.by_partition("adding_replicas", is_optional=True) if version >= 2 else {}
    removing = znode.by_partition("removing_replicas", is_optional=True) if version >= 2 else {}
    partitions = {}
    for partition, replicas in znode.by_partition("partitions").items():
        state = states.get((name, partition), Partition((), ()))
        partitions[partition] = state._replace(
            replicas=replicas, adding=adding.get(partition, ()), removing=removing.get(partition, ())
        )
    return Topic(name, _id(znode) if version >= 3 else bytes(16), partitions)


def _id(znode: _Znode) -> bytes:
    """Return the topic id of a znode; the zero id if it has none, because the field is optional."""
    found = set()
    for key in _ID_KEYS:
        value = znode.value.get(key)
        if value is None:
            continue
        try:
            if not isinstance(value, str):
                raise znode.refused(key, "a topic id")
            found.add(bytes(TopicId.parse(value, znode.path)))
        except InvalidIdError:
            raise znode.refused(key, "a topic id of 22 base64 characters") from None
    if len(found) > 1:
        raise znode.refused("id", "the same as in topic_id")
    return found.pop() if found else bytes(16)


def _states(znodes: Mapping[str, Any], path: str) -> dict[tuple[str, int], Partition]:
    found = {}
    for name, value in znodes.items():
        matched = _STATE.fullmatch(name)
        if matched is None:
            continue
        partition = parse_index(matched[2])
        if partition is None:
            raise MalformedFileError(path, expected="a partition number", found=name)
        znode = _Znode(value, path, name)
        found[matched[1], partition] = Partition(
            replicas=(),
            isr=znode.nodes("isr", znode.value.get("isr")),
            leader=znode.number("leader", -2),
            leader_epoch=znode.number("leader_epoch"),
        )
    return found


def _cluster_id(znodes: Mapping[str, Any], path: str) -> str | None:
    if _CLUSTER not in znodes:
        return None
    value = _Znode(znodes[_CLUSTER], path, _CLUSTER)
    found = value.value.get("id")
    if not isinstance(found, str) or not found:
        raise value.refused("id", "a cluster id")
    return found
