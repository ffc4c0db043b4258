"""Pressure: on a disk that is nearly full the oldest captured replicas go, one by one, and no more than needed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logdir import clock
from logdir.decide.capture import CaptureRoom
from logdir.disk.kernel.host import HostDirectory
from logdir.errors import LogDirError, StateError
from logdir.observe.facts import LogDirFacts
from logdir.service import hold, purge
from logdir.service.batch import free_space, pressure
from logdir.service.batch.free_space import FreeSpace
from logdir.service.batch.pressure import Known, relieve
from logdir.service.batch.purge_batches import Rates
from logdir.service.batch.purge_recheck import NO_OVERRIDES, PurgeOverrides, Rechecking
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.last_look import LastLook, Place
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.purge import PurgeRequest
from logdir.service.report.reporter import SILENT, Silent
from logdir.service.report.result import ItemState
from logdir.service.report.staged import Selection
from logdir.worker import operations
from logdir.worker.look import NOTHING, Deep
from tests.builders import log_dir, partition
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

FULL = CaptureRoom(free_bytes=150, total_bytes=3000, free_inodes=500, total_inodes=1000)
"""Two of the replicas, of 100 bytes each, bring the floor back."""
WIDE = CaptureRoom(free_bytes=1500, total_bytes=3000, free_inodes=500, total_inodes=1000)
UNIQUE = "0123456789abcdef0123456789abcdef"


def test_a_disk_that_does_not_tell_its_free_space_is_left_alone() -> None:
    broker = cast(OpenBroker, SimpleNamespace(changeable=(SimpleNamespace(log_dir="/d1"),)))
    found = relieve(broker, {}, Rates(0, 0), SILENT, Known((), FreeSpace()))
    assert (found.items, found.problems) == ([], [])


@contextmanager
def captured(folder: Path, count: int) -> Iterator[OpenBroker]:
    """Open a broker whose replicas were captured, the first one first, and are gone by themselves."""
    top = log_dir(folder / "d1")
    named = ("--log-dirs", str(top))
    assert ctl("init", *named, "--apply").status == Exit.DONE
    for number in range(count):
        gone = partition(top / f"pay-{number}.{UNIQUE}-delete", segments={0: 100})
        assert ctl("capture", f"pay-{number}", *named, "--apply").status == Exit.DONE
        shutil.rmtree(gone)
    with opened(BrokerRequest(log_dirs=str(top)), changes=True) as opened_broker:
        yield opened_broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OpenBroker]:
    """Open a broker with three captured replicas."""
    with captured(tmp_path, 3) as opened_broker:
        yield opened_broker


def top_of(broker: OpenBroker) -> str:
    return broker.named.log_dirs[0]


def staged(broker: OpenBroker) -> list[str]:
    return sorted(name.rpartition("_")[2] for name in os.listdir(f"{top_of(broker)}.logdird/deleting"))


def staged_names(broker: OpenBroker) -> list[str]:
    return sorted(os.listdir(f"{top_of(broker)}.logdird/deleting"))


def known(broker: OpenBroker, free: FreeSpace | None = None, **more: Any) -> Known:
    """Return what a caller knows that has just looked."""
    return Known(broker.look(NOTHING), free or FreeSpace(), **more)


def test_the_oldest_go_until_there_is_room(broker: OpenBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = (replace(FULL, free_bytes=free_bytes) for free_bytes in (150, 250, 350))  # Each removal at once.
    monkeypatch.setattr(free_space, "reported", lambda *_: next(reported))
    found = relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, known(broker))
    assert [item.state for item in found.items] == [ItemState.DONE, ItemState.DONE]
    assert [item.path.rpartition("_")[2] for item in found.items] == ["0", "1"]
    assert "before its deadline: 150 of 3000 bytes free, less than 10 %" in found.items[0].detail
    assert staged(broker) == ["2"]


def test_a14_one_that_takes_longer_than_a_step_is_removed_before_another_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "reported", lambda *_: FULL)
    top = log_dir(tmp_path / "d1")
    named = ("--log-dirs", str(top))
    assert ctl("init", *named, "--apply").status == Exit.DONE
    for number in range(3):
        gone = partition(top / f"pay-{number}.{UNIQUE}-delete", segments=dict.fromkeys(range(40), 100))
        assert ctl("capture", f"pay-{number}", *named, "--apply").status == Exit.DONE
        shutil.rmtree(gone)
    with opened(BrokerRequest(log_dirs=str(top)), changes=True) as broker:
        found = relieve(broker, {str(top): FULL}, Rates(0, 100, budget_ms=1), SILENT, known(broker))
    assert [item.state for item in found.items] == [ItemState.UNDONE]
    names = sorted(os.listdir(f"{top}.logdird/deleting"))
    assert [name.endswith(".purging") for name in names] == [True, False, False], names


def test_a50_what_was_freed_counts_although_the_file_system_does_not_say_so_yet(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in later calls, for a minute."""
    now_ms = clock.boottime_ms()
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms)
    monkeypatch.setattr(free_space, "reported", lambda *_: FULL)
    free = FreeSpace()
    for later_ms in (0, 5, 30_000, 59_999):
        monkeypatch.setattr(clock, "boottime_ms", lambda later_ms=later_ms: now_ms + later_ms)
        relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, known(broker, free))
        assert staged(broker) == ["2"]
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms + 60_000)
    relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, known(broker, free))
    assert staged(broker) == []


