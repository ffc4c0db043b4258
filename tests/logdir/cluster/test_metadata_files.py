"""The files of a metadata log: walked once, however many ask, and told apart from what came since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logdir.cluster import metadata_log
from logdir.cluster.metadata_files import MetadataFiles, one_reading, reading
from logdir.cluster.metadata_log import Watermark, end_of
from logdir.wire.errors import WireError
from tests.logdir.cluster.log_dir import LogDir, noop, register

WHOLE = Watermark(offset=1 << 40, epoch=0, is_prefix_checked=True)


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    """Ten records in ten batches, in five segments."""
    made = LogDir(tmp_path / "__cluster_metadata-0")
    made.append(register(1))
    for number in range(1, 10):
        if number % 2 == 0:
            made.roll()
        made.append(noop())
    return made


def offsets(files: MetadataFiles, start: int = 0) -> list[int]:
    return [head.base_offset for head in files.heads(start)]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_heads_and_batches_are_the_same_wherever_the_walk_begins_and_breaks_off(log: LogDir) -> None:
    with reading(str(log.directory)) as files:
        for start in (5, 7, 0, 3, 9, 0):
            assert offsets(files, start) == list(range(start, 10))
            assert [batch.base_offset for batch in files.batches(start)] == list(range(start, 10))
            broken_off = files.heads(max(0, start - 3))
            assert next(broken_off).base_offset == max(0, start - 3)
            broken_off.close()  # type: ignore[attr-defined]  # a generator


def test_what_was_walked_over_is_not_read_again(log: LogDir) -> None:
    with reading(str(log.directory)) as files:
        assert offsets(files) == list(range(10))
        log.append(noop())
        assert offsets(files) == list(range(10))
        files.forget()
        assert offsets(files) == list(range(11))


def test_damage_ends_every_walk_where_it_ended_the_first(log: LogDir) -> None:
    data = bytearray(log.segment.read_bytes())
    data[-1] ^= 1
    log.segment.write_bytes(data)
    with reading(str(log.directory)) as files:
        for _ in range(2):
            with pytest.raises(WireError):
                offsets(files, 6)
            assert files.epoch_before(9) == 1
            assert files.epoch_before(10) is None


@pytest.mark.parametrize("is_rolled", [False, True])
def test_a_log_that_went_on_since_it_was_read_has_no_end_that_is_known(log: LogDir, is_rolled: bool) -> None:
    """Else what the only voter said a moment ago would pass for what holds now."""
    directory = str(log.directory)
    with one_reading():
        assert metadata_log.read(directory, node_id=1, cluster_id=None, watermark=WHOLE).offset == 10
        assert end_of(directory, is_torn_read=False) == 10
        if is_rolled:
            log.roll()
        log.append(noop())
        assert end_of(directory, is_torn_read=False) is None
    assert end_of(directory, is_torn_read=False) == 11


def test_a_log_of_more_segments_than_are_kept_open_is_read_to_its_end(tmp_path: Path) -> None:
    log = LogDir(tmp_path / "__cluster_metadata-0")
    log.append(register(1))
    for _ in range(80):
        log.roll()
        log.append(noop())
    before = descriptors()
    with one_reading():
        for _ in range(2):
            image = metadata_log.read(str(log.directory), node_id=1, cluster_id=None, watermark=WHOLE)
            assert (image.offset, image.ended) == (81, None)
        assert descriptors() - before <= 64
    assert descriptors() == before


def test_files_are_shared_within_one_reading_and_closed_with_it(log: LogDir) -> None:
    before = descriptors()
    with one_reading(), one_reading():
        with reading(str(log.directory)) as first:
            assert offsets(first) == list(range(10))
        with reading(str(log.directory)) as second:
            assert second is first
    assert descriptors() == before
    with reading(str(log.directory)) as third:
        assert third is not first
