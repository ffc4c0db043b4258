"""The cluster image: topics, partitions and brokers at one instant, with the source and its certainty.

An image is an immutable value: later records are folded into a new image that shares all unchanged parts (``fold``).
Partitions are named tuples over shared tuples, and directory ids are packed, because there may be hundreds of
thousands.

Not here: reading a source (``metadata_log``, ``requests``, ``znodes``), decisions (``decide``).

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
    """The kind of source of an image."""

    METADATA_LOG = "metadata-log"
    REQUESTS = "requests"
    ZNODES = "znodes"
    LIVE_CLUSTER = "live-cluster"


class Certainty(Enum):
    """How certain it is that the content of an image is not rolled back (attacks A2)."""

    SNAPSHOT = "snapshot"
    """It ends at a snapshot, which contains only committed records."""
    WATERMARK = "watermark"
    """It ends below a high watermark from the quorum."""
    SAID = "said"
    """It comes from a document, not from a log."""
    LOCAL = "local"
    """It ends at the end of the local log, whose commitment is not known: it proves nothing."""


class AbsenceMeaning(Enum):
    """What it means if an image does not name a replica."""

    REMOVED = "removed"
    """It is removed: a FULL request lists everything the broker has (KIP-516, "LeaderAndIsr")."""
    ABSENT = "absent"
    """It did not exist at that time, which proves nothing (attacks A1)."""
    NOTHING = "nothing"
    """Nothing: the source covers only the replicas that it names."""


class Partition(NamedTuple):
    """The state of one partition; replicas are node ids, the preferred leader first."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: bytes = b""
    """16 bytes per replica, in the order of ``replicas``; empty: not known."""
    eligible: tuple[int, ...] = ()
    """Eligible leader replicas: outside the ISR, they hold all committed records (KIP-966)."""
    last_known: tuple[int, ...] = ()
    """The last known eligible leader replicas: without an ISR and ``eligible`` they are the likeliest to hold them. A
    list of its own, because a record may change one of the two and leave the other as it is.
    """

    def is_wanted(self, node_id: int) -> bool:
        """Whether a node is assigned a replica: replicas and adding replicas (design §4)."""
        return node_id in self.replicas or node_id in self.adding

    def is_in_sync(self, node_id: int) -> bool:
        """Whether a node's replica may be one that holds everything committed."""
        return node_id in self.isr or self.is_eligible(node_id)

    def is_eligible(self, node_id: int) -> bool:
        """Whether a node's replica is an eligible leader replica, or was one last."""
        return node_id in self.eligible or node_id in self.last_known

    def directory(self, node_id: int) -> DirectoryId | None:
        """Return the directory id of the log dir that a node's replica is assigned to; ``None``: not known."""
        if len(self.directories) != _ID_BYTES * len(self.replicas) or node_id not in self.replicas:
            return None
        start = _ID_BYTES * self.replicas.index(node_id)
        return DirectoryId(self.directories[start : start + _ID_BYTES])


