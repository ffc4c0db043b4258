"""Adoption on real directories: the files of a deleted topic under the id of the one made anew (A16, A36)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.recover_broker import recover_broker
from logdir.disk.replica.adopt import AdoptItem, adopt
from logdir.disk.replica.adopt_recovery import RecoveredAdoptions
from logdir.disk.replica.capture import capture
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.outcome import Outcome, Result
from logdir.disk.replica.replica_dir import read_marker
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import ReadOnlyDiskError
from logdir.formats.own.replica_marker import ReplicaMarker
from logdir.reasons import Reason
from tests.logdir.disk.rescue import (
    ADOPTED,
    DELAY_MS,
    DELETED,
    FILES,
    NEW,
    NEW_FILES,
    OLD,
    entries,
    files_of,
    instant,
    make_root,
    meta,
    numbered,
    open_site,
    present_marker,
    put,
    quick_path,
    stopped,
)

RESCUED = f"{OLD}_0"
REPLACED = f"{NEW}_0"
SYNCS = ("fsync", "fsync-dir", "syncfs")
OLD_ENTRIES = entries(recovery_point=9, log_start=6, high_watermark=9)
NEW_ENTRIES = entries(recovery_point=2, log_start=1, high_watermark=2, cleaner=1)


class Host:
    """Two log dirs: a deletion captured in the first, the topic made anew in one of them."""

    def __init__(self, path: Path, present: int = 0) -> None:
        self.tops = [path / "d1", path / "d2"]
        self.present = present
        for number, top in enumerate(self.tops):
            put(top, {"meta.properties": meta(number), **OLD_ENTRIES})
            make_root(HostDisk(), str(top))
        put(self.tops[0] / DELETED, FILES)
        self.calls: list[Call] = []
        self.before: Callable[[int, Call], None] = lambda number, call: None
        with ExitStack() as stack:
            capture(self.open_dirs(stack)[0], [CaptureItem(name=DELETED, delay_ms=DELAY_MS)], instant)
        for name in os.listdir(self.tops[0] / DELETED):
            (self.tops[0] / DELETED / name).unlink()
        (self.tops[0] / DELETED).rmdir()
        put(self.tops[present] / "t-0", NEW_FILES)
        put(self.tops[present], NEW_ENTRIES)
        self.calls = []

    def tell(self, call: Call) -> None:
        self.calls.append(call)
        self.before(len(self.calls) - 1, call)

    def open_dirs(self, stack: ExitStack) -> list[OpenLogDir]:
        disk = HostDisk(self.tell)
        return [stack.enter_context(open_site(disk, str(top))).open_dir for top in self.tops]

    def adopt(self, change: Callable[[AdoptItem], AdoptItem] = lambda item: item) -> Outcome:
        self.calls = []
        with ExitStack() as stack:
            open_dirs = self.open_dirs(stack)
            present = open_dirs[self.present]
            item = AdoptItem(
                name=RESCUED,
                marker=self.marker(0, f"deleting/{RESCUED}"),
                topic="t",
                topic_id=NEW,
                present=present,
                present_marker=present_marker(present, self.seen_inode()),
            )
            return adopt(open_dirs[0], change(item), open_dirs)

    def recover(self) -> RecoveredAdoptions:
        with ExitStack() as stack:
            open_dirs = self.open_dirs(stack)
            found = recover_broker(open_dirs, is_whole=True).adoptions
            self.calls = []
            again = recover_broker(open_dirs, is_whole=True)
            assert again.adoptions == RecoveredAdoptions(finished=(), withdrawn=(), troubled=())
            assert [call for call in self.calls if call.name not in SYNCS] == []
            return found

    def seen_inode(self) -> int:
        """Return the inode of what is live, wherever."""
        return next(self.live(number).stat().st_ino for number in (0, 1) if self.live(number).exists())

    def live(self, number: int) -> Path:
        return self.tops[number] / "t-0"

    def work(self, number: int) -> Path:
        return Path(f"{self.tops[number]}.logdird")

    def marker(self, number: int, place: str) -> ReplicaMarker:
        with HostDisk().open_top(str(self.work(number) / place)) as directory:
            marker = read_marker(directory)
        assert marker is not None
        return marker

    def state(self) -> str:
        """Say which of the two ends this is; anything else fails."""
        incoming = [name for number in (0, 1) for name in os.listdir(self.work(number) / "incoming")]
        assert incoming == []
        checkpoints = {
            number: {name: (self.tops[number] / name).read_bytes() for name in OLD_ENTRIES} for number in (0, 1)
        }
        live = [number for number in (0, 1) if self.live(number).exists()]
        files = files_of(self.live(live[0]))
        assert len(live) == 1
        assert not any(name.startswith("replica.") for name in os.listdir(self.live(live[0])))
        if files == NEW_FILES:
            assert live == [self.present]
            assert checkpoints[self.present] == NEW_ENTRIES
            assert files_of(self.work(0) / f"deleting/{RESCUED}") == FILES
            assert os.listdir(self.work(self.present) / "deleting") == [RESCUED][self.present :]
            return "not adopted"
        assert files == ADOPTED
        assert live == [0]
        assert checkpoints[0] == OLD_ENTRIES
        if self.present == 1:
            assert checkpoints[1] == entries()
        assert files_of(self.work(self.present) / f"deleting/{REPLACED}") == NEW_FILES
        marker = self.marker(self.present, f"deleting/{REPLACED}")
        assert (marker.reason, marker.checkpoints.log_start) == (Reason.DUPLICATE, 1)
        rescued = self.work(0) / f"deleting/{RESCUED}"
        assert not rescued.exists() or files_of(rescued) == FILES
        return "adopted"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[int], Host]]:
    count = iter(range(10_000))
    with quick_path(tmp_path) as path:
        yield lambda present: Host(path / str(next(count)), present)


@pytest.mark.parametrize("present", [0, 1])
@pytest.mark.parametrize("keep", [False, True])
def test_a16_a36_the_files_come_back_under_the_new_id_without_the_last_indexes(
    fresh: Callable[[int], Host], present: int, keep: bool
) -> None:
    host = fresh(present)
    inodes = {p.name: p.stat().st_ino for p in (host.work(0) / f"deleting/{RESCUED}").iterdir()}
    outcome = host.adopt(lambda item: replace(item, keep=keep))
    assert (outcome.result, outcome.place) == (Result.DONE, "t-0")
    assert host.state() == "adopted"
    assert (host.work(0) / f"deleting/{RESCUED}").exists() == keep
    for path in host.live(0).iterdir():
        assert path.name == "partition.metadata" or path.stat().st_ino == inodes[path.name]
    assert host.recover() == RecoveredAdoptions(finished=(), withdrawn=(), troubled=())
    assert host.state() == "adopted"


def test_what_was_kept_can_be_taken_again_after_the_broker_lost_the_live_one(fresh: Callable[[int], Host]) -> None:
    host = fresh(0)
    assert host.adopt(lambda item: replace(item, keep=True)).result is Result.DONE
    assert host.adopt(lambda item: replace(item, keep=True)).result is Result.DONE
    assert [call for call in host.calls if call.name not in SYNCS] == []
    for path in host.live(0).iterdir():
        path.unlink()
    put(host.live(0), NEW_FILES)
    assert host.adopt().result is Result.DONE
    assert files_of(host.live(0)) == ADOPTED
    assert sorted(os.listdir(host.work(0) / "deleting")) == [REPLACED, f"{REPLACED}.2"]


@pytest.mark.parametrize("present", [0, 1])
def test_a16_an_adoption_stopped_at_any_call_is_either_not_begun_or_finished(
    fresh: Callable[[int], Host], present: int
) -> None:
    host = fresh(present)
    host.adopt()
    calls = len(host.calls)
    ends = []
    for at in range(calls):
        host = fresh(present)

        with stopped(host, numbered(at)):
            host.adopt()
        host.recover()
        ends.append(host.state())
        if (host.work(0) / f"deleting/{RESCUED}").exists():
            assert host.adopt(lambda item: item).result is Result.DONE
            assert host.state() == "adopted"
            assert not (host.work(0) / f"deleting/{RESCUED}").exists()
    assert ends == sorted(ends, key=("not adopted", "adopted").index)
    assert set(ends) == {"adopted", "not adopted"}


@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_an_error_of_any_call_ends_done_undone_or_read_only(
    fresh: Callable[[int], Host], number: int, for_ever: bool
) -> None:
    host = fresh(0)
    host.adopt()
    calls = len(host.calls)
    results = set()
    for at in range(calls):
        host = fresh(0)

        def fail(count: int, call: Call, at: int = at) -> None:
            if count == at or (for_ever and count > at):
                raise OSError(number, os.strerror(number), call.path)

        host.before = fail
        try:
            outcome = host.adopt()
        except ReadOnlyDiskError:
            results.add("read-only")
            host.before = lambda number, call: None
            host.recover()
            host.state()
        else:
            results.add(outcome.result.value)
            host.before = lambda number, call: None
            if outcome.result is Result.UNDONE and not for_ever:
                assert os.listdir(host.work(0) / "incoming") == [], host.calls[at]
            host.recover()
            assert (host.state() == "adopted") == (outcome.result is Result.DONE), host.calls[at]
    wanted = {"read-only"} if number == errno.EIO else {"done", "undone", "read-only"}
    if number == errno.ENOSPC and not for_ever:
        wanted = {"done", "read-only"}  # out of the reserve
    assert results == wanted


def test_a13_a_future_replica_anywhere_speaks_against_it(fresh: Callable[[int], Host]) -> None:
    host = fresh(0)
    (host.tops[1] / "t-0.0123456789abcdef0123456789abcdef-future").mkdir()
    outcome = host.adopt()
    assert (outcome.result, host.calls) == (Result.UNDONE, [])


def test_a_second_live_replica_speaks_against_it(fresh: Callable[[int], Host]) -> None:
    host = fresh(0)
    put(host.tops[1] / "t-0", NEW_FILES)
    outcome = host.adopt()
    assert (outcome.result, host.calls) == (Result.UNDONE, [])
    assert outcome.error is not None
    assert all(str(top) in outcome.error.found for top in host.tops)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda item: replace(item, topic="u"), id="no such topic"),
        pytest.param(lambda item: replace(item, topic_id=OLD), id="its own id"),
        pytest.param(lambda item: replace(item, name="x"), id="no such name"),
        pytest.param(lambda item: replace(item, marker=replace(item.marker, tiered=True)), id="a33 tiered"),
        pytest.param(
            lambda item: replace(item, marker=replace(item.marker, staged_at_ms=1)), id="another marker by now"
        ),
        pytest.param(
            lambda item: replace(item, present_marker=replace(item.present_marker, reason=Reason.OPERATOR)),
            id="another reason",
        ),
    ],
)
def test_what_cannot_be_adopted_changes_nothing(
    fresh: Callable[[int], Host], change: Callable[[AdoptItem], AdoptItem]
) -> None:
    host = fresh(0)
    assert host.adopt(change).result is Result.UNDONE
    assert host.calls == []
    assert host.state() == "not adopted"


def test_a_checkpoint_that_is_torn_is_found_before_anything_is_renamed(fresh: Callable[[int], Host]) -> None:
    host = fresh(0)
    (host.tops[0] / "cleaner-offset-checkpoint").write_bytes(b"0\n1\nt 0")
    assert (host.adopt().result, host.calls) == (Result.UNDONE, [])
