"""A replica is known by its id, its name or both: its keys and its printed form."""

from __future__ import annotations

import pytest

from logdir.ids import TopicId
from logdir.replica_ref import ReplicaRef, TopicIdPartition

ID = TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw")


@pytest.mark.parametrize(
    ("topic", "topic_id", "keys", "text", "id_text"),
    [
        pytest.param("pay", ID, ((ID, 3), ("pay", 3)), "pay-3", f"{ID}_3", id="both"),
        pytest.param("pay", None, (("pay", 3),), "pay-3", "pay-3", id="name"),
        pytest.param(None, ID, ((ID, 3),), f"{ID}_3", f"{ID}_3", id="id"),
    ],
)
def test_a_replica_is_known_by_its_id_and_its_name(
    topic: str | None, topic_id: TopicId | None, keys: object, text: str, id_text: str
) -> None:
    ref = ReplicaRef(topic=topic, topic_id=topic_id, partition=3)
    assert (ref.keys, str(ref), ref.id_text) == (keys, text, id_text)


def test_a_replica_of_neither_name_nor_id_has_no_key() -> None:
    assert ReplicaRef(topic=None, topic_id=None, partition=0).keys == ()


def test_a_name_that_looks_like_an_id_is_no_id() -> None:
    named = ReplicaRef(topic=str(ID), topic_id=None, partition=0)
    assert set(named.keys).isdisjoint(ReplicaRef(topic=None, topic_id=ID, partition=0).keys)


def test_a_full_ref_is_known_by_its_name_alone_on_request() -> None:
    full = TopicIdPartition(topic="pay", topic_id=ID, partition=3)
    assert full.by_name == ReplicaRef(topic="pay", topic_id=None, partition=3)
    assert full.keys == ((ID, 3), ("pay", 3))
