"""The actions of a reconcile, each with the rule behind it.

Every action carries its reason, evidence, rule with section, the impact, and until when it can be undone.

Not here: when which is done (``reconcile``), doing it (``disk``).

Spec: design §2 law 1, §4; KIP-516, "LeaderAndIsr", "Deletion", "Migration"; KIP-631, "Topic Identifiers".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdir.decide.stage import Stage
from logdir.evidence import Evidence
from logdir.formats.own.replica_marker import ReplicaMarker
from logdir.reasons import Reason
from logdir.replica_ref import TopicIdPartition


class Rule(Enum):
    """The rule behind an action; the value names its section."""

    FULL_LEAVES_OUT = "KIP-516, LeaderAndIsr: stale request 1, the partition is not in a FULL request"
    ID_DIFFERS = "KIP-516, LeaderAndIsr: stale request 2 and INCREMENTAL, the topic id differs"
    STOP_REPLICA = "KIP-516, DeleteTopics, step 2: StopReplica with delete"
    TOPIC_REMOVED = "KIP-631, Topic Identifiers: RemoveTopicRecord"
    ID_UNKNOWN = "KIP-516, Describe Topics: two brokers know no such topic id"
    ID_REMOVED = "KIP-516, DeleteTopics: the name has another id, and the removal of this one was seen"
    MOVED_AWAY = "KIP-631, Topic Identifiers: log directories are compared with the latest metadata"
    GIVES_ID = "KIP-516, Migration: partition.metadata for a partition without a topic id"
    WANTED_AGAIN = "design §4: a staged id that becomes wanted again is never purged (A43)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReplica:
    """Stage one live replica."""

    stage: Stage
    """The input of ``disk.replica.staging``."""
    rule: Rule

    @property
    def log_dir(self) -> str:
        """Return its log dir, as configured."""
        return self.stage.log_dir

    @property
    def path(self) -> str:
        """Return its path, relative to the log dir."""
        return self.stage.path

    @property
    def reason(self) -> Reason:
        """Return why it is staged."""
        return self.stage.marker.reason

    @property
    def evidence(self) -> Evidence:
        """Return what is known about whether the replica is still wanted."""
        return self.stage.marker.evidence

    @property
    def loses(self) -> str:
        """Return what the broker loses."""
        return self.stage.loses

    @property
    def undo_until_ms(self) -> int | None:
        """Return until when it can certainly be undone (wall clock); ``None``: until an operator purges it."""
        return self.stage.undo_until_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveId:
    """Write ``partition.metadata`` into a live replica that has none."""

    log_dir: str
    path: str
    ref: TopicIdPartition
    evidence: Evidence
    rule: Rule = Rule.GIVES_ID

    @property
    def loses(self) -> str:
        """Return what the broker loses."""
        return "nothing"

    @property
    def undo_until_ms(self) -> None:
        """Return ``None``: the file can be removed at any time the broker is stopped."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldStaged:
    """Remove the deadline of a staged replica whose id is assigned here again."""

    log_dir: str
    name: str
    """Its name under ``deleting/``."""
    marker: ReplicaMarker
    evidence: Evidence
    proposes: str
    """The next step for the operator."""
    rule: Rule = Rule.WANTED_AGAIN

    @property
    def loses(self) -> str:
        """Return what the broker loses."""
        return "nothing"

    @property
    def undo_until_ms(self) -> None:
        """Return ``None``: a held replica waits for an operator."""
        return None


Action = StageReplica | GiveId | HoldStaged
