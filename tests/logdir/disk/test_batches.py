"""How many replicas share one sync: many on a fast disk, few on a slow one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from logdir import clock
from logdir.disk.replica.batches import FIRST, Batches


class _Disk:
    """One that needs so many milliseconds for each item."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 0
        self.sizes: list[int] = []
        monkeypatch.setattr(clock, "monotonic_ms", lambda: self.now_ms)

    def work(self, part: Sequence[int], each_ms: int) -> None:
        self.sizes.append(len(part))
        self.now_ms += each_ms * len(part)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> _Disk:
    return _Disk(monkeypatch)


def test_the_batches_end_with_the_last_item_and_none_is_empty() -> None:
    first_ten = itertools.islice(Batches(4, 1000).of(range(6)), 10)
    assert [list(part) for part in first_ten] == [[0, 1, 2, 3], [4, 5]]


def test_locks_are_held_for_fewer_replicas_where_a_batch_takes_long(disk: _Disk) -> None:
    for part in Batches(4096, 1000).of(range(20_000)):
        disk.work(part, 1)
    assert sum(disk.sizes) == 20_000
    assert FIRST < max(disk.sizes) <= 1024
    disk.sizes.clear()
    for part in Batches(4096, 1000).of(range(2_000)):
        disk.work(part, 20)
    assert max(disk.sizes[4:]) * 20 <= 2000


def test_a_disk_so_slow_that_each_hold_ends_after_one_batch_gets_smaller_ones(disk: _Disk) -> None:
    batches, left = Batches(1024, 500), range(2_000)
    while left:
        for part in batches.of(left):
            disk.work(part, 100)
            left = left[len(part) :]
            break
    assert sum(disk.sizes) == 2_000
    assert max(disk.sizes[5:]) * 100 <= 500


def test_no_batch_is_larger_than_the_limit(disk: _Disk) -> None:
    for part in Batches(3, 500).of(range(10)):
        disk.work(part, 0)
    assert disk.sizes == [3, 3, 3, 1]


def test_a_disk_that_takes_a_minute_for_each_is_given_one_at_a_time(disk: _Disk) -> None:
    for part in Batches(1024, 500).of(range(FIRST * 3)):
        disk.work(part, 60_000)
    assert disk.sizes[-1] == 1


def test_no_disk_begins_with_more_or_fewer_than_the_figure_of_the_design() -> None:
    (first,) = itertools.islice(Batches(4096, 1000).of(range(500)), 1)
    assert len(first) == 128
