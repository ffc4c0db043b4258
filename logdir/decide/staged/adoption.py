"""What an adoption can bring back of staged replicas whose topic id is gone, before their topic is created again.

Each replica is judged by the rules of the adoption itself. Only the disks of this broker are known: whether the other
brokers of the topic have its files, too, is seen when each of them adopts. The brokers of the topic are those in the
cluster metadata from before its removal, if a log still has them.

Not here: the adoption (``decide.adopt``, ``decide.adopt_here``), what to type for it (``guide``).

Spec: design §3.3 "Restore"; kafka-behaviour §10.5; attacks A16, A17, A33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from logdir.cluster.image import ZERO_ID, Image, Topic
from logdir.decide.adopt import AdoptPlan, AdoptRequest, StagedFiles, plan_adopt
from logdir.decide.adopt_here import Place, unfit
from logdir.decide.image.still_assigned import Assigned, ClusterState, assignment_of
from logdir.decide.new_topic import NewTopic, image_naming, topic_of
from logdir.decide.refusal import Refusal
from logdir.formats.own.inventory import Kind
from logdir.ids import TopicId
from logdir.observe.facts import LogDirFacts, StagedReplica


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Staged replicas of one topic whose id is known to be gone, and the facts about them."""

    items: tuple[StagedReplica, ...]
    """Not empty; from ``gone_of``."""
    cluster: ClusterState
    node_id: int
    now_ms: int
    """The current instant (wall clock)."""
    log_ends: Mapping[Place, int | None]
    """Log end offsets of these replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What an adoption can bring back."""

    topic: NewTopic
    """The topic that is to adopt: as it is now, or as it is to be created, with the zero id."""
    is_whole: bool
    """Whether all partitions of the topic and their brokers are known; otherwise it has at least these partitions."""
    adopted: tuple[StagedReplica, ...]
    """The replicas of this broker that can be adopted, by partition."""
    refusals: tuple[Refusal, ...]
    """Of the other replicas."""

    @property
    def is_there(self) -> bool:
        """Whether the topic was created again already."""
        return self.topic.topic_id != ZERO_ID


def topic_key(item: StagedReplica) -> TopicId | str | None:
    """Return the topic of a staged replica: its id, or its name if there is no id."""
    return item.ref.topic_id or item.ref.topic


def topic_selector_of(item: StagedReplica) -> str:
    """Return a selector of all staged replicas of a topic; it never begins with a dash."""
    if item.ref.topic_id is None:
        return f"name:{item.ref.topic}"
    text = str(item.ref.topic_id)
    return f"id:{text}" if text.startswith("-") else text


def gone_of(cluster: ClusterState, items: Iterable[StagedReplica]) -> tuple[StagedReplica, ...]:
    """Return the staged replicas whose topic id is known to be gone; a partial capture only if nothing else of its
    partition is among them.
    """
    gone = [item for item in items if assignment_of(cluster, item).state is Assigned.GONE]
    whole = {(topic_key(item), item.ref.partition) for item in gone if not item.is_partial}
    return tuple(item for item in gone if not item.is_partial or (topic_key(item), item.ref.partition) not in whole)


def is_adoptable(item: StagedReplica, cluster: ClusterState, facts: Sequence[LogDirFacts]) -> bool:
    """Whether the topic id of a staged replica is known to be gone, and a topic that is created again can adopt it."""
    if item.kind is not Kind.STAGED or assignment_of(cluster, item).state is not Assigned.GONE:
        return False
    one = next(one for one in facts if one.log_dir == item.log_dir)
    return unfit(one, item) is None and item.marker is not None and not item.marker.tiered


def outlook_of(gone: Gone, facts: Sequence[LogDirFacts]) -> Outlook:
    """Return what an adoption can bring back, if every other broker of the topic has its files, too.

    Args:
        gone: The replicas.
        facts: Facts of every configured log dir.
    """
    former = _former(gone)
    topic = _existing(gone) or _to_create(gone, former)
    of = {one.log_dir: one for one in facts}
    judged = [(item, unfit(of[item.log_dir], item)) for item in gone.items]
    plan = _plan(gone, topic, [item for item, refusal in judged if refusal is None])
    places = {action.place for action in plan.actions}
    adopted = [item for item, refusal in judged if refusal is None and (item.log_dir, item.path) in places]
    return Outlook(
        topic=topic,
        is_whole=former is not None or topic.topic_id != ZERO_ID,
        adopted=tuple(sorted(adopted, key=lambda item: item.ref.partition)),
        refusals=(*(refusal for _, refusal in judged if refusal is not None), *plan.refusals),
    )


def _images(cluster: ClusterState) -> list[Image]:
    states = (cluster, *cluster.beside)
    return [image for one in states for image in (*one.images, one.seen) if image is not None]


def _last(gone: Gone) -> Topic | None:
    """Return the topic as it was before its removal; ``None``: no metadata has it any more."""
    topic_id = gone.items[0].ref.topic_id
    if topic_id is None:
        return None
    return next((topic for image in _images(gone.cluster) if (topic := image.last_of(topic_id)) is not None), None)


def name_of(gone: Gone) -> str:
    """Return the name of the topic; Kafka may have cut it in the name of a directory, and so in the marker."""
    last = _last(gone)
    return (gone.items[0].ref.topic or "?") if last is None else last.name


def _former(gone: Gone) -> dict[int, tuple[int, ...]] | None:
    """Return the brokers of each partition before the removal; ``None`` if they are not known."""
    last = _last(gone)
    if last is None or sorted(last.partitions) != list(range(len(last.partitions))):
        return None
    if {item.ref.partition for item in gone.items} - last.partitions.keys():
        return None
    return {number: last.partitions[number].replicas for number in sorted(last.partitions)}


def _existing(gone: Gone) -> NewTopic | None:
    """Return the topic of the same name that was created since; ``None`` if there is none."""
    name = name_of(gone)
    image = image_naming(gone.cluster, name)
    found = None if image is None else topic_of(image, name)
    # An image from before the removal has the topic with the id that is gone.
    return None if found is None or found.topic_id == gone.items[0].ref.topic_id else found


def _to_create(gone: Gone, former: dict[int, tuple[int, ...]] | None) -> NewTopic:
    """Return the topic to create: as it was, or else with every partition up to the last staged one on this broker."""
    if former is None:
        count = 1 + max(item.ref.partition for item in gone.items)
        former = dict.fromkeys(range(count), (gone.node_id,))
    return NewTopic(topic=name_of(gone), topic_id=ZERO_ID, replicas=former, reassigned=frozenset(), is_tiered=False)


def _plan(gone: Gone, topic: NewTopic, fit: Sequence[StagedReplica]) -> AdoptPlan:
    """Return the plan for the files of this broker, as if it had the only replica of each partition."""
    node = gone.node_id
    alone = {number: (node,) if node in on else on for number, on in topic.replicas.items()}
    files = tuple(
        StagedFiles(
            node_id=node,
            log_dir=item.log_dir,
            name=item.name,
            ref=item.ref,
            log_end=gone.log_ends.get((item.log_dir, item.path)),
            is_tiered=item.marker is not None and item.marker.tiered,
        )
        for item in fit
    )
    return plan_adopt(
        AdoptRequest(topic=replace(topic, replicas=alone), staged=files, brokers={node: True}, now_ms=gone.now_ms)
    )
