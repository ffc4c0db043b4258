"""The topic that adopts staged files, as the cluster metadata describes it.

Not here: whether its id is still assigned to this broker (``image.still_assigned``), the decision (``adopt``).

Spec: design §3.3 "Restore", §4; kafka-behaviour §10.5; attacks A33.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from logdir.cluster.image import Image
from logdir.decide.image.still_assigned import ClusterState, remedy
from logdir.errors import Problem
from logdir.ids import TopicId
from logdir.refusal_slug import Why


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A re-created topic."""

    topic: str
    topic_id: TopicId
    replicas: Mapping[int, tuple[int, ...]]
    """Of each partition, the node ids of its brokers."""
    reassigned: frozenset[int]
    """Partitions whose replicas are being reassigned."""
    is_tiered: bool
    """Whether it has remote storage."""


def image_naming(cluster: ClusterState, name: str) -> Image | None:
    """Return the image that contains a topic with an id; ``None`` if none does.

    If an image is current only that one counts; otherwise the furthest image is searched first.
    """
    asked = (cluster.image,) if cluster.is_current else cluster.images
    return next((one for one in asked if one is not None and any(bytes(one.topic_id(name)))), None)


def topic_of(image: Image, name: str) -> NewTopic:
    """Return a topic from an image.

    Raises:
        KeyError: the image has no such topic with an id.
    """
    topic_id = image.topic_id(name)
    found = image.topics[bytes(topic_id)]
    return NewTopic(
        topic=name,
        topic_id=topic_id,
        replicas={number: one.replicas for number, one in found.partitions.items()},
        reassigned=frozenset(number for number, one in found.partitions.items() if one.adding or one.removing),
        is_tiered=name in image.tiered,
    )


def no_topic(cluster: ClusterState, name: str) -> Problem:
    """Return why ``image_naming`` found no image that contains a topic."""
    expected = f"the topic '{name}' with an id in the cluster metadata"
    images = cluster.images
    if not images and cluster.blind is not None:
        blind = cluster.blind
        return Problem(Why.ASSIGNMENT_UNKNOWN.value, blind.path, expected, blind.mismatch(), remedy(cluster, ""))
    fix = (
        "create the topic again with kafka-topics --create, with as many partitions, and let its brokers run until "
        "each has made its replica"
    )
    if not cluster.is_current:
        fix += f"; {remedy(cluster, 'or name a newer source with --from')}"
    return Problem(Why.TOPIC_NOT_FOUND.value, images[0].origin if images else "--from", expected, "no such topic", fix)
