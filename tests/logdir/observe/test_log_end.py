"""Where logs end, compared with what clients of real brokers saw, and with damage of every kind."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from logdir.formats.own.inventory import Kind
from logdir.observe.log_end import log_end
from logdir.observe.replicas import look
from logdir.wire.batch_writer import metadata_batch
from tests import trees


@pytest.mark.parametrize("name", trees.NAMES)
def test_logs_of_real_brokers_end_where_their_clients_saw_it(name: str) -> None:
    topics = trees.manifest(name)["topics"]
    count = 0
    for disk in sorted(path for path in trees.unpack(name).iterdir() if path.is_dir()):
        for replica in look(str(disk)).replicas:
            if replica.kind is Kind.LIVE and replica.ref.topic in topics:
                _, end = topics[replica.ref.topic]["partitions"][str(replica.ref.partition)]
                assert log_end(str(disk), replica.path) == end, replica.path
                count += 1
    assert count >= 26


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A log of three batches of ten records each, its first segment removed long ago."""
    path = tmp_path / "t-0" / f"{100:020}.log"
    path.parent.mkdir()
    data = [metadata_batch([b"x"] * 10, base_offset=base, epoch=1, timestamp_ms=1) for base in (100, 110, 120)]
    path.write_bytes(b"".join(data))
    return path


def end_of(segment: Path) -> int | None:
    return log_end(str(segment.parent.parent), segment.parent.name)


def index(segment: Path, *entries: tuple[int, int], zeros: int = 0) -> None:
    data = b"".join(offset.to_bytes(4, "big") + place.to_bytes(4, "big") for offset, place in entries)
    segment.with_suffix(".index").write_bytes(data + bytes(8 * zeros))


def test_the_last_whole_batch_counts_wherever_it_is_cut(segment: Path) -> None:
    data = segment.read_bytes()
    size = len(data) // 3
    for cut in range(len(data) + 1):
        segment.write_bytes(data[:cut])
        assert end_of(segment) == 100 + 10 * (cut // size), cut


@pytest.mark.parametrize("tail", [bytes(200), b"\xff" * 200, b"garbage" * 30], ids=["zeros", "ones", "text"])
def test_what_is_no_batch_is_the_end(segment: Path, tail: bytes) -> None:
    with segment.open("ab") as file:
        file.write(tail)
    assert end_of(segment) == 130
    segment.write_bytes(tail)
    assert end_of(segment) == 100


def test_an_index_is_a_hint_and_not_believed(segment: Path) -> None:
    size = segment.stat().st_size // 3
    for entries, zeros in (
        (((19, size),), 0),
        (((19, size), (29, 2 * size)), 1000),
        (((19, size + 1),), 5),
        (((19, 3 * size),), 0),
        (((19, 1 << 30),), 0),
        ((), 1000),
    ):
        index(segment, *entries, zeros=zeros)
        assert end_of(segment) == 130, (entries, zeros)
    segment.with_suffix(".index").write_bytes(os.urandom(77))
    assert end_of(segment) == 130
    segment.with_suffix(".index").unlink()
    segment.with_suffix(".index").mkdir()
    assert end_of(segment) == 130


def test_the_newest_segment_tells(segment: Path) -> None:
    (segment.parent / f"{130:020}.log").touch()
    assert end_of(segment) == 130
    (segment.parent / f"{500:020}.log").touch()
    assert end_of(segment) == 500


def test_what_cannot_be_told_is_none(segment: Path) -> None:
    folder = segment.parent
    assert log_end(str(folder.parent), "nowhere-0") is None
    assert log_end(str(folder.parent / "nowhere"), "t-0") is None
    data = bytearray(segment.read_bytes())
    data[16] = 1  # a message set from before 0.11
    segment.write_bytes(data)
    assert end_of(segment) is None
    shutil.rmtree(folder)
    folder.mkdir()
    assert end_of(segment) is None
    (folder.parent / "link-0").symlink_to(folder)
    assert log_end(str(folder.parent), "link-0") is None
