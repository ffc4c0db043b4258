"""What a start makes of what an interruption left, on a real file system."""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.recover_log_dir import Recovered, recover
from logdir.disk.replica.replica_dir import read_marker, require_marker
from logdir.errors import MalformedFileError, ReadOnlyDiskError, RefusedError
from logdir.formats.own import own_json
from logdir.formats.own.replica_marker import FILE_NAME, Intent, render
from tests.builders import TOPIC_ID, partition
from tests.logdir.disk.staged_rig import BY_ID, make_log_dir, make_staged, marker_of, opened, seen

NOTHING = Recovered(unmarked=(), dropped=(), troubled=())
INCOMING = f"{TOPIC_ID}_5"


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    return make_log_dir(tmp_path / "d1", "a-0", "b-0")


def work(path: Path) -> Path:
    return path.with_name(f"{path.name}.logdird")


def recovered(path: Path) -> Recovered:
    """Recover, and once more: the second time changes nothing."""
    with opened(path) as open_dir:
        first = recover(open_dir)
        after = seen(path.parent, markers=True)
        assert recover(open_dir) == replace(first, unmarked=(), dropped=())
        assert seen(path.parent, markers=True) == after
    return first


def test_of_what_was_not_interrupted_nothing_changes(d1: Path) -> None:
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0")
    before = seen(d1.parent, markers=True)
    assert recovered(d1) == NOTHING
    assert seen(d1.parent, markers=True) == before


@pytest.mark.parametrize("number", [0, errno.EIO, errno.ENOSPC])
def test_nothing_is_decided_on_what_a_killed_process_did_before_that_is_durable(d1: Path, number: int) -> None:
    """A rename that is seen may be gone after a power cut; what was decided on it would be there."""
    calls: list[str] = []

    def failing(call: Call) -> None:
        calls.append(call.name)
        if number and call.name == "syncfs":
            raise OSError(number, os.strerror(number), call.path)

    (d1 / "a-0" / FILE_NAME).write_bytes(b"half")
    with opened(d1, HostDisk(failing)) as open_dir, pytest.raises(ReadOnlyDiskError) if number else nullcontext():
        recover(open_dir)
    assert calls[0] == "syncfs"
    assert set(calls[1:]) == (set() if number else {"unlink"})


@pytest.mark.parametrize("path", ["a-0", BY_ID], ids=["by name", "by id"])
@pytest.mark.parametrize("name", [FILE_NAME, "replica.new.json"])
def test_a08_a_live_one_loses_its_marker(path: str, name: str, tmp_path: Path) -> None:
    made = make_log_dir(tmp_path / "d1", path)
    before = seen(tmp_path, markers=True)
    (made / path / name).write_bytes(b"whatever")
    assert recovered(made) == replace(NOTHING, unmarked=(path,))
    assert seen(tmp_path, markers=True) == before


@pytest.mark.parametrize("name", [FILE_NAME, "replica.new.json", "partition.metadata.new.json"])
@pytest.mark.parametrize("kind", ["delete", "stray"])
def test_a_marker_that_a_broker_renamed_away_with_its_directory_goes(kind: str, name: str, tmp_path: Path) -> None:
    """A stage was killed before its rename, and a broker ran: it knows no marker, and leaves it."""
    path = f"a-0.{32 * 'c'}-{kind}"
    made = make_log_dir(tmp_path / "d1", "a-0")
    (made / "a-0").rename(made / path)
    before = seen(tmp_path, markers=True)
    (made / path / name).write_bytes(b"whatever")
    recovered(made)
    assert seen(tmp_path, markers=True) == before


def test_half_a_new_marker_goes_and_the_whole_one_stays(d1: Path) -> None:
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0")
    before = seen(d1.parent, markers=True)
    (work(d1) / "deleting" / f"{TOPIC_ID}_0" / "replica.new.json").write_bytes(b"half")
    assert recovered(d1) == NOTHING
    assert seen(d1.parent, markers=True) == before


IN_LOG_DIR = ("start-block.json.tmp", "layout.json.tmp")
IN_WORK_ROOT = ("staging-limit.json.tmp", "controller.json.tmp", "heartbeat.json.tmp", "quarantine.json.tmp")
NEW_METADATA = "partition.metadata.new.json"


