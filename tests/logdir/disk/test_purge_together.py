"""Several replicas claimed with one sync and removed with another: one that is not as it should be stops no other."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdir.decide.staged.purge import ClaimLimit
from logdir.disk.kernel.calls import Space
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.replica.outcome import Outcome, Result
from logdir.disk.replica.purge import Listing, claim_all, remove_all
from logdir.disk.replica.staging import hold
from logdir.errors import DiskError, ReadOnlyDiskError, RefusedError
from logdir.formats.own.replica_marker import FILE_NAME, ReplicaMarker
from logdir.observe.classify import Type
from tests.builders import TOPIC_ID
from tests.logdir.disk.staged_rig import make_log_dir, make_staged, opened, seen, staged_marker
from tests.logdir.disk.test_purge import deleting, nobody

HOME = Path(__file__).parents[3]
COUNT = 4
NAMES = [f"{TOPIC_ID}_0" if n == 1 else f"{TOPIC_ID}_0.{n}" for n in range(1, COUNT + 1)]
BAD = NAMES[1]
GOOD = [name for name in NAMES if name != BAD]


@pytest.fixture
def d1(tmp_path: Path) -> Path:
    """A log dir with four that are staged, and one that lives."""
    live = [f"a-{n}" for n in range(COUNT)]
    made = make_log_dir(tmp_path / "d1", *live, "b-0")
    with opened(made) as open_dir:
        for name in live:
            make_staged(open_dir, name)
    assert sorted(os.listdir(deleting(made))) == NAMES
    return made


def markers(d1: Path) -> dict[str, ReplicaMarker]:
    return {name: staged_marker(deleting(d1) / name) for name in NAMES}


def results(outcomes: tuple[Outcome, ...]) -> list[bool]:
    return [one.result is Result.DONE for one in outcomes]


def claimed(name: str) -> str:
    return f"{name}.purging"


def failing(monkeypatch: pytest.MonkeyPatch, method: str, number: int, *parts: str) -> None:
    """Let a method of directories fail for those whose path holds one of these parts."""
    real: Callable[..., Any] = getattr(HostDirectory, method)

    def fails(self: HostDirectory, *given: Any, **more: Any) -> Any:
        path = "/".join([self.path, *(one for one in given if isinstance(one, str))])
        if any(path.endswith(part) for part in parts):
            raise OSError(number, os.strerror(number), path)
        return real(self, *given, **more)

    monkeypatch.setattr(HostDirectory, method, fails)


def test_all_are_claimed_with_one_sync_and_removed_with_another_and_nothing_else_is_touched(d1: Path) -> None:
    (deleting(d1) / "stranger").mkdir()
    before = {path: told for path, told in seen(d1.parent).items() if TOPIC_ID not in path}
    calls: list[Call] = []
    with opened(d1, HostDisk(calls.append)) as open_dir:
        listings: dict[str, Listing] = {}
        claims = claim_all(open_dir, markers(d1), seen=listings)
        assert [one.place for one in claims] == [f"deleting/{claimed(name)}" for name in NAMES]
        assert list(listings) == [claimed(name) for name in NAMES]
        assert [call.name for call in calls] == ["rename"] * COUNT + ["fsync-dir"]
        del calls[:]
        steps: list[tuple[int, int]] = []
        removed = remove_all(
            open_dir, tuple(listings), lambda freed, files: steps.append((freed, files)), in_use=nobody, seen=listings
        )
        assert [(one.result, one.place) for one in removed] == [(Result.DONE, None)] * COUNT
        assert [call.name for call in calls if call.name != "unlink"] == ["rmdir"] * COUNT + ["fsync-dir"]
    assert seen(d1.parent) == before
    assert sum(files for _, files in steps) == sum(one.load.files for one in listings.values()) == 7 * COUNT
    assert sum(freed for freed, _ in steps) == sum(one.load.size_bytes for one in listings.values())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a10_where_there_is_no_room_for_another_name_what_is_claimed_goes_first(
    number: int, d1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(d1) as open_dir:
        judged = markers(d1)
        with monkeypatch.context() as patch:
            failing(patch, "rename", number, claimed(NAMES[2]))
            claims = claim_all(open_dir, judged)
            assert [one.path for one in claims] == [f"deleting/{name}" for name in NAMES[:2]]
            assert results(claims) == [True, True]
            left = {name: judged[name] for name in NAMES[2:]}
            # Where nothing is claimed nothing makes room: the first is told, and the others are tried.
            assert results(claim_all(open_dir, left)) == [False, True]
        assert sorted(os.listdir(deleting(d1))) == sorted([NAMES[2], *map(claimed, (NAMES[0], NAMES[1], NAMES[3]))])


def spoil(how: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    match how:
        case "vanished":
            path.rename(path.parent.parent / "elsewhere")
        case "more than files":
            (path / "odd").mkdir()
        case "torn":
            (path / FILE_NAME).write_bytes(b"torn")
        case "unreadable block":
            failing(monkeypatch, "read", errno.EIO, f"{path.name}/{FILE_NAME}")
        case "unreadable inode":
            failing(monkeypatch, "stat", errno.EUCLEAN, f"{path.name}/partition.metadata")


@pytest.mark.parametrize(
    "how", ["held", "vanished", "more than files", "torn", "unreadable block", "unreadable inode", "name taken"]
)
def test_a18_one_that_is_not_as_it_was_judged_is_left_and_the_others_are_claimed(
    how: str, d1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = markers(d1)
    with opened(d1) as open_dir:
        if how == "held":
            hold(open_dir, BAD)
        elif how == "name taken":
            (deleting(d1) / claimed(BAD)).mkdir()
        else:
            spoil(how, deleting(d1) / BAD, monkeypatch)
        before = seen(deleting(d1) / BAD, markers=True)
        listings: dict[str, Listing] = {}
        claims = claim_all(open_dir, judged, seen=listings)
        assert results(claims) == [name != BAD for name in NAMES]
        bad = claims[NAMES.index(BAD)]
        assert bad.place is None
        # In words: a recheck, or what is wrong with it.
        assert isinstance(bad.error, DiskError if how.startswith(("unreadable", "name")) else RefusedError), bad
        assert BAD in str(bad.error)
        assert list(listings) == [claimed(name) for name in GOOD]
        monkeypatch.undo()
        assert seen(deleting(d1) / BAD, markers=True) == before
        assert results(remove_all(open_dir, tuple(listings), in_use=nobody, seen=listings)) == [True] * len(GOOD)
    left = {"vanished": [], "name taken": [BAD, claimed(BAD)]}.get(how, [BAD])
    assert sorted(os.listdir(deleting(d1))) == left


@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("how", ["vanished", "more than files", "unreadable inode"])
def test_one_that_cannot_go_stays_whole_and_the_others_go(
    how: str, is_seen: bool, d1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(d1) as open_dir:
        listings: dict[str, Listing] = {}
        claim_all(open_dir, markers(d1), seen=listings)
        spoil(how, deleting(d1) / claimed(BAD), monkeypatch)
        if how == "unreadable inode":
            # What was seen is not looked at again: it comes back in another place.
            (deleting(d1) / claimed(BAD) / "new").write_bytes(b"")
        before = seen(deleting(d1) / claimed(BAD), markers=True)
        removed = remove_all(open_dir, tuple(listings), in_use=nobody, seen=listings if is_seen else {})
        monkeypatch.undo()
    assert results(removed) == [name != BAD for name in NAMES]
    assert BAD in str(removed[NAMES.index(BAD)].error)
    assert seen(deleting(d1) / claimed(BAD), markers=True) == before
    assert os.listdir(deleting(d1)) == ([] if how == "vanished" else [claimed(BAD)])


def test_what_was_seen_is_not_listed_again_and_what_came_since_is(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = HostDirectory.types

    def types(self: HostDirectory) -> dict[str, Type]:
        looked.append(os.path.basename(self.path))
        return real(self)

    with opened(d1) as open_dir:
        listings: dict[str, Listing] = {}
        claim_all(open_dir, markers(d1), seen=listings)
        (deleting(d1) / claimed(BAD) / "came").write_bytes(b"since")
        monkeypatch.setattr(HostDirectory, "types", types)
        assert results(remove_all(open_dir, tuple(listings), in_use=nobody, seen=listings)) == [True] * COUNT
    assert looked == [claimed(BAD)]
    assert os.listdir(deleting(d1)) == []


def test_another_directory_under_the_name_of_a_claim_is_looked_at(d1: Path) -> None:
    with opened(d1) as open_dir:
        listings: dict[str, Listing] = {}
        claim_all(open_dir, markers(d1), seen=listings)
        path = deleting(d1) / claimed(BAD)
        path.rename(deleting(d1) / "elsewhere")
        path.mkdir()
        (path / "only").write_bytes(b"this")
        os.utime(path, ns=(0, listings[claimed(BAD)].mtime_ns))
        assert results(remove_all(open_dir, tuple(listings), in_use=nobody, seen=listings)) == [True] * COUNT
    assert os.listdir(deleting(d1)) == ["elsewhere"]
    assert len(os.listdir(deleting(d1) / "elsewhere")) == 7


@pytest.mark.parametrize("at", range(COUNT))
def test_a_change_that_fails_tells_of_the_disk_and_ends_writing(
    at: int, d1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Call] = []
    with opened(d1, HostDisk(calls.append)) as open_dir:
        failing(monkeypatch, "rename", errno.EIO, f"{NAMES[at]}/{claimed(NAMES[at])}", NAMES[at])
        with pytest.raises(ReadOnlyDiskError):
            claim_all(open_dir, markers(d1))
        assert [call.name for call in calls] == ["rename"] * at
        monkeypatch.undo()
        left = {name: staged_marker(deleting(d1) / name) for name in NAMES[at:]}
        assert results(claim_all(open_dir, left)) == [True] * len(left)
        failing(monkeypatch, "unlink", errno.EIO, f"{claimed(NAMES[at])}/{FILE_NAME}")
        with pytest.raises(ReadOnlyDiskError):
            remove_all(open_dir, [claimed(name) for name in NAMES], in_use=nobody)
        monkeypatch.undo()
        gone = [claimed(name) for name in NAMES[:at]]
        assert sorted(os.listdir(deleting(d1))) == sorted({*map(claimed, NAMES)} - {*gone})
        assert os.listdir(deleting(d1) / claimed(NAMES[at])) == [FILE_NAME]


def test_a_disk_that_is_unreadable_as_a_whole_is_not_taken_for_one_bad_replica(
    d1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An XFS that has shut down answers every look with EIO."""
    judged = markers(d1)
    calls: list[Call] = []
    with opened(d1, HostDisk(calls.append)) as open_dir:
        failing(monkeypatch, "open", errno.EIO, *NAMES)
        failing(monkeypatch, "own_stat", errno.EIO, "/deleting")
        with pytest.raises(ReadOnlyDiskError):
            claim_all(open_dir, judged)
        monkeypatch.undo()
    assert calls == []


