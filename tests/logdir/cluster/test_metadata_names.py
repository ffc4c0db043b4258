"""Which files of a directory are a metadata log's, and with which of them a reading begins."""

from __future__ import annotations

import pytest

from logdir.cluster.metadata_names import Snapshot, bases_of, newest, segments_behind, snapshots_of


def snapshot(offset: int, epoch: int) -> str:
    return f"{offset:020d}-{epoch:010d}.checkpoint"


def test_names_that_look_alike_are_not_taken() -> None:
    names = [
        f"{7:020d}.log",
        "7.log",
        f"{7:020d}.log.deleted",
        f"{9:020d}.index",
        "bootstrap.checkpoint",
        snapshot(5, 1),
    ]
    assert bases_of([*names, f"{3:020d}.log"]) == [3, 7]
    assert snapshots_of([*names, f"{snapshot(6, 1)}.part", f"{snapshot(6, 1)}.deleted"]) == [
        Snapshot(1, 5, snapshot(5, 1))
    ]


def test_the_newest_snapshot_is_that_of_the_highest_epoch_which_the_log_goes_on_from() -> None:
    names = [snapshot(0, 0), snapshot(9, 2), snapshot(5, 3), snapshot(20, 1)]
    assert newest(names, 0) == Snapshot(3, 5, snapshot(5, 3))
    assert newest(names, 6) == Snapshot(2, 9, snapshot(9, 2))
    assert newest(names, 0, at_most=4) is None  # the one of offset 0 holds voters only
    assert newest(names, 6, at_most=8) is None
    assert newest([], 0) is None


@pytest.mark.parametrize(
    ("bases", "start", "expected"),
    [
        ([0, 4, 8], 0, [0, 4, 8]),
        ([0, 4, 8], 3, [0, 4, 8]),
        ([0, 4, 8], 4, [4, 8]),
        ([0, 4, 8], 99, [8]),
        ([6], 2, [6]),
        ([], 2, []),
    ],
)
def test_segments_that_may_hold_records_from_an_offset_on(bases: list[int], start: int, expected: list[int]) -> None:
    assert segments_behind(bases, start) == expected
