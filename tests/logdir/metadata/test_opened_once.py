"""Whoever reads a metadata log opens each of its files once a command, also where something has to be read again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.cluster import metadata_log
from logdir.cluster.metadata_files import one_reading
from logdir.cluster.metadata_log import Watermark
from logdir.cluster.quorum import is_only_voter
from logdir.metadata.source import read_directory, read_file
from logdir.metadata.topic_detail import read_details
from tests.logdir.cluster.log_dir import OLD, A, B, LogDir, change, noop, partition, register, topic

WHOLE = Watermark(offset=1 << 40, epoch=1, is_prefix_checked=True)


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each file of a metadata log was opened, by name."""
    counted: Counter[str] = Counter()
    true_open = os.open

    def counting(path: str, *rest: int, **named: int) -> int:
        if str(path).endswith((".log", ".checkpoint")):
            counted[os.path.basename(path)] += 1
        return true_open(path, *rest, **named)

    monkeypatch.setattr(os, "open", counting)
    yield counted
    monkeypatch.undo()


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    """Three segments, a snapshot in the second."""
    made = LogDir(tmp_path / "__cluster_metadata-0")
    made.append(register(1), topic("a", A), partition(A, 0, (1, 2)))
    made.roll()
    made.append(noop())
    made.snapshot(register(1), topic("a", A), partition(A, 0, (1, 2)))
    made.append(change(A, 0, isr=(1,)))
    made.roll()
    made.append(topic("b", B), partition(B, 0, (1,)))
    return made


def test_image_details_and_quorum_of_one_command(log: LogDir, opens: Counter[str]) -> None:
    directory = str(log.directory)
    with one_reading():
        past = metadata_log.read_with_past(directory, node_id=1, cluster_id=None)
        image = metadata_log.read(directory, node_id=1, cluster_id=None, watermark=WHOLE, known=past)
        assert read_details(image, [A, B]) is not None
        assert metadata_log.end_of(directory) == log.offset
        is_only_voter(directory, 1)
    assert (image.offset, len(opens)) == (log.offset, 4)
    assert set(opens.values()) == {1}


def test_the_browser(log: LogDir, opens: Counter[str]) -> None:
    assert read_directory(str(log.directory)).offset == log.offset
    assert (len(opens), set(opens.values())) == (3, {1})  # the first segment ends before the snapshot


def test_the_browser_of_a_log_that_contradicts_itself(log: LogDir, opens: Counter[str]) -> None:
    reached = log.offset
    log.append(change(OLD, 0, isr=(1,)))
    look = read_directory(str(log.directory))
    assert (look.offset, look.ended is None) == (reached, False)
    assert set(opens.values()) == {1}


def test_the_browser_of_a_log_behind_its_snapshot(log: LogDir, opens: Counter[str]) -> None:
    log.snapshot(topic("a", A), offset=4, epoch=9)
    assert read_directory(str(log.directory)).is_log_behind
    assert set(opens.values()) == {1}


def test_one_file_by_itself(log: LogDir, opens: Counter[str]) -> None:
    log.append(change(OLD, 0, isr=(1,)))
    first = log.directory / f"{0:020d}.log"
    with first.open("ab") as file:
        file.write(log.segment.read_bytes())  # does not follow from what is before it
    assert read_file(str(first)).ended is not None
    assert set(opens.values()) == {1}


def test_what_was_opened_is_closed(log: LogDir) -> None:
    before = os.listdir("/proc/self/fd")
    read_directory(str(log.directory))
    read_file(str(log.directory / f"{0:020d}.log"))
    is_only_voter(str(log.directory), 1)
    assert os.listdir("/proc/self/fd") == before
