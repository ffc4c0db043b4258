"""Staging, restoring and holding replicas of a real file system."""

from __future__ import annotations

import errno
import os
import stat as st
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.replica.outcome import Result
from logdir.disk.replica.replica_dir import NEW_MARKER, last_indexes
from logdir.disk.replica.staging import RestoreItem, StageItem, hold, restore, stage
from logdir.errors import MalformedFileError, ReadOnlyDiskError, RefusedError
from logdir.formats.kafka import offset_checkpoint
from logdir.formats.kafka.offset_checkpoint import TopicPartition
from logdir.formats.own.replica_marker import FILE_NAME, Checkpoints, Intent, render
from logdir.refusal_slug import Why
from tests.builders import TOPIC_ID, partition
from tests.logdir.disk.staged_rig import (
    BY_ID,
    GID,
    UID,
    make_log_dir,
    make_staged,
    marker_of,
    opened,
    owner,
    seen,
    staged_marker,
    take_back,
)
from tests.whole_refusal import require_whole

LAST = ("00000000000000000007.index", "00000000000000000007.log")


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    return make_log_dir(tmp_path / "d1", "a-0")


def deleting(path: Path) -> Path:
    return path.with_name(f"{path.name}.logdird") / "deleting"


@pytest.mark.parametrize("path", ["a-0", BY_ID], ids=["by name", "by id"])
def test_there_and_back_changes_nothing(path: str, tmp_path: Path) -> None:
    made = make_log_dir(tmp_path / "d1", path)
    before = seen(tmp_path)
    with opened(made) as open_dir:
        done = make_staged(open_dir, path)
        assert (done.result, done.place) == (Result.DONE, f"deleting/{TOPIC_ID}_0")
        place = Path(open_dir.deleting.path) / f"{TOPIC_ID}_0"
        assert not (made / path).exists()
        assert staged_marker(place) == marker_of(open_dir, os.path.relpath(place, made), path=path)
        assert owner(place / FILE_NAME) == (UID, GID, 0o640)
        back = take_back(open_dir, place.name, path)
    assert (back.result, back.place) == (Result.DONE, path)
    assert seen(tmp_path, markers=True) == before


def test_without_an_id_the_topic_is_the_name(d1: Path) -> None:
    with opened(d1) as open_dir:
        assert make_staged(open_dir, "a-0", topic_id=None).place == "deleting/no-id.a_0"


def test_a_taken_name_gets_the_next_number_and_one_being_purged_is_taken(d1: Path) -> None:
    with opened(d1) as open_dir:
        for taken in (f"{TOPIC_ID}_0", f"{TOPIC_ID}_0.2.purging", f"{TOPIC_ID}_0.3"):
            (deleting(d1) / taken).mkdir()
            (deleting(d1) / taken / "kept").write_bytes(b"kept")
        before = seen(deleting(d1))
        assert make_staged(open_dir, "a-0").place == f"deleting/{TOPIC_ID}_0.4"
        assert set(before.items()) < set(seen(deleting(d1)).items())


@pytest.mark.parametrize("kind", ["directory", "link", "fifo"])
def test_a_replica_that_holds_what_is_no_file_stays_as_it_is(kind: str, d1: Path) -> None:
    inner = d1 / "a-0" / "strange"
    match kind:
        case "directory":
            inner.mkdir()
        case "link":
            inner.symlink_to("/etc/passwd")
        case _:
            os.mkfifo(inner)
    before = seen(d1.parent, markers=True)
    with opened(d1) as open_dir:
        done = make_staged(open_dir, "a-0")
    assert done.result is Result.UNDONE
    assert isinstance(done.error, RefusedError)
    assert "a-0/strange" in str(done.error)
    assert seen(d1.parent, markers=True) == before


def test_a44_a_link_with_a_live_name_is_not_followed(d1: Path, tmp_path: Path) -> None:
    elsewhere = partition(tmp_path / "elsewhere")
    (d1 / "b-0").symlink_to(elsewhere)
    before = seen(tmp_path, markers=True)
    with opened(d1) as open_dir:
        assert make_staged(open_dir, "b-0", "b").result is Result.UNDONE
    assert seen(tmp_path, markers=True) == before


