"""What the tests of deletions count as deleted within a time."""

from __future__ import annotations

from tests.kafka.deletions import Call, most_within


def test_directories_count_if_their_calls_begin_and_end_within_the_window() -> None:
    calls = [Call(0, 1, 5), Call(1, 9, 7), Call(2, 11, 100), Call(8, 12.5, 3), Call(30, 31, 4)]
    assert most_within(calls, 10) == 107  # From 1 to 11; the fourth ends too late.
    assert most_within(calls, 8) == 7
    assert most_within(calls, 100) == 119
