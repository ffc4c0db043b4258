"""Describe each partition of one broker: its directories on the disks, beside its state in the cluster.

Not here: reading either (``observe``, ``cluster``), the output formats of stock tools (``formats.stock_output``),
possible actions (``reconcile``, ``strays``).

Spec: design §2 law 5, §6; KIP-516, "Tools" (an id wins over a name, the zero id means the name); KIP-858;
KIP-966.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from logdir.cluster.assignment import AssignmentState, assignment_in
from logdir.cluster.image import Image, Partition, Topic
from logdir.decide.refusal import UNTOUCHED, untouched_problem
from logdir.decide.selector import Reading, Selectable, Selector, select
from logdir.errors import ConfigError, Problem
from logdir.formats.own.inventory import Kind
from logdir.ids import DirectoryId, TopicId
from logdir.observe.facts import LogDirFacts, Replica, StagedReplica
from logdir.refusal_slug import Why
from logdir.replica_ref import ReplicaKey, ReplicaRef


class State(Enum):
    """The state of a directory, or of a missing replica."""

    LEADER = "leader"
    IN_SYNC = "in-sync"
    ELIGIBLE = "eligible"
    """Assigned here and not in the ISR, but it may hold everything that was committed (KIP-966)."""
    BEHIND = "behind"
    """Assigned here and not in the ISR."""
    MISPLACED = "misplaced"
    """Assigned here, but to another log dir."""
    UNCLAIMED = "unclaimed"
    """Not assigned to this node: ``strays`` shows more."""
    UNSAID = "unsaid"
    """There is no image, or it does not cover this directory."""
    UNUSABLE = "unusable"
    """A link, a mount point, or an unreadable directory."""
    FUTURE = "future"
    LEAVING = "leaving"
    """A broker renamed it to ``-delete``."""
    STRAY = "stray"
    """A broker renamed it to ``-stray``."""
    STAGED = "staged"
    PURGING = "purging"
    INCOMING = "incoming"
    METADATA = "metadata"
    MISSING = "missing"
    """Assigned here, but on no disk that answers: a starting broker creates it again, empty (law 5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One directory, or one replica that is missing here."""

    ref: ReplicaRef
    state: State
    kind: Kind | None = None
    """``None``: the replica is missing."""
    log_dir: str | None = None
    path: str | None = None
    """Its path, relative to the log dir or its work root."""
    log_bytes: int | None = None
    segments: int | None = None
    first_offset: int | None = None
    problems: tuple[str, ...] = ()
    in_image: Partition | None = None
    """Its partition in the image; ``None``: there is no image, or the partition is not in it."""
    is_tiered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One partition of an image, with its topic."""

    ref: ReplicaRef
    of: Topic


_OF_KIND: Final = {
    Kind.FUTURE: State.FUTURE,
    Kind.DELETE: State.LEAVING,
    Kind.STRAY: State.STRAY,
    Kind.METADATA: State.METADATA,
    Kind.STAGED: State.STAGED,
    Kind.PURGING: State.PURGING,
    Kind.INCOMING: State.INCOMING,
}
_T = TypeVar("_T", bound=Selectable)


def choose(selector: Selector, items: Iterable[_T]) -> tuple[_T, ...]:
    """Return the items that a selector matches, in the order given; an id wins over a name, and the zero id is ignored.

    Args:
        selector: The selector.
        items: All items.

    Raises:
        ConfigError: both a topic name and ``name-p`` match.
    """
    listed = list(items)
    by_id = tuple(way for way in selector.ways if way.reading in (Reading.ID, Reading.ID_PARTITION))
    # Spec: KIP-516, "Tools": when both are given the id is taken, unless it is the zero id.
    true_ids = tuple(way for way in by_id if way.topic_id is not None and not way.topic_id.is_zero)
    others = tuple(way for way in selector.ways if way not in by_id)
    return select(Selector(text=selector.text, ways=true_ids), listed) or select(
        Selector(text=selector.text, ways=others), listed
    )


def describe(facts: Sequence[LogDirFacts], image: Image | None) -> tuple[Described, ...]:
    """Describe everything on the disks, and the replicas that are missing.

    Args:
        facts: Facts of every configured log dir.
        image: The cluster image; ``None``: none was read.

    Returns:
        By topic (those without a name last), partition, then log dir and path.
    """
    found = [_replica(image, one, replica) for one in facts for replica in one.replicas]
    found += [_aside(image, item) for one in facts for item in one.staged]
    if image is not None:
        found += _missing(image, facts)
    return tuple(sorted(found, key=_order))


def partitions(image: Image) -> tuple[Listed, ...]:
    """Return every partition of an image, by topic and number."""
    topics = sorted((*image.topics.values(), *image.without_id.values()), key=lambda topic: topic.name)
    return tuple(
        Listed(ref=ReplicaRef(topic=topic.name, topic_id=topic_id, partition=number), of=topic)
        for topic in topics
        for topic_id in (TopicId(topic.topic_id) if any(topic.topic_id) else None,)
        for number in sorted(topic.partitions)
    )


def missing_problem(one: Described) -> Problem:
    """Return the problem of a replica that is ``MISSING``."""
    return Problem(
        Why.REPLICA_MISSING.value,
        str(one.ref),
        "a directory on one of the disks: the cluster assigns it here",
        "no directory on a disk that answers",
        "find the directory before the broker starts, which would make it again, empty",
    )


def unusable_problem(one: Described) -> Problem | None:
    """Return the problem of a live replica that is ``UNUSABLE``; ``None`` for any other."""
    if one.state is not State.UNUSABLE:
        return None
    return untouched_problem(one.log_dir or "", one.path or "", one.problems)


def one_broker(facts: Iterable[LogDirFacts], configured: int | None) -> int:
    """Return the node id that stock tools would print.

    Raises:
        ConfigError: the node id is not known, or log dirs differ in it.
    """
    known = {one.node_id for one in facts if one.node_id is not None}
    if configured is not None:
        known.add(configured)
    if len(known) == 1:
        return known.pop()
    found = " and ".join(map(str, sorted(known))) or "no node id"
    raise ConfigError((Problem("config-error", "node.id", "one node id of all log dirs", found),))


def _order(one: Described) -> tuple[bool, str, int, str, str]:
    ref = one.ref
    return ref.topic is None, ref.topic or str(ref.topic_id), ref.partition, one.log_dir or "", one.path or ""


def _replica(image: Image | None, one: LogDirFacts, replica: Replica) -> Described:
    state, in_image = _state(image, one, replica)
    start, first = replica.checkpoints.log_start, replica.first_offset
    return Described(
        ref=replica.ref,
        state=state,
        kind=replica.kind,
        log_dir=replica.log_dir,
        path=replica.path,
        log_bytes=replica.log_bytes,
        segments=replica.segments,
        first_offset=replica.first_offset,
        problems=replica.problems,
        in_image=in_image,
        is_tiered=_is_tiered(image, replica.ref.topic) or (start is not None and first is not None and start < first),
    )


def _aside(image: Image | None, item: StagedReplica) -> Described:
    marker = item.marker
    in_image = None if image is None else assignment_in(image, item.ref).partition
    return Described(
        ref=item.ref,
        state=_OF_KIND[item.kind],
        kind=item.kind,
        log_dir=item.log_dir,
        path=item.path,
        log_bytes=item.log_bytes,
        in_image=in_image,
        is_tiered=_is_tiered(image, item.ref.topic) or (marker is not None and marker.tiered),
    )


def _is_tiered(image: Image | None, topic: str | None) -> bool:
    return image is not None and topic in image.tiered


def _state(image: Image | None, one: LogDirFacts, replica: Replica) -> tuple[State, Partition | None]:
    assignment = None if image is None else assignment_in(image, replica.ref)
    partition = None if assignment is None else assignment.partition
    if replica.kind is not Kind.LIVE:
        return _OF_KIND[replica.kind], partition
    if not UNTOUCHED.isdisjoint(replica.problems):
        return State.UNUSABLE, partition
    if image is None or assignment is None or assignment.state is AssignmentState.NOT_COVERED:
        return State.UNSAID, partition
    if partition is None or assignment.state not in (
        AssignmentState.WANTED,
        AssignmentState.NO_ID,
        AssignmentState.ZERO_ID,
    ):
        return State.UNCLAIMED, partition
    node = image.node_id
    directory = partition.directory(node)
    if _is_elsewhere(directory, one.directory_id):
        return State.MISPLACED, partition
    if partition.leader == node:
        return State.LEADER, partition
    if node in partition.isr:
        return State.IN_SYNC, partition
    return (State.ELIGIBLE if partition.is_eligible(node) else State.BEHIND), partition


def _is_elsewhere(assigned: DirectoryId | None, own: str | None) -> bool:
    # Reserved ids mean unassigned, lost or migrating: none of them names a log dir (KIP-858).
    return assigned is not None and not assigned.is_reserved and own is not None and str(assigned) != own


def _missing(image: Image, facts: Sequence[LogDirFacts]) -> Iterator[Described]:
    node = image.node_id
    here: set[ReplicaKey] = set()
    for one in facts:
        for replica in one.replicas:
            if replica.kind is Kind.LIVE:
                here.update(replica.ref.keys[:1])  # one that has an id is never known by its name alone
    for listed in partitions(image):
        in_image = listed.of.partitions[listed.ref.partition]
        # A replica that is being added does not exist yet; that is no problem.
        if node not in in_image.replicas or node in in_image.adding:
            continue
        if here.isdisjoint(listed.ref.keys):
            yield Described(
                ref=listed.ref,
                state=State.MISSING,
                in_image=in_image,
                is_tiered=_is_tiered(image, listed.ref.topic),
            )
