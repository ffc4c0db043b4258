"""The words of a change of layout: what was seen of a broker's log dirs, and what is to be done to them.

Not here: which follows from which (``relayout``), doing it (``service.layout_phases``).

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
    """A live replica as it was seen."""

    path: str
    """Relative to its log dir; with a slash in the topic-id layout."""
    ref: ReplicaRef
    trouble: str = ""
    """Why it may not be touched; empty if it may."""

    @property
    def is_under_id(self) -> bool:
        """Whether it lies in the topic-id layout."""
        return "/" in self.path


class LayoutView(NamedTuple):
    """One log dir as it was seen."""

    log_dir: str
    cluster_id: str | None
    node_id: int | None
    """The true one, also while it is blocked."""
    file: LayoutFile | None
    """``layout.json``."""
    replicas: tuple[Replica, ...]
    """But for ``__cluster_metadata-0``."""
    futures: tuple[tuple[str, int], ...] = ()
    """Topic and partition of every ``-future``."""
    inside: tuple[str, ...] = ()
    """Directories of a work root that lies inside the log dir: a stock broker stops over them."""

    @property
    def is_under_ids(self) -> bool:
        """Whether any replica of it lies in the topic-id layout."""
        return any(replica.is_under_id for replica in self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToIds:
    """A replica of the topic-name layout to take to the topic-id layout."""

    ref: TopicIdPartition
    has_own_id: bool = True
    """Its ``partition.metadata`` says it; else that file may be missing."""

    @property
    def path(self) -> str:
        """Where it lies, relative to the log dir."""
        return str(self.ref)

    @property
    def place(self) -> str:
        """Where it goes, relative likewise."""
        return render_id_dir(self.ref.topic_id, self.ref.partition)

    @property
    def prefix(self) -> str:
        """The directory it goes into."""
        return self.place.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToNames:
    """A replica to take back; or one under its name already, for which this may have been cut off."""

    ref: ReplicaRef
    """Its name is known; without an id it lies under its name, whatever its id."""
    path: str
    """Where it lies, relative to the log dir, in either layout."""

    @property
    def place(self) -> str:
        """Where it goes, relative likewise."""
        return str(self.ref)

    @property
    def prefix(self) -> str:
        """The directory it lies in; empty for the log dir itself."""
        return self.path.rpartition("/")[0]


class SetLayoutState(NamedTuple):
    """Write ``layout.json``."""

    log_dir: str
    state: LayoutState
    for_broker: str | None = None
    """Of ``finalize``."""


class SetStartBlock(NamedTuple):
    """Keep every broker out, by every log dir."""


class MoveToTopicIds(NamedTuple):
    """Take these to the topic-id layout."""

    log_dir: str
    items: tuple[ToIds, ...]


class MoveToTopicNames(NamedTuple):
    """Take these back to the topic-name layout, and the prefix directories away."""

    log_dir: str
    items: tuple[ToNames, ...]


class LiftStartBlock(NamedTuple):
    """Let brokers in again, by every log dir."""


class RemoveLayoutFile(NamedTuple):
    """Remove ``layout.json``."""

    log_dir: str


Action = SetLayoutState | SetStartBlock | MoveToTopicIds | MoveToTopicNames | LiftStartBlock | RemoveLayoutFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, in order."""

    phases: tuple[tuple[Action, ...], ...] = ()
    """One is begun only when all before it went well; within one, log dirs do not wait for each other."""
    plan_sha256: str = ""
    """What ``layout.json`` is bound to."""
    refused: tuple[RefusedError, ...] = ()
    """Steps and replicas refused by name; the rest goes on."""
    done: int = 0
    """Steps that were done already."""
    is_blocked: bool = False
    """Whether what is refused keeps the verb from its end."""
    is_plan_stale: bool = False
    """A live replica lies under its name and no step names it: another plan is needed."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """All of them, in order."""
        return tuple(action for phase in self.phases for action in phase)
