"""Facts of one log dir for the deciders: values, and an index by name and id.

A ``-future`` directory, a link with a live name and an unreadable replica are included like any other: their names are
taken. Not here: reading the disk (``replicas``), decisions (``decide``).

Spec: design §3.1, §3.3; attacks A13, A15, A25, A44.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from logdir.errors import Problem
from logdir.formats.own.inventory import Kind
from logdir.formats.own.replica_marker import Checkpoints, Intent, ReplicaMarker
from logdir.paths import DELETING, INCOMING
from logdir.replica_ref import ReplicaKey, ReplicaRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A partition directory in the log dir itself: live, ``-future``, ``-delete``, ``-stray`` or the metadata log."""

    log_dir: str
    """As configured."""
    path: str
    """Relative to its log dir."""
    kind: Kind
    ref: ReplicaRef
    """The topic is not known if neither the directory's name nor ``partition.metadata`` has it."""
    inode: int | None
    """``None`` if the directory was not, or could not be, opened."""
    log_bytes: int | None
    segments: int | None
    first_offset: int | None
    """Base offset of its first local segment."""
    checkpoints: Checkpoints
    problems: tuple[str, ...] = ()
    """Slugs of its problems, as in an inventory."""
    unexpected_entries: tuple[str, ...] = ()
    """Names of entries in it that are no regular files: a replica with any is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedReplica:
    """A directory in a work root: staged or claimed, under ``deleting/``, or an unfinished copy in ``incoming/``."""

    log_dir: str
    name: str
    """Its name under ``deleting/`` or ``incoming/``."""
    kind: Kind
    """``STAGED``, ``PURGING`` or ``INCOMING``."""
    ref: ReplicaRef
    """The topic is that of the marker; without a marker that of the name, or else of ``partition.metadata``."""
    inode: int | None
    marker: ReplicaMarker | None
    problem: Problem | None
    """Why there is no marker, or why the replica may not be changed."""
    log_bytes: int | None = None
    """Size of its segments."""
    first_offset: int | None = None
    """Base offset of its first local segment."""
    root: str | None = None
    """Absolute path of its work root; ``None``: the log dir itself."""

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
        """Whether it is a partial capture, which can only be exported."""
        return self.kind is Kind.INCOMING and self.marker is not None and self.marker.intent is Intent.CAPTURED


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirFacts:
    """One configured log dir and its work root."""

    log_dir: str
    problem: Problem | None
    """Why it, or an important part of it, cannot be read; the lists may then be incomplete."""
    is_offline: bool = False
    """Whether a broker treats it as offline: it, or its ``meta.properties``, cannot be read."""
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: str | None = None
    layout: str = "empty"
    """``topic-name``, ``topic-id``, ``mixed`` or ``empty``."""
    has_clean_marker: bool = False
    """Whether it has Kafka's ``.kafka_cleanshutdown``: all its logs were cleanly closed, and a broker trusts their
    indexes.
    """
    checkpoint_problem: Problem | None = None
    """Why a checkpoint file cannot be used; ``None``: all that exist can."""
    quarantined: Problem | None = None
    """Why it may not be changed although it can be read: a failed sync in this boot, or a stale disk."""
    replicas: tuple[Replica, ...] = ()
    staged: tuple[StagedReplica, ...] = ()

    @property
    def is_trusted(self) -> bool:
        """Whether a live replica on it counts as a copy: elsewhere it may be older than a deletion (A25)."""
        return self.problem is None and self.quarantined is None


def replicas_at(
    facts: Iterable[LogDirFacts], places: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], tuple[LogDirFacts, Replica]]:
    """Return the replicas at some places, and the facts of their log dirs: of thousands few are asked for at a time.

    Args:
        facts: Facts of every log dir.
        places: Log dir as configured, and path relative to it; one without a replica is left out.
    """
    paths: dict[str, set[str]] = {}
    for log_dir, path in places:
        paths.setdefault(log_dir, set()).add(path)
    return {
        (one.log_dir, replica.path): (one, replica)
        for one in facts
        if (wanted := paths.get(one.log_dir))
        for replica in one.replicas
        if replica.path in wanted
    }


_R = TypeVar("_R", Replica, StagedReplica)


def _of(partitions: Collection[int] | None, replicas: Sequence[_R], number: int) -> Iterable[tuple[int, _R]]:
    """Return the replicas of some partitions, each with its number, from the given one on."""
    numbered = enumerate(replicas, number)
    return numbered if partitions is None else [one for one in numbered if one[1].ref.partition in partitions]


class ReplicaIndex:
    """Index of the replicas on all disks by name and id, for thousands of lookups."""

    def __init__(self, facts: Iterable[LogDirFacts], partitions: Collection[int] | None = None) -> None:
        """Build the index.

        Args:
            facts: Facts of every log dir; lookups return replicas in their order.
            partitions: Numbers of the partitions that are looked up: of thousands of replicas few have one of a few
                numbers. ``None``: any are, and lookups of others find nothing.
        """
        self._replicas: dict[ReplicaKey, list[tuple[int, Replica]]] = {}
        self._staged: dict[ReplicaKey, list[tuple[int, StagedReplica]]] = {}
        self._trusted: set[str] = set()
        number = 0
        for one in facts:
            if one.is_trusted:
                self._trusted.add(one.log_dir)
            for at, replica in _of(partitions, one.replicas, number):
                for key in replica.ref.keys:
                    self._replicas.setdefault(key, []).append((at, replica))
            number += len(one.replicas)
            for at, item in _of(partitions, one.staged, number):
                for key in item.ref.keys:
                    self._staged.setdefault(key, []).append((at, item))
            number += len(one.staged)

    def replicas(self, ref: ReplicaRef, *kinds: Kind) -> tuple[Replica, ...]:
        """Return the replicas of a partition, on all disks, that are of one of these kinds."""
        found = dict(pair for key in ref.keys for pair in self._replicas.get(key, ()))
        return tuple(found[number] for number in sorted(found) if found[number].kind in kinds)

    def copies(self, ref: ReplicaRef) -> tuple[Replica, ...]:
        """Return the live replicas of a partition on log dirs that are trusted; a name is taken by others as well."""
        return tuple(one for one in self.replicas(ref, Kind.LIVE) if one.log_dir in self._trusted)

    def staged(self, ref: ReplicaRef, *kinds: Kind) -> tuple[StagedReplica, ...]:
        """Return the staged and incoming replicas of a partition, on all disks, that are of one of these kinds."""
        found = dict(pair for key in ref.keys for pair in self._staged.get(key, ()))
        return tuple(found[number] for number in sorted(found) if found[number].kind in kinds)
