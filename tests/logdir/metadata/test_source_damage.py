"""A metadata log that is damaged, or of a newer release: what is before is shown, and where it ends is told."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir.errors import FormatError, MalformedFileError
from logdir.metadata.source import read_directory, read_file
from logdir.wire.batches import read_batches
from logdir.wire.errors import CorruptBatchError, UnknownRecordTypeError
from tests.logdir.cluster import log_dir
from tests.logdir.cluster.log_dir import A, B, LogDir, change, noop, partition, record, remove, topic


def some(log: LogDir) -> None:
    log.append(topic("a", A), partition(A, 0, (1, 2)))
    log.append(topic("b", B), partition(B, 0, (1,)))


def _unknown(log: LogDir) -> None:
    log.raw(b"\x01\x63\x00\x00")


def _cut(log: LogDir) -> None:
    log.append(topic("late", log_dir.OLD))
    data = log.segment.read_bytes()
    log.segment.write_bytes(data[:-3])


def _flip(log: LogDir) -> None:
    start = log.segment.stat().st_size
    log.append(topic("late", log_dir.OLD))
    data = bytearray(log.segment.read_bytes())
    data[start + 70] ^= 1
    log.segment.write_bytes(data)


def _gap(log: LogDir) -> None:
    log.offset += 5
    log.append(topic("late", log_dir.OLD))


def _older_epoch(log: LogDir) -> None:
    log.epoch = 0
    log.append(topic("late", log_dir.OLD))


def _contradiction(log: LogDir) -> None:
    log.append(topic("late", log_dir.OLD), remove(log_dir.INCARNATION))


def _zeros(log: LogDir) -> None:
    with log.segment.open("ab") as file:
        file.write(bytes(100))


@pytest.mark.parametrize("damage", [_unknown, _cut, _flip, _gap, _older_epoch, _contradiction, _zeros])
def test_what_cannot_be_used_ends_it_there(damage: Callable[[LogDir], None], tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    reached = log.offset
    damage(log)
    look = read_directory(str(tmp_path))
    assert sorted(look.contents.names) == ["a", "b"]
    assert look.offset == reached
    assert look.ended is not None
    assert look.ended.path.startswith(str(log.segment))
    assert read_file(str(log.segment)).contents == look.contents
    # What comes behind it does not count either.
    log.append(topic("later", log_dir.INCARNATION))
    assert read_directory(str(tmp_path)).contents == look.contents


def test_a_snapshot_with_a_transaction_that_does_not_end_is_not_shown(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    path = log.snapshot(topic("a", A), log_dir.begin(), topic("b", B))
    for read, where in ((read_directory, tmp_path), (read_file, path)):
        with pytest.raises(MalformedFileError, match="a snapshot whose transactions end in it") as caught:
            read(str(where))
        assert caught.value.path == str(path)


@pytest.mark.parametrize("by", [-2, -1, 1])
def test_a_base_offset_that_does_not_follow_ends_it_before_its_batch(by: int, tmp_path: Path) -> None:
    """No checksum covers it: a batch that seems to be read already would be left out, and nothing would show it."""
    log = LogDir(tmp_path)
    some(log)
    log.append(noop(), noop())
    whole, size = log.offset, log.segment.stat().st_size
    log.append(remove(B), noop(), noop())
    data = bytearray(log.segment.read_bytes())
    data[size : size + 8] = (whole + by).to_bytes(8, "big")
    log.segment.write_bytes(data)
    look = read_directory(str(tmp_path))
    assert (look.offset, sorted(look.contents.names)) == (whole, ["a", "b"])
    assert look.ended is not None
    assert look.ended.found == f"one at offset {whole + by}, of leader epoch 1"


def test_damage_before_the_snapshot_hides_nothing(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    log.snapshot(topic("a", A), partition(A, 0, (1, 2)))
    data = bytearray(log.segment.read_bytes())
    data[70] ^= 1
    log.segment.write_bytes(data)
    log.append(topic("late", log_dir.OLD))
    look = read_directory(str(tmp_path))
    assert (sorted(look.contents.names), look.offset, look.ended) == (["a", "late"], log.offset, None)


def test_a_snapshot_must_be_whole(tmp_path: Path) -> None:
    log = LogDir(tmp_path)
    some(log)
    snapshot = log.snapshot(topic("a", A), partition(A, 0, (1,)))
    whole = snapshot.read_bytes()
    snapshot.write_bytes(whole[:-1])
    with pytest.raises(MalformedFileError, match="whole batches"):
        read_directory(str(tmp_path))
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    snapshot.write_bytes(flipped)
    with pytest.raises(CorruptBatchError):
        read_directory(str(tmp_path))
    header, body, footer = [batch.data for batch in read_batches(whole)]
    snapshot.write_bytes(header + body)
    with pytest.raises(MalformedFileError, match="a snapshot footer last"):
        read_directory(str(tmp_path))
    snapshot.write_bytes(header + footer)
    with pytest.raises(CorruptBatchError, match="a record batch at offset 1"):
        read_file(str(snapshot))
    snapshot.write_bytes(body + footer)
    with pytest.raises(MalformedFileError, match="a snapshot header first"):
        read_directory(str(tmp_path))
    snapshot.write_bytes(b"")
    with pytest.raises(MalformedFileError):
        read_directory(str(tmp_path))
    # A record of a newer release in it leaves nothing to show.
    newer = log.snapshot(record(20))
    data = newer.read_bytes()
    at = data.index(b"\x01\x14\x00\x00")
    newer.write_bytes(data[:at] + b"\x01\x63\x00\x00" + data[at + 4 :])
    with pytest.raises((CorruptBatchError, UnknownRecordTypeError)):
        read_directory(str(tmp_path))


def test_damaged_logs_give_errors_of_ours_alone(tmp_path: Path) -> None:
    rng = random.Random(5)
    log = LogDir(tmp_path)
    some(log)
    log.snapshot(topic("a", A), partition(A, 0, (1,)), offset=2)
    for _ in range(20):
        log.append(change(A, 0, leader=rng.randrange(3)), noop())
    names = sorted(path.name for path in tmp_path.iterdir())
    whole = {name: (tmp_path / name).read_bytes() for name in names}
    refused = ended = 0
    for _ in range(300):
        for name, data in whole.items():
            damaged = bytearray(data)
            for _ in range(rng.randrange(3)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            (tmp_path / name).write_bytes(damaged)
        try:
            ended += read_directory(str(tmp_path)).ended is not None
        except FormatError:
            refused += 1
    assert refused > 50
    assert ended > 50