@pytest.mark.parametrize("data", [b"", b"half a fi", b"all of it"], ids=["empty", "half", "whole"])
@pytest.mark.parametrize("path", ["a-0", BY_ID], ids=["by name", "by id"])
def test_no_file_that_we_began_stays_beside_the_one_it_was_to_be(path: str, data: bytes, tmp_path: Path) -> None:
    made = make_log_dir(tmp_path / "d1", path)
    before = seen(tmp_path, markers=True)
    with opened(made) as open_dir:
        roots = [(made, IN_LOG_DIR), (Path(open_dir.work.path), IN_WORK_ROOT), (made / path, (NEW_METADATA,))]
    for root, names in roots:
        for name in names:
            (root / name).write_bytes(data)
    assert recovered(made) == NOTHING
    assert seen(tmp_path, markers=True) == before


def test_no_file_that_a_broker_may_have_begun_is_taken_away(d1: Path) -> None:
    names = ("meta.properties.tmp", "recovery-point-offset-checkpoint.tmp", "a-0/partition.metadata.tmp", "other.tmp")
    for name in names:
        (d1 / name).write_bytes(b"half")
    # Under a name of ours, but nothing that we write: it is unknown.
    (d1 / "start-block.json.tmp").mkdir()
    (d1 / "layout.json.tmp").symlink_to("meta.properties")
    (d1 / "a-0" / NEW_METADATA).symlink_to("partition.metadata")
    before = seen(d1.parent, markers=True)
    assert recovered(d1) == NOTHING
    assert seen(d1.parent, markers=True) == before


def test_what_a_replica_was_before_its_layout_changed_is_not_taken_away(d1: Path) -> None:
    (d1 / "a-0" / "relayout.json").write_bytes(b"whatever")
    before = seen(d1.parent, markers=True)
    assert recovered(d1) == NOTHING
    assert seen(d1.parent, markers=True) == before


