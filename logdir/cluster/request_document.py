"""Request documents: one LeaderAndIsr or StopReplica request as a JSON object with a sequence number.

Keys: ``document`` (1), ``api``, ``version``, ``form`` (``kip``: as KIP-516 writes it, ``shipped``), ``sequence``,
``partitions`` (how many the body must hold: a request cut in two is refused), and ``body`` (the request in Kafka's own
JSON) or ``hex`` (its header and body as on the wire).

Not here: whether a request may be applied (``decide.image.admission``), its meaning (``requests``).

Spec: design §4; KIP-516, "LeaderAndIsr", "StopReplica"; kafka-formats §11.1; kafka-behaviour §4; attacks A3, A27.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, NamedTuple

from logdir.cluster.image import Partition
from logdir.errors import InvalidIdError, MalformedFileError, UnsupportedVersionError
from logdir.formats.own import own_json
from logdir.ids import TopicId
from logdir.names import MAX_PARTITION, is_legal_topic
from logdir.replica_ref import ReplicaRef
from logdir.wire import frames
from logdir.wire.errors import WireError
from logdir.wire.message import Direction
from logdir.wire.message import Form as Layout

VERSION = 1
MAX_BYTES = 256 << 20
"""Room for a FULL request of 200,000 partitions; a document that is larger is not read."""
_INT32 = 2**31 - 1
_INT64 = 2**63 - 1


class Api(Enum):
    """The request type; the value is Kafka's name."""

    LEADER_AND_ISR = "LeaderAndIsr"
    STOP_REPLICA = "StopReplica"


KEYS = {Api.LEADER_AND_ISR: 4, Api.STOP_REPLICA: 5}
"""Kafka's api keys."""


class Form(Enum):
    """The schema of the body: as KIP-516 writes it, or as Kafka releases shipped it."""

    KIP = "kip"
    SHIPPED = "shipped"

    @property
    def words(self) -> str:
        """The schema in a message."""
        return "as in KIP-516" if self is Form.KIP else "as shipped"


VERSIONS = {
    (Api.LEADER_AND_ISR, Form.SHIPPED): range(8),
    (Api.STOP_REPLICA, Form.SHIPPED): range(3, 5),
    (Api.LEADER_AND_ISR, Form.KIP): range(5, 6),
    (Api.STOP_REPLICA, Form.KIP): range(4, 5),
}


class RequestType(IntEnum):
    """The ``type`` of a LeaderAndIsr request (KIP-516)."""

    UNKNOWN = 0
    """Older versions, and every ZooKeeper controller: full and partial requests look the same (kafka-formats §11.1)."""
    INCREMENTAL = 1
    FULL = 2


