"""What a capture must not call made, nor forget of what the broker said."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.disk.kernel.host import HostDisk
from logdir.disk.replica.captured_files import Files, complaint
from logdir.disk.replica.outcome import Result
from tests.logdir.disk.rescue import DELETED, FILES, OLD, files_of, stopped
from tests.logdir.disk.test_capture import ITEM, WHOLE, Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "one")


@pytest.mark.parametrize("shared", [1, 3, len(FILES) - 1])
def test_a17_no_capture_is_called_made_because_another_shares_some_of_its_files(host: Host, shared: int) -> None:
    """An earlier one of the same id and partition: the files it lacks are those that would be lost."""
    host.capture()
    for name in sorted(FILES)[shared:]:
        (host.work / WHOLE / name).unlink()
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.DONE, f"{WHOLE}.2")
    assert files_of(host.work / f"{WHOLE}.2") == FILES


def test_a17_a_capture_that_has_every_file_is_not_made_twice(host: Host) -> None:
    assert [one.place for one in (*host.capture(), *host.capture())] == [WHOLE, WHOLE]
    assert host.places() == [WHOLE]


def test_a17_the_log_start_of_the_file_is_kept_where_a_capture_goes_on_after_the_broker_took_it_out(host: Host) -> None:
    with stopped(host, lambda _, call: call.name == "link" and call.path.endswith("leader-epoch-checkpoint")):
        host.capture()
    assert host.marker(f"incoming/{OLD}_0").checkpoints.log_start == 6
    (host.top / "log-start-offset-checkpoint").write_text("0\n0\n")
    (outcome,) = host.capture(replace(ITEM, log_start_seen=5))
    assert (outcome.result, outcome.place) == (Result.DONE, WHOLE)
    assert host.marker(WHOLE).checkpoints.log_start == 6


def test_a33_a_capture_that_goes_on_is_of_a_tiered_log_as_soon_as_one_of_both_said_so(host: Host) -> None:
    with stopped(host, lambda _, call: call.name == "link" and call.path.endswith("leader-epoch-checkpoint")):
        host.capture()
    (outcome,) = host.capture(replace(ITEM, tiered=True))
    assert outcome.result is Result.DONE
    assert host.marker(WHOLE).tiered


def test_a17_no_capture_has_its_name_before_its_files_are_durable(host: Host) -> None:
    """Their broker need not have synced them, and its names for them may be gone at once."""
    host.capture()
    (named,) = [n for n, call in enumerate(host.calls) if call.name == "rename" and "/incoming/" in call.path]
    synced = {os.path.basename(call.path) for call in host.calls[:named] if call.name == "fsync"}
    assert set(FILES) <= synced


def test_a17_no_part_of_a_capture_is_kept_before_its_files_are_durable(host: Host) -> None:
    (host.top / DELETED / "partition.metadata").unlink()
    (outcome,) = host.capture()
    assert outcome.result is Result.UNDONE
    synced = {os.path.basename(call.path) for call in host.calls if call.name == "fsync"}
    assert set(FILES) - {"partition.metadata"} <= synced


_LOG, _META = f"{0:020}.log", "partition.metadata"
_FILES: Files = {_LOG: (11, 5), _META: (12, 3)}
_NO_LOG: Files = {"notes.of.an.operator.log": (11, 5), _META: (12, 3)}


@pytest.mark.parametrize(
    ("seen", "held", "after"),
    [
        pytest.param(_FILES, {_META: (12, 3)}, _FILES, id="not all are linked"),
        pytest.param(_FILES, {**_FILES, "x": (13, 0)}, _FILES, id="more are linked"),
        pytest.param(_FILES, {**_FILES, _META: (13, 3)}, {**_FILES, _META: (13, 3)}, id="one was replaced meanwhile"),
        pytest.param({_LOG: (11, 5)}, _FILES, _FILES, id="one has come meanwhile"),
        pytest.param({**_FILES, "x": (13, 0)}, _FILES, _FILES, id="one is gone meanwhile"),
        pytest.param({_LOG: (11, 5)}, {_LOG: (11, 5)}, {_LOG: (11, 5)}, id="no id"),
        pytest.param({_META: (12, 3)}, {_META: (12, 3)}, {_META: (12, 3)}, id="no segment"),
        pytest.param(_NO_LOG, _NO_LOG, _NO_LOG, id="another file that ends like a segment"),
    ],
)
def test_a17_no_links_are_whole_that_differ_from_what_was_seen_before_or_after(
    host: Host, seen: Files, held: Files, after: Files
) -> None:
    with HostDisk().open_top(str(host.top)) as links:
        assert complaint(links, _FILES, _FILES, _FILES, log_start=0, is_tiered=False) is None
        assert complaint(links, seen, held, after, log_start=0, is_tiered=False) is not None


@pytest.mark.parametrize(
    ("name", "is_whole"),
    [
        (f"{0:020}.index", True),
        (f"{0:020}.txnindex", True),
        (f"{5:020}.index", False),
        (f"{5:020}.timeindex", False),
        (f"{5:020}.txnindex", False),
        (f"{5:020}.snapshot", True),
        (f"{5:019}.index", True),
        ("x" * 20 + ".index", True),
        ("leader-epoch-checkpoint", True),
    ],
)
def test_a17_no_links_are_whole_with_an_index_whose_segment_is_gone(host: Host, name: str, is_whole: bool) -> None:
    files = {**_FILES, name: (13, 1)}
    with HostDisk().open_top(str(host.top)) as links:
        assert (complaint(links, files, files, files, log_start=None, is_tiered=False) is None) == is_whole


@pytest.mark.parametrize(("start", "is_whole"), [(None, True), (4, False), (5, True), (6, True)])
def test_a17_no_links_are_whole_whose_first_segment_lies_above_the_logs_start(
    host: Host, start: int | None, is_whole: bool
) -> None:
    files = {f"{5:020}.log": (11, 5), _META: (12, 3)}
    with HostDisk().open_top(str(host.top)) as links:
        assert (complaint(links, files, files, files, log_start=start, is_tiered=False) is None) == is_whole
        # Its first segments may lie in remote storage.
        assert complaint(links, files, files, files, log_start=start, is_tiered=True) is None


@pytest.mark.parametrize("is_in_file", [True, False])
def test_a17_no_capture_is_whole_whose_first_segments_are_gone_by_what_was_seen(
    host: Host, *, is_in_file: bool
) -> None:
    """Its leader epochs are not there to say it."""
    first = min(name for name in FILES if name.endswith(".log"))[:20]
    last = max(name for name in FILES if name.endswith(".log"))[:20]
    assert int(first) < int(last)
    for path in (host.top / DELETED).iterdir():
        if path.name.startswith(first) or path.name == "leader-epoch-checkpoint":
            path.unlink()
    entry = f"0\n1\nt 0 {int(first)}\n" if is_in_file else "0\n0\n"
    (host.top / "log-start-offset-checkpoint").write_text(entry)
    (outcome,) = host.capture(replace(ITEM, log_start_seen=None if is_in_file else int(first)))
    assert outcome.result is Result.UNDONE
    assert f"a log from {int(first)} on whose first segment is {int(last)}" in str(outcome.error)


def test_a17_a_log_that_retention_cut_after_its_start_was_written_down_is_whole(host: Host) -> None:
    """The checkpoint file is a minute old at most; the leader epochs are written as the log start moves."""
    files = {f"{5:020}.log": (11, 5), _META: (12, 3), "leader-epoch-checkpoint": (13, 8)}
    with HostDisk().open_top(str(host.top)) as links:
        for first, is_whole in ((4, False), (5, True), (9, True)):
            (host.top / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {first}\n")
            assert (complaint(links, files, files, files, log_start=3, is_tiered=False) is None) == is_whole


def test_a17_no_directory_without_a_marker_is_taken_for_a_capture_that_was_begun(host: Host) -> None:
    """An operator may have put it there: it stays as it is, beside the capture."""
    (host.work / "incoming" / f"{OLD}_0").mkdir()
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.DONE, WHOLE)
    assert host.places() == [WHOLE, f"incoming/{OLD}_0"]
    assert files_of(host.work / WHOLE) == FILES
