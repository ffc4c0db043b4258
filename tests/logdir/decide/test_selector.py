"""The selector: five forms, every reading of a text, and no guess between two."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdir.decide.selector import parse, select
from logdir.errors import ConfigError
from logdir.ids import TopicId
from logdir.replica_ref import ReplicaRef

ONE, TWO = TopicId.parse("eXOy6xj-Q8ivrWAlsZGnkw"), TopicId.parse("AAAAAAAAAAAAAAAAAAAAAg")


class Item(NamedTuple):
    ref: ReplicaRef


def an_item(topic: str | None, topic_id: TopicId | None, partition: int) -> Item:
    return Item(ReplicaRef(topic=topic, topic_id=topic_id, partition=partition))


PAY_0, PAY_1, OLD_0 = an_item("pay", ONE, 0), an_item("pay", ONE, 1), an_item("pay.old", TWO, 0)
NO_ID, NAMELESS = an_item("x-y-3", None, 0), an_item(None, TWO, 7)
ALL = (PAY_0, PAY_1, OLD_0, NO_ID, NAMELESS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pay", (PAY_0, PAY_1)),
        ("name:pay", (PAY_0, PAY_1)),
        ("pay-1", (PAY_1,)),
        ("pay-2", ()),
        ("pay-01", ()),
        (str(ONE), (PAY_0, PAY_1)),
        (ONE.hex(), (PAY_0, PAY_1)),
        ("7973b2eb-18fe-43c8-afad-6025b191a793", (PAY_0, PAY_1)),
        (f"id:{ONE}", (PAY_0, PAY_1)),
        (f"{ONE}_1", (PAY_1,)),
        (f"{TWO}_7", (NAMELESS,)),
        (f"{ONE.hex()}_1", (PAY_1,)),
        ("pay*", (PAY_0, PAY_1, OLD_0)),
        ("pay-[1-9]", (PAY_1,)),
        ("*", ALL),
        ("x-y-3", (NO_ID,)),
        ("x-y-3-0", (NO_ID,)),
        ("x-y", ()),
        ("part:x-y-3-0", (NO_ID,)),
        ("part:pay-1", (PAY_1,)),
        ("name:pay-1", ()),
        ("PAY", ()),
    ],
)
def test_every_form_finds_what_it_says(text: str, found: tuple[Item, ...]) -> None:
    assert select(parse(text), ALL) == found


@pytest.mark.parametrize(
    "text",
    ["", "a b", "../x", "a/b", "a:b", "id:pay", "name:", "name:a b", "id:", "part:pay", "é", "a\n", "id:" + "A" * 22],
)
def test_what_is_none_of_the_five_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text)


def test_two_readings_that_both_find_something_are_not_guessed() -> None:
    both = (an_item("a", ONE, 0), an_item("a-0", TWO, 0), an_item("a-0", TWO, 1))
    with pytest.raises(ConfigError) as refused:
        select(parse("a-0"), both)
    assert "name" in str(refused.value)
    assert select(parse("name:a-0"), both) == both[1:]
    assert select(parse("part:a-0"), both) == both[:1]
    assert select(parse("[a]-0"), both) == both
    named_like_an_id = (an_item(str(ONE), TWO, 0), PAY_0)
    with pytest.raises(ConfigError):
        select(parse(str(ONE)), named_like_an_id)
    assert select(parse(f"id:{ONE}"), named_like_an_id) == (PAY_0,)
    assert select(parse(f"name:{ONE}"), named_like_an_id) == named_like_an_id[:1]


def test_may_find_is_never_narrower_than_select() -> None:
    for text in ("pay", "pay-1", str(ONE), f"{ONE}_1", "p*"):
        selector = parse(text)
        for item in select(selector, ALL):
            assert selector.may_find(item.ref.topic, item.ref.topic_id, item.ref.partition)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        selector = parse(text)
    except ConfigError:
        return
    try:
        assert set(select(selector, ALL)) <= set(ALL)
    except ConfigError:
        return