class Topic(NamedTuple):
    """One topic: its name, its id, and the state of its partitions."""

    name: str
    topic_id: bytes
    """16 bytes; all zero: no id."""
    partitions: Mapping[int, Partition]
    """The partitions that the source names; a request names only some."""


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
    """The state of a cluster, from the view of one node. Its mappings are never changed."""

    source: Source
    origin: str
    """Path or name of its source."""
    node_id: int
    """The node from whose view it is: whose replicas are looked up in it."""
    cluster_id: str | None
    epoch: int = -1
    """Epoch of the last record, or of the controller."""
    offset: int = 0
    """The offset after the last record that counts; for requests the sequence."""
    as_of_ms: int = 0
    """Newest committed timestamp, or when a request was written (wall clock); of a dump when its file was written."""
    certainty: Certainty = Certainty.SAID
    place: tuple[int, int] | None = None
    """Where its last part is, as a hint for continuing: base offset of a segment, byte position in it. Checked before
    use.
    """
    ended: Problem | None = None
    """Why it ends before the end of its source; ``None``: it does not, or no more is known to be committed."""
    diverged: Problem | None = None
    """Why it does not continue from the last applied position: its source was restored from a backup, or replaced."""
    topics: Mapping[bytes, Topic] = field(default_factory=dict)
    """Topics by id."""
    names: Mapping[str, bytes] = field(default_factory=dict)
    """Topic ids by name."""
    without_id: Mapping[str, Topic] = field(default_factory=dict)
    """Topics that have no id yet, by name."""
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    tiered: frozenset[str] = frozenset()
    """Topics with remote storage (attacks A33)."""
    removed: Mapping[bytes, Removed] = field(default_factory=dict)
    """Topic ids whose removal was seen in the metadata."""
    former: Mapping[bytes, Topic] = field(default_factory=dict)
    """Removed topics with a replica on this node, as they were before their removal, by id."""
    left: Mapping[tuple[str | bytes, int], Removed] = field(default_factory=dict)
    """Replicas of this node whose removal was seen in the metadata, by id or name, and partition."""
    absence_meaning: AbsenceMeaning = AbsenceMeaning.ABSENT
    listed: frozenset[tuple[str, int]] | None = None
    """Names and partitions that a request covers; ``None``: all."""
    conflicting: frozenset[ReplicaKey] = frozenset()
    """Names or ids, with partitions, for which the source contradicts itself; the image contains no statement about
    them.
    """
    stages_mismatch: bool = False
    """Whether another id under a name is by itself a reason to stage (KIP-516, "LeaderAndIsr")."""
    assigns_ids: bool = False
    """Whether a replica without an id gets the id from this image (KIP-516, "Migration")."""

    @property
    def is_dated(self) -> bool:
        """Whether its source has a time of its own; for a dump ``as_of_ms`` is only the latest possible time."""
        return self.source is not Source.ZNODES

    def topic(self, name: str) -> Topic | None:
        """Return the topic of a name; ``None``: the image does not name it."""
        known = self.names.get(name)
        return self.without_id.get(name) if known is None else self.topics.get(known)

    def topic_id(self, name: str) -> TopicId:
        """Return the id of a topic; the zero id if there is no such topic, or it has none.

        Spec: KIP-516, "Uuid": ``Cluster.topicId`` returns ``ZERO_UUID`` for a topic it does not know.
        """
        known = self.names.get(name)
        return ZERO_ID if known is None else TopicId(known)

    def topic_of(self, topic_id: TopicId) -> Topic | None:
        """Return the topic of an id; ``None``: the image does not name it. The zero id is no topic's."""
        return self.topics.get(bytes(topic_id))

    def last_of(self, topic_id: TopicId) -> Topic | None:
        """Return the topic of an id, also after its removal; ``None``: its partitions are not known."""
        return self.topics.get(bytes(topic_id)) or self.former.get(bytes(topic_id))

    def names_node(self) -> bool:
        """Whether the node occurs in the image: registered, or assigned a replica (attacks A29)."""
        node = self.node_id
        if node in self.brokers:
            return True
        topics = (*self.topics.values(), *self.without_id.values())
        return any(one.is_wanted(node) for topic in topics for one in topic.partitions.values())


def remembering(image: Image, topic_ids: Collection[TopicId]) -> Image:
    """Return an image that remembers the removals of these topic ids only, those with replicas on these disks.

    A removed id never occurs again; a long-running daemon would otherwise remember it for ever.
    """
    ids = {bytes(topic_id) for topic_id in topic_ids}
    return replace(
        image,
        removed={topic_id: seen for topic_id, seen in image.removed.items() if topic_id in ids},
        former={topic_id: topic for topic_id, topic in image.former.items() if topic_id in ids},
        left={key: seen for key, seen in image.left.items() if key[0] in ids or isinstance(key[0], str)},
    )
