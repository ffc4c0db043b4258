"""What the tests of deletions count as deleted within a time, and whose worker they find."""

from __future__ import annotations

import os
from pathlib import Path

from tests.kafka.deletions import Call, most_within, open_paths


def test_directories_count_if_their_calls_begin_and_end_within_the_window() -> None:
    calls = [Call(0, 1, 5), Call(1, 9, 7), Call(2, 11, 100), Call(8, 12.5, 3), Call(30, 31, 4)]
    assert most_within(calls, 10) == 107  # From 1 to 11; the fourth ends too late.
    assert most_within(calls, 8) == 7
    assert most_within(calls, 100) == 119


def test_what_a_process_has_open_is_told_although_one_of_its_descriptors_is_closed_meanwhile(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        # The descriptor with which the directory of descriptors is listed is among them, and closed by then.
        assert tmp_path in open_paths(os.getpid())
    finally:
        os.close(descriptor)
    assert tmp_path not in open_paths(os.getpid())