def test_a_directory_that_is_another_by_now_is_refused_and_the_rest_of_the_batch_done(tmp_path: Path) -> None:
    made = make_log_dir(tmp_path / "d1", "a-0", "b-0", "c-0")
    with opened(made) as open_dir:
        items = [StageItem(path=f"{t}-0", marker=marker_of(open_dir, f"{t}-0", t, None)) for t in "abc"]
        (made / "b-0").rename(made / "x-0")
        partition(made / "b-0")
        (made / "c-0").rename(made / "y-0")
        found = stage(open_dir, items)
    assert [one.result for one in found] == [Result.DONE, Result.UNDONE, Result.UNDONE]
    assert isinstance(found[1].error, RefusedError)
    assert "run the command again" in str(found[1].error)
    assert not (made / "b-0" / FILE_NAME).exists()


def test_a11_markers_left_over_are_replaced_and_strangers_not_touched(d1: Path) -> None:
    for name in ("stranger.txt", "zz"):
        (d1 / name).write_bytes(b"unknown")
    (deleting(d1) / "not-one-of-ours").mkdir()
    for name in (FILE_NAME, "replica.new.json"):
        (d1 / "a-0" / name).write_bytes(b"half a mar")
    before = {path: facts for path, facts in seen(d1.parent).items() if "a-0" not in path}
    with opened(d1) as open_dir:
        assert make_staged(open_dir, "a-0").result is Result.DONE
    staged = deleting(d1) / f"{TOPIC_ID}_0"
    assert staged_marker(staged).path == "a-0"
    assert not (staged / "replica.new.json").exists()
    after = {path: facts for path, facts in seen(d1.parent).items() if TOPIC_ID not in path}
    assert after == before


def test_a_batch_is_marked_before_it_is_renamed_and_each_directory_synced_once(tmp_path: Path) -> None:
    made = make_log_dir(tmp_path / "d1", "a-0", "b-0", "c-0")
    calls: list[Call] = []
    with opened(made, HostDisk(calls.append)) as open_dir:
        stage(open_dir, [StageItem(path=f"{t}-0", marker=marker_of(open_dir, f"{t}-0", t, None)) for t in "abc"])
    assert [call.name for call in calls] == ["write"] * 3 + ["syncfs"] + ["rename"] * 3 + ["fsync-dir"] * 2
    assert [call.path for call in calls[-2:]] == [str(deleting(made)), str(made)]


def test_an_error_of_one_rename_leaves_its_replica_without_a_marker(d1: Path) -> None:
    with opened(d1) as open_dir:
        item = StageItem(path="a-0", marker=marker_of(open_dir, "a-0", "t" * 249, None))
        # no-id.{249}_0.purging is longer than a name may be.
        (found,) = stage(open_dir, [item])
    assert found.result is Result.UNDONE
    assert isinstance(found.error, RefusedError)
    assert found.error.slug == "name-too-long"
    assert not (d1 / "a-0" / FILE_NAME).exists()


def test_a_long_name_without_id_that_is_taken_is_refused_where_the_next_does_not_fit(tmp_path: Path) -> None:
    topic = "t" * 239
    made = make_log_dir(tmp_path / "d1", f"{topic}-0")
    with opened(made) as open_dir:
        assert make_staged(open_dir, f"{topic}-0", topic, None).place == f"deleting/no-id.{topic}_0"
        partition(made / f"{topic}-0")
        found = make_staged(open_dir, f"{topic}-0", topic, None)
        assert isinstance(found.error, RefusedError)
        assert found.error.slug == "name-too-long"
    assert os.listdir(deleting(made)) == [f"no-id.{topic}_0"]
    assert FILE_NAME not in os.listdir(made / f"{topic}-0")


def test_a36_restore_drops_the_last_indexes_only_if_asked(d1: Path) -> None:
    before = seen(d1 / "a-0")
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0")
        take_back(open_dir, f"{TOPIC_ID}_0", "a-0")
        assert seen(d1 / "a-0") == before
        make_staged(open_dir, "a-0")
        take_back(open_dir, f"{TOPIC_ID}_0", "a-0", drop=True)
    left = seen(d1 / "a-0")
    assert set(before) - set(left) == {LAST[0]}
    assert all(before[name] == facts for name, facts in left.items())


@pytest.mark.parametrize("drop", [False, True])
def test_a36_no_replica_is_renamed_back_before_it_is_durable_that_its_last_indexes_are_gone(
    d1: Path, drop: bool
) -> None:
    """A power cut could bring them back under a live name: the broker would trust their zeros."""
    calls: list[Call] = []
    with opened(d1, HostDisk(calls.append)) as open_dir:
        make_staged(open_dir, "a-0")
        del calls[:]
        assert take_back(open_dir, f"{TOPIC_ID}_0", "a-0", drop=drop).result is Result.DONE
    names = [call.name for call in calls]
    assert names[: names.index("rename")] == (["unlink", "fsync-dir"] if drop else [])
    if drop:
        assert calls[1].path == str(deleting(d1) / f"{TOPIC_ID}_0")