def test_a50_inodes_that_were_freed_count_likewise(broker: OpenBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    files = len(os.listdir(f"{top_of(broker)}.logdird/deleting/{staged_names(broker)[0]}"))
    late = replace(WIDE, free_inodes=99 - files)
    monkeypatch.setattr(free_space, "reported", lambda *_: late)
    free = FreeSpace()
    for _ in range(3):
        relieve(broker, {top_of(broker): late}, Rates(0, 0), SILENT, known(broker, free))
        assert staged(broker) == ["1", "2"]


def test_a50_a_broker_that_writes_meanwhile_is_relieved(broker: OpenBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    late, full = replace(FULL, free_bytes=250), replace(FULL, free_bytes=199)
    free = FreeSpace()
    for room, left in ((late, ["1", "2"]), (full, ["2"])):
        monkeypatch.setattr(free_space, "reported", lambda *_, room=room: room)
        for _ in range(2):
            relieve(broker, {top_of(broker): room}, Rates(0, 0), SILENT, known(broker, free))
            assert staged(broker) == left


def test_a50_what_is_freed_in_one_log_dir_is_free_for_the_others_on_its_file_system() -> None:
    free, one = FreeSpace(), replace(FULL, fs_id=7)
    rooms = {"/d1": one, "/d2": one, "/d3": replace(FULL, fs_id=8), "/d4": FULL, "/d5": FULL}
    assert free.take(rooms) == rooms
    free.add("/d1", 100)
    free.add("/d4", 100)  # Its file system is not known: it may be one of its own.
    expected = [room.free_bytes for room in free.take(rooms).values()]
    assert expected == [250, 250, 150, 250, 150]


def test_where_there_is_room_or_it_is_halted_nothing_goes(broker: OpenBroker) -> None:
    assert relieve(broker, {top_of(broker): WIDE}, Rates(0, 0), SILENT, known(broker)).items == []
    error = StateError("x", expected="a", found="b")
    assert relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, known(broker), halted=lambda: error).items == []
    assert staged(broker) == ["0", "1", "2"]


def test_one_that_is_halted_while_the_metadata_log_is_read_is_not_claimed(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "reported", lambda *_: FULL)
    paused = StateError("pause-purge", expected="no such file", found="one")
    is_read: list[bool] = []

    class Slow(Rechecking):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            is_read.append(True)

    monkeypatch.setattr(pressure, "Rechecking", Slow)
    found = relieve(
        broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, known(broker), halted=lambda: paused if is_read else None
    )
    assert [item.state for item in found.items] == [ItemState.UNDONE]
    assert staged(broker) == ["0", "1", "2"]


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES], ids=errno.errorcode.get)
def test_one_that_cannot_be_looked_at_is_left_and_the_next_one_goes(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = operations.inodes_alone

    def inodes_alone(open_dir: object, name: str) -> int | None:
        if name.endswith("_0"):
            raise OSError(number, os.strerror(number), name)
        return before(open_dir, name)  # type: ignore[arg-type]

    rooms = iter([FULL, WIDE])
    monkeypatch.setattr(free_space, "reported", lambda *_: next(rooms))
    monkeypatch.setattr(pressure, "inodes_alone", inodes_alone)
    relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, known(broker))
    assert staged(broker) == ["0", "2"]


