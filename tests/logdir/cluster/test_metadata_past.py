"""Removals that the log before the newest snapshot still shows; and when nothing is remembered of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from logdir.cluster import metadata_log
from logdir.cluster.image import Certainty, Image
from logdir.evidence import Proof, Removed
from tests.logdir.cluster.log_dir import OLD, A, LogDir, change, noop, partition, register, remove, topic

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    """Topic ``a`` stays, ``old`` is removed, and partition 1 of ``a`` leaves this node; then a snapshot."""
    made = LogDir(tmp_path / "__cluster_metadata-0")
    made.lead(1)
    made.append(register(1), topic("a", A), partition(A, 0, (1, 2)), partition(A, 1, (1, 2)))
    made.append(topic("old", OLD), partition(OLD, 0, (1,)))
    made.append(remove(OLD))
    made.append(change(A, 1, replicas=(2, 3), isr=(2, 3)))
    return made


def whole(log: LogDir) -> None:
    log.append(noop())
    log.snapshot(register(1), topic("a", A), partition(A, 0, (1, 2)), partition(A, 1, (2, 3)))


def past(log: LogDir) -> Image | None:
    return metadata_log.read_with_past(str(log.directory), node_id=1, cluster_id=CLUSTER)


def test_a_removal_before_the_newest_snapshot_is_remembered(log: LogDir) -> None:
    removed_ms = log.time_ms - 1000
    whole(log)
    image = past(log)
    assert image is not None
    assert image.removed == {OLD: Removed(proof=Proof.METADATA_LOG, as_of_ms=removed_ms)}
    assert image.left == {(A, 1): Removed(proof=Proof.METADATA_LOG, as_of_ms=removed_ms + 1000)}
    assert {one: topic.partitions[0].replicas for one, topic in image.former.items()} == {OLD: (1,)}
    assert (image.offset, image.certainty) == (log.offset, Certainty.SNAPSHOT)
    # Handed on, it is what is read.
    read = metadata_log.read(str(log.directory), node_id=1, cluster_id=CLUSTER, known=image)
    assert (read.removed, read.left, read.offset) == (image.removed, image.left, image.offset)
    assert read.former == image.former
    assert metadata_log.read(str(log.directory), node_id=1, cluster_id=CLUSTER).removed == {}


def test_it_begins_at_the_oldest_snapshot_where_the_log_begins_there(tmp_path: Path) -> None:
    log = LogDir(tmp_path / "__cluster_metadata-0")
    log.segment.unlink()
    log.offset = 900
    log.roll()
    log.snapshot(register(1), topic("a", A), partition(A, 0, (1,)), topic("old", OLD), partition(OLD, 0, (1,)))
    log.append(remove(OLD))
    log.snapshot(register(1), topic("a", A), partition(A, 0, (1,)))
    image = past(log)
    assert image is not None
    assert set(image.removed) == set(image.former) == {OLD}
    assert set(image.names) == {"a"}


def test_with_one_snapshot_and_no_log_before_it_there_is_no_past(tmp_path: Path) -> None:
    log = LogDir(tmp_path / "__cluster_metadata-0")
    log.segment.unlink()
    log.offset = 900
    log.roll()
    log.snapshot(register(1), topic("a", A))
    log.append(noop())
    assert past(log) is None
    for path in log.directory.iterdir():
        path.unlink()
    assert past(log) is None


def _other_names(log: LogDir) -> None:
    log.append(noop())
    log.snapshot(register(1))


def _another_epoch(log: LogDir) -> None:
    log.snapshot(register(1), topic("a", A), partition(A, 0, (1, 2)), partition(A, 1, (2, 3)), epoch=4)


def _beyond_the_log(log: LogDir) -> None:
    log.snapshot(register(1), topic("a", A), partition(A, 0, (1, 2)), offset=500)


def _damaged(log: LogDir) -> None:
    whole(log)
    data = bytearray(log.segment.read_bytes())
    data[400] ^= 0xFF
    log.segment.write_bytes(bytes(data))


def _cut_off(log: LogDir) -> None:
    whole(log)
    log.segment.write_bytes(log.segment.read_bytes()[:-30])


def _within_a_batch(log: LogDir) -> None:
    log.append(noop(), noop())
    log.snapshot(register(1), topic("a", A), partition(A, 0, (1, 2)), partition(A, 1, (2, 3)), offset=log.offset - 1)


@pytest.mark.parametrize(
    "make",
    [_other_names, _another_epoch, _beyond_the_log, _damaged, _cut_off, _within_a_batch],
    ids=lambda f: f.__name__,
)
def test_what_does_not_end_where_the_snapshot_does_is_not_remembered(make: object, log: LogDir) -> None:
    assert callable(make)
    make(log)
    assert past(log) is None
    # And takes nothing from what is read without it.
    assert not metadata_log.read(str(log.directory), node_id=1, cluster_id=CLUSTER).removed
