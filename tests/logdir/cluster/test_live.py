"""The image of a live cluster: what two brokers agree on, and what one of them says at least."""

from __future__ import annotations

import pytest

from logdir.cluster.assignment import assignment_in
from logdir.cluster.live import LiveAnswers, LiveImages, images_of
from logdir.ids import TopicId
from logdir.replica_ref import ReplicaRef
from logdir.wire.client.answers import Cluster, Existence, Node, PartitionState, Topics, TopicState
from logdir.wire.client.settings import Address

ONE = TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw")
OTHER = TopicId.parse("b8tRS7h4TJ2Vt43Dp85v2A")
CLUSTER = Cluster(cluster_id="c", controller_id=2, nodes=tuple(Node(one, Address("h", one), None) for one in (2, 3)))


def topic(
    topic_id: TopicId, replicas: tuple[int, ...] = (1, 2), isr: tuple[int, ...] = (1, 2), name: str = "pay"
) -> TopicState:
    part = PartitionState(partition=0, leader=2, leader_epoch=1, replicas=replicas, in_sync=isr, error=0)
    return TopicState(topic_id=topic_id, existence=Existence.PRESENT, name=name, partitions=(part,), error=0)


def error(topic_id: TopicId, existence: Existence) -> TopicState:
    return TopicState(topic_id=topic_id, existence=existence, name=None, partitions=(), error=1)


def images(*said: list[TopicState]) -> LiveImages:
    topics = {
        node: Topics(cluster_id="c", topics={one.topic_id: one for one in states})
        for node, states in zip((2, 3), said, strict=False)
    }
    asked = {one.topic_id: {0} for one in said[0]}
    return images_of(LiveAnswers(origin="/c", asked_ms=5, cluster=CLUSTER, topics=topics), asked, 1)


def states(found: LiveImages, topic_id: TopicId = ONE) -> tuple[str, str | None]:
    ref = ReplicaRef(topic="pay", topic_id=topic_id, partition=0)
    latest = None if found.latest is None else assignment_in(found.latest, ref).state.value
    return assignment_in(found.image, ref).state.value, latest


GONE, HIDDEN, UNKNOWN = (error(ONE, one) for one in (Existence.GONE, Existence.HIDDEN, Existence.UNKNOWN))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (GONE, GONE, ("removed", None)),
        (topic(ONE), topic(ONE), ("wanted", None)),
        (topic(ONE), topic(ONE, replicas=(2, 3)), ("wanted", None)),
        (topic(ONE, replicas=(2, 3), isr=(2,)), topic(ONE, replicas=(2, 3), isr=(2,)), ("elsewhere", None)),
        # In the ISR by one answer: it may hold what is committed.
        (topic(ONE, replicas=(2,), isr=(1, 2)), topic(ONE, replicas=(2,), isr=(2,)), ("in-sync", None)),
        (topic(ONE), GONE, ("unspoken", "wanted")),
        (HIDDEN, topic(ONE), ("unspoken", "wanted")),
        (HIDDEN, HIDDEN, ("unspoken", None)),
        (GONE, HIDDEN, ("unspoken", None)),
        (UNKNOWN, GONE, ("unspoken", None)),
    ],
)
def test_two_answers(first: TopicState, second: TopicState, expected: tuple[str, str | None]) -> None:
    assert states(images([first], [second])) == expected
    assert states(images([second], [first])) == expected


def test_one_answer_keeps_and_proves_nothing() -> None:
    assert states(images([GONE])) == ("unspoken", None)
    assert states(images([topic(ONE)])) == ("unspoken", "wanted")


def test_another_id_under_the_name_is_no_removal() -> None:
    found = images([HIDDEN, topic(OTHER)], [HIDDEN, topic(OTHER)])
    assert states(found) == ("unspoken", None)
    assert states(found, OTHER) == ("wanted", None)
    gone = images([GONE, topic(OTHER)], [GONE, topic(OTHER)])
    assert assignment_in(gone.image, ReplicaRef(topic="pay", topic_id=ONE, partition=0)).other_id == bytes(OTHER)


def test_an_id_that_was_not_asked_for_is_not_covered() -> None:
    assert states(images([GONE], [GONE]), OTHER) == ("unspoken", None)


def test_the_image_is_as_of_the_question_and_names_the_listed_brokers() -> None:
    image = images([topic(ONE, isr=(1, 2))], [topic(ONE, isr=(2,))]).image
    assert (image.source.value, image.cluster_id, image.as_of_ms, image.origin) == ("live-cluster", "c", 5, "/c")
    assert (sorted(image.brokers), image.epoch) == ([2, 3], -1)
    assert image.topics[bytes(ONE)].partitions[0].isr == (2,)
