"""Topic ids minted: always the same, never one that is taken, former ones first."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from logdir.ids import TopicId
from migrate.errors import PlanFormatError
from migrate.plan.mint import assign_ids, mint, read_former
from migrate.plan.summary import MintedId

SHA = hashlib.sha256(b"inventories").hexdigest()


def drawn(cluster: str, topic: str, counter: int) -> str:
    """The rule of design §7.6, spelled once more."""
    bits = bytearray(hashlib.sha256(f"{SHA}\0{cluster}\0{topic}\0{counter}".encode()).digest()[:16])
    bits[6] = bits[6] % 16 + 64
    bits[8] = bits[8] % 64 + 128
    return base64.urlsafe_b64encode(bytes(bits)).decode().rstrip("=")


def test_the_id_is_the_digest_of_what_it_is_for() -> None:
    topic = next(f"t{n}" for n in range(99) if not drawn("east", f"t{n}", 0).startswith("-"))
    assert mint(SHA, "east", topic, set()) == drawn("east", topic, 0)
    assert mint(SHA, "west", topic, set()) != drawn("east", topic, 0)


def test_an_id_that_starts_with_a_dash_is_drawn_again() -> None:
    topic = next(f"t{n}" for n in range(9999) if drawn("east", f"t{n}", 0).startswith("-"))
    assert mint(SHA, "east", topic, set()) == next(
        text for text in (drawn("east", topic, counter) for counter in range(1, 9)) if not text.startswith("-")
    )


def test_an_id_that_occurs_in_the_fleet_is_drawn_again() -> None:
    first = mint(SHA, "east", "ü", set())
    second = mint(SHA, "east", "ü", {first})
    assert second not in (first, mint(SHA, "east", "ü", {first, second}))


def test_minted_ids_are_v4() -> None:
    bits = bytes(TopicId.parse(mint(SHA, "east", "t", set())))
    assert (bits[6] >> 4, bits[8] >> 6) == (4, 2)


FORMER = "AAAAAAAAAAAAAAAAAAAAtA"


def given(topics: Iterable[tuple[str, str]], **more: Any) -> tuple[MintedId, ...]:
    return assign_ids(SHA, topics, **({"former": {}, "taken": set(), "live_elsewhere": {}} | more))


def test_ids_come_by_cluster_and_topic_whatever_the_order() -> None:
    topics = [("b", "x"), ("a", "z"), ("a", "y")]
    assert [(m.cluster, m.topic) for m in given(topics)] == sorted(topics)
    assert given(topics) == given(topics[::-1])


def test_a_former_id_is_taken_first_and_only_for_its_topic() -> None:
    one, other = given({("a", "x"), ("b", "x")}, former={("a", "x"): FORMER})
    assert one.topic_id == FORMER != other.topic_id


def test_a_former_id_that_lies_about_is_kept_for_its_own_topic() -> None:
    kept = given({("a", "x")}, former={("a", "x"): FORMER}, taken={FORMER}, live_elsewhere={FORMER: {("a", "x")}})
    assert kept[0].topic_id == FORMER


def test_a_former_id_that_another_topic_lives_under_is_not_given_again() -> None:
    (entry,) = given({("a", "x")}, former={("a", "x"): FORMER}, live_elsewhere={FORMER: {("a", "new name")}})
    assert entry.topic_id == mint(SHA, "a", "x", set())


def summary(path: Path, **changes: Any) -> Path:
    document = {"plan": 1, "minted": [{"cluster": "a", "topic": "x", "topic_id": FORMER}]} | changes
    (path / "summary.json").write_text(json.dumps(document))
    return path


def test_former_ids_are_read_from_the_summary(tmp_path: Path) -> None:
    assert read_former(summary(tmp_path)) == {("a", "x"): FORMER}


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": 2},
        {"minted": None},
        {"minted": [{"cluster": "a", "topic": "x"}]},
        {"minted": [{"cluster": "a", "topic": "x", "topic_id": "short"}]},
        {"minted": [{"cluster": "a", "topic": "x", "topic_id": "AAAAAAAAAAAAAAAAAAAAtB"}]},
        {"minted": [{"cluster": "a", "topic": "x", "topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}]},
        {"minted": [{"cluster": 1, "topic": "x", "topic_id": FORMER}]},
        {"minted": [{"cluster": "a", "topic": "x", "topic_id": FORMER}] * 2},
        {"minted": [{"cluster": "a", "topic": t, "topic_id": FORMER} for t in "xy"]},
    ],
    ids=["version", "no-list", "no-id", "short-id", "spare-bits", "reserved", "no-text", "topic-twice", "id-twice"],
)
def test_a_summary_that_is_none_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(PlanFormatError) as caught:
        read_former(summary(tmp_path, **changes))
    assert str(tmp_path / "summary.json") in str(caught.value)


def test_a_directory_without_summary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanFormatError):
        read_former(tmp_path)
