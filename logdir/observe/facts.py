"""What deciders are told of one log dir: values, and questions about their names.

A ``-future`` directory, a link with a live name and a replica that cannot be read are told like any other: their names
are taken. Not here: looking (``replicas``), what follows (``decide``).

Spec: design §3.1, §3.3; attacks A13, A15, A25, A44.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints, Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.paths import DELETING, INCOMING


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A partition directory in the log dir itself: live, ``-future``, ``-delete``, ``-stray`` or the metadata log."""

    log_dir: str
    """As configured."""
    path: str
    """Relative to its log dir."""
    kind: Kind
    topic: str | None
    """``None`` if neither the name nor ``partition.metadata`` says it."""
    topic_id: TopicId | None
    partition: int
    inode: int | None
    """``None`` where it was not, or could not be, opened."""
    log_bytes: int | None
    segments: int | None
    first_offset: int | None
    """Base of its first local segment."""
    checkpoints: Checkpoints
    problems: tuple[str, ...] = ()
    """As in an inventory."""
    unexpected_entries: tuple[str, ...] = ()
    """What in it is no regular file: it is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedReplica:
    """A directory under ``deleting/`` or ``incoming/``."""

    log_dir: str
    name: str
    """Under ``deleting/`` or ``incoming/``."""
    kind: Kind
    """``STAGED``, ``PURGING`` or ``INCOMING``."""
    topic_id: TopicId | None
    topic: str | None
    """Of the name if it has no id, else of the marker."""
    partition: int
    inode: int | None
    marker: ReplicaMarker | None
    problem: Problem | None
    """Why there is no marker, or why what is there may not be touched."""
    log_bytes: int | None = None
    """In its segments."""
    root: str | None = None
    """Absolute path of the work root it lies in; ``None``: the log dir itself."""

    @property
    def path(self) -> str:
        """Return its path relative to its work root."""
        return f"{INCOMING if self.kind is Kind.INCOMING else DELETING}/{self.name}"

    @property
    def place(self) -> str:
        """Return its absolute path."""
        return f"{self.root or self.log_dir}/{self.path}"

    @property
    def is_partial(self) -> bool:
        """Whether it is a part of what was captured: it can be exported, and nothing else."""
        return self.kind is Kind.INCOMING and self.marker is not None and self.marker.intent is Intent.CAPTURED


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFacts:
    """One configured log dir and its work root."""

    log_dir: str
    problem: Problem | None
    """It, or a part that matters, cannot be read; then what is listed may not be all."""
    is_offline: bool = False
    """A broker takes it for offline: it, or its ``meta.properties``, cannot be read."""
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    layout: str = "empty"
    """``topic-name``, ``topic-id``, ``mixed`` or ``empty``."""
    has_clean_marker: bool = False
    """Kafka's ``.kafka_cleanshutdown``: all its logs were cleanly closed, and a broker will trust their indexes."""
    checkpoint_problem: Problem | None = None
    """A checkpoint file that is not in its form."""
    quarantined: Problem | None = None
    """Why nothing of it may be changed, though it can be read: it failed a sync in this boot, or it was away."""
    replicas: tuple[Replica, ...] = ()
    staged: tuple[StagedReplica, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """By what a replica is known: its name and partition, the 128 bits of its id and partition, or both."""

    topic: str | None
    topic_id: TopicId | None
    partition: int


def identity_of(replica: Replica | StagedReplica) -> Identity:
    """Return by what a replica is known."""
    return Identity(topic=replica.topic, topic_id=replica.topic_id, partition=replica.partition)


class ReplicaIndex:
    """What lies on all disks, found by name or id; thousands are asked for at once."""

    def __init__(self, facts: Iterable[LogDirFacts]) -> None:
        """Make the index.

        Args:
            facts: Of every log dir; what is found comes in their order.
        """
        self._replicas: dict[_Key, list[tuple[int, Replica]]] = {}
        self._staged: dict[_Key, list[tuple[int, StagedReplica]]] = {}
        number = 0
        for one in facts:
            for replica in one.replicas:
                number += 1
                for key in _keys(identity_of(replica)):
                    self._replicas.setdefault(key, []).append((number, replica))
            for item in one.staged:
                number += 1
                for key in _keys(identity_of(item)):
                    self._staged.setdefault(key, []).append((number, item))

    def replicas(self, identity: Identity, *kinds: Kind) -> tuple[Replica, ...]:
        """Return the replicas of a partition on all disks, of these kinds."""
        found = dict(pair for key in _keys(identity) for pair in self._replicas.get(key, ()))
        return tuple(found[number] for number in sorted(found) if found[number].kind in kinds)

    def staged(self, identity: Identity, *kinds: Kind) -> tuple[StagedReplica, ...]:
        """Return what is staged, or on its way in, of a partition on all disks."""
        found = dict(pair for key in _keys(identity) for pair in self._staged.get(key, ()))
        return tuple(found[number] for number in sorted(found) if found[number].kind in kinds)


_Key = tuple[str | TopicId, int]


def _keys(identity: Identity) -> tuple[_Key, ...]:
    return tuple((known, identity.partition) for known in (identity.topic, identity.topic_id) if known is not None)