def test_what_is_on_its_way_in_is_not_restored(d1: Path) -> None:
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0", intent=Intent.INCOMING)
        before = seen(d1.parent, markers=True)
        found = take_back(open_dir, f"{TOPIC_ID}_0", "a-0", drop=True)
    assert isinstance(found.error, RefusedError)
    require_whole(
        found.error,
        Why.NOT_STAGED,
        path=f"{deleting(d1)}/{TOPIC_ID}_0",
        expected="a staged or captured replica",
        found="an incoming replica",
        fix="run logdirctl staged ls, which shows what is staged now",
    )
    assert seen(d1.parent, markers=True) == before


def test_a30_restore_puts_the_checkpoint_entries_back_and_keeps_the_others(d1: Path) -> None:
    points = Checkpoints(recovery_point=3, log_start=2, high_watermark=4, cleaner=1)
    other = {TopicPartition("other", 1): 9}
    for name in offset_checkpoint.NAMES[:3]:
        (d1 / name).write_bytes(offset_checkpoint.render(other))
        os.chown(d1 / name, UID, GID)
        (d1 / name).chmod(0o604)
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0", checkpoints=points)
        take_back(open_dir, f"{TOPIC_ID}_0", "a-0")
    own = TopicPartition("a", 0)
    found = [offset_checkpoint.parse((d1 / name).read_bytes()) for name in offset_checkpoint.NAMES]
    assert found == [other | {own: 3}, other | {own: 2}, other | {own: 4}, {own: 1}]
    assert [owner(d1 / name)[2] for name in offset_checkpoint.NAMES] == [0o604] * 3 + [0o640]
    assert {owner(d1 / name)[:2] for name in offset_checkpoint.NAMES} == {(UID, GID)}


def test_a30_restore_keeps_no_entry_of_a_later_replica_of_that_name(d1: Path) -> None:
    key = TopicPartition("a", 0)
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0", checkpoints=Checkpoints(high_watermark=3))
        # The broker made it again, empty, and records of that one were deleted up to 500.
        for name in offset_checkpoint.NAMES:
            (d1 / name).write_bytes(offset_checkpoint.render({key: 500, TopicPartition("b", 0): 7}))
        done = take_back(open_dir, f"{TOPIC_ID}_0", "a-0", checkpoints=Checkpoints(high_watermark=3))
    assert done.result is Result.DONE, done.error
    found = [offset_checkpoint.parse((d1 / name).read_bytes()) for name in offset_checkpoint.NAMES]
    assert found == [{TopicPartition("b", 0): 7} | own for own in ({}, {}, {key: 3}, {})]


def test_a09_restore_makes_a_prefix_that_belongs_to_whom_the_log_dir_does(tmp_path: Path) -> None:
    made = make_log_dir(tmp_path / "d1", BY_ID)
    prefix = made / BY_ID[:2]
    with opened(made) as open_dir:
        make_staged(open_dir, BY_ID)
        prefix.rmdir()
        assert take_back(open_dir, f"{TOPIC_ID}_0", BY_ID).result is Result.DONE
        assert owner(prefix) == (UID, GID, 0o750)
        make_staged(open_dir, BY_ID)
        # As a process leaves it that is killed between two calls.
        os.chown(prefix, os.geteuid(), os.getegid())
        prefix.chmod(0o700)
        assert take_back(open_dir, f"{TOPIC_ID}_0", BY_ID).result is Result.DONE
    assert owner(prefix) == (UID, GID, 0o750)


def test_restore_refuses_a_name_that_is_taken_and_changes_nothing(d1: Path) -> None:
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0", checkpoints=Checkpoints(log_start=5))
        partition(d1 / "a-0")
        (d1 / offset_checkpoint.NAMES[1]).write_bytes(offset_checkpoint.render({TopicPartition("a", 0): 1}))
        before = seen(d1.parent, markers=True)
        found = take_back(open_dir, f"{TOPIC_ID}_0", "a-0", drop=True)
    assert isinstance(found.error, RefusedError)
    require_whole(
        found.error,
        Why.NAME_TAKEN,
        path=f"{d1}/a-0",
        expected="nothing of that name",
        found="an entry of that name",
        fix="inspect it and move it away; nothing is ever replaced",
    )
    assert seen(d1.parent, markers=True) == before


