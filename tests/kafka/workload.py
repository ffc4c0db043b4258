"""A seeded workload of an administrator: topics made, grown, configured, reassigned, deleted, and what goes with that.

It knows what it asked for and was granted: that is what a judge of a broker's disks counts by.

Not here: brokers (``rig.py``), any judgement.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tests.kafka.client import Client, ClientError

_CONFIGS: Final = {
    "retention.ms": ("60000", "-1", "86400000"),
    "cleanup.policy": ("compact", "delete", "compact,delete"),
    "min.insync.replicas": ("1",),
    "max.message.bytes": ("100000", "2000000"),
}
_MOST_TOPICS: Final = 40
TOPICS: Final[Mapping[str, int]] = {"create": 5, "delete": 3, "again": 1, "grow": 2, "reassign": 4, "cancel": 1}
"""How often what happens to topics is drawn."""
EVERYTHING: Final[Mapping[str, int]] = {**TOPICS, "configure": 4, "unset": 2, "quota": 2, "acl": 2, "scram": 1}
"""And everything else that leaves records."""


class Life(NamedTuple):
    """One topic that was made."""

    name: str
    topic_id: str


class Workload:
    """Makes one change after another; the same seed and answers, the same changes."""

    def __init__(
        self,
        client: Client,
        *,
        seed: object,
        node_ids: Sequence[int],
        weights: Mapping[str, int] = EVERYTHING,
        prefix: str = "w",
    ) -> None:
        self._client = client
        self._draw = random.Random(f"workload {seed}")
        self._node_ids = tuple(node_ids)
        self._weights = dict(weights)
        self._prefix = prefix
        self.topics: dict[str, tuple[str, int]] = {}
        """Id and number of partitions of each topic there is."""
        self.deleted: list[Life] = []
        self.asked: dict[str, int] = {}
        """Changes that were granted, by kind."""
        self.refused: dict[str, str] = {}
        """The last refusal of each kind: of a race with the cluster's own doings."""
        self._made = 0

    @property
    def granted(self) -> int:
        """How many changes were made."""
        return sum(self.asked.values())

    def step(self) -> None:
        """Ask for one change."""
        kind = self._draw.choices(tuple(self._weights), tuple(self._weights.values()))[0]
        if not self.topics or (kind == "delete" and len(self.topics) < 3):
            kind = "create"
        if kind in ("create", "again") and len(self.topics) >= _MOST_TOPICS:
            kind = "delete"
        act: Callable[[], None] = getattr(self, f"_{kind}")
        try:
            act()
        except ClientError as error:
            self.refused[kind] = str(error)
        else:
            self.asked[kind] = self.asked.get(kind, 0) + 1

    def make(self, prefix: str) -> None:
        """Make a topic on every node."""
        self._made += 1
        self._make(f"{prefix}-{self._made}", everywhere=True)

    def delete(self) -> None:
        """Delete a topic, if there is one."""
        if self.topics:
            self._delete()

    def _topic(self) -> str:
        return self._draw.choice(sorted(self.topics))

    def _create(self) -> None:
        self._made += 1
        self._make(f"{self._prefix}{'-._'[self._made % 3]}{self._made}")

    def _again(self) -> None:
        """Make a topic under a name that was used before."""
        free = sorted({life.name for life in self.deleted} - self.topics.keys())
        self._make(self._draw.choice(free)) if free else self._create()

    def _make(self, name: str, *, everywhere: bool = False) -> None:
        count = self._draw.randrange(1, 4)
        replicas = [list(self._node_ids) if everywhere else self._replicas() for _ in range(count)]
        self.topics[name] = (self._client.create_on(name, replicas), count)

    def _replicas(self) -> list[int]:
        return self._draw.sample(self._node_ids, self._draw.randrange(1, len(self._node_ids) + 1))

    def _delete(self) -> None:
        name = self._topic()
        self._client.delete(name)
        self.deleted.append(Life(name, self.topics.pop(name)[0]))

    def _grow(self) -> None:
        name = self._topic()
        topic_id, count = self.topics[name]
        self._client.grow(name, count + 1)
        self.topics[name] = (topic_id, count + 1)

    def _reassign(self) -> None:
        name = self._topic()
        self._client.reassign(name, self._draw.randrange(self.topics[name][1]), self._replicas())

    def _cancel(self) -> None:
        name = self._topic()
        self._client.reassign(name, self._draw.randrange(self.topics[name][1]), None)

    def _configure(self) -> None:
        key = self._draw.choice(sorted(_CONFIGS))
        self._client.configure_topic(self._topic(), key, self._draw.choice(_CONFIGS[key]))

    def _unset(self) -> None:
        self._client.unconfigure_topic(self._topic(), self._draw.choice(sorted(_CONFIGS)))

    def _quota(self) -> None:
        self._client.set_quota(self._user(), self._draw.choice((None, 1024.0, 123456.5)))

    def _acl(self) -> None:
        operation = self._draw.choice(("READ", "WRITE", "DESCRIBE"))
        self._client.set_acl(self._user(), self._topic(), operation, is_allowed=self._draw.random() < 0.7)

    def _scram(self) -> None:
        self._client.set_scram(self._user(), is_there=self._draw.random() < 0.7)

    def _user(self) -> str:
        return f"user-{self._draw.randrange(5)}"
