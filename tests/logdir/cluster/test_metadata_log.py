"""The metadata log read from disk: what counts, what does not, and where it ends."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

import pytest

from logdir.cluster import metadata_log, metadata_names
from logdir.cluster.image import Certainty, Image
from logdir.cluster.metadata_log import Watermark
from logdir.errors import FormatError, MalformedFileError, StateError
from logdir.evidence import Proof, Removed
from logdir.formats.own.controller_file import MetadataMark
from logdir.wire.batches import read_batches
from logdir.wire.errors import CorruptBatchError, UnknownRecordTypeError, WireError
from tests.logdir.cluster.log_dir import (
    OLD,
    A,
    B,
    LogDir,
    abort,
    begin,
    change,
    end,
    noop,
    partition,
    register,
    remove,
    topic,
)

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
UNKNOWN_TYPE = bytes((1, 99, 0, 0))


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    made = LogDir(tmp_path / "__cluster_metadata-0")
    made.lead(1)
    made.append(register(1), register(2))
    return made


def read(
    log: LogDir,
    *,
    to: int | None = None,
    epoch: int | None = None,
    is_prefix_checked: bool = True,
    known: Image | None = None,
    last_applied: MetadataMark | None = None,
) -> Image:
    """Read up to a watermark; without one, up to the end."""
    mark = Watermark(
        offset=log.offset if to is None else to,
        epoch=log.epoch if epoch is None else epoch,
        is_prefix_checked=is_prefix_checked,
    )
    return metadata_log.read(
        str(log.directory), node_id=1, cluster_id=CLUSTER, watermark=mark, known=known, last_applied=last_applied
    )


def committed(log: LogDir, known: Image | None = None) -> Image:
    return metadata_log.read(str(log.directory), node_id=1, cluster_id=CLUSTER, known=known)


def names(image: Image) -> set[str]:
    return set(image.names)


def same(one: Image, other: Image) -> bool:
    return all(getattr(one, each.name) == getattr(other, each.name) for each in fields(Image))


def test_without_a_watermark_it_ends_at_the_newest_snapshot(log: LogDir) -> None:
    log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.snapshot(register(1), topic("a", A), partition(A, 0, (1, 2)))
    log.append(remove(A))
    image = committed(log)
    assert (image.certainty, image.epoch, image.offset) == (Certainty.SNAPSHOT, 1, log.offset - 1)
    assert image.as_of_ms == log.time_ms - 1000
    assert names(image) == {"a"}
    assert not image.removed


def test_a_watermark_counts_what_is_below_it_and_nothing_else(log: LogDir) -> None:
    first = log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.append(remove(A))
    image = read(log, to=first)
    assert (names(image), image.offset, image.certainty) == ({"a"}, first, Certainty.WATERMARK)
    image = read(log)
    assert (names(image), image.offset, image.as_of_ms) == (set(), log.offset, log.time_ms)
    assert image.removed == {A: Removed(proof=Proof.METADATA_LOG, as_of_ms=log.time_ms)}
    # A watermark within a batch: the batch waits.
    assert read(log, to=first - 1).offset == first - 2


def test_without_a_checked_prefix_the_log_counts_as_far_as_it_is_of_that_leader(log: LogDir) -> None:
    first = log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.lead(2)
    second = log.append(topic("b", B), partition(B, 0, (1, 2)))
    high = 1000
    assert read(log, to=high, epoch=2, is_prefix_checked=False).offset == second
    assert read(log, to=high, epoch=1, is_prefix_checked=False).offset == first
    assert committed(log).offset == 0
    assert read(log, to=high, epoch=3, is_prefix_checked=False).offset == 0


def test_a_leader_of_the_past_proves_nothing_of_its_tail(log: LogDir) -> None:
    """What a deposed leader wrote and never committed lies behind what the new one says."""
    first = log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.append(remove(A))
    image = read(log, to=first + 50, epoch=7, is_prefix_checked=False)
    assert image.offset == 0
    assert names(image) == set()
    assert not image.removed


def test_the_newest_snapshot_is_that_of_the_highest_epoch(log: LogDir) -> None:
    log.snapshot(topic("old", OLD), offset=900, epoch=1)
    log.snapshot(topic("a", A), offset=500, epoch=2)
    log.snapshot(topic("b", B), offset=400, epoch=2)
    for suffix in (".part", ".deleted"):
        made = log.snapshot(topic("x", OLD), offset=999, epoch=9)
        made.rename(f"{made}{suffix}")
    assert names(committed(log)) == {"a"}
    listed = [path.name for path in log.directory.iterdir()]
    assert metadata_names.newest(listed, 501) == metadata_names.Snapshot(1, 900, f"{900:020d}-{1:010d}.checkpoint")


def test_a_log_behind_its_snapshot_is_not_used(log: LogDir) -> None:
    log.append(topic("old", OLD), partition(OLD, 0, (1,)))
    log.snapshot(topic("a", A), partition(A, 0, (1, 2)), offset=2, epoch=5)
    image = read(log, to=1000, epoch=1)
    assert (names(image), image.epoch, image.offset) == ({"a"}, 5, 2)


def test_the_bootstrap_snapshot_holds_no_data(log: LogDir) -> None:
    log.snapshot(topic("x", OLD), offset=0, epoch=0)
    log.append(topic("a", A))
    assert names(read(log)) == {"a"}


def test_records_before_the_snapshot_within_its_last_batch_are_passed_over(log: LogDir) -> None:
    log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.append(change(A, 0, isr=(1,)), topic("b", B), partition(B, 0, (1, 2)))
    one = partition(A, 0, (1, 2), isr=(1,), partitionEpoch=1)
    log.snapshot(register(1), topic("a", A), one, offset=log.offset - 2)
    image = read(log)
    assert names(image) == {"a", "b"}
    assert image.topics[A].partitions[0].partition_epoch == 1


@pytest.mark.parametrize(("last", "expected"), [(end, {"a", "b"}), (abort, {"a"}), (noop, {"a"})])
def test_a_transaction_counts_when_it_has_ended(log: LogDir, last: type, expected: set[str]) -> None:
    log.append(topic("a", A), begin(), topic("b", B))
    began = log.offset - 2
    log.append(partition(B, 0, (1, 2)))
    before = read(log)
    assert (names(before), before.offset) == ({"a"}, began)
    log.append(last())
    image = read(log)
    assert names(image) == expected
    assert image.offset == (began if last is noop else log.offset)
    assert same(replace(read(log, known=before), certainty=image.certainty), image)


@pytest.mark.parametrize("torn", [begin, end])
def test_a_transaction_that_is_none_ends_the_image_before_it(log: LogDir, torn: type) -> None:
    log.append(topic("a", A))
    whole = log.offset
    log.append(topic("b", B))
    log.append(begin(), torn()) if torn is begin else log.append(end())
    image = read(log)
    assert image.ended is not None
    assert image.offset == whole + 1
    assert names(image) == {"a", "b"}


def test_an_unknown_record_type_ends_the_image_before_its_batch_and_says_so(log: LogDir) -> None:
    whole = log.append(topic("a", A))
    log.raw(b"\x01\x02\x00\x02b" + B + b"\x00", UNKNOWN_TYPE)
    log.append(remove(A))
    image = read(log)
    assert (names(image), image.offset) == ({"a"}, whole)
    assert image.ended is not None
    assert "type 99" in image.ended.found
    # Told only if something below the watermark is not read.
    assert read(log, to=whole).ended is None


def test_a_snapshot_with_an_unknown_record_type_gives_no_image(log: LogDir) -> None:
    path = log.snapshot(topic("a", A))
    data = path.read_bytes()
    log.raw(UNKNOWN_TYPE)
    batch = (log.directory / f"{0:020d}.log").read_bytes()[-(61 + 11) :]
    path.write_bytes(data + batch)
    with pytest.raises((UnknownRecordTypeError, WireError)):
        committed(log)


def test_a_snapshot_with_a_transaction_that_does_not_end_gives_no_image(log: LogDir) -> None:
    log.append(topic("a", A), topic("b", B))
    path = log.snapshot(begin(), topic("a", A), end(), begin(), topic("b", B))
    # The rows behind the second begin would be missing, and so would seem to be removed.
    with pytest.raises(MalformedFileError) as caught:
        committed(log)
    assert (caught.value.path, caught.value.expected) == (str(path), "a snapshot whose transactions end in it")
    assert metadata_log.read_with_past(str(log.directory), node_id=1, cluster_id=CLUSTER) is None
    path.unlink()
    log.snapshot(begin(), topic("a", A), end(), begin(), topic("b", B), end())
    assert names(committed(log)) == {"a", "b"}


def test_a_torn_tail_is_the_end_and_no_trouble(log: LogDir) -> None:
    whole = log.append(topic("a", A))
    log.append(topic("b", B))
    data = log.segment.read_bytes()
    for cut in (1, 30, 70):
        log.segment.write_bytes(data[:-cut])
        image = read(log)
        assert (names(image), image.offset, image.ended) == ({"a"}, whole, None)


def test_a_damaged_batch_ends_the_image_and_says_so(log: LogDir) -> None:
    whole = log.append(topic("a", A))
    size = log.segment.stat().st_size
    log.append(topic("b", B))
    log.append(topic("c", OLD))
    data = bytearray(log.segment.read_bytes())
    data[size + 70] ^= 1
    log.segment.write_bytes(data)
    image = read(log)
    assert (names(image), image.offset) == ({"a"}, whole)
    assert image.ended is not None
    assert f"byte {size + 17}" in image.ended.path
    assert read(log, to=whole).ended is None


def test_a_batch_larger_than_any_is_damage_and_is_not_read_whole(log: LogDir) -> None:
    """A sparse file has room for what its header says, and a machine has not."""
    whole = log.append(topic("a", A))
    size = log.segment.stat().st_size
    log.append(topic("b", B))
    data = bytearray(log.segment.read_bytes())
    data[size + 8 : size + 12] = (2**31 - 1).to_bytes(4)
    log.segment.write_bytes(data)
    os.truncate(log.segment, 3 << 30)
    tracemalloc.start()
    image = read(log)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (names(image), image.offset) == ({"a"}, whole)
    assert image.ended is not None
    assert f"byte {size + 8}" in image.ended.path
    assert peak < 400 << 20


def test_segments_follow_on_each_other_and_a_gap_ends_the_image(log: LogDir) -> None:
    log.append(topic("a", A))
    log.roll()
    lost = log.segment
    before = log.append(topic("b", B)) - 1
    log.roll()
    log.append(topic("c", OLD))
    assert names(read(log)) == {"a", "b", "c"}
    lost.unlink()
    image = read(log)
    assert (names(image), image.offset) == ({"a"}, before)
    assert image.ended is not None


def test_an_epoch_that_falls_ends_the_image(log: LogDir) -> None:
    log.lead(5)
    log.append(topic("a", A))
    log.epoch = 3
    log.append(topic("b", B))
    assert names(read(log)) == {"a"}


def test_a_change_of_what_is_not_there_ends_the_image_before_it(log: LogDir) -> None:
    whole = log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.append(topic("b", B), change(OLD, 0, isr=(1,)))
    image = read(log)
    assert (names(image), image.offset) == ({"a"}, whole)
    assert image.ended is not None


def test_a_snapshot_that_lacks_whole_batches_gives_no_image(log: LogDir) -> None:
    before = read(log)
    log.append(topic("a", A))
    path = log.snapshot(topic("a", A))
    header, body, footer = [batch.data for batch in read_batches(path.read_bytes())]
    path.write_bytes(header + body)
    with pytest.raises(MalformedFileError, match="a snapshot footer last"):
        read(log, known=before)
    path.write_bytes(header + footer)
    with pytest.raises(CorruptBatchError, match="a record batch at offset 1"):
        read(log, known=before)


@pytest.mark.parametrize("by", [-2, -1, 1])
def test_a_base_offset_that_does_not_follow_ends_the_image_before_its_batch(log: LogDir, by: int) -> None:
    """No checksum covers it."""
    whole = log.append(topic("a", A), noop(), noop())
    known = read(log)
    size = log.segment.stat().st_size
    log.append(topic("b", B), noop(), noop())
    reached = read(log)
    data = bytearray(log.segment.read_bytes())
    data[size : size + 8] = (whole + by).to_bytes(8, "big")
    log.segment.write_bytes(data)
    for before in (None, known, reached):
        image = read(log, known=before)
        assert (names(image), image.offset) == ({"a"}, whole)
        assert image.ended is not None


def test_no_segment_no_snapshot_for_what_is_gone_and_no_snapshot_at_all(log: LogDir, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MalformedFileError, match="no segment"):
        metadata_log.read(str(tmp_path / "empty"), node_id=1, cluster_id=CLUSTER)
    with pytest.raises(FileNotFoundError):
        metadata_log.read(str(tmp_path / "none"), node_id=1, cluster_id=CLUSTER)
    log.roll()
    (log.directory / f"{0:020d}.log").unlink()
    with pytest.raises(MalformedFileError, match="a snapshot at offset"):
        committed(log)
    cut = log.snapshot(topic("a", A))
    cut.write_bytes(cut.read_bytes()[:-1])
    with pytest.raises(MalformedFileError, match="whole batches"):
        committed(log)
    cut.write_bytes(log.snapshot(topic("a", A)).read_bytes()[0:0])
    with pytest.raises(MalformedFileError, match="whole batches"):
        committed(log)


def test_a_known_image_is_folded_forward_and_shares_what_stays(log: LogDir) -> None:
    log.append(topic("a", A), partition(A, 0, (1, 2)), topic("b", B), partition(B, 0, (1, 2)))
    known = read(log)
    before = dict(known.topics)
    log.append(change(A, 0, isr=(1,)), topic("c", OLD))
    image = read(log, known=known)
    assert same(image, read(log))
    assert image.topics[B] is known.topics[B]
    assert known.topics == before
    assert known.topics[A].partitions[0].isr == (1, 2)
    assert image.topics[A].partitions[0].isr == (1,)


def test_what_an_older_image_had_and_a_newer_snapshot_has_not_was_removed(log: LogDir) -> None:
    log.append(topic("a", A), partition(A, 0, (1, 2)), topic("b", B), partition(B, 0, (1, 2)), partition(B, 1, (1,)))
    known = read(log)
    log.append(remove(A), change(B, 0, replicas=(2, 3)))
    log.snapshot(register(1), topic("b", B), partition(B, 0, (2, 3)), partition(B, 1, (1,)))
    seen = Removed(proof=Proof.METADATA_LOG, as_of_ms=log.time_ms)
    image = committed(log, known)
    assert image.removed == {A: seen}
    assert image.left == {(B, 0): seen}
    # Read for the first time, the same snapshot shows only that they are not there.
    assert not committed(log).removed
    assert not committed(log).left
    # What was seen is kept, also past the next snapshot.
    log.append(noop())
    log.snapshot(register(1), topic("b", B), partition(B, 0, (2, 3)), partition(B, 1, (1,)))
    assert committed(log, image).removed == {A: seen}
    # And forgotten, if the id is back.
    log.append(noop())
    log.snapshot(topic("a", A), topic("b", B), partition(B, 0, (1, 3)))
    back = committed(log, image)
    assert not back.removed
    assert not back.left


def test_of_another_log_nothing_is_taken_for_removed(log: LogDir, tmp_path: Path) -> None:
    """A directory put back from a backup, and led on from there, is not the log that was followed."""
    log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.append(topic("b", B), partition(B, 0, (1, 2)))
    known = read(log)
    other = LogDir(tmp_path / "other")
    other.lead(1)
    other.append(register(1), register(2))
    other.lead(4)
    for _ in range(20):
        other.append(noop())
    other.snapshot(register(1), topic("c", OLD), partition(OLD, 0, (1, 2)))
    for path in log.directory.iterdir():
        path.unlink()
    for path in other.directory.iterdir():
        path.rename(log.directory / path.name)
    image = committed(log, known)
    assert names(image) == {"c"}
    assert not image.removed
    mark = MetadataMark(epoch=known.epoch, offset=known.offset)
    diverged = metadata_log.read(str(log.directory), node_id=1, cluster_id=CLUSTER, last_applied=mark).diverged
    assert diverged is not None
    assert diverged.slug == "metadata-diverged"
    assert read(log, last_applied=MetadataMark(epoch=1, offset=3)).diverged is None


def test_a_log_put_back_gives_an_older_image_not_the_known_one(log: LogDir) -> None:
    log.append(topic("a", A))
    data = log.segment.read_bytes()
    log.append(topic("b", B))
    known = read(log)
    log.segment.write_bytes(data)
    image = read(log, known=known)
    assert (names(image), image.offset) == ({"a"}, known.offset - 1)


def test_a_file_that_vanishes_makes_the_reading_begin_again(log: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(topic("a", A))
    log.snapshot(topic("a", A))
    real = os.listdir
    stale = [[*real(log.directory), f"{99:020d}-{9:010d}.checkpoint"]]

    def listed(directory: str) -> list[str]:
        return stale.pop() if stale else real(directory)

    monkeypatch.setattr(os, "listdir", listed)
    assert names(committed(log)) == {"a"}
    stale.extend([*real(log.directory), f"{99:020d}-{9:010d}.checkpoint"] for _ in range(99))
    with pytest.raises(StateError, match="went away"):
        committed(log)


def test_a_link_is_not_followed(log: LogDir, tmp_path: Path) -> None:
    log.append(topic("a", A))
    elsewhere = log.segment.rename(tmp_path / "elsewhere.log")
    log.segment.symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic"):
        read(log)


def test_what_left_this_node_and_what_came_back(log: LogDir) -> None:
    log.append(topic("a", A), partition(A, 0, (1, 2)), partition(A, 1, (2, 3)))
    log.append(change(A, 0, replicas=(1, 2, 3), addingReplicas=(3,), removingReplicas=(1,)))
    assert not read(log).left
    log.append(change(A, 0, replicas=(2, 3), addingReplicas=(), removingReplicas=(), isr=(2, 3)))
    image = read(log)
    assert set(image.left) == {(A, 0)}
    log.append(change(A, 0, replicas=(2, 3), addingReplicas=(1,)))
    assert not read(log).left


def test_damaged_logs_give_typed_errors_or_an_image_that_ends(log: LogDir) -> None:
    log.append(topic("a", A), partition(A, 0, (1, 2)), topic("b", B), partition(B, 0, (1, 2)))
    path = log.snapshot(register(1), topic("a", A), partition(A, 0, (1, 2)))
    log.append(change(A, 0, isr=(2,)), remove(B))
    for file in (path, log.segment):
        good = file.read_bytes()
        for position in range(0, len(good), 3):
            file.write_bytes(good[:position] + bytes((good[position] ^ 0x41,)) + good[position + 1 :])
            with suppress(FormatError):
                assert read(log).offset <= log.offset
        file.write_bytes(good)
