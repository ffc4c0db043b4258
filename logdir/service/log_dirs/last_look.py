"""Cache of the last scan of a broker's log dirs, and the incremental scan of a batch under the locks.

The scan of a batch lists every directory of every log dir once. It reads into only these replicas: those the batch may
change, replicas of the same name on any disk, those with a new name or inode, and replicas without a known topic id
that may be the same partition as one with an id, because Kafka may have written their id since. Every other replica has
another topic, by its name, and another id, by the earlier scan: neither changes without a new name or inode. While the
owner locks are held, no other logdird process changes staged replicas.

Spec: design §2 law 4; attacks A13, A15, A22.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from logdir import clock
from logdir.errors import LogDirSuspectError
from logdir.formats.own.inventory import Kind
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.observe.relook import merged
from logdir.service.log_dirs.ports import BrokerPorts, unanswered
from logdir.worker.look import Deep, look_again

Place = tuple[str, str]
"""Log dir, and path relative to it or to its work root."""
_NEVER = -1
"""Number of a scan that never took place."""
_TWINS = frozenset((Kind.LIVE, Kind.FUTURE))
"""Kinds of directories that may be a second replica of a partition."""


@dataclass(slots=True)
class LastLook:
    """The last scan of each log dir, and its number."""

    ports: BrokerPorts
    seen: dict[str, tuple[int, LogDirFacts]] = field(default_factory=dict)
    births: dict[Place, int] = field(default_factory=dict)
    """Creation times of directories, as far as they were requested since their last scan."""
    read_at_ms: dict[str, int] = field(default_factory=dict)
    """Wall clock, by log dir: when it was read in full the last time."""

    def look(self, deep: Deep) -> tuple[LogDirFacts, ...]:
        """Scan everything, and store the result."""
        self.seen.clear()
        return self._look(deep, {})

    def again(
        self, deep: Deep, places: Collection[Place], *, named: Iterable[str] = (), partitions: Iterable[int] = ()
    ) -> tuple[LogDirFacts, ...]:
        """Return the current contents of every log dir, by an incremental scan.

        Args:
            deep: Which of the live replicas to scan are opened.
            places: Replicas that may be changed.
            named: Live names to scan as well, on every disk.
            partitions: Partitions of replicas that may get a topic id.

        Returns:
            As ``look``; a log dir with a problem is scanned completely.
        """
        paths: dict[str, set[str]] = {log_dir: set() for log_dir in self.seen}
        for log_dir, path in places:
            paths.setdefault(log_dir, set()).add(path)
        concerned = [one for log_dir, (_, facts) in self.seen.items() for one in _at(facts, paths[log_dir])]
        names = {*named, *(name for one in concerned for name in _live_names(one))}
        with_ids = {*partitions, *(one.ref.partition for one in concerned if one.ref.topic_id is not None)}
        for log_dir, (_, facts) in self.seen.items():
            paths[log_dir] |= names.intersection(replica.path for replica in facts.replicas)
            # Where ids are compared, unknown ids are read again: a broker may have written them since.
            unknown = [replica for replica in facts.replicas if replica.ref.topic_id is None and replica.kind in _TWINS]
            paths[log_dir].update(replica.path for replica in unknown if replica.ref.partition in with_ids)
        return self._look(deep, paths)

    def births_of(self, replicas: Iterable[Replica]) -> Mapping[Place, int]:
        """Return creation times as ``BrokerPorts.births_of``, from the cache if nothing was changed since the last
        scan.
        """
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
            if one.paths is None:
                self.read_at_ms[port.log_dir] = clock.now_ms()
            self._forget_births(port.log_dir, None if one.paths is None else frozenset(one.paths))
            facts = one.facts if one.paths is None or known is None else merged(known[1], one)
            self.seen[port.log_dir] = one.number, facts
            looked.append(facts)
        return tuple(looked)

    def _forget_births(self, log_dir: str, paths: frozenset[str] | None) -> None:
        """Remove creation times of rescanned directories from the cache; ``None``: of the whole log dir."""
        for place in [one for one in self.births if one[0] == log_dir and (paths is None or one[1] in paths)]:
            del self.births[place]


def _at(facts: LogDirFacts, paths: Collection[str]) -> Iterable[Replica | StagedReplica]:
    if paths:
        yield from (replica for replica in facts.replicas if replica.path in paths)
        yield from (item for item in facts.staged if item.path in paths)


def _live_names(one: Replica | StagedReplica) -> Iterable[str]:
    """Return the live names of the same partition: by its topic, or its own name."""
    yield one.path
    if one.ref.topic is not None:
        yield str(one.ref)
