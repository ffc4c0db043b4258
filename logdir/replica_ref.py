"""Which replica is meant: the topic's name, the topic's id, or both, and the partition.

Everything that is said of one replica holds a ``ReplicaRef``; its keys and its printed form are written here alone.
Rows of a file or of the wire spell the three themselves and are converted where they are read.

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
    """By what a replica is known.

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
        """Return its key by id, then its key by name, where it has them."""
        named: tuple[ReplicaKey, ...] = () if self.topic is None else ((self.topic, self.partition),)
        return named if self.topic_id is None else ((self.topic_id, self.partition), *named)

    @property
    def id_text(self) -> str:
        """Return ``id_p``; without an id as ``str`` does."""
        return str(self) if self.topic_id is None else f"{self.topic_id}_{self.partition}"

    @property
    def by_name(self) -> ReplicaRef:
        """Return it as its name alone knows it."""
        return ReplicaRef(topic=self.topic, topic_id=None, partition=self.partition)

    def __str__(self) -> str:
        """Return ``name-p``; without a name ``id_p``."""
        return f"{self.topic_id}_{self.partition}" if self.topic is None else f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdPartition(ReplicaRef):
    """A replica whose topic's name and id are both known: Kafka's word. It equals no ``ReplicaRef``.

    Spec: org.apache.kafka.common.TopicIdPartition.
    """

    topic: str
    topic_id: TopicId
