"""Which replica is meant: the topic's name, the topic's id, or both, and the partition.

Every value about one replica has a ``ReplicaRef``; its keys and its printed form are written here alone. Rows of a file
or of the wire have fields of their own for the three, and are converted where they are read.

Not here: where a replica lies (``observe``), the names of its directories (``names``).

Spec: KIP-516, "Topic identifiers"; design §5 "Words".
"""

from __future__ import annotations

from dataclasses import dataclass

from logdir.ids import TopicId

ReplicaKey = tuple[str | TopicId, int]
"""A topic's name or id, and a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRef:
    """The topic's name, the topic's id, or both, and the partition, by which a replica is known.

    >>> ref = ReplicaRef(topic="pay", topic_id=None, partition=3)
    >>> str(ref), ref.keys
    ('pay-3', (('pay', 3),))
    """

    topic: str | None
    """``None``: not known."""
    topic_id: TopicId | None
    """``None``: not known, or the topic has none."""
    partition: int

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        """Return ``(topic id, partition)``, then ``(topic name, partition)``; without what is not known."""
        named: tuple[ReplicaKey, ...] = () if self.topic is None else ((self.topic, self.partition),)
        return named if self.topic_id is None else ((self.topic_id, self.partition), *named)

    @property
    def id_text(self) -> str:
        """Return ``{topic id}_{partition}``; without an id ``{topic}-{partition}``."""
        return str(self) if self.topic_id is None else f"{self.topic_id}_{self.partition}"

    @property
    def by_name(self) -> ReplicaRef:
        """Return the same replica, without the topic id."""
        return ReplicaRef(topic=self.topic, topic_id=None, partition=self.partition)

    def __str__(self) -> str:
        """Return ``{topic}-{partition}``; without a name ``{topic id}_{partition}``."""
        return f"{self.topic_id}_{self.partition}" if self.topic is None else f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdPartition(ReplicaRef):
    """A replica whose topic's name and id are both known: Kafka's word. It equals no ``ReplicaRef``.

    Spec: org.apache.kafka.common.TopicIdPartition.
    """

    topic: str
    topic_id: TopicId
