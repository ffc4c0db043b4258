"""Which replicas fail with a disk, in the shape of KIP-631's ``FailedReplicasRecord``.

They are those that the last look saw there, because a disk that has failed cannot be listed.

Used by the thread of changes alone; outlives a session.

Spec: KIP-631, "FailedReplicasRecord"; design §5.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from logdir.daemon.report.history import History
from logdir.daemon.state import LogDirState
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, Replica
from logdir.service.report.json_form import KEY, to_json
from logdir.service.report.json_text import compact

LOG: Final = logging.getLogger("logdir.daemon")
_FAILED: Final = frozenset({LogDirState.SUSPECT, LogDirState.READ_ONLY})
"""A broker hangs on such a log dir, or takes it offline, although it was read not long ago."""


@dataclass(frozen=True, slots=True)
class FailedTopic:
    """The failed replicas of one topic."""

    topic_id: TopicId = field(metadata={KEY: "topicId"})
    partitions: tuple[int, ...]
    """Ascending."""


@dataclass(frozen=True, slots=True)
class FailedReplicas:
    """The replicas on the failed disks of one broker."""

    broker_id: int = field(metadata={KEY: "brokerId"})
    topics: tuple[FailedTopic, ...]
    """By topic id; a replica without an id is left out, because the record has no place for it."""


class FailedDisks:
    """The failed disks of a broker, and what lay on them."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Replica, ...]] = {}
        """By log dir: its replicas when it was last read."""
        self._failed: dict[str, tuple[Replica, ...]] = {}

    def note(
        self, states: Mapping[str, LogDirState], facts: Sequence[LogDirFacts]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Take a look at the log dirs; return those that have failed since the last one, and those that are back.

        A log dir without a work root can be read, and is no failed disk.

        Args:
            states: Of every configured log dir.
            facts: Facts of every configured log dir.
        """
        unread = {one.log_dir for one in facts if one.problem is not None}
        self._seen.update({one.log_dir: one.replicas for one in facts if one.log_dir not in unread})
        sick = unread | {name for name, state in states.items() if state in _FAILED}
        failed = tuple(sorted(sick - self._failed.keys()))
        back = tuple(sorted(self._failed.keys() - sick))
        for name in failed:
            self._failed[name] = tuple(one for one in self._seen.get(name, ()) if one.kind is Kind.LIVE)
        for name in back:
            del self._failed[name]
        return failed, back

    def report(
        self,
        states: Mapping[str, LogDirState],
        facts: Sequence[LogDirFacts],
        broker_id: int | None,
        history: History,
    ) -> None:
        """Log which disks have failed since the last look, with their replicas, and which are back; as ``note``."""
        failed, back = self.note(states, facts)
        for log_dir in failed:
            found = self.record(broker_id, log_dir)
            LOG.error("disk.failed log_dir=%s FailedReplicas=%s", log_dir, compact(to_json(found)))
            count = 0 if found is None else sum(len(topic.partitions) for topic in found.topics)
            history.add("disk-failed", log_dir=log_dir, partitions=count)
        for log_dir in back:
            LOG.info("disk.back log_dir=%s", log_dir)
            history.add("disk-back", log_dir=log_dir)

    def record(self, broker_id: int | None, *log_dirs: str) -> FailedReplicas | None:
        """Return what failed; ``None``: nothing.

        Args:
            broker_id: The node id; ``None``: not known, which is -1 in the record.
            log_dirs: Only of these log dirs; none: of all.
        """
        found: dict[TopicId, set[int]] = {}
        for name, replicas in self._failed.items():
            for replica in replicas if not log_dirs or name in log_dirs else ():
                if replica.ref.topic_id is not None:
                    found.setdefault(replica.ref.topic_id, set()).add(replica.ref.partition)
        if not found:
            return None
        topics = (FailedTopic(topic_id, tuple(sorted(found[topic_id]))) for topic_id in sorted(found, key=str))
        return FailedReplicas(-1 if broker_id is None else broker_id, tuple(topics))
