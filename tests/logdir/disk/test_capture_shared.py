"""What a capture must not call made, nor forget of what the broker said."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.disk.io import Call
from logdir.disk.outcome import Result
from tests.logdir.disk.rescue import DELETED, FILES, OLD, files_of
from tests.logdir.disk.test_capture import ITEM, WHOLE, Host, Stop


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


def test_a17_the_log_start_a_broker_says_is_not_dropped_where_a_capture_goes_on(host: Host) -> None:
    """Begun without it, interrupted, and told by the second try: its checkpoint file lags (kafka-behaviour §10.5)."""

    def stop(number: int, call: Call) -> None:
        if call.name == "link" and call.path.endswith("leader-epoch-checkpoint"):
            raise Stop

    host.before = stop
    with pytest.raises(Stop):
        host.capture()
    host.before = lambda number, call: None
    assert host.marker(f"incoming/{OLD}_0").checkpoints.log_start == 6
    (outcome,) = host.capture(replace(ITEM, log_start=5))
    assert (outcome.result, outcome.place) == (Result.DONE, WHOLE)
    assert host.marker(WHOLE).checkpoints.log_start == 5


def test_a17_the_log_start_a_broker_says_is_not_overruled_by_its_checkpoint_file(host: Host) -> None:
    (outcome,) = host.capture(replace(ITEM, log_start=5))
    assert outcome.result is Result.DONE
    found = host.marker(WHOLE).checkpoints
    assert (found.log_start, found.recovery_point, found.high_watermark) == (5, 9, 9)
    assert DELETED in os.listdir(host.top)


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
