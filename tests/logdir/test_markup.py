"""What every page of ours shares: shares and bars whose bytes follow from whole numbers alone."""

from __future__ import annotations

import pytest

from logdir.formats.own.inventory import Kind
from logdir.markup import KIND_CLASSES, KIND_WORDS, bar, digest, kind_shares, percent, plural, ranges, sentence


@pytest.mark.parametrize(
    ("part", "whole", "shown"), [(0, 9, 0), (9, 9, 100), (1, 100_000, 1), (99_999, 100_000, 99), (1, 8, 13), (5, 0, 0)]
)
def test_only_all_is_a_hundred_percent_and_only_nothing_is_none(part: int, whole: int, shown: int) -> None:
    assert percent(part, whole) == shown


def test_a_bar_never_leaves_its_length_and_leaves_out_what_rounds_to_nothing() -> None:
    assert bar([("kl", 1), ("kd", 3), ("ks", 0)], 4) == (
        '<svg class="bar" aria-hidden=true><rect class=kl width="25%"/><rect class=kd x="25%" width="75%"/></svg>'
    )
    assert bar([("kl", 9), ("kd", 9)], 9, "") == '<svg aria-hidden=true><rect class=kl width="100%"/></svg>'
    assert bar([("kl", 1)], 10_000, "") == "<svg aria-hidden=true></svg>"
    assert bar([("kl", 1)], 10_000, "", least=6) == '<svg aria-hidden=true><rect class=kl width="0.6%"/></svg>'
    assert bar([("kl", 1)], 0, "") == "<svg aria-hidden=true></svg>"


def test_a_line_is_drawn_in_a_bar_where_it_is_asked_for() -> None:
    assert bar([], 1, "", mark=900) == '<svg aria-hidden=true><rect class=mark x="90%" width="2"/></svg>'


def test_kinds_without_a_colour_share_one() -> None:
    assert kind_shares({"live": 5, "purging": 2, "incoming": 1}) == [
        ("kl", 5), ("kd", 0), ("ks", 0), ("kf", 0), ("kg", 0), ("ko", 3),
    ]  # fmt: skip


def test_no_kind_is_without_words() -> None:
    assert KIND_WORDS.keys() == {kind.value for kind in Kind}
    assert {kind for kind, _ in KIND_CLASSES} <= KIND_WORDS.keys()


def test_lists_are_in_words() -> None:
    assert (ranges([]), ranges([3]), ranges([1, 2]), ranges([1, 2, 3, 9])) == ("", "3", "1, 2", "1–3, 9")
    assert (sentence([]), sentence(["a"]), sentence(["a", "b", "c"])) == ("", "a", "a, b and c")
    assert (plural(1, "disk"), plural(2, "disk"), plural(0, "entry", "entries")) == ("disk", "disks", "entries")


def test_a_policy_allows_a_text_by_its_digest() -> None:
    # printf '' | openssl dgst -sha256 -binary | base64
    assert digest("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