class Item(NamedTuple):
    """One partition of a request."""

    ref: ReplicaRef
    """Without a name in the KIP's StopReplica, which names ids alone; without an id where it is zero or not given."""
    state: Partition | None
    """Only for a LeaderAndIsr request."""
    leader_epoch: int
    delete: bool = False
    """Only for a StopReplica request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDocument:
    """A request document with a valid format; whether it may be applied is not decided yet."""

    path: str
    """The path of its file."""
    api: Api
    version: int
    form: Form
    sequence: int
    controller_epoch: int
    broker_epoch: int
    """-1: not given, and not checked."""
    type: RequestType
    """``UNKNOWN`` for StopReplica."""
    items: tuple[Item, ...]
    """In the order of the request."""


def parse(data: bytes, path: str = "") -> RequestDocument:
    """Parse a request document.

    Args:
        data: The whole file.
        path: Path of the file, for errors.

    Raises:
        MalformedFileError: no JSON object, a missing key or one of another type, a wrong number of partitions, or bytes
            that are no such request.
        UnsupportedVersionError: an unknown version of the document or of the request.
    """
    if len(data) > MAX_BYTES:
        raise MalformedFileError(path, expected=f"at most {MAX_BYTES} bytes", found=len(data))
    try:
        read = own_json.parse_json(data)
    except (ValueError, RecursionError) as error:
        raise MalformedFileError(path, expected="one JSON object", found=str(error)) from None
    values = own_json.Values(read, path)
    number = values.number("document")
    if number != VERSION:
        raise UnsupportedVersionError(path, expected=f"document version {VERSION}", found=number)
    api, form = values.one_of("api", Api), values.one_of("form", Form)
    version = values.number("version", _INT32)
    versions = VERSIONS[api, form]
    if version not in versions:
        known = f"{versions.start} to {versions.stop - 1}"
        raise UnsupportedVersionError(path, expected=f"{api.value} version {known}, {form.words}", found=version)
    sequence = values.number("sequence")
    if sequence < 1:
        raise values.refused("sequence", "a whole number from 1")
    if ("body" in read) == ("hex" in read):
        raise MalformedFileError(path, expected="either body or hex", found=", ".join(sorted(map(str, read)))[:100])
    body = _Body(read["body"] if "body" in read else _unpacked(values, path, api, version, form), path, "body")
    items = tuple(_items(body, api, version, form))
    expected = values.number("partitions")
    if expected != len(items):
        raise MalformedFileError(path, expected=f"{expected} partitions in body", found=len(items))
    return RequestDocument(
        path=path,
        api=api,
        version=version,
        form=form,
        sequence=sequence,
        controller_epoch=body.number("controllerEpoch", 0, _INT32),
        broker_epoch=body.number("brokerEpoch", -1, _INT64, default=-1),
        type=_type(body, api),
        items=items,
    )


class _Body:
    """A JSON object of Kafka; every method raises ``MalformedFileError`` for a missing or wrong value."""

    def __init__(self, values: object, path: str, where: str) -> None:
        if not isinstance(values, dict):
            raise MalformedFileError(path, expected=f"an object in {where}", found=values)
        self.values: Mapping[str, Any] = values
        self.path, self.where = path, where

    def refused(self, key: str, expected: str) -> MalformedFileError:
        found = self.values.get(key, "no such key")
        return MalformedFileError(self.path, expected=f"{expected} in {self.where}.{key}", found=found)

    def number(self, key: str, lowest: int, highest: int, default: int | None = None) -> int:
        value = self.values.get(key, default)
        if type(value) is not int or not lowest <= value <= highest:
            raise self.refused(key, f"a whole number of {lowest} to {highest}")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key)
        if not isinstance(value, bool):
            raise self.refused(key, "true or false")
        return value

    def topic(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not is_legal_topic(value):
            raise self.refused(key, "a legal topic name")
        return value

    def topic_id(self, key: str) -> TopicId | None:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.refused(key, "a topic id")
        try:
            found = TopicId.parse(value, self.path)
        except InvalidIdError:
            raise self.refused(key, "a topic id of 22 base64 characters") from None
        if str(found) != value:
            # Spare bits or padding: a second spelling of one id is an error of the writer (attacks A42).
            raise self.refused(key, f"{found}, the one spelling of this topic id,")
        return None if found.is_zero else found

    def nodes(self, key: str, *, is_optional: bool = False) -> tuple[int, ...]:
        value = self.values.get(key, [] if is_optional else None)
        if not isinstance(value, list) or not all(type(one) is int and 0 <= one <= _INT32 for one in value):
            raise self.refused(key, "a list of node ids")
        if len(set(value)) != len(value):
            raise self.refused(key, "each node once")
        return tuple(value)

    def objects(self, key: str) -> Iterator[_Body]:
        value = self.values.get(key)
        if not isinstance(value, list):
            raise self.refused(key, "a list")
        where = f"{self.where}.{key}"
        for number, one in enumerate(value):
            yield _Body(one, self.path, f"{where}[{number}]")


def _type(body: _Body, api: Api) -> RequestType:
    spelled = [key for key in ("type", "Type") if key in body.values]
    if api is Api.STOP_REPLICA or not spelled:
        return RequestType.UNKNOWN
    if len(spelled) == 2:
        raise body.refused("Type", "one of type and Type")
    return RequestType(body.number(spelled[0], 0, 2))


def _items(body: _Body, api: Api, version: int, form: Form) -> Iterator[Item]:
    if api is Api.STOP_REPLICA:
        for topic in body.objects("topicStates"):
            name = None if form is Form.KIP else topic.topic("topicName")
            topic_id = topic.topic_id("topicId") if form is Form.KIP else None
            for one in topic.objects("partitionStates"):
                yield _stopped(one, name, topic_id)
        return
    if version < 2:
        for one in body.objects("ungroupedPartitionStates"):
            yield _led(one, one.topic("topicName"), None)
        return
    for topic in body.objects("topicStates"):
        name = topic.topic("topicName")
        topic_id = topic.topic_id("topicId") if version >= 5 else None
        for one in topic.objects("partitionStates"):
            yield _led(one, name, topic_id)


def _led(one: _Body, topic: str, topic_id: TopicId | None) -> Item:
    # The KIP's text has no adding and removing replicas; shipped versions have them from 3 on.
    state = Partition(
        replicas=one.nodes("replicas"),
        isr=one.nodes("isr"),
        adding=one.nodes("addingReplicas", is_optional=True),
        removing=one.nodes("removingReplicas", is_optional=True),
        leader=one.number("leader", -2, _INT32),
        leader_epoch=one.number("leaderEpoch", -2, _INT32),
        partition_epoch=one.number("partitionEpoch", -1, _INT32, default=-1),
    )
    partition = one.number("partitionIndex", 0, MAX_PARTITION)
    return Item(ReplicaRef(topic=topic, topic_id=topic_id, partition=partition), state, state.leader_epoch)


def _stopped(one: _Body, topic: str | None, topic_id: TopicId | None) -> Item:
    partition = one.number("partitionIndex", 0, MAX_PARTITION)
    leader_epoch = one.number("leaderEpoch", -2, _INT32)
    return Item(
        ReplicaRef(topic=topic, topic_id=topic_id, partition=partition), None, leader_epoch, one.flag("deletePartition")
    )


def _unpacked(values: own_json.Values, path: str, api: Api, version: int, form: Form) -> object:
    """Return the body of a request that the document gives as bytes, in Kafka's JSON."""
    try:
        frame = bytes.fromhex(values.text("hex"))
    except ValueError:
        raise values.refused("hex", "hexadecimal digits") from None
    layout = Layout(form.value)
    try:
        header, body = frames.decode_request(frame, layout)
        if (header.api_key, header.api_version) != (KEYS[api], version):
            found = f"key {header.api_key}, version {header.api_version}"
            raise MalformedFileError(path, expected=f"key {KEYS[api]}, version {version} in hex", found=found)
        return frames.to_json(frames.message(api.value, Direction.REQUEST, version, layout), version, body)
    except WireError as error:
        # The error names the document, and the position in the bytes.
        found = f"{error.found} ({error.path})"
        raise MalformedFileError(path, expected=f"{error.expected} in hex", found=found) from None
