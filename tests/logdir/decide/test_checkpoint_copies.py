"""What a start lost of checkpoint files: by copies of earlier handovers, and of logs that are still there alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from logdir.decide.checkpoint_copies import (
    Files,
    LogFacts,
    Losses,
    LostEntries,
    LostLogStart,
    directory_of,
    kept,
    lost,
    parsed,
    suspected,
)
from logdir.formats.kafka import offset_checkpoint
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition
from logdir.formats.own.handover_file import CheckpointCopy
from tests.logdir.formats.contract import BROKERS

POINTS, STARTS, WATERMARKS, CLEANER = NAMES
PAY, OTHER = TopicPartition("pay", 0), TopicPartition("pay", 1)
INODES = {"pay-0": 7, "pay-1": 8}
EMPTY = b"0\n0\n"


def copy(at_ms: int = 1000, inodes: Mapping[str, int] | None = None, **files: bytes | None) -> CheckpointCopy:
    """Return a copy with these files: ``points``, ``starts``, ``watermarks`` and ``cleaner``."""
    words = ("points", "starts", "watermarks", "cleaner")
    checkpoints = {name: files.get(word) for name, word in zip(NAMES, words, strict=True)}
    return CheckpointCopy(at_ms, checkpoints, INODES if inodes is None else inodes)


def files_of(one: CheckpointCopy) -> Files:
    """Return the files of a copy as they are read from a log dir."""
    return {name: {} if data is None else offset_checkpoint.parse(data, name) for name, data in one.checkpoints.items()}


def of(*copies: CheckpointCopy, now: CheckpointCopy, logs: Mapping[TopicPartition, LogFacts]) -> Losses:
    """Return what was lost, as the log dir is looked at: only what may have lost anything."""
    read = tuple(map(parsed, copies))
    asked = suspected(read, files_of(now), {directory_of(partition) for partition in logs})
    found = {
        partition: log if asked[partition] else log._replace(first_offset=None)
        for partition, log in logs.items()
        if partition in asked
    }
    return lost(read, files_of(now), found)


THERE = {PAY: LogFacts(7, 0), OTHER: LogFacts(8, 0)}
GOOD = copy(points=b"0\n2\npay 0 30\npay 1 40\n", starts=b"0\n1\npay 0 20\n", watermarks=b"0\n1\npay 0 30\n")


def test_a30_what_a_start_that_times_out_empties_is_lost() -> None:
    now = copy(2000, points=EMPTY, starts=EMPTY, watermarks=b"0\n1\npay 0 30\n")
    assert of(GOOD, now=now, logs=THERE) == Losses(
        log_starts=(LostLogStart(PAY, 20, None, 1000),), entries=(LostEntries(POINTS, (PAY, OTHER), 1000),)
    )


def test_files_that_are_as_they_were_lost_nothing() -> None:
    assert suspected((parsed(GOOD),), files_of(GOOD), {"pay-0", "pay-1"}) == {}
    assert of(GOOD, now=GOOD, logs=THERE) == Losses()


def test_only_logs_that_were_there_and_are_there_are_looked_at() -> None:
    now = files_of(copy(2000))
    assert suspected((parsed(GOOD),), now, {"pay-0", "pay-2"}) == {PAY: True}
    assert suspected((parsed(GOOD._replace(inodes={"pay-1": 8})),), now, {"pay-0", "pay-1"}) == {OTHER: False}


@pytest.mark.parametrize(
    ("log", "is_lost"),
    [
        (LogFacts(7, 0), True),
        (LogFacts(7, 19), True),
        (LogFacts(7, 20), False),
        (LogFacts(7, 4711), False),
        (LogFacts(9, 0), False),
        (LogFacts(7, None), False),
    ],
    ids=["begins before", "begins just before", "begins there", "begins behind", "another directory", "no segment"],
)
def test_a_log_start_is_lost_only_if_its_log_begins_before_it_now(log: LogFacts, *, is_lost: bool) -> None:
    """Retention removes segments, and with them the entry; a directory that was made anew is another log."""
    now = copy(2000, points=GOOD.checkpoints[POINTS], watermarks=GOOD.checkpoints[WATERMARKS])
    assert bool(of(GOOD, now=now, logs={PAY: log}).log_starts) is is_lost


def with_id(one: CheckpointCopy, topic_id: str | None) -> CheckpointCopy:
    """Return a copy in which the directory of ``PAY`` has a topic id, or none."""
    return one._replace(topic_ids={} if topic_id is None else {"pay-0": topic_id})


@pytest.mark.parametrize(
    ("before", "after", "is_lost"),
    [("A", "A", True), ("A", "B", False), ("A", None, False), (None, None, True), (None, "A", False)],
)
def test_a_directory_of_another_topic_has_lost_nothing_though_its_inode_is_the_same(
    before: str | None, after: str | None, *, is_lost: bool
) -> None:
    """A file system gives the inode of a directory that was removed to the next one."""
    now = copy(2000, points=GOOD.checkpoints[POINTS], watermarks=GOOD.checkpoints[WATERMARKS])
    losses = of(with_id(GOOD, before), now=now, logs={PAY: LogFacts(7, 0, after)})
    assert bool(losses.log_starts) is is_lost


@pytest.mark.parametrize(("epochs_from", "is_lost"), [(None, True), (20, True), (80, True), (19, False), (0, False)])
def test_a_log_that_was_cut_below_its_log_start_and_written_on_has_lost_nothing(
    epochs_from: int | None, *, is_lost: bool
) -> None:
    """A broker moves the first epoch to each log start: one that begins before it is of other records."""
    now = copy(2000, points=GOOD.checkpoints[POINTS], starts=b"0\n1\npay 0 7\n")
    losses = of(GOOD, now=now, logs={PAY: LogFacts(7, 0, None, epochs_from)})
    assert bool(losses.log_starts) is is_lost


@pytest.mark.parametrize(("entry", "found"), [(b"pay 0 19", 19), (b"pay 0 20", None), (b"pay 0 21", None)])
def test_a_log_start_that_is_lower_now_is_lost(entry: bytes, found: int | None) -> None:
    now = copy(2000, points=GOOD.checkpoints[POINTS], starts=b"0\n1\n" + entry + b"\n")
    losses = of(copy(starts=b"0\n1\npay 0 20\n"), now=now, logs=THERE)
    assert losses.log_starts == (() if found is None else (LostLogStart(PAY, 20, found, 1000),))


def test_the_entries_of_a_partition_that_is_gone_are_not_lost() -> None:
    now = copy(2000, points=b"0\n1\npay 1 40\n")
    assert of(GOOD, now=now, logs={OTHER: LogFacts(8, 0)}) == Losses()


def test_a_recovery_point_that_is_lost_alone_counts() -> None:
    """A broker of a ZooKeeper cluster that ends while it loads writes those of the logs loaded by then."""
    now = copy(2000, points=b"0\n1\npay 1 40\n", starts=GOOD.checkpoints[STARTS])
    losses = of(copy(points=GOOD.checkpoints[POINTS], starts=GOOD.checkpoints[STARTS]), now=now, logs=THERE)
    assert losses == Losses(entries=(LostEntries(POINTS, (PAY,), 1000),))


@pytest.mark.parametrize("word", ["watermarks", "cleaner"])
def test_of_the_other_files_only_the_loss_of_all_entries_counts(word: str) -> None:
    both = b"0\n2\npay 0 30\npay 1 40\n"
    name = {"watermarks": WATERMARKS, "cleaner": CLEANER}[word]
    before = copy(1000, None, **{word: both})
    assert of(before, now=copy(2000, None, **{word: b"0\n1\npay 0 30\n"}), logs=THERE) == Losses()
    losses = of(before, now=copy(2000, None, **{word: EMPTY}), logs=THERE)
    assert losses == Losses(entries=(LostEntries(name, (PAY, OTHER), 1000),))


def test_a_file_that_no_broker_reads_is_named_and_nothing_of_it_is_called_lost() -> None:
    read = (parsed(GOOD),)
    now: dict[str, Mapping[TopicPartition, int] | None] = {**files_of(GOOD), STARTS: None}
    assert suspected(read, now, {"pay-0", "pay-1"}) == {PAY: True}
    assert lost(read, now, {}) == Losses(malformed=(STARTS,))


def test_a_copy_whose_own_file_is_malformed_tells_nothing_of_it() -> None:
    assert of(copy(starts=b"0\n7\nnothing\n"), now=copy(2000, starts=EMPTY), logs=THERE) == Losses()


def test_the_newest_copy_that_has_a_log_start_tells_it() -> None:
    older, newer = copy(1000, starts=b"0\n1\npay 0 20\n"), copy(2000, starts=b"0\n1\npay 0 25\n")
    losses = of(copy(3000, starts=EMPTY), newer, older, now=copy(4000, starts=EMPTY), logs=THERE)
    assert losses.log_starts == (LostLogStart(PAY, 25, None, 2000),)


def test_the_highest_log_start_that_a_copy_has_is_the_lost_one_and_both_copies_stay() -> None:
    older, newer = copy(1000, starts=b"0\n1\npay 0 30\n"), copy(2000, starts=b"0\n1\npay 0 25\n")
    emptied = copy(3000, inodes={}, starts=EMPTY)
    assert of(newer, older, now=emptied, logs=THERE).log_starts == (LostLogStart(PAY, 30, None, 1000),)
    assert keeping(newer, older, new=emptied) == [3000, 2000, 1000]


def keeping(*copies: CheckpointCopy, new: CheckpointCopy) -> list[int]:
    """Return when the copies were made that are kept."""
    found = kept(tuple(map(parsed, copies)), new, files_of(new), THERE)
    return [one.wall_ms for one in found]


def test_without_a_loss_the_last_copy_is_kept_beside_the_new_one() -> None:
    older, newer = GOOD._replace(wall_ms=1), copy(2, points=b"0\n1\npay 0 31\n", inodes={"pay-0": 7})
    third = copy(3, points=b"0\n1\npay 0 32\n", inodes={"pay-0": 7})
    assert keeping(older, new=newer._replace(wall_ms=2, checkpoints={**GOOD.checkpoints, CLEANER: b""})) == [2, 1]
    assert keeping(newer, older, new=third) == [3, 1]  # The older one has a log start that is lost.
    assert keeping(newer, new=third) == [3, 2]


def test_a_log_start_at_the_second_record_is_one_too() -> None:
    newer, new = copy(2, points=b"0\n1\npay 0 31\n"), copy(3, points=b"0\n1\npay 0 32\n")
    assert keeping(newer, copy(1, starts=b"0\n1\npay 0 1\n"), new=new) == [3, 1]


def test_a30_however_often_a_start_fails_the_copy_that_was_made_before_is_kept() -> None:
    copies: tuple[CheckpointCopy, ...] = (GOOD,)
    for number in range(2, 20):
        emptied = copy(1000 * number, inodes={}, points=EMPTY, starts=EMPTY)
        copies = kept(tuple(map(parsed, copies)), emptied, files_of(emptied), THERE)
        assert [one.wall_ms for one in copies] == [1000 * number, 1000]
    assert of(*copies, now=copies[0], logs=THERE).log_starts == (LostLogStart(PAY, 20, None, 1000),)


def test_a_copy_stays_while_the_file_is_malformed_that_it_has() -> None:
    """Nothing of that file is called lost, but once it is moved away the copy has what was in it."""
    first = GOOD._replace(wall_ms=2000, checkpoints={**GOOD.checkpoints, STARTS: b"0\n7\nnothing\n"})
    second = first._replace(wall_ms=3000, checkpoints={**first.checkpoints, CLEANER: EMPTY})
    now: dict[str, Mapping[TopicPartition, int] | None] = {**files_of(GOOD), STARTS: None}
    found = kept(tuple(map(parsed, (first, GOOD))), second, now, THERE)
    assert [one.wall_ms for one in found] == [3000, 1000]


def test_what_is_there_again_needs_no_old_copy() -> None:
    emptied = copy(2000, inodes={}, points=EMPTY, starts=EMPTY)
    again = GOOD._replace(wall_ms=3000, checkpoints={**GOOD.checkpoints, CLEANER: EMPTY})
    assert keeping(emptied, GOOD, new=again) == [3000, 2000]


def test_a_copy_equal_to_the_new_one_is_not_kept_twice_and_there_are_never_more_than_four() -> None:
    assert keeping(GOOD, new=GOOD._replace(wall_ms=2000)) == [2000]
    several = [copy(ms, starts=f"0\n1\npay {ms % 2} {20 + ms}\n".encode()) for ms in (1, 2, 3, 4, 5, 6)]
    emptied = copy(9, inodes={}, starts=EMPTY)
    assert keeping(*reversed(several), new=emptied) == [9, 6, 5]


@pytest.mark.parametrize("top", sorted(BROKERS.glob("*/d?")), ids=lambda path: str(path.relative_to(BROKERS)))
def test_a_failed_start_is_seen_on_the_files_of_every_release(top: Path) -> None:
    """Its copy is that of the real files; then two are emptied, as all releases leave them (kafka-behaviour §10.3)."""
    real = {name: (top / name).read_bytes() for name in NAMES}
    entries = {name: offset_checkpoint.parse(data, name) for name, data in real.items()}
    partitions = sorted({partition for offsets in entries.values() for partition in offsets})
    inodes = {directory_of(partition): number for number, partition in enumerate(partitions, 1)}
    logs = {partition: LogFacts(inodes[directory_of(partition)], 0) for partition in partitions}
    before = CheckpointCopy(1000, real, inodes)
    assert of(before, now=before, logs=logs) == Losses()
    losses = of(before, now=CheckpointCopy(2000, {**real, POINTS: EMPTY, STARTS: EMPTY}, {}), logs=logs)
    assert [(one.partition, one.offset) for one in losses.log_starts] == sorted(
        (partition, offset) for partition, offset in entries[STARTS].items() if offset
    )
    assert [(one.name, set(one.partitions)) for one in losses.entries] == (
        [(POINTS, set(entries[POINTS]))] if entries[POINTS] else []
    )