def test_a25_restore_refuses_another_marker_another_inode_and_another_host(d1: Path, tmp_path: Path) -> None:
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0")
        name = f"{TOPIC_ID}_0"
        before = seen(d1.parent, markers=True)
        assert isinstance(take_back(open_dir, name, "a-0", delay_ms=7).error, RefusedError)
        strange: tuple[dict[str, Any], ...] = (
            {"cluster_id": "x"},
            {"node_id": 9},
            {"directory_id": "AEXY6aqzQY-32P5TStzaFg"},
            {"birth_inode": 1},
        )
        for more in strange:
            made = make_log_dir(tmp_path / f"d-{next(iter(more))}", "a-0")
            with opened(made) as other:
                make_staged(other, "a-0")
                marker = marker_of(other, str(deleting(made) / name), path="a-0", **more)
                (deleting(made) / name / FILE_NAME).write_bytes(render(marker))
                found = restore(other, RestoreItem(name=name, marker=marker, path="a-0", drop_last_indexes=False))
                assert isinstance(found.error, RefusedError), more
                assert "foreign" in str(found.error)
                assert isinstance(hold(other, name).error, RefusedError)
        assert {p: f for p, f in seen(d1.parent, markers=True).items() if not p.startswith("d-")} == before


def test_a30_restore_leaves_checkpoints_it_cannot_rewrite(d1: Path) -> None:
    (d1 / offset_checkpoint.NAMES[1]).write_bytes(b"0\n1\nother 0 -1\n")
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0", checkpoints=Checkpoints(log_start=5))
        found = take_back(open_dir, f"{TOPIC_ID}_0", "a-0")
    assert isinstance(found.error, MalformedFileError)
    assert (d1 / offset_checkpoint.NAMES[1]).read_bytes() == b"0\n1\nother 0 -1\n"
    assert (deleting(d1) / f"{TOPIC_ID}_0").exists()


@pytest.mark.parametrize("name", [f"{TOPIC_ID}_0.purging", f"{TOPIC_ID}_0", "strange", f"{TOPIC_ID}_1"])
def test_a18_what_is_claimed_is_neither_restored_nor_held(name: str, d1: Path) -> None:
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0")
        marker = staged_marker(deleting(d1) / f"{TOPIC_ID}_0")
        (deleting(d1) / f"{TOPIC_ID}_0").rename(deleting(d1) / f"{TOPIC_ID}_0.purging")
        before = seen(d1.parent, markers=True)
        item = RestoreItem(name=name, marker=marker, path="a-0", drop_last_indexes=True)
        assert isinstance(restore(open_dir, item).error, RefusedError)
        assert isinstance(hold(open_dir, name).error, RefusedError)
    assert seen(d1.parent, markers=True) == before


def test_hold_takes_the_deadline_and_nothing_else(d1: Path) -> None:
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0", delay_ms=5000)
        place = deleting(d1) / f"{TOPIC_ID}_0"
        marker, before = staged_marker(place), seen(place)
        assert hold(open_dir, place.name).result is Result.DONE
        held = staged_marker(place)
        assert (held.delay_ms, held.topic_id, held.birth_inode) == (None, marker.topic_id, marker.birth_inode)
        inode = (place / FILE_NAME).stat().st_ino
        assert hold(open_dir, place.name).result is Result.DONE
        assert (place / FILE_NAME).stat().st_ino == inode, "written again for nothing"
        assert seen(place) == before
        assert owner(place / FILE_NAME) == (UID, GID, 0o640)


def test_what_is_held_already_is_made_durable_before_it_is_said(d1: Path) -> None:
    """Whoever took the deadline may have been killed before that was durable."""
    calls: list[tuple[str, str]] = []
    with opened(d1, disk=HostDisk(lambda call: calls.append((call.name, call.path)))) as open_dir:
        make_staged(open_dir, "a-0", delay_ms=None)
        place = deleting(d1) / f"{TOPIC_ID}_0"
        calls.clear()
        assert hold(open_dir, place.name).result is Result.DONE
    assert [call for call in calls if call[0] != "close"] == [("fsync-dir", str(place))]


class FullDisk(HostDisk):
    """Says of every second call of one kind that there is no room."""

    def __init__(self, refused: str) -> None:
        self.made: list[str] = []
        self._refused = refused
        super().__init__(self._observe)

    def _observe(self, call: Call) -> None:
        self.made.append(call.name)
        if call.name == self._refused and self.made.count(call.name) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), call.path)