def test_a_disk_that_tells_its_free_space_no_more_is_left_alone(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "reported", lambda *_: None)
    assert relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, known(broker)).items == []


class Heard(Silent):
    """Keeps the losses that it receives."""

    def __init__(self) -> None:
        self.losses: list[str] = []

    def warn(self, line: str) -> None:
        self.losses.append(line)


def place(broker: OpenBroker, name: str) -> tuple[str, str]:
    return top_of(broker), f"deleting/{name}"


def not_removed(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Let the files of these partitions be immutable, as after ``chattr +i``."""
    before = HostDirectory.unlink

    def unlink(directory: HostDirectory, name: str) -> None:
        if any(f"_{number}.purging" in directory.path for number in numbers):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)
        before(directory, name)

    monkeypatch.setattr(HostDirectory, "unlink", unlink)


def test_a50_one_that_cannot_be_removed_keeps_no_other_one_from_it(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "reported", lambda *_: replace(FULL, free_bytes=250))
    not_removed(monkeypatch, 0)
    heard, announced = Heard(), set[Place]()
    found = relieve(broker, {top_of(broker): FULL}, Rates(0, 0), heard, known(broker, announced=announced))
    assert [item.state for item in found.items] == [ItemState.UNDONE, ItemState.DONE]
    assert found.items[0].problem is not None
    assert found.items[0].problem.found == "Operation not permitted"
    assert [line.partition(":")[0] for line in heard.losses] == ["pay-0", "pay-1"]
    claimed = place(broker, next(name for name in staged_names(broker) if name.endswith(".purging")))
    failed: list[Place]
    for failed, left in (([], ["0.purging", "2"]), ([claimed], ["0.purging"])):
        relieve(broker, {top_of(broker): FULL}, Rates(0, 0), heard, known(broker, failed=failed))
        assert staged(broker) == left, "a removal that goes on is awaited, one that failed is not"


def test_a50_after_three_that_cannot_be_removed_no_other_one_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "reported", lambda *_: FULL)
    not_removed(monkeypatch, *range(5))
    with captured(tmp_path, 5) as broker:
        failed: list[Place] = []
        error = StateError("x", expected="a", found="b")
        for most in (2, 5, 5):  # The first call ends after two.

            def halted(most: int = most) -> StateError | None:
                return error if len([name for name in staged_names(broker) if "purging" in name]) >= most else None

            rooms = {top_of(broker): FULL}
            found = relieve(broker, rooms, Rates(0, 0), SILENT, known(broker, failed=failed), halted=halted)
            failed += [(item.log_dir, item.new_path or "") for item in found.items]
        assert staged(broker) == ["0.purging", "1.purging", "2.purging", "3", "4"]


def test_a_loss_that_was_announced_is_not_announced_again(broker: OpenBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_space, "reported", lambda *_: replace(FULL, free_bytes=250))
    heard, announced = Heard(), {place(broker, staged_names(broker)[0])}
    relieve(broker, {top_of(broker): FULL}, Rates(0, 0), heard, known(broker, announced=announced))
    assert (heard.losses, staged(broker)) == ([], ["1", "2"])


def test_a_disk_on_which_nothing_may_go_is_not_looked_at(broker: OpenBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    before = LastLook._look

    def look(last: LastLook, deep: Deep, paths: dict[str, set[str]]) -> tuple[LogDirFacts, ...]:
        looks.append(sum(map(len, paths.values())))
        return before(last, deep, paths)

    facts = known(broker).facts
    empty = [replace(one, staged=()) for one in facts]
    monkeypatch.setattr(LastLook, "_look", look)
    monkeypatch.setattr(pressure, "inodes_alone", lambda open_dir, name: None)
    relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, Known(empty, FreeSpace()))
    assert looks == []
    relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, Known(facts, FreeSpace()))
    assert looks == [3], "the three that may go are read again, and nothing else"


def test_one_whose_files_its_broker_still_has_frees_nothing_and_stays(
    broker: OpenBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pressure, "inodes_alone", lambda open_dir, name: None)
    assert relieve(broker, {top_of(broker): FULL}, Rates(0, 0), SILENT, known(broker)).items == []


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
