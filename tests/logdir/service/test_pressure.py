"""Pressure: on a disk that is nearly full the oldest captured replicas go, one by one, and no more than needed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logdir.decide.capture import CaptureRoom
from logdir.errors import LogDirError, StateError
from logdir.service import hold, purge
from logdir.service.batch import pressure
from logdir.service.batch.pressure import relieve
from logdir.service.batch.purge_batches import Rates
from logdir.service.batch.purge_recheck import NO_OVERRIDES, PurgeOverrides, Rechecking
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.purge import PurgeRequest
from logdir.service.report.reporter import SILENT, Silent
from logdir.service.report.result import ItemState
from logdir.service.report.staged import Selection
from logdir.worker import operations
from tests.builders import log_dir, partition
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

FULL = CaptureRoom(free_bytes=5, total_bytes=100, free_inodes=50, total_inodes=100)
WIDE = CaptureRoom(free_bytes=50, total_bytes=100, free_inodes=50, total_inodes=100)
UNIQUE = "0123456789abcdef0123456789abcdef"


def test_a_disk_that_does_not_tell_its_free_space_is_left_alone() -> None:
    broker = cast(OpenBroker, SimpleNamespace(changeable=(SimpleNamespace(log_dir="/d1"),)))
    found = relieve(broker, {}, Rates(0, 0), SILENT)
    assert (found.items, found.problems) == ([], [])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OpenBroker]:
    """Make a broker whose three replicas were captured, the first one first, and are gone by themselves."""
    top = log_dir(tmp_path / "d1")
    named = ("--log-dirs", str(top))
    assert ctl("init", *named, "--apply").status == Exit.DONE
    for number in range(3):
        gone = partition(top / f"pay-{number}.{UNIQUE}-delete", segments={0: 100})
        assert ctl("capture", f"pay-{number}", *named, "--apply").status == Exit.DONE
        shutil.rmtree(gone)
    with opened(BrokerRequest(log_dirs=str(top)), changes=True) as opened_broker:
        yield opened_broker


def top_of(broker: OpenBroker) -> str:
    return broker.named.log_dirs[0]


def staged(broker: OpenBroker) -> list[str]:
    return sorted(name.rpartition("_")[2] for name in os.listdir(f"{top_of(broker)}.logdird/deleting"))


def test_the_oldest_go_until_there_is_room(broker: OpenBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = iter([FULL, FULL, WIDE])
    monkeypatch.setattr(pressure, "_room", lambda *_, at_least: next(rooms))
    found = relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT)
    assert [item.state for item in found.items] == [ItemState.DONE, ItemState.DONE]
    assert [item.path.rpartition("_")[2] for item in found.items] == ["0", "1"]
    assert "before its deadline: 5 of 100 bytes free, less than 10 %" in found.items[0].detail
    assert staged(broker) == ["2"]


def test_a14_one_that_takes_longer_than_a_step_is_removed_before_another_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure, "_room", lambda *_, at_least: FULL)
    top = log_dir(tmp_path / "d1")
    named = ("--log-dirs", str(top))
    assert ctl("init", *named, "--apply").status == Exit.DONE
    for number in range(3):
        gone = partition(top / f"pay-{number}.{UNIQUE}-delete", segments=dict.fromkeys(range(40), 100))
        assert ctl("capture", f"pay-{number}", *named, "--apply").status == Exit.DONE
        shutil.rmtree(gone)
    with opened(BrokerRequest(log_dirs=str(top)), changes=True) as broker:
        found = relieve(broker, {str(top): FULL}, Rates(0, 100, budget_ms=1), SILENT)
    assert [item.state for item in found.items] == [ItemState.UNDONE]
    names = sorted(os.listdir(f"{top}.logdird/deleting"))
    assert [name.endswith(".purging") for name in names] == [True, False, False], names


def test_what_was_freed_counts_although_the_file_system_does_not_say_so_yet(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def room(*_: object, at_least: int) -> CaptureRoom:
        asked.append(at_least)
        return FULL

    monkeypatch.setattr(pressure, "_room", room)
    relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT)
    assert asked == [5, 105, 205]
    assert staged(broker) == []


def test_where_there_is_room_or_it_is_halted_nothing_goes(broker: OpenBroker) -> None:
    assert relieve(broker, {top_of(broker): WIDE}, Rates(0, 0), SILENT).items == []
    error = StateError("x", expected="a", found="b")
    assert relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, halted=lambda: error).items == []
    assert staged(broker) == ["0", "1", "2"]


def test_one_that_is_halted_while_the_metadata_log_is_read_is_not_claimed(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure, "_room", lambda *_, at_least: FULL)
    paused = StateError("pause-purge", expected="no such file", found="one")
    is_read: list[bool] = []

    class Slow(Rechecking):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            is_read.append(True)

    monkeypatch.setattr(pressure, "Rechecking", Slow)
    found = relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, halted=lambda: paused if is_read else None)
    assert [item.state for item in found.items] == [ItemState.UNDONE]
    assert staged(broker) == ["0", "1", "2"]


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES], ids=errno.errorcode.get)
def test_one_that_cannot_be_looked_at_is_left_and_the_next_one_goes(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = operations.has_other_names

    def has_other_names(open_dir: object, name: str) -> bool:
        if name.endswith("_0"):
            raise OSError(number, os.strerror(number), name)
        return before(open_dir, name)  # type: ignore[arg-type]

    rooms = iter([FULL, WIDE])
    monkeypatch.setattr(pressure, "_room", lambda *_, at_least: next(rooms))
    monkeypatch.setattr(pressure, "has_other_names", has_other_names)
    relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT)
    assert staged(broker) == ["0", "2"]


def test_a_disk_that_tells_its_free_space_no_more_is_left_alone(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure, "_room", lambda *_, at_least: None)
    assert relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT).items == []


def test_one_whose_files_its_broker_still_has_frees_nothing_and_stays(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure, "has_other_names", lambda open_dir, name: True)
    assert relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT).items == []


def test_a_purge_that_is_halted_amid_its_steps_goes_no_further(tmp_path: Path) -> None:
    """As the pause file does: it is asked for before each step of a removal."""
    top = log_dir(tmp_path / "d1")
    partition(top / "pay-0", segments=dict.fromkeys(range(40), 100))
    named = ("--log-dirs", str(top))
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE
    asked: list[LogDirError | None] = []

    def halted() -> LogDirError | None:
        asked.append(StateError("x", expected="a", found="b") if len(asked) > 1 else None)
        return asked[-1]

    request = PurgeRequest(
        source=SourceRequest(),
        selection=Selection("pay-0"),
        overrides=PurgeOverrides(is_even_if_assigned=True, is_even_if_last=True, is_even_if_early=True),
        includes_held=True,
        bytes_per_second=100_000,
        budget_ms=1,
        goes_on=True,
        halted=halted,
    )
    with opened(BrokerRequest(log_dirs=str(top)), changes=True) as broker:
        items, _ = purge.apply(broker, purge.plan(broker, request), SILENT)
        assert len(asked) >= 3
        assert [item.state for item in items] == [ItemState.UNDONE]
        (claimed,) = os.listdir(f"{top}.logdird/deleting")
        assert claimed.endswith(".purging")


def test_what_is_behind_a_removal_that_takes_longer_than_a_step_is_as_it_was(tmp_path: Path) -> None:
    top = log_dir(tmp_path / "d1")
    for number in range(2):
        partition(top / f"pay-{number}", segments=dict.fromkeys(range(1000), 10))
    named = ("--log-dirs", str(top))
    assert ctl("init", *named, "--apply").status == Exit.DONE
    assert ctl("stage", "pay", "--even-if-unknown", "--even-over-limit", *named, "--apply").status == Exit.DONE
    request = PurgeRequest(
        source=SourceRequest(),
        selection=Selection("pay"),
        overrides=PurgeOverrides(is_even_if_assigned=True, is_even_if_last=True, is_even_if_early=True),
        includes_held=True,
        budget_ms=1,
    )
    with opened(BrokerRequest(log_dirs=str(top)), changes=True) as broker:
        begun, behind = purge.apply(broker, purge.plan(broker, request), SILENT)[0]
    assert [item.state for item in (begun, behind)] == [ItemState.UNDONE] * 2
    assert begun.new_path is not None
    assert behind.problem is not None
    assert (behind.problem.slug, behind.new_path) == ("purge-paused", None)
    names = sorted(os.listdir(f"{top}.logdird/deleting"))
    assert [name.endswith(".purging") for name in names] == [True, False], names
    assert f"deleting/{names[1]}" == behind.path


def test_only_a_nearly_full_disk_lets_the_end_of_a_log_alone_keep_a_replica() -> None:
    early = PurgeOverrides(is_even_if_early=True)
    assert [one.is_latest_alone for one in (NO_OVERRIDES, early, pressure._AS_NAMED)] == [False, False, True]


def test_whoever_waits_for_deletions_is_asked_before_each_change(broker: OpenBroker) -> None:
    heard: list[int] = []

    class Hearing(Silent):
        def advance(self, count: int) -> None:
            heard.append(count)

    items, _ = hold.apply(broker, hold.plan(broker, Selection("pay")), Hearing())
    assert [item.state for item in items] == [ItemState.DONE] * 3
    assert heard == [0, 0, 0, 3]
