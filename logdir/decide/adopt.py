"""Which rescued files become which replicas of a topic made anew, and with which brokers stopped; or why not.

All replicas of a partition or none: a follower that comes back alone truncates to an empty leader at once, and a leader
that comes back beside an empty follower was never measured. So at a replication factor above 1 every broker of its
replicas must hold rescued files that end at the same offset; where they do not, the way is a topic of one replica, on
the broker whose files reach furthest, and more replicas afterwards.

Not here: doing it (``disk.adopt``), making the topic, what its own records are worth (they are replaced).

Spec: design §3.3 "Restore" class (b); kafka-behaviour §10.5; attacks A16, A33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logdir.decide.refusal import Refusal, Why, refuse
from logdir.formats.replica_marker import Intent, ReplicaMarker
from logdir.ids import TopicId
from logdir.names import METADATA_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """Files that were set aside, as they were seen."""

    node_id: int
    """Of the broker whose disk holds them."""
    log_dir: str
    name: str
    """Under ``deleting/``; under ``incoming/`` of a partial capture."""
    marker: ReplicaMarker
    log_end: int | None
    """The offset after their last record, if it was read."""
    is_partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic as it was made anew."""

    topic: str
    topic_id: TopicId
    replicas: Mapping[int, tuple[int, ...]]
    """Of each partition, the brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Make one directory the log of one replica; what ``disk.adopt`` is given."""

    node_id: int
    log_dir: str
    name: str
    marker: ReplicaMarker
    topic: str
    topic_id: TopicId
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptPlan:
    """What follows; each rescued directory is in one of them once."""

    actions: tuple[Adopt, ...]
    """By partition, then broker; all of a partition's before any of its brokers is started."""
    refusals: tuple[Refusal, ...]
    stop: tuple[int, ...]
    """Brokers to be stopped cleanly, all of them before the first action, in this order."""
    start: tuple[int, ...]
    """The same in the order to start them: the last that was stopped leads, so it comes first."""
    says: tuple[str, ...]
    """To be said before anything is done."""


def plan_adopt(topic: NewTopic, rescued: Sequence[Rescued]) -> AdoptPlan:
    """Decide what to adopt.

    Args:
        topic: What the cluster says of it now.
        rescued: What the operator chose, of all brokers.
    """
    actions: list[Adopt] = []
    refusals: list[Refusal] = []
    fit: dict[int, list[Rescued]] = {}
    for one in rescued:
        refusal = _against(topic, one, rescued)
        if refusal is None:
            fit.setdefault(one.marker.partition, []).append(one)
        else:
            refusals.append(refusal)
    for partition, group in sorted(fit.items()):
        found = _against_group(topic, partition, group)
        refusals += found
        if not found:
            actions += [_action(topic, one) for one in sorted(group, key=lambda one: one.node_id)]
    start = tuple(sorted({action.node_id for action in actions}))
    return AdoptPlan(
        actions=tuple(actions),
        refusals=tuple(refusals),
        stop=start[::-1],
        start=start,
        says=tuple(_says(topic, actions, start)),
    )


def _action(topic: NewTopic, one: Rescued) -> Adopt:
    return Adopt(
        node_id=one.node_id,
        log_dir=one.log_dir,
        name=one.name,
        marker=one.marker,
        topic=topic.topic,
        topic_id=topic.topic_id,
        partition=one.marker.partition,
    )


def _against(topic: NewTopic, one: Rescued, all_of_them: Sequence[Rescued]) -> Refusal | None:
    where, marker = (one.log_dir, one.name), one.marker
    export = "export it: class (c)"
    if METADATA_TOPIC in (topic.topic, marker.topic):
        return refuse(*where, Why.METADATA_LOG, "a topic's replica", "the metadata log of the quorum: never touched")
    if one.is_partial or marker.intent is Intent.INCOMING:
        return refuse(*where, Why.HELD, "a replica that is whole", "a partial one", export)
    if marker.tiered:
        found = "the local part only: the rest lay in remote storage, and its broker deleted that"
        return refuse(*where, Why.OTHER_CLASS, "a log that is all local", found, export)
    if marker.topic_id == topic.topic_id:
        return refuse(
            *where, Why.OTHER_CLASS, "a topic with another id", "its own", "logdirctl staged restore renames it back"
        )
    ids = {other.marker.topic_id for other in all_of_them}
    if len(ids) > 1:
        found = " and ".join(sorted(str(one_id) for one_id in ids))
        return refuse(*where, Why.CHOICE, "files of one topic id", found, "adopt one topic at a time")
    replicas = topic.replicas.get(marker.partition)
    if replicas is None:
        found = f"partition {marker.partition} of a topic that has {len(topic.replicas)}"
        return refuse(*where, Why.NOT_THERE, "a partition of the new topic", found, "make it with as many partitions")
    if one.node_id not in replicas:
        found = f"replicas on {_named(replicas)}"
        fix = f"make the topic again, with partition {marker.partition} on broker {one.node_id}"
        return refuse(*where, Why.NOT_THERE, f"a replica on broker {one.node_id}", found, fix)
    return None


def _against_group(topic: NewTopic, partition: int, group: Sequence[Rescued]) -> list[Refusal]:
    replicas = topic.replicas[partition]
    brokers = [one.node_id for one in group]
    twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
    if twice:
        found = f"several on broker {_named(twice)}"
        return [
            _no(one, Why.CHOICE, "one directory for each replica", found, "look at them, then choose") for one in group
        ]
    furthest = max(group, key=lambda one: -1 if one.log_end is None else one.log_end)
    alone = (
        f"make the topic with its only replica of partition {partition} on broker {furthest.node_id}, adopt there, "
        f"then add replicas"
    )
    missing = sorted(set(replicas) - set(brokers))
    if missing:
        expected = f"rescued files on every replica's broker, {_named(replicas)}: a lone follower truncates to nothing"
        return [_no(one, Why.OTHER_CLASS, expected, f"none on {_named(missing)}", alone) for one in group]
    ends = {one.log_end for one in group}
    if len(group) > 1 and (None in ends or len(ends) > 1):
        found = ", ".join(f"{'unknown' if one.log_end is None else one.log_end} on {one.node_id}" for one in group)
        expected = "files that end at one offset: a replica truncates to its leader"
        return [_no(one, Why.CHOICE, expected, found, alone) for one in group]
    return []


def _no(one: Rescued, why: Why, expected: str, found: str, fix: str) -> Refusal:
    return refuse(one.log_dir, one.name, why, expected, found, fix)


def _named(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))


def _says(topic: NewTopic, actions: Sequence[Adopt], start: Sequence[int]) -> list[str]:
    if not actions:
        return []
    partitions = sorted({action.partition for action in actions})
    old = actions[0].marker
    becomes = f"files of {old.topic} (id {old.topic_id}) become {topic.topic} (id {topic.topic_id})"
    said = [
        f"class (b): {becomes}, partitions {_named(partitions)}",
        "records written to the new topic are replaced: they are set aside with reason duplicate",
        f"stop brokers {_named(start[::-1])} in this order, adopt on all of them, start {_named(start)} in this order",
    ]
    rest = sorted(set(topic.replicas) - set(partitions))
    if rest:
        said.append(f"partitions {_named(rest)} stay as they were made: nothing of them was rescued or can be adopted")
    return said