@pytest.mark.parametrize("refused", ["write", "rename"])
def test_a10_a_full_disk_uses_the_reserve_once(refused: str, d1: Path) -> None:
    disk = FullDisk(refused)
    with opened(d1, disk) as open_dir:
        assert make_staged(open_dir, "a-0").result is Result.DONE
    assert disk.made.count("truncate") == 1
    assert (deleting(d1).parent / "reserve").stat().st_size == 0
    with opened(d1, FullDisk(refused)) as open_dir:
        partition(d1 / "b-0")
        found = make_staged(open_dir, "b-0", "b", None)
    assert found.result is Result.UNDONE
    assert "No space left" in str(found.error)
    assert not (d1 / "b-0" / FILE_NAME).exists()


class SyncsFail(HostDisk):
    """Says of the sync of a number that there is no room, and of no other call anything."""

    def __init__(self, at: int) -> None:
        self.made: list[str] = []
        self._at = at
        super().__init__(self._observe)

    def _observe(self, call: Call) -> None:
        self.made.append(call.name)
        if call.name.startswith(("fsync", "syncfs")) and self.syncs - 1 == self._at:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), call.path)

    @property
    def syncs(self) -> int:
        return sum(name.startswith(("fsync", "syncfs")) for name in self.made)


@pytest.mark.parametrize(
    ("what", "syncs"),
    [("stage", 3), ("hold", 2), ("hold what is held", 1), ("restore", 2), ("restore what is torn", 3)],
)
def test_nothing_follows_a_sync_that_failed_and_no_replica_is_called_as_it_was(
    what: str, syncs: int, tmp_path: Path
) -> None:
    name = f"{TOPIC_ID}_0"
    for at in range(syncs + 1):
        path = make_log_dir(tmp_path / f"d{at}", "a-0")
        if what != "stage":
            with opened(path) as open_dir:
                make_staged(open_dir, "a-0", delay_ms=None if what == "hold what is held" else 5000)
        disk = SyncsFail(at)
        with opened(path, disk) as open_dir, pytest.raises(ReadOnlyDiskError) if at < syncs else nullcontext():
            match what:
                case "stage":
                    make_staged(open_dir, "a-0")
                case "hold" | "hold what is held":
                    hold(open_dir, name)
                case _:
                    take_back(open_dir, name, "a-0", drop=what.endswith("torn"))
        assert disk.syncs == min(at + 1, syncs)
        assert disk.made[-1].startswith(("fsync", "syncfs")) or at == syncs


def _rename_over(site_directory: Directory) -> None:
    site_directory.rename("one", site_directory, "two")


def test_a_rename_never_goes_over_an_empty_directory(d1: Path) -> None:
    (deleting(d1) / "one").mkdir()
    (deleting(d1) / "two").mkdir()
    with opened(d1) as open_dir, pytest.raises(FileExistsError):
        _rename_over(open_dir.deleting)
    assert st.S_ISDIR((deleting(d1) / "one").stat().st_mode)


@pytest.mark.parametrize("left", [FILE_NAME, NEW_MARKER])
def test_what_an_interrupted_staging_left_under_a_live_name_is_replaced_by_the_next(d1: Path, left: str) -> None:
    (d1 / "a-0" / left).write_bytes(b"torn")
    with opened(d1) as open_dir:
        assert make_staged(open_dir, "a-0").result is Result.DONE
        place = deleting(d1) / f"{TOPIC_ID}_0"
        assert staged_marker(place) == marker_of(open_dir, os.path.relpath(place, d1), path="a-0")
    assert NEW_MARKER not in os.listdir(place)


def test_a36_no_index_is_taken_for_the_last_whose_segment_is_not_there() -> None:
    names = [f"{0:020}.log", f"{0:020}.index", f"{7:020}.index", f"{7:020}.snapshot", "x" * 20 + ".log"]
    assert last_indexes(names) == (f"{0:020}.index",)


def test_what_was_staged_before_its_log_dir_had_an_id_is_restored(d1: Path) -> None:
    """Kafka before 3.7 gives a log dir no id; a later release gives it one."""
    with opened(d1) as open_dir:
        assert make_staged(open_dir, "a-0", directory_id=None).result is Result.DONE
        assert take_back(open_dir, f"{TOPIC_ID}_0", "a-0").result is Result.DONE
