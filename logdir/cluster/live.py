"""The image of a live cluster: what two of its brokers answered about topic ids. Pure.

A topic id is removed only if both brokers answer that they know no such id (error 100). A broker that has just started
may not know every topic yet, and answers 100 for a topic that exists; so one broker proves nothing, and no
answer counts for a directory or marker that is not 10 minutes older (``decide``). An id that exists and may not be seen
by this user (error 29), and one about which the brokers differ, is not covered.

Not here: asking (``service.cluster.live_source``).

Spec: design §4, source "the live cluster"; KIP-516 (an id is looked up before the right to see its topic is);
attacks A2, A20.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from logdir.cluster.image import AbsenceMeaning, Broker, Image, Partition, Source, Topic
from logdir.evidence import Proof, Removed
from logdir.ids import TopicId
from logdir.replica_ref import ReplicaKey
from logdir.wire.client.answers import Cluster, Existence, PartitionState, Topics, TopicState


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAnswers:
    """What a cluster answered."""

    origin: str
    """The client properties file."""
    asked_ms: int
    """Wall clock before the first request."""
    cluster: Cluster
    topics: Mapping[int, Topics]
    """By node id: that broker's answer about the topic ids."""


class LiveImages(NamedTuple):
    """The images of a live cluster."""

    image: Image
    """What two brokers agree on."""
    latest: Image | None
    """What at least one of them answers: it can only keep a replica. ``None``: they agree on every id."""


def images_of(answers: LiveAnswers, partitions: Mapping[TopicId, Collection[int]], node_id: int) -> LiveImages:
    """Return the images of a live cluster; with fewer than two brokers nothing is known about any topic id.

    Args:
        answers: What the cluster answered.
        partitions: The topic ids that were asked about, with the partitions that are in the log dirs.
        node_id: The node from whose view the images are.
    """
    by_id = {topic_id: _states(answers, topic_id) for topic_id in partitions}
    is_whole = len(answers.topics) > 1
    known = {one: states for one, states in by_id.items() if is_whole and len({s.existence for s in states}) == 1}
    gone = [one for one, states in known.items() if states[0].existence is Existence.GONE]
    image = Image(
        source=Source.LIVE_CLUSTER,
        origin=answers.origin,
        node_id=node_id,
        cluster_id=answers.cluster.cluster_id,
        as_of_ms=answers.asked_ms,
        # The incarnation is in no answer: no registration of this host can be recognised in it.
        brokers={node.node_id: Broker(b"", -1, is_fenced=False) for node in answers.cluster.nodes},
        removed={bytes(one): Removed(proof=Proof.LIVE_CLUSTER, as_of_ms=answers.asked_ms) for one in gone},
        absence_meaning=AbsenceMeaning.NOTHING,
    )
    agreed = _with_topics(image, {one: states for one, states in known.items() if _present(states)})
    agreed = _without(agreed, partitions, {one for one in by_id if one not in gone and bytes(one) not in agreed.topics})
    present = {one: _present(states) for one, states in by_id.items() if _present(states)}
    if present.keys() <= {TopicId(one) for one in agreed.topics}:
        return LiveImages(image=agreed, latest=None)
    latest = _without(_with_topics(image, present), partitions, by_id.keys() - present.keys() - set(gone))
    return LiveImages(image=agreed, latest=latest)


def _states(answers: LiveAnswers, topic_id: TopicId) -> list[TopicState]:
    return [topics.topics[topic_id] for _, topics in sorted(answers.topics.items())]


def _present(states: Collection[TopicState]) -> list[TopicState]:
    return [state for state in states if state.existence is Existence.PRESENT]


def _with_topics(image: Image, present: Mapping[TopicId, list[TopicState]]) -> Image:
    topics = {bytes(topic_id): _topic(states) for topic_id, states in present.items()}
    # Two ids under one name: one of the answers is from before the topic was created again.
    names: dict[str, list[bytes]] = {}
    for key, topic in topics.items():
        names.setdefault(topic.name, []).append(key)
    twice = {key for keys in names.values() if len(keys) > 1 for key in keys}
    found = {key: topic for key, topic in topics.items() if key not in twice}
    return replace(image, topics=found, names={topic.name: key for key, topic in found.items()})


def _topic(states: list[TopicState]) -> Topic:
    """Return a topic: assigned is what at least one broker answers, in the ISR what all of them answer."""
    parts: dict[int, list[PartitionState]] = {}
    for state in states:
        for part in state.partitions:
            parts.setdefault(part.partition, []).append(part)
    return Topic(states[0].name or "", bytes(states[0].topic_id), {n: _partition(found) for n, found in parts.items()})


def _partition(answers: list[PartitionState]) -> Partition:
    leaders = {part.leader for part in answers}
    leader = leaders.pop() if len(leaders) == 1 else None
    isr = tuple(node for node in answers[0].in_sync if all(node in part.in_sync for part in answers))
    return Partition(
        replicas=tuple(dict.fromkeys(node for part in answers for node in part.replicas)),
        isr=isr,
        # In the ISR by one answer only: such a replica is kept, and no other is removed because of it.
        eligible=tuple(dict.fromkeys(node for part in answers for node in part.in_sync if node not in isr)),
        leader=-1 if leader is None else leader,
    )


def _without(image: Image, partitions: Mapping[TopicId, Collection[int]], unknown: Collection[TopicId]) -> Image:
    keys: frozenset[ReplicaKey] = frozenset((one, number) for one in unknown for number in partitions[one])
    return replace(image, conflicting=keys)
