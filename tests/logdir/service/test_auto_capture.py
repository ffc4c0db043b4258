"""What is captured without an operator: the new ``-delete`` and ``-stray`` directories, each once, on real log dirs."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from logdir.decide.auto_capture import CapturePolicy
from logdir.decide.staged.deadline import DelayPolicy
from logdir.disk.replica import capture as disk_capture
from logdir.disk.replica.earlier_capture import EarlierCaptures
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import LogDirReplacedError, Problem, RefusedError
from logdir.formats.own import replica_marker
from logdir.refusal_slug import Why
from logdir.service.batch import auto_capture
from logdir.service.batch.auto_capture import Captured, Leavers, capture_new, complete_linked
from logdir.service.log_dirs.last_look import Place
from logdir.service.log_dirs.open_broker import OpenBroker
from logdir.service.log_dirs.opening import opened
from logdir.service.log_dirs.request import BrokerRequest
from logdir.service.report.result import ItemResult, ItemState
from logdir.worker import operations
from logdir.worker.operations import CaptureStep
from logdir.worker.state import WorkerState
from tests.builders import TOPIC_ID, log_dir, partition
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

UNIQUE = "0123456789abcdef0123456789abcdef"


class Rig:
    """An open broker with two log dirs."""

    def __init__(self, folder: Path) -> None:
        self.disks = log_dir(folder / "d1"), log_dir(folder / "d2", directory="AAAAAAAAAAAAAAAAAAAABA")
        self.properties = folder / "server.properties"
        self.properties.write_text(f"broker.id=1\nlog.dirs={self.disks[0]},{self.disks[1]}\n")
        assert ctl("init", "--server-properties", self.properties, "--apply").status == Exit.DONE
        self.leavers = Leavers()
        self.policy = CapturePolicy()
        self.broker: OpenBroker

    def delete(self, name: str, *, disk: int = 0, topic_id: str = TOPIC_ID) -> Path:
        """Make what a broker left of a deleted replica."""
        made = partition(self.disks[disk] / f"{name}.{UNIQUE}-delete", topic_id=topic_id, segments={0: 100, 7: 20})
        os.utime(self.disks[disk])
        return made

    def look(self, listed: Callable[[], None] = lambda: None) -> Captured:
        return capture_new(self.broker, self.leavers, self.policy, listed)

    def linked(self, disk: int = 0) -> list[str]:
        """Replicas of what a log dir has linked, and not made durable."""
        return [name.partition(".")[0] for name in self.leavers.linked.get(str(self.disks[disk]), {})]

    def staged(self, disk: int = 0) -> list[str]:
        return sorted(os.listdir(f"{self.disks[disk]}.logdird/deleting"))


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    with opened(BrokerRequest(server_properties=str(made.properties)), changes=True) as broker:
        made.broker = broker
        yield made


def test_each_is_captured_once_and_not_looked_into_again(rig: Rig) -> None:
    gone = [rig.delete(f"pay-{number}", disk=number % 2) for number in range(4)]
    found = rig.look()
    assert [item.state for item in found.items] == [ItemState.DONE] * 4
    assert (rig.staged(0), rig.staged(1)) == ([f"{TOPIC_ID}_0", f"{TOPIC_ID}_2"], [f"{TOPIC_ID}_1", f"{TOPIC_ID}_3"])
    assert rig.leavers.handled == {(str(path.parent), path.name) for path in gone}
    again = rig.look()
    assert (again.items, again.facts) == ((), None)
    assert rig.leavers.missed == 0


def test_more_than_one_call_takes_are_captured_in_rounds(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert auto_capture.AT_ONCE == 256
    monkeypatch.setattr(auto_capture, "AT_ONCE", 2)
    for number in range(5):
        rig.delete(f"pay-{number}")
    assert len(rig.look().items) == 5
    assert len(rig.staged()) == 5


def test_a_configuration_that_is_edited_stops_the_next_round(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.delete("pay-0")
    rig.properties.write_text(rig.properties.read_text().replace("broker.id=1", "broker.id=2"))
    with pytest.raises(RefusedError, match="configuration-changed"):
        rig.look()
    assert rig.staged() == []


def test_an_owner_lock_that_was_replaced_stops_the_next_round(rig: Rig) -> None:
    rig.delete("pay-0")

    def listed() -> None:
        lock = Path(f"{rig.disks[0]}.logdird/owner.lock")
        lock.unlink()
        lock.touch()

    with pytest.raises(LogDirReplacedError):
        rig.look(listed)
    assert (rig.staged(), os.listdir(f"{rig.disks[0]}.logdird/incoming")) == ([], [])


def test_what_is_passed_over_is_an_item_and_handled(rig: Rig) -> None:
    rig.policy = CapturePolicy(delays=DelayPolicy(patterns=(("none*", 0),)), excluded=("temp*",))
    for topic in ("none", "temp", "pay"):
        rig.delete(f"{topic}-0")
    found = {item.path.partition("-")[0]: item for item in rig.look().items}
    assert {topic: item.state for topic, item in found.items()} == {
        "none": ItemState.KEPT, "temp": ItemState.KEPT, "pay": ItemState.DONE,
    }  # fmt: skip
    assert (found["none"].detail, found["temp"].detail) == (
        "the delay of its topic is 0",
        "capture.exclude names its topic",
    )
    assert len(rig.leavers.handled) == 3
    assert rig.look().facts is None


def test_the_log_start_that_was_seen_is_kept_and_forgotten_with_its_directory(rig: Rig) -> None:
    checkpoint = rig.disks[0] / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\npay 0 5\n")
    rig.look()
    checkpoint.write_text("0\n0\n")
    gone = rig.delete("pay-0")
    rig.look()
    marker = Path(f"{rig.disks[0]}.logdird/deleting/{TOPIC_ID}_0/replica.json").read_bytes()
    assert replica_marker.parse(marker).checkpoints.log_start == 5
    place = str(rig.disks[0]), gone.name
    assert rig.leavers.starts.of(place) == 5
    shutil.rmtree(gone)
    rig.look()
    assert rig.leavers.starts.of(place) is None


def test_whether_anything_changed_is_known_without_a_look_into_it(rig: Rig) -> None:
    for disk in rig.disks:
        os.utime(disk, (1, 1))  # long ago: a time just passed is not trusted
    rig.look()
    assert rig.leavers.has_changed
    rig.look()
    assert not rig.leavers.has_changed


def test_a_log_dir_that_cannot_be_listed_has_missed_nothing(rig: Rig) -> None:
    rig.look()
    away = rig.disks[1].with_name("away")
    rig.disks[1].rename(away)
    rig.leavers.new(rig.broker)
    assert rig.leavers.unread == {str(rig.disks[1])}
    assert rig.leavers.has_changed
    away.rename(rig.disks[1])
    rig.leavers.new(rig.broker)
    assert (rig.leavers.unread, rig.leavers.missed) == (frozenset(), 0)


def test_a17_what_is_left_by_a_look_that_took_too_long_comes_first_in_the_next(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_capture, "LOOK_MS", 0)
    monkeypatch.setattr(auto_capture, "AT_ONCE", 1)
    for name in ("b-0", "z-0"):
        rig.delete(name)
    first = rig.look()
    assert (first.items, first.is_cut_off, rig.linked()) == ((), True, ["b-0"])
    rig.delete("a-0")  # Its name comes before those that its broker removes earlier.
    second = rig.look()
    assert (second.items, second.is_cut_off, rig.linked()) == ((), True, ["b-0", "z-0"])
    third = rig.look()
    assert [item.path.partition(".")[0] for item in third.items] == ["b-0", "z-0", "a-0"]
    assert (third.is_cut_off, rig.linked()) == (False, [])


def test_a17_what_a_look_left_and_its_broker_removed_is_missed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_capture, "LOOK_MS", 0)
    monkeypatch.setattr(auto_capture, "AT_ONCE", 1)
    gone = [rig.delete(f"pay-{number}") for number in range(3)]
    assert rig.look().is_cut_off
    shutil.rmtree(gone[1])
    assert (len(rig.look().items), rig.leavers.missed) == (2, 1)
    assert (rig.look().facts, rig.leavers.missed) == (None, 1)
    assert rig.staged() == [f"{TOPIC_ID}_0", f"{TOPIC_ID}_2"]


def test_what_is_kept_in_part_is_not_missed_when_its_broker_removes_the_rest(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_capture, "LISTS_IN_DELAY", 1_000_000)
    checkpoint = rig.disks[0] / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\npay 0 3\n")
    rig.look()
    checkpoint.write_text("0\n0\n")
    gone = rig.delete("pay-0")
    (gone / "00000000000000000000.log").unlink()
    listings: list[int] = []

    def listed() -> None:
        listings.append(1)
        if len(listings) == 2:
            shutil.rmtree(gone)

    (item,) = rig.look(listed).items
    assert (item.state, gone.exists(), rig.leavers.missed) == (ItemState.UNDONE, False, 0)


def test_what_a_look_left_on_a_log_dir_that_cannot_be_listed_is_not_missed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_capture, "LOOK_MS", 0)
    monkeypatch.setattr(auto_capture, "AT_ONCE", 1)
    for number in range(2):
        rig.delete(f"pay-{number}", disk=1)
    assert rig.look().is_cut_off
    away = rig.disks[1].with_name("away")
    rig.disks[1].rename(away)
    rig.leavers.new(rig.broker)
    away.rename(rig.disks[1])
    rig.leavers.new(rig.broker)
    assert rig.leavers.missed == 0


def test_a17_what_comes_during_a_long_look_is_captured_in_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert auto_capture.LISTS_IN_DELAY == 4
    rig.leavers.starts.delete_delay_ms = 3
    monkeypatch.setattr(auto_capture, "AT_ONCE", 1)
    for number in range(2):
        rig.delete(f"b-{number}")
    seen: list[int] = []

    def listed() -> None:
        seen.append(len(rig.leavers.seen_at))
        if len(seen) == 2:
            rig.delete("a-0")

    found = rig.look(listed)
    assert seen[:3] == [2, 2, 3]
    # Its name comes before those that its broker removes earlier.
    assert [item.path.partition(".")[0] for item in found.items] == ["b-0", "b-1", "a-0"]
    assert (found.is_cut_off, rig.look().facts) == (False, None)


def test_a17_all_are_linked_before_one_is_made_durable_and_may_be_removed_then(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.leavers.starts.delete_delay_ms = 3
    monkeypatch.setattr(auto_capture, "AT_ONCE", 1)
    deleted = [rig.delete(f"b-{number}", disk=disk) for disk, number in ((0, 0), (0, 1), (1, 2))]
    at_listing: list[tuple[int, int]] = []

    def listed() -> None:
        works = [Path(f"{disk}.logdird") for disk in rig.disks]
        unfinished, whole = (sum(len(os.listdir(work / name)) for work in works) for name in ("incoming", "deleting"))
        at_listing.append((unfinished, whole))
        if len(at_listing) == 2:
            for one in (deleted[0], deleted[2]):
                shutil.rmtree(one)

    found = rig.look(listed)
    assert at_listing[:2] == [(0, 0), (2, 0)]
    assert {item.state for item in found.items} == {ItemState.DONE}
    assert (rig.staged(0), rig.staged(1)) == ([f"{TOPIC_ID}_0", f"{TOPIC_ID}_1"], [f"{TOPIC_ID}_2"])
    assert (len(found.items), rig.leavers.missed) == (3, 0)


def test_a17_what_a_look_that_took_too_long_has_linked_its_broker_may_remove_before_the_next(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_capture, "LOOK_MS", 0)
    monkeypatch.setattr(auto_capture, "AT_ONCE", 2)
    gone = [rig.delete(f"pay-{number}") for number in range(3)]
    found = rig.look()
    assert (found.items, found.is_cut_off, rig.staged()) == ((), True, [])
    assert rig.leavers.untried == {(str(rig.disks[0]), f"pay-2.{UNIQUE}-delete")}
    for one in gone[:2]:
        shutil.rmtree(one)
    found = rig.look()
    assert [item.state for item in found.items] == [ItemState.DONE] * 3
    assert (found.is_cut_off, len(rig.staged()), rig.leavers.missed) == (False, 3, 0)


def test_what_is_linked_is_completed_without_anything_new(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_capture, "LOOK_MS", 0)
    monkeypatch.setattr(operations, "COMPLETE_MS", 0)
    monkeypatch.setattr(operations, "COMPLETED_AT_ONCE", 4)
    for number in range(6):
        rig.delete(f"pay-{number}")
    first, second = rig.look(), rig.look()
    assert ([len(one.items) for one in (first, second)], first.is_cut_off, second.is_cut_off) == ([4, 2], True, False)
    assert second.facts is not None
    assert (len(rig.staged()), rig.look().facts) == (6, None)


def test_a_look_that_is_stopped_between_two_steps_loses_nothing_and_makes_nothing_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.leavers.starts.delete_delay_ms = 3
    monkeypatch.setattr(operations, "COMPLETE_MS", 0)
    monkeypatch.setattr(operations, "COMPLETED_AT_ONCE", 4)
    gone = [rig.delete(f"pay-{number}") for number in range(6)]
    listings: list[int] = []

    def listed() -> None:
        listings.append(1)
        if len(listings) == 2:
            raise RefusedError(
                "server.properties", why=Why.CONFIGURATION_CHANGED, expected="it", found="another", fix="restart it"
            )

    with pytest.raises(RefusedError, match="configuration-changed"):
        rig.look(listed)
    assert (len(rig.staged()), rig.linked()) == (4, ["pay-4", "pay-5"])
    shutil.rmtree(gone[5])
    found = rig.look()
    assert [item.state for item in found.items] == [ItemState.DONE] * 6
    assert (rig.staged(), rig.leavers.missed) == ([f"{TOPIC_ID}_{number}" for number in range(6)], 0)
    files = [sorted(os.listdir(f"{rig.disks[0]}.logdird/deleting/{name}")) for name in rig.staged()]
    assert files == [[*sorted(os.listdir(gone[0])), "replica.json"]] * 6


def test_a17_after_many_at_once_the_log_dirs_are_listed_again_before_any_is_completed(rig: Rig) -> None:
    assert auto_capture.MANY == 32
    for number in range(32):
        rig.delete(f"pay-{number}")
    found_there: list[tuple[int, int]] = []

    def listed() -> None:
        found_there.append((len(os.listdir(f"{rig.disks[0]}.logdird/incoming")), len(rig.staged())))
        if len(found_there) == 2:
            rig.delete("pay-32")

    found = rig.look(listed)
    # The broker deletes one more after the second listing: one is few, and the rest waits no longer.
    assert found_there == [(0, 0), (32, 0)]
    assert [item.state for item in found.items] == [ItemState.DONE] * 32
    assert [item.state for item in rig.look().items] == [ItemState.DONE]


def test_a10_after_a_failed_sync_a_look_writes_nothing_more_to_that_disk(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes meanwhile is not linked there: the kernel reports a lost write only once."""
    for number in range(32):
        rig.delete(f"pay-{number}")
    rig.delete("other-0", disk=1)
    fails, syncs = iter([True]), os.fsync

    def fsync(descriptor: int) -> None:
        if f"{rig.disks[0]}.logdird/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()) and next(fails, False):
            raise OSError(errno.EIO, "Input/output error")
        syncs(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    listings: list[int] = []

    def listed() -> None:
        listings.append(1)
        if len(listings) == 1:  # The next listing shows them.
            rig.delete("pay-32")
            rig.delete("other-1", disk=1)

    found = rig.look(listed)
    assert len(listings) >= 2
    assert {item.path[:7] for item in found.items if item.state is ItemState.DONE} == {"other-0", "other-1"}
    assert sum(item.state is ItemState.UNDONE for item in found.items) == 32
    assert (rig.staged(), rig.linked(), rig.leavers.missed) == ([], [], 0)
    assert not any("_32" in name for name in os.listdir(f"{rig.disks[0]}.logdird/incoming"))


def test_few_at_once_are_completed_with_one_listing(rig: Rig) -> None:
    for number in range(31):
        rig.delete(f"pay-{number}")
    listings: list[int] = []
    assert len(rig.look(lambda: listings.append(1)).items) == 31
    assert len(listings) == 1


def test_what_an_earlier_look_has_linked_does_not_wait_for_others_that_come(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_one_linked(rig, monkeypatch)
    monkeypatch.setattr(auto_capture, "MANY", 1)
    found = rig.look()
    assert [item.state for item in found.items] == [ItemState.DONE] * 2
    assert found.is_cut_off is False


def test_a17_the_log_dirs_are_asked_once_for_all_that_was_missed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = [rig.delete(f"pay-{number}") for number in range(3)]
    real, asked = auto_capture._still_there, []

    def still_there(broker: OpenBroker, rows: Sequence[ItemResult]) -> frozenset[Place]:
        asked.append(len(rows))
        return real(broker, rows)

    def empty(*arguments: object, **others: object) -> CaptureStep:
        for one in gone:
            shutil.rmtree(one, ignore_errors=True)
        return operations.capture_step(*arguments, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(auto_capture, "_still_there", still_there)
    monkeypatch.setattr(auto_capture, "capture_step", empty)
    found = rig.look()
    assert [item.state for item in found.items] == [ItemState.UNDONE] * 3
    assert (asked, rig.leavers.missed) == ([3], 3)


def leave_one_linked(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a look, out of time, have linked the first of two replicas and completed none."""
    monkeypatch.setattr(auto_capture, "LOOK_MS", 0)
    monkeypatch.setattr(auto_capture, "AT_ONCE", 1)
    for number in range(2):
        rig.delete(f"pay-{number}")
    rig.look()
    assert rig.linked() == ["pay-0"]


def forget(opened: WorkerState) -> None:
    opened.linked.clear()


def test_what_a_worker_has_forgotten_is_undone_and_tried_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_one_linked(rig, monkeypatch)
    rig.broker.ports.port(str(rig.disks[0])).run_opened(forget)
    found = rig.look()
    assert sorted((item.path[:5], item.state) for item in found.items) == [
        ("pay-0", ItemState.UNDONE), ("pay-1", ItemState.DONE),
    ]  # fmt: skip
    assert [item.state for item in rig.look().items] == [ItemState.DONE]
    assert (len(rig.staged()), rig.leavers.missed) == (2, 0)


def test_a_log_dir_whose_call_failed_is_called_no_more_in_that_look_for_what_it_had_linked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_one_linked(rig, monkeypatch)
    calls: list[int] = []

    def fails(*arguments: object, **more: object) -> NoReturn:
        calls.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as failing:
        failing.setattr(operations, "_capture_step", fails)
        found = rig.look()
    assert len(calls) == 1
    assert sorted((item.path[:5], item.state) for item in found.items) == [
        ("pay-0", ItemState.UNDONE), ("pay-1", ItemState.UNDONE),
    ]  # fmt: skip
    assert rig.linked() == []
    captured = [item.state for _ in range(3) for item in rig.look().items]
    assert (captured, len(rig.staged())) == ([ItemState.DONE] * 2, 2)


def test_a_work_root_that_cannot_be_listed_for_a_moment_undoes_nothing_that_was_linked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "LINKED_FIRST", 4)
    for number in range(6):
        rig.delete(f"pay-{number}")
    real, calls = EarlierCaptures.of, []

    def of(open_dir: OpenLogDir) -> EarlierCaptures:
        calls.append(1)
        if len(calls) == 2:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(open_dir)

    with monkeypatch.context() as failing:
        failing.setattr(EarlierCaptures, "of", of)
        found = rig.look()
    assert sorted((item.path[:5], item.state) for item in found.items) == [
        *((f"pay-{number}", ItemState.DONE) for number in range(4)),
        *((f"pay-{number}", ItemState.UNDONE) for number in (4, 5)),
    ]
    assert [item.state for item in rig.look().items] == [ItemState.DONE] * 2


def test_what_was_linked_before_an_error_is_captured_once_by_the_next_look(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        rig.delete(f"pay-{number}")
    with monkeypatch.context() as failing:

        def fails(*arguments: object) -> NoReturn:
            raise OSError(errno.EMFILE, "Too many open files")

        failing.setattr(disk_capture, "complete", fails)
        failing.setattr(operations, "COMPLETED_AT_ONCE", 4)
        found = rig.look()
        assert ([item.state for item in found.items], len(found.problems)) == ([ItemState.UNDONE] * 6, 1)
    assert [item.state for item in rig.look().items] == [ItemState.DONE] * 6
    assert (rig.staged(), rig.leavers.missed) == ([f"{TOPIC_ID}_{number}" for number in range(6)], 0)


@pytest.mark.parametrize("ends", [complete_linked, None], ids=["at the end", "by a look"])
def test_what_is_linked_on_a_disk_that_was_quarantined_meanwhile_is_not_completed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, ends: Callable[..., Captured] | None
) -> None:
    leave_one_linked(rig, monkeypatch)
    rig.broker.quarantined[str(rig.disks[0])] = Problem("sync-failed", str(rig.disks[0]), "a disk", "a failed sync")
    found = ends(rig.broker, rig.leavers, rig.policy, 1000) if ends else rig.look()
    assert [item.state for item in found.items if item.path.startswith("pay-0")] == [ItemState.UNDONE]
    assert (rig.staged(), rig.linked()) == ([], [])


def test_the_end_of_the_time_ends_the_completion_of_what_is_linked(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_one_linked(rig, monkeypatch)
    found = complete_linked(rig.broker, rig.leavers, rig.policy, 0)
    assert (found.items, found.is_cut_off, rig.linked(), rig.staged()) == ((), True, ["pay-0"], [])
    assert len(complete_linked(rig.broker, rig.leavers, rig.policy, 60_000).items) == 1
    assert (rig.linked(), len(rig.staged())) == ([], 1)


def test_what_is_not_handled_is_listed_again_after_the_broker_was_opened_again(rig: Rig) -> None:
    gone = rig.delete("pay-0")
    os.utime(rig.disks[0], (1_600_000_000, 1_600_000_000))  # Of what changed just now a listing is not relied on.
    assert rig.leavers.new(rig.broker) == ((str(rig.disks[0]), gone.name),)
    rig.leavers.reopened(rig.broker)
    assert rig.leavers.new(rig.broker) == ((str(rig.disks[0]), gone.name),)


def test_a25_what_is_captured_stays_known_while_the_same_directory_lies_there(rig: Rig) -> None:
    rig.leavers.reopened(rig.broker)
    gone = [rig.delete(f"pay-{number}", disk=number) for number in range(2)]
    assert len(rig.look().items) == 2
    rig.leavers.reopened(rig.broker)
    assert rig.leavers.new(rig.broker) == ()
    # An older copy of the second: the same name, and the capture is not there.
    old = rig.disks[1].with_name("old")
    shutil.copytree(rig.disks[1], old)
    rig.disks[1].rename(rig.disks[1].with_name("away"))
    old.rename(rig.disks[1])
    staged = Path(f"{rig.disks[1]}.logdird/deleting/{TOPIC_ID}_1")
    shutil.rmtree(staged)
    with opened(BrokerRequest(server_properties=str(rig.properties)), changes=False) as broker:
        rig.leavers.reopened(broker)
        assert rig.leavers.new(broker) == ((str(rig.disks[1]), gone[1].name),)


def test_of_a_log_dir_that_the_broker_has_no_more_nothing_is_left_to_capture(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.delete("pay-0", disk=1)
    request = BrokerRequest(server_properties=str(rig.properties))
    with opened(request, changes=True) as broker:
        assert len(rig.leavers.new(broker)) == 1
    rig.properties.write_text(f"broker.id=1\nlog.dirs={rig.disks[0]}\n")
    with opened(request, changes=True) as broker:
        rig.leavers.reopened(broker)
        assert rig.leavers.new(broker) == ()
