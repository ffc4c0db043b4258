"""Entries of the four checkpoints of a real log dir: put back, taken away, all else kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.disk.record.checkpoints import drop_entries, read_entries, set_entries
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import FormatError
from logdir.formats.kafka import offset_checkpoint
from logdir.formats.kafka.offset_checkpoint import NAMES, TopicPartition
from logdir.formats.own.replica_marker import Checkpoints
from tests.logdir.disk.staged_rig import make_log_dir, opened, seen

OWN = TopicPartition("a", 0)
OTHERS = {TopicPartition("b", 0): 7, TopicPartition("a", 1): 8, TopicPartition("a.0", 0): 2**63 - 1}
POINTS = Checkpoints(recovery_point=1, log_start=2, high_watermark=3, cleaner=4)


@pytest.fixture
def open_dir(tmp_path: Path) -> Iterator[OpenLogDir]:
    with opened(make_log_dir(tmp_path / "d1", "a-0")) as one:
        yield one


def write(open_dir: OpenLogDir, *entries: dict[TopicPartition, int] | None) -> None:
    for name, offsets in zip(NAMES, entries, strict=True):
        if offsets is not None:
            Path(open_dir.log_dir, name).write_bytes(offset_checkpoint.render(offsets))


def offsets(open_dir: OpenLogDir) -> list[dict[TopicPartition, int] | None]:
    paths = [Path(open_dir.log_dir, name) for name in NAMES]
    return [offset_checkpoint.parse(path.read_bytes()) if path.exists() else None for path in paths]


def test_what_is_read_is_put_back(open_dir: OpenLogDir) -> None:
    write(open_dir, *({**OTHERS, OWN: number} for number in (1, 2, 3, 4)))
    assert read_entries(open_dir, OWN) == POINTS
    before = seen(Path(open_dir.log_dir))
    set_entries(open_dir, OWN, POINTS)
    assert seen(Path(open_dir.log_dir)) == before, "nothing to write"
    drop_entries(open_dir, OWN)
    assert offsets(open_dir) == [OTHERS] * 4
    assert read_entries(open_dir, OWN) == Checkpoints()
    set_entries(open_dir, OWN, POINTS)
    assert offsets(open_dir) == [{**OTHERS, OWN: number} for number in (1, 2, 3, 4)]


def test_where_nothing_is_to_be_set_the_entry_goes(open_dir: OpenLogDir) -> None:
    write(open_dir, {OWN: 9}, None, OTHERS, None)
    set_entries(open_dir, OWN, Checkpoints(log_start=0))
    assert offsets(open_dir) == [{}, {OWN: 0}, OTHERS, None]
    drop_entries(open_dir, OWN)
    assert offsets(open_dir) == [{}, {}, OTHERS, None]


def test_a_file_kafka_left_empty_is_one_without_entries(open_dir: OpenLogDir) -> None:
    for name in NAMES:
        Path(open_dir.log_dir, name).write_bytes(b"")
    drop_entries(open_dir, OWN)
    assert [Path(open_dir.log_dir, name).read_bytes() for name in NAMES] == [b""] * 4
    set_entries(open_dir, OWN, Checkpoints(cleaner=4))
    assert offsets(open_dir) == [{}, {}, {}, {OWN: 4}]


@pytest.mark.parametrize("data", [b"0\n2\nb 0 7\n", b"1\n0\n", b"0\n1\nb 0 -1\n", b"\xff"])
def test_a30_a_file_that_is_not_whole_is_never_rewritten(data: bytes, open_dir: OpenLogDir) -> None:
    path = Path(open_dir.log_dir, NAMES[1])
    path.write_bytes(data)
    before = seen(Path(open_dir.log_dir))
    with pytest.raises(FormatError, match=NAMES[1]):
        set_entries(open_dir, OWN, Checkpoints(log_start=4))
    assert seen(Path(open_dir.log_dir)) == before
