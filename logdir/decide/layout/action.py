"""Value types of a layout change: the view of a broker's log dirs, and the actions on them.

Not here: deciding the actions (``transitions``), carrying them out (``service.batch.layout_phases``).

Spec: design §3.1, §4 (``decide``), §8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from logdir.errors import RefusedError
from logdir.formats.own.layout_file import LayoutFile, LayoutState
from logdir.names import render_id_dir
from logdir.replica_ref import ReplicaRef, TopicIdPartition


class Replica(NamedTuple):
    """A live replica in the view of a log dir."""

    path: str
    """Its path, relative to its log dir; with a slash in the topic-id layout."""
    ref: ReplicaRef
    trouble: str = ""
    """Why it may not be changed; empty if it may."""

    @property
    def is_under_id(self) -> bool:
        """Whether it lies in the topic-id layout."""
        return "/" in self.path


class LayoutView(NamedTuple):
    """What a layout change knows of one log dir."""

    log_dir: str
    cluster_id: str | None
    node_id: int | None
    """The node id of its broker, even if a start block replaces it in ``meta.properties``."""
    file: LayoutFile | None
    """The content of ``layout.json``; ``None``: there is no such file."""
    replicas: tuple[Replica, ...]
    """All live replicas except ``__cluster_metadata-0``."""
    futures: tuple[tuple[str, int], ...] = ()
    """Topic and partition of every ``-future`` directory."""
    inside: tuple[str, ...] = ()
    """Directories of a work root inside the log dir, which stop a stock broker."""

    @property
    def is_under_ids(self) -> bool:
        """Whether any replica of it lies in the topic-id layout."""
        return any(replica.is_under_id for replica in self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToIds:
    """A replica to move from the topic-name layout to the topic-id layout."""

    ref: TopicIdPartition
    has_own_id: bool = True
    """Whether its ``partition.metadata`` holds the id; otherwise that file may be missing."""

    @property
    def path(self) -> str:
        """Its current path, relative to the log dir."""
        return str(self.ref)

    @property
    def place(self) -> str:
        """Its new path, relative to the log dir."""
        return render_id_dir(self.ref.topic_id, self.ref.partition)

    @property
    def prefix(self) -> str:
        """The prefix directory of its new path."""
        return self.place.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToNames:
    """A replica to move back to its topic name, or one already there whose move may have been interrupted."""

    ref: ReplicaRef
    """With its topic; without its id if it lies under its topic name already."""
    path: str
    """Its current path, relative to the log dir, in either layout."""

    @property
    def place(self) -> str:
        """Its new path, relative to the log dir."""
        return str(self.ref)

    @property
    def prefix(self) -> str:
        """The prefix directory of its current path; empty for the log dir itself."""
        return self.path.rpartition("/")[0]


class SetLayoutState(NamedTuple):
    """Write a state to ``layout.json`` of a log dir."""

    log_dir: str
    state: LayoutState
    for_broker: str | None = None
    """The broker that reads topic-id directories, as the operator named it; only for ``finalize``."""


class SetStartBlock(NamedTuple):
    """Set the start block in every log dir."""


class MoveToTopicIds(NamedTuple):
    """Move these replicas to the topic-id layout."""

    log_dir: str
    items: tuple[ToIds, ...]


class MoveToTopicNames(NamedTuple):
    """Move these replicas back to the topic-name layout, and remove the prefix directories."""

    log_dir: str
    items: tuple[ToNames, ...]


class LiftStartBlock(NamedTuple):
    """Lift the start block in every log dir."""


class RemoveLayoutFile(NamedTuple):
    """Remove ``layout.json``."""

    log_dir: str


Action = SetLayoutState | SetStartBlock | MoveToTopicIds | MoveToTopicNames | LiftStartBlock | RemoveLayoutFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The actions of a layout change, in order."""

    phases: tuple[tuple[Action, ...], ...] = ()
    """A phase begins only when all earlier ones succeeded; within a phase log dirs do not wait for each other."""
    plan_sha256: str = ""
    """SHA-256 of the plan to which ``layout.json`` is bound."""
    refused: tuple[RefusedError, ...] = ()
    """Steps and replicas that are refused; the others continue."""
    done: int = 0
    """Number of steps that were done before."""
    is_blocked: bool = False
    """Whether a refusal keeps the verb from finishing."""
    is_plan_stale: bool = False
    """Whether a live replica under its topic name is in no step, so that a new plan is needed."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """All actions, in order."""
        return tuple(action for phase in self.phases for action in phase)
