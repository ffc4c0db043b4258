"""What a cluster says at one instant: its topics, partitions and brokers, where that comes from and how sure it is.

An image is a value and is never changed: what comes next is folded forward into a new one that shares all parts that
stayed the same (``fold``). Partitions are named tuples over shared tuples, and directory ids are packed, because there
may be hundreds of thousands.

Not here: reading a source (``metadata_log``, ``requests``, ``znodes``), what follows from an image (``decide``).

Spec: design §4; KIP-516, "Uuid" (``Cluster.topicId``); KIP-631, "Topic Identifiers"; kafka-formats §9.4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from logdir.errors import Problem
from logdir.evidence import Removed
from logdir.ids import DirectoryId, TopicId
from logdir.replica_ref import ReplicaKey

ZERO_ID = TopicId(bytes(16))
"""Kafka's "no id"."""
_ID_BYTES = 16
NO_LEADER = -1


class Source(Enum):
    """What an image was made of."""

    METADATA_LOG = "metadata-log"
    REQUESTS = "requests"
    ZNODES = "znodes"
    LIVE_CLUSTER = "live-cluster"


class Certainty(Enum):
    """How sure it is that what an image says is not taken back (attacks A2)."""

    SNAPSHOT = "snapshot"
    """It ends at a snapshot: those are only made of what is committed."""
    WATERMARK = "watermark"
    """It ends below a high watermark learnt from the quorum."""
    SAID = "said"
    """Somebody said so."""
    LOCAL = "local"
    """It ends where the local log ends, of which nothing is known to be committed: it proves nothing."""


class AbsenceMeaning(Enum):
    """What it means that an image does not name a replica."""

    REMOVED = "removed"
    """It is gone: a FULL request lists everything the broker has (KIP-516, "LeaderAndIsr")."""
    ABSENT = "absent"
    """It was not there as of then, which proves nothing (attacks A1)."""
    NOTHING = "nothing"
    """Only what is named is spoken of."""


class Partition(NamedTuple):
    """One partition. Replicas are node ids, in the order of preference."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: bytes = b""
    """16 bytes a replica, in the order of ``replicas``; empty: not known."""
    eligible: tuple[int, ...] = ()
    """Eligible leader replicas and the last known ones: with an empty ISR they hold what was committed."""

    def is_wanted(self, node_id: int) -> bool:
        """Whether a node shall have a replica: replicas and adding replicas (design §4)."""
        return node_id in self.replicas or node_id in self.adding

    def is_in_sync(self, node_id: int) -> bool:
        """Whether a node's replica may be one of those that hold everything committed."""
        return node_id in self.isr or node_id in self.eligible

    def directory(self, node_id: int) -> DirectoryId | None:
        """Return the log dir a node's replica is assigned to, ``None`` if it is not known."""
        if len(self.directories) != _ID_BYTES * len(self.replicas) or node_id not in self.replicas:
            return None
        start = _ID_BYTES * self.replicas.index(node_id)
        return DirectoryId(self.directories[start : start + _ID_BYTES])


class Topic(NamedTuple):
    """One topic."""

    name: str
    topic_id: bytes
    """16 bytes; all zero: it has none."""
    partitions: Mapping[int, Partition]
    """Those the source names: of a request only those it listed."""


class Broker(NamedTuple):
    """One registration of a broker."""

    incarnation: bytes
    """16 bytes, new with each start of its process."""
    epoch: int
    is_fenced: bool = True
    is_shutting_down: bool = False
    rack: str | None = None
    endpoints: tuple[tuple[str, str, int, int], ...] = ()
    """Listener, host, port, security protocol."""
    log_dirs: tuple[bytes, ...] = ()
    """Ids of its online log dirs; empty: not known."""
    cordoned: tuple[bytes, ...] = ()
    """Ids of log dirs that get no new replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a cluster says, as told to one node. Mappings are never changed once they are in here."""

    source: Source
    origin: str
    """Path or name of what it was read from."""
    node_id: int
    """Whose replicas are asked about."""
    cluster_id: str | None
    epoch: int = -1
    """Of the last record, or of the controller."""
    offset: int = 0
    """Behind the last record that counts; of requests the sequence."""
    as_of_ms: int = 0
    """Newest committed timestamp, or when a request was received (wall clock); of a dump when its file was written."""
    certainty: Certainty = Certainty.SAID
    place: tuple[int, int] | None = None
    """Where the last of it lies, for whoever reads on: base offset of a segment, byte in it. A hint, checked first."""
    ended: Problem | None = None
    """Why it ends before its source does."""
    diverged: Problem | None = None
    """Why it does not go on from what was used before: its source was put back, or replaced."""
    topics: Mapping[bytes, Topic] = field(default_factory=dict)
    """By id."""
    names: Mapping[str, bytes] = field(default_factory=dict)
    """Ids by name."""
    without_id: Mapping[str, Topic] = field(default_factory=dict)
    """Topics that have no id yet, by name."""
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    tiered: frozenset[str] = frozenset()
    """Topics with remote storage (attacks A33)."""
    removed: Mapping[bytes, Removed] = field(default_factory=dict)
    """Topic ids whose removal was seen."""
    left: Mapping[tuple[str | bytes, int], Removed] = field(default_factory=dict)
    """Replicas of this node whose removal was seen, by id or name, and partition."""
    absence_meaning: AbsenceMeaning = AbsenceMeaning.ABSENT
    listed: frozenset[tuple[str, int]] | None = None
    """Names and partitions a request speaks of; ``None``: of all."""
    conflicting: frozenset[ReplicaKey] = frozenset()
    """Names or ids, and partitions, of which it contradicts itself, and so says nothing."""
    stages_mismatch: bool = False
    """Another id under a name is by itself a reason to staged (KIP-516, "LeaderAndIsr")."""
    assigns_ids: bool = False
    """A replica without an id is to be given the one named here (KIP-516, "Migration")."""

    @property
    def is_dated(self) -> bool:
        """Whether its source says of when it is; of a dump ``as_of_ms`` is only the latest moment it can be of."""
        return self.source is not Source.ZNODES

    def topic(self, name: str) -> Topic | None:
        """Return the topic of a name."""
        known = self.names.get(name)
        return self.without_id.get(name) if known is None else self.topics.get(known)

    def topic_id(self, name: str) -> TopicId:
        """Return the id of a topic; the zero id if there is no such topic, or it has none.

        Spec: KIP-516, "Uuid": ``Cluster.topicId`` returns ``ZERO_UUID`` for a topic it does not know.
        """
        known = self.names.get(name)
        return ZERO_ID if known is None else TopicId(known)

    def topic_of(self, topic_id: TopicId) -> Topic | None:
        """Return the topic of an id; of the zero id there is none."""
        return self.topics.get(bytes(topic_id))

    def names_node(self) -> bool:
        """Whether the node is named at all: registered, or given a replica (attacks A29)."""
        node = self.node_id
        if node in self.brokers:
            return True
        topics = (*self.topics.values(), *self.without_id.values())
        return any(one.is_wanted(node) for topic in topics for one in topic.partitions.values())


def remembering(image: Image, topic_ids: Collection[TopicId]) -> Image:
    """Return an image that remembers the removals of these topic ids alone: of others nothing lies here.

    What was removed is never said again; a daemon that lives for months would keep it for ever.
    """
    ids = {bytes(topic_id) for topic_id in topic_ids}
    return replace(
        image,
        removed={topic_id: seen for topic_id, seen in image.removed.items() if topic_id in ids},
        left={key: seen for key, seen in image.left.items() if key[0] in ids or isinstance(key[0], str)},
    )
