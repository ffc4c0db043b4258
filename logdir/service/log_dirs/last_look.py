"""What was seen last in the log dirs of a broker, and the look of a batch, under the locks, at what is new since.

The names of every log dir are listed, each directory once. Only these are looked into: what the batch may change, its
namesakes on all disks, what has another name or inode than before, and every replica without a known topic id that may
be of the same partition as one that has an id: Kafka may have written its id since. Any other has another topic, by its
name, and another id, by what was read before: neither changes behind a name and an inode. While the work roots are
owned, no other process of ours changes what is staged there.

Spec: design §2 law 4; attacks A13, A15, A22.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from logdir.errors import LogDirSuspectError
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.observe.relook import merged
from logdir.service.log_dirs.ports import BrokerPorts, unanswered
from logdir.worker.look import Deep, look_again

Place = tuple[str, str]
"""Log dir, and path relative to it or to its work root."""
_NEVER = -1
"""The number of no look."""
_TWINS = frozenset((Kind.LIVE, Kind.FUTURE))
"""What may be a second replica of a partition."""


@dataclass(slots=True)
class LastLook:
    """What was seen in each log dir, and the number of that look."""

    ports: BrokerPorts
    seen: dict[str, tuple[int, LogDirFacts]] = field(default_factory=dict)
    births: dict[Place, int] = field(default_factory=dict)
    """When directories came to be, of those that were asked for since they were looked into."""

    def look(self, deep: Deep) -> tuple[LogDirFacts, ...]:
        """Look into everything, and remember it."""
        self.seen.clear()
        return self._look(deep, {})

    def again(
        self, deep: Deep, places: Collection[Place], *, named: Iterable[str] = (), partitions: Iterable[int] = ()
    ) -> tuple[LogDirFacts, ...]:
        """Return what lies in every log dir now.

        Args:
            deep: Which live replicas are opened, of those that are looked into.
            places: What may be changed.
            named: Live names that are looked into, too, on every disk.
            partitions: Of replicas that may get a topic id.

        Returns:
            As ``look``; of a log dir with a problem everything is looked into.
        """
        paths: dict[str, set[str]] = {log_dir: set() for log_dir in self.seen}
        for log_dir, path in places:
            paths.setdefault(log_dir, set()).add(path)
        concerned = [one for log_dir, (_, facts) in self.seen.items() for one in _at(facts, paths[log_dir])]
        names = {*named, *(name for one in concerned for name in _live_names(one))}
        with_ids = {*partitions, *(one.ref.partition for one in concerned if one.ref.topic_id is not None)}
        for log_dir, (_, facts) in self.seen.items():
            paths[log_dir] |= names.intersection(replica.path for replica in facts.replicas)
            # Where ids are compared, one that was not known is read again: a broker may have written it since.
            unknown = [replica for replica in facts.replicas if replica.ref.topic_id is None and replica.kind in _TWINS]
            paths[log_dir].update(replica.path for replica in unknown if replica.ref.partition in with_ids)
        return self._look(deep, paths)

    def births_of(self, replicas: Iterable[Replica]) -> Mapping[Place, int]:
        """As ``BrokerPorts.births_of``, where nothing was changed since the last look; read once after each."""
        listed = tuple(replicas)
        self.births |= self.ports.births_of(one for one in listed if (one.log_dir, one.path) not in self.births)
        asked = ((one.log_dir, one.path) for one in listed)
        return {place: self.births[place] for place in asked if place in self.births}

    def _look(self, deep: Deep, paths: dict[str, set[str]]) -> tuple[LogDirFacts, ...]:
        def since(log_dir: str) -> int:
            number, facts = self.seen.get(log_dir, (_NEVER, None))
            return _NEVER if facts is None or facts.problem is not None else number

        found = self.ports.each(
            lambda port: port.begin_opened(
                look_again, port.log_dir, since(port.log_dir), tuple(sorted(paths.get(port.log_dir, ()))), deep
            )
        )
        looked = []
        for port, one in zip(self.ports.ports, found, strict=True):
            if isinstance(one, LogDirSuspectError):
                self.seen.pop(port.log_dir, None)
                looked.append(unanswered(port.log_dir, one.problem()))
                continue
            known = self.seen.get(port.log_dir)
            self._forget_births(port.log_dir, None if one.paths is None else frozenset(one.paths))
            facts = one.facts if one.paths is None or known is None else merged(known[1], one)
            self.seen[port.log_dir] = one.number, facts
            looked.append(facts)
        return tuple(looked)

    def _forget_births(self, log_dir: str, paths: frozenset[str] | None) -> None:
        """Forget when those directories came to be that were looked into again; ``None``: all of the log dir."""
        for place in [one for one in self.births if one[0] == log_dir and (paths is None or one[1] in paths)]:
            del self.births[place]


def _at(facts: LogDirFacts, paths: Collection[str]) -> Iterable[Replica | StagedReplica]:
    if paths:
        yield from (replica for replica in facts.replicas if replica.path in paths)
        yield from (item for item in facts.staged if item.path in paths)


def _live_names(one: Replica | StagedReplica) -> Iterable[str]:
    """Return what a live replica of the same partition is called: by its topic, or as it is."""
    yield one.path
    if one.ref.topic is not None:
        yield str(one.ref)