@pytest.mark.parametrize("size", [4096, 4097])
def test_no_marker_larger_than_a_block_is_believed(d1: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours fits in one: what is larger is none of ours, whatever it says."""
    with opened(d1) as open_dir:
        with monkeypatch.context() as larger:
            larger.setattr(own_json, "MAX_BYTES", 5000)
            room = size - len(render(marker_of(open_dir, "a-0", path="")))
            (d1 / "a-0" / FILE_NAME).write_bytes(render(marker_of(open_dir, "a-0", path="p" * room)))
        assert (d1 / "a-0" / FILE_NAME).stat().st_size == size
        with open_dir.top.open("a-0") as directory:
            if size == 4096:
                assert require_marker(open_dir, directory).path == "p" * room
            else:
                with pytest.raises(MalformedFileError, match="at most 4096 bytes"):
                    read_marker(directory)
                with pytest.raises(RefusedError, match="no command changes it"):
                    require_marker(open_dir, directory)


def test_what_is_claimed_is_left_to_the_sweep(d1: Path) -> None:
    with opened(d1) as open_dir:
        make_staged(open_dir, "a-0")
    deleting = work(d1) / "deleting"
    (deleting / f"{TOPIC_ID}_0").rename(deleting / f"{TOPIC_ID}_0.purging")
    before = seen(d1.parent, markers=True)
    assert recovered(d1) == NOTHING
    assert seen(d1.parent, markers=True) == before


def _incoming(d1: Path, intent: Intent | None, *, name: str = INCOMING, **more: Any) -> Path:
    made = work(d1) / "incoming" / name
    partition(made)
    if intent:
        with opened(d1) as open_dir:
            marker = marker_of(open_dir, os.path.relpath(made, d1), intent=intent, **more)
        (made / FILE_NAME).write_bytes(render(marker))
    return made


def test_an_unfinished_copy_goes(d1: Path) -> None:
    before = seen(d1.parent, markers=True)
    _incoming(d1, Intent.INCOMING)
    torn = work(d1) / "incoming" / f"{TOPIC_ID}_6"
    torn.mkdir()
    (torn / FILE_NAME).write_bytes(b"half a mar")
    (work(d1) / "incoming" / f"{TOPIC_ID}_7").mkdir()
    found = recovered(d1)
    assert found.dropped == tuple(f"incoming/{TOPIC_ID}_{number}" for number in (5, 6, 7))
    assert seen(d1.parent, markers=True) == before


def test_a_capture_of_nothing_goes(d1: Path) -> None:
    """Its process was killed before the first link: there is nothing to decide."""
    before = seen(d1.parent, markers=True)
    bare = _incoming(d1, Intent.CAPTURED, name=f"{TOPIC_ID}_6")
    for path in bare.iterdir():
        if path.name != FILE_NAME:
            path.unlink()
    (bare / "replica.new.json").write_bytes(b"half a mar")
    assert recovered(d1).dropped == (f"incoming/{TOPIC_ID}_6",)
    assert seen(d1.parent, markers=True) == before


def test_a_finished_copy_a_capture_and_what_nobody_explains_stay(d1: Path) -> None:
    _incoming(d1, Intent.INCOMING, name=f"{INCOMING}.ready")
    _incoming(d1, Intent.CAPTURED, name=f"{TOPIC_ID}_6")
    _incoming(d1, None, name=f"{TOPIC_ID}_7")
    _incoming(d1, Intent.INCOMING, name=f"{TOPIC_ID}_8", birth_inode=1)
    partition(work(d1) / "incoming" / "stranger")
    before = seen(d1.parent, markers=True)
    assert recovered(d1).dropped == ()
    assert seen(d1.parent, markers=True) == before


def test_a_copy_that_holds_more_than_files_stays_and_is_named(d1: Path) -> None:
    (_incoming(d1, Intent.INCOMING) / "inner").mkdir()
    before = seen(d1.parent, markers=True)
    found = recovered(d1)
    assert [one.path.startswith(f"{d1}.logdird/incoming/{INCOMING}") for one in found.troubled] == [True]
    assert seen(d1.parent, markers=True) == before


def test_one_that_cannot_be_looked_at_does_not_keep_the_others(d1: Path) -> None:
    (d1 / "a-0" / FILE_NAME).mkdir()
    (d1 / "b-0" / FILE_NAME).write_bytes(b"whatever")
    found = recovered(d1)
    assert found.unmarked == ("b-0",)
    assert [one.path for one in found.troubled] == [f"{d1}/a-0"]
    assert (d1 / "a-0" / FILE_NAME).is_dir()


def test_a_prefix_that_cannot_be_read_does_not_keep_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_log_dir(tmp_path / "d1", BY_ID)
    (made / "aa").mkdir()
    (made / BY_ID / FILE_NAME).write_bytes(b"whatever")
    open_directory = HostDirectory.open

    def refuse(directory: HostDirectory, name: str) -> HostDirectory:
        if name == "aa":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return open_directory(directory, name)

    monkeypatch.setattr(HostDirectory, "open", refuse)
    found = recovered(made)
    assert (found.unmarked, [one.path for one in found.troubled]) == ((BY_ID,), [f"{made}/aa"])


def test_only_a_directory_with_the_name_of_a_prefix_is_looked_into(d1: Path) -> None:
    (d1 / TOPIC_ID[:2]).write_bytes(b"a file")
    for stranger in ("lost+found", "backup"):
        for name in (f"{TOPIC_ID}_0", "a-0"):
            (d1 / stranger / name).mkdir(parents=True)
            (d1 / stranger / name / FILE_NAME).write_bytes(b"whatever")
    before = seen(d1.parent, markers=True)
    assert recovered(d1) == NOTHING
    assert seen(d1.parent, markers=True) == before


def test_strangers_and_links_are_not_touched(d1: Path, tmp_path: Path) -> None:
    elsewhere = partition(tmp_path / "elsewhere")
    (elsewhere / FILE_NAME).write_bytes(b"not ours")
    (d1 / "c-0").symlink_to(elsewhere)
    (d1 / "c-0.0123456789abcdef0123456789abcdef-future").mkdir()
    (d1 / "c-0.0123456789abcdef0123456789abcdef-future" / FILE_NAME).write_bytes(b"never staged by us")
    (d1 / "aa" / "backup").mkdir(parents=True)
    (d1 / "aa" / "backup" / FILE_NAME).write_bytes(b"not ours")
    (work(d1) / "deleting" / "stranger").mkdir()
    (work(d1) / "deleting" / "stranger" / "replica.new.json").write_bytes(b"not ours")
    (work(d1) / "deleting" / f"{TOPIC_ID}_9").symlink_to(elsewhere)
    before = seen(tmp_path, markers=True)
    assert recovered(d1) == NOTHING
    assert seen(tmp_path, markers=True) == before