def test_a_failed_sync_of_claims_is_final(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(d1) as open_dir:
        failing(monkeypatch, "sync", errno.EIO, "/deleting")
        with pytest.raises(ReadOnlyDiskError):
            claim_all(open_dir, markers(d1))
        with pytest.raises(ReadOnlyDiskError):
            remove_all(open_dir, [claimed(NAMES[0])], in_use=nobody)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_nothing_is_removed_of_claims_that_a_scan_found_and_could_not_make_durable(
    d1: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A process that was killed may have claimed them: after a power cut they could be staged again, and half gone."""
    names = tuple(all_claimed(d1))
    before = seen(d1.parent, markers=True)
    with opened(d1) as open_dir:
        failing(monkeypatch, "sync", number, "deleting")
        with pytest.raises(ReadOnlyDiskError):
            remove_all(open_dir, names, in_use=nobody)
    assert seen(d1.parent, markers=True) == before


def test_where_none_is_done_nothing_is_synced(d1: Path) -> None:
    judged = markers(d1)
    calls: list[Call] = []
    with opened(d1) as open_dir:
        for name in NAMES:
            hold(open_dir, name)
    with opened(d1, HostDisk(calls.append)) as open_dir:
        assert results(claim_all(open_dir, judged)) == [False] * COUNT
        assert claim_all(open_dir, {}) == remove_all(open_dir, [], in_use=nobody) == ()
        assert calls == []
        # Of what it did not claim itself it cannot know whether that is durable.
        assert results(remove_all(open_dir, [f"{TOPIC_ID}_9.purging"], in_use=nobody)) == [False]
    assert [call.name for call in calls] == ["fsync-dir"]


@pytest.mark.parametrize(
    ("room", "taken"),
    [
        (ClaimLimit(2, 1 << 30, 1000), 2),
        (ClaimLimit(100, 1 << 30, 7), 1),
        (ClaimLimit(100, 1 << 30, 15), 2),
        (ClaimLimit(100, 1, 1000), 1),
        (ClaimLimit(100, 1 << 30, 28), 4),
    ],
)
def test_no_more_are_claimed_than_there_is_room_for_and_the_rest_can_be_restored(
    room: ClaimLimit, taken: int, d1: Path
) -> None:
    with opened(d1) as open_dir:
        judged = markers(d1)
        outcomes = claim_all(open_dir, judged, room=room)
        assert results(outcomes) == [True] * taken
    assert sorted(os.listdir(deleting(d1))) == sorted([*map(claimed, NAMES[:taken]), *NAMES[taken:]])
    assert {name: staged_marker(deleting(d1) / name) for name in NAMES[taken:]} == dict(list(judged.items())[taken:])


def test_a25_a_marker_that_was_copied_byte_for_byte_claims_nothing(d1: Path) -> None:
    """Of what it is a copy of, it says so itself; of another log dir, the log dir says so."""
    judged = markers(d1)
    path = deleting(d1) / BAD
    path.rename(deleting(d1) / "original")
    shutil.copytree(deleting(d1) / "original", path)
    with opened(d1) as open_dir:
        claims = claim_all(open_dir, judged)
        assert results(claims) == [name != BAD for name in NAMES]
        assert "held: foreign" in str(claims[NAMES.index(BAD)].error)
        for other in (
            replace(open_dir, cluster_id="other"),
            replace(open_dir, node_id=7),
            replace(open_dir, directory_id="other"),
        ):
            (deleting(d1) / claimed(NAMES[0])).rename(deleting(d1) / NAMES[0])
            (foreign,) = claim_all(other, {NAMES[0]: judged[NAMES[0]]})
            assert "held: foreign" in str(foreign.error)
            (deleting(d1) / NAMES[0]).rename(deleting(d1) / claimed(NAMES[0]))


def test_one_that_is_refused_takes_no_room(d1: Path) -> None:
    judged = markers(d1)
    with opened(d1) as open_dir:
        hold(open_dir, NAMES[0])
        assert results(claim_all(open_dir, judged, room=ClaimLimit(1, 1, 1))) == [False, True]


# Side by side.


def all_claimed(d1: Path) -> dict[str, Listing]:
    listings: dict[str, Listing] = {}
    with opened(d1) as open_dir:
        assert results(claim_all(open_dir, markers(d1), seen=listings)) == [True] * COUNT
    return listings


def room(monkeypatch: pytest.MonkeyPatch, free_bytes: int = 100) -> None:
    monkeypatch.setattr(HostDirectory, "space", lambda self: Space(free_bytes, 100, 100))


def test_removed_side_by_side_all_are_gone_in_the_order_asked_for_with_one_sync_after_the_last(
    d1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room(monkeypatch)
    listings = all_claimed(d1)
    calls: list[Call] = []
    busy: set[int] = set()
    both = threading.Barrier(2)

    def tell(call: Call) -> None:
        calls.append(call)
        if threading.get_ident() not in busy:
            busy.add(threading.get_ident())
            both.wait(10)  # neither goes on before the other has begun

    asked = tuple(reversed(listings))
    with opened(d1, HostDisk(tell)) as open_dir:
        removed = remove_all(open_dir, asked, in_use=nobody, seen=listings, at_once=2)
    assert [one.path for one in removed] == [f"deleting/{name}" for name in asked]
    assert results(removed) == [True] * COUNT
    assert [call.name for call in calls][-1] == "fsync-dir"
    assert [call.name for call in calls if call.name != "unlink"] == ["rmdir"] * COUNT + ["fsync-dir"]
    assert os.listdir(deleting(d1)) == []
    assert len(busy) == 2


def test_side_by_side_one_that_cannot_go_stops_no_other(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room(monkeypatch)
    listings = all_claimed(d1)
    (deleting(d1) / claimed(BAD) / "odd").mkdir()
    with opened(d1) as open_dir:
        removed = remove_all(open_dir, tuple(listings), in_use=nobody, seen=listings, at_once=2)
    assert results(removed) == [name != BAD for name in NAMES]
    assert os.listdir(deleting(d1)) == [claimed(BAD)]


def test_side_by_side_a_sick_disk_ends_it_for_all_and_nobody_works_afterwards(
    d1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room(monkeypatch)
    listings = all_claimed(d1)
    with monkeypatch.context() as patch:
        failing(patch, "unlink", errno.EIO, f"{claimed(NAMES[0])}/{FILE_NAME}")
        calls: list[Call] = []
        before = set(threading.enumerate())  # what other tests left at work is none of ours
        with opened(d1, HostDisk(calls.append)) as open_dir, pytest.raises(ReadOnlyDiskError):
            remove_all(open_dir, tuple(listings), in_use=nobody, seen=listings, at_once=2)
        count = len(calls)
        left = seen(d1)
        assert set(threading.enumerate()) <= before
        assert "fsync-dir" not in [call.name for call in calls]
    assert claimed(NAMES[0]) in os.listdir(deleting(d1))
    assert (len(calls), seen(d1)) == (count, left)
    with opened(d1) as open_dir:
        names = [name for name in sorted(os.listdir(deleting(d1))) if name.endswith(".purging")]
        assert results(remove_all(open_dir, names, in_use=nobody)) == [True] * len(names)
    assert os.listdir(deleting(d1)) == []


def test_a10_on_a_full_disk_nothing_is_removed_side_by_side(d1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room(monkeypatch, free_bytes=4)
    listings = all_claimed(d1)
    threads: set[int] = set()
    with opened(d1, HostDisk(lambda call: threads.add(threading.get_ident()))) as open_dir:
        assert results(remove_all(open_dir, tuple(listings), in_use=nobody, seen=listings, at_once=2)) == [True] * COUNT
    assert threads == {threading.get_ident()}


def test_a18_a_process_gone_amid_removals_side_by_side_has_removed_no_marker_before_the_rest(tmp_path: Path) -> None:
    """What it leaves says what it was, and the next goes on; nothing else is touched."""
    live = [f"a-{n}" for n in range(12)]
    path = make_log_dir(tmp_path / "d1", *live, "b-0")
    with opened(path) as open_dir:
        for name in live:
            make_staged(open_dir, name)
        judged = {name: staged_marker(deleting(path) / name) for name in os.listdir(deleting(path))}
        assert results(claim_all(open_dir, judged)) == [True] * len(live)
    (deleting(path) / "stranger").mkdir()
    before = {where: told for where, told in seen(tmp_path).items() if TOPIC_ID not in where}
    status, began = 9, 0
    rng = random.Random(18)
    while status:
        argv = [sys.executable, "-m", "tests.logdir.disk.dying_purge", str(path), str(rng.randrange(2, 25))]
        status = subprocess.run(argv, cwd=HOME, check=False).returncode
        assert status in (0, 9)
        began += status == 9
        left = [one for one in deleting(path).iterdir() if one.name != "stranger"]
        assert [one for one in left if list(one.iterdir()) and not (one / FILE_NAME).exists()] == []
        assert {where: told for where, told in seen(tmp_path).items() if TOPIC_ID not in where} == before
    assert (left, began > 4) == ([], True)
