"""Claiming and removing staged replicas of a real file system."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.replica import purge
from logdir.disk.replica.outcome import Outcome, Result
from logdir.disk.replica.purge import GROUP, claim, remove
from logdir.disk.replica.staging import RestoreItem, hold, restore
from logdir.errors import RefusedError
from logdir.formats.own.replica_marker import FILE_NAME, Intent, render
from tests.builders import TOPIC_ID
from tests.logdir.disk.staged_rig import make_log_dir, make_staged, marker_of, opened, seen, staged_marker

NAME = f"{TOPIC_ID}_0"
CLAIMED = f"{NAME}.purging"
LOG = "00000000000000000000.log"


def nobody(directory: Directory, name: str) -> bool:
    return False


def somebody(directory: Directory, name: str) -> bool:
    return True


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    made = make_log_dir(tmp_path / "d1", "a-0", "b-0")
    with opened(made) as open_dir:
        make_staged(open_dir, "a-0")
    return made


def deleting(path: Path) -> Path:
    return path.with_name(f"{path.name}.logdird") / "deleting"


def test_what_is_claimed_is_removed_and_nothing_else(d1: Path) -> None:
    (deleting(d1) / "stranger").mkdir()
    before = {p: f for p, f in seen(d1.parent).items() if TOPIC_ID not in p}
    size = sum(f.stat().st_size for f in (deleting(d1) / NAME).iterdir() if f.suffix not in (".index", ".timeindex"))
    steps: list[tuple[int, int]] = []
    with opened(d1) as open_dir:
        claimed = claim(open_dir, NAME, staged_marker(deleting(d1) / NAME))
        assert claimed == CLAIMED
        remove(open_dir, claimed, lambda freed, files: steps.append((freed, files)), in_use=nobody)
    assert seen(d1.parent) == before
    assert sum(freed for freed, _ in steps) == size
    assert sum(files for _, files in steps) == 7


def test_a18_the_claim_is_on_the_marker_as_it_is(d1: Path) -> None:
    with opened(d1) as open_dir:
        judged = staged_marker(deleting(d1) / NAME)
        hold(open_dir, NAME)
        before = seen(d1.parent, markers=True)
        with pytest.raises(RefusedError, match="run logdirctl staged ls"):
            claim(open_dir, NAME, judged)
        held = staged_marker(deleting(d1) / NAME)
        (deleting(d1) / NAME / FILE_NAME).write_bytes(b"torn")
        with pytest.raises(RefusedError, match="held"):
            claim(open_dir, NAME, held)
        (deleting(d1) / NAME / FILE_NAME).unlink()
        with pytest.raises(RefusedError, match=r"^marker-unusable: .*found no such file"):
            claim(open_dir, NAME, held)
    assert set(seen(d1.parent, markers=True)) == {p for p in before if not p.endswith(FILE_NAME)}


def test_what_is_on_its_way_in_is_not_claimed(d1: Path) -> None:
    with opened(d1) as open_dir:
        marker = marker_of(open_dir, os.path.relpath(deleting(d1) / NAME, d1), intent=Intent.INCOMING, path="a-0")
        (deleting(d1) / NAME / FILE_NAME).write_bytes(render(marker))
        with pytest.raises(RefusedError, match="incoming"):
            claim(open_dir, NAME, marker)


def test_a18_a_claim_never_goes_over_another(d1: Path) -> None:
    (deleting(d1) / CLAIMED).mkdir()
    with opened(d1) as open_dir, pytest.raises(FileExistsError):
        claim(open_dir, NAME, staged_marker(deleting(d1) / NAME))
    assert (deleting(d1) / NAME / FILE_NAME).exists()


def test_a18_of_two_who_claim_or_restore_at_once_one_has_it(tmp_path: Path) -> None:
    """Both have seen the same marker; what one takes the other finds gone, and changes nothing."""
    made = make_log_dir(tmp_path / "d2", "a-0")
    wins = set()
    for _ in range(40):
        with opened(made) as open_dir, opened(made) as other:
            make_staged(open_dir, "a-0")
            marker = staged_marker(deleting(made) / NAME)
            back = RestoreItem(name=NAME, marker=marker, path="a-0", drop_last_indexes=False)
            barrier = Barrier(3)

            def run(what: Callable[[], object], barrier: Barrier = barrier) -> bool:
                barrier.wait()
                try:
                    found = what()
                except (OSError, RefusedError):
                    return False
                return not isinstance(found, Outcome) or found.result is Result.DONE

            calls = (
                partial(claim, open_dir, NAME, marker),
                partial(claim, other, NAME, marker),
                partial(restore, other, back),
            )
            with ThreadPoolExecutor(3) as pool:
                done = list(pool.map(run, calls))
            assert done.count(True) == 1, done
            wins.add(done.index(True) == 2)
            left = sorted([*os.listdir(deleting(made)), *(name for name in os.listdir(made) if name == "a-0")])
            assert left == (["a-0"] if done[2] else [CLAIMED])
            if not done[2]:
                (deleting(made) / CLAIMED).rename(made / "a-0")
    assert wins  # either way is right


@pytest.mark.parametrize("name", ["stranger", CLAIMED, "a-0"])
def test_only_a_staged_name_is_claimed_and_only_a_claimed_one_removed(name: str, d1: Path) -> None:
    with opened(d1) as open_dir:
        marker = staged_marker(deleting(d1) / NAME)
        with pytest.raises(ValueError, match="not the name"):
            claim(open_dir, name, marker)
        with pytest.raises(ValueError, match="not the name"):
            remove(open_dir, NAME, in_use=nobody)


@pytest.mark.parametrize("name", ["odd", "odd.index"])
@pytest.mark.parametrize("kind", ["directory", "link", "fifo"])
def test_what_holds_more_than_files_is_held(kind: str, name: str, d1: Path) -> None:
    inner = deleting(d1) / NAME / name
    match kind:
        case "directory":
            inner.mkdir()
        case "link":
            inner.symlink_to(d1)
        case _:
            os.mkfifo(inner)
    before = seen(d1.parent, markers=True)
    with opened(d1) as open_dir:
        with pytest.raises(RefusedError, match="odd"):
            claim(open_dir, NAME, staged_marker(deleting(d1) / NAME))
        assert seen(d1.parent, markers=True) == before
        (deleting(d1) / NAME).rename(deleting(d1) / CLAIMED)
        with pytest.raises(RefusedError, match="odd"):
            remove(open_dir, CLAIMED, in_use=nobody)
    assert len(os.listdir(deleting(d1) / CLAIMED)) == 8
    assert (deleting(d1) / CLAIMED / LOG).stat().st_size == 40


def _removed(d1: Path, monkeypatch: pytest.MonkeyPatch, *, is_used: bool = False) -> list[str]:
    """Remove it in steps of 16 bytes; return what was truncated."""
    monkeypatch.setattr(purge, "STEP_BYTES", 16)
    calls: list[Call] = []
    with opened(d1, HostDisk(calls.append)) as open_dir:
        claimed = claim(open_dir, NAME, staged_marker(deleting(d1) / NAME))
        remove(open_dir, claimed, in_use=somebody if is_used else nobody)
    assert not (deleting(d1) / CLAIMED).exists()
    return [os.path.basename(call.path) for call in calls if call.name == "truncate"]


def test_a_big_file_is_shortened_in_steps(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truncated = _removed(d1, monkeypatch)
    # 40 bytes: 24, 8; 20 bytes: 4; the marker is big here, too.
    assert truncated.count(LOG) == 2
    assert truncated.count("00000000000000000007.log") == 1


@pytest.mark.parametrize("size", [8 << 20, (8 << 20) + 1, 24 << 20])
def test_no_more_than_8_mib_go_in_a_step_and_who_has_a_file_is_asked_only_where_there_are_several(
    d1: Path, size: int
) -> None:
    with (deleting(d1) / NAME / LOG).open("wb") as file:
        file.truncate(size)
    for other in (deleting(d1) / NAME).glob("*7.log"):
        other.unlink()
    asked: list[str] = []
    steps: list[int] = []

    def nobody_has(directory: Directory, name: str) -> bool:
        asked.append(name)
        return False

    with opened(d1) as open_dir:
        claimed = claim(open_dir, NAME, staged_marker(deleting(d1) / NAME))
        remove(open_dir, claimed, lambda freed, files: steps.append(freed), in_use=nobody_has)
    assert asked == ([] if size == 8 << 20 else [LOG])
    whole = (size - 1) // (8 << 20)
    assert steps[:whole] == [8 << 20] * whole
    # The files beside it are small.
    assert size <= sum(steps) <= size + 10_000


def test_a_file_with_a_second_name_is_never_shortened(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.link(deleting(d1) / NAME / LOG, d1 / "b-0" / "linked")
    truncated = _removed(d1, monkeypatch)
    assert LOG not in truncated
    assert (d1 / "b-0" / "linked").read_bytes() == bytes(40)


def test_a_file_somebody_has_open_is_never_shortened(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (deleting(d1) / NAME / LOG).open("rb") as reader:
        assert _removed(d1, monkeypatch, is_used=True) == []
        assert reader.read() == bytes(40)


def test_the_marker_is_the_last_file_to_go(d1: Path) -> None:
    calls: list[Call] = []
    with opened(d1, HostDisk(calls.append)) as open_dir:
        remove(open_dir, claim(open_dir, NAME, staged_marker(deleting(d1) / NAME)), in_use=nobody)
    names = [(call.name, os.path.basename(call.path)) for call in calls]
    assert names[:2] == [("rename", NAME), ("fsync-dir", "deleting")]
    assert names[-3:] == [("unlink", FILE_NAME), ("rmdir", CLAIMED), ("fsync-dir", "deleting")]


@pytest.mark.parametrize(("group", "steps"), [(1, 7), (3, 3), (GROUP, 1)])
def test_a_removal_stopped_anywhere_is_taken_up_again(
    d1: Path, group: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logdir.disk.replica.purge.GROUP", group)

    class StoppedError(Exception):
        pass

    def stop(freed: int, files: int) -> None:
        raise StoppedError

    with opened(d1) as open_dir:
        claimed = claim(open_dir, NAME, staged_marker(deleting(d1) / NAME))
        rounds = 0
        while (deleting(d1) / CLAIMED).exists() and os.listdir(deleting(d1) / CLAIMED):
            with pytest.raises(StoppedError):
                remove(open_dir, claimed, stop, in_use=nobody)
            rounds += 1
        assert rounds == steps
        remove(open_dir, claimed, in_use=nobody)
    assert not (deleting(d1) / CLAIMED).exists()
