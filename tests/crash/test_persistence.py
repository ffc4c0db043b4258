"""What the models let survive is what file systems were measured to keep (reliability §4.1)."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from logdir.disk.kernel.calls import Directory, Owner
from logdir.observe.classify import Type
from tests.crash.model import Failure, ModelHost
from tests.crash.persistence import LIMIT, Loss
from tests.crash.recording import Acks, Recording, record

FILE, FOLDER = Owner(0, 0, 0o644), Owner(0, 0, 0o755)
Trees = list[dict[str, bytes]]


def _start() -> ModelHost:
    host = ModelHost.with_disks("/d")
    host.plant("/d/A/x/inside", b"payload")
    host.plant("/d/B", kind=Type.DIRECTORY)
    host.plant("/d/other", b"old")
    return host


def _left(run: Callable[[ModelHost], None], model: str) -> Trees:
    """Return the files of every state that a crash at the end of a run may leave."""
    recording = record(_start().world(), lambda host, _: run(host))
    assert not recording.error
    return [recording.world(crash).files() for crash in recording.crashes(model, len(recording.records))]


def _rename(sync: str) -> Callable[[ModelHost], None]:
    def run(host: ModelHost) -> None:
        with host.open_top("/d") as top, top.open("A") as old, top.open("B") as new:
            if sync == "unrelated dirty":
                top.write("journal", b"dirty", FILE)
            old.rename("x", new, "x")
            with new.open("x") as moved:
                {
                    "none": lambda: None,
                    "new parent": new.sync,
                    "old parent": old.sync,
                    "moved": moved.sync,
                    "inside": lambda: moved.sync_file("inside"),
                    "unrelated clean": lambda: top.sync_file("other"),
                    "unrelated dirty": lambda: top.sync_file("journal"),
                    "disk": top.sync_disk,
                }[sync]()

    return run


@pytest.mark.parametrize(
    ("sync", "journal", "log_tree", "posix"),
    [
        ("none", "old new", "old new", "old new"),
        ("new parent", "new", "new", "new"),
        ("old parent", "new", "new", "new"),
        ("moved", "new", "new", "old new"),
        ("inside", "old new", "old new", "old new"),
        ("unrelated clean", "old new", "old new", "old new"),
        ("unrelated dirty", "new", "old new", "old new"),
        ("disk", "new", "new", "new"),
    ],
)
def test_rename_of_a_directory_then_a_sync(sync: str, journal: str, log_tree: str, posix: str) -> None:
    for model, expected in (("K", "new"), ("J", journal), ("B", log_tree), ("P", posix)):
        found = set()
        for files in _left(_rename(sync), model):
            places = [path for path in ("/d/A/x/inside", "/d/B/x/inside") if files.get(path) == b"payload"]
            assert len(places) == 1, f"{model}: never twice, never lost"
            found.add("old" if "/A/" in places[0] else "new")
        assert found == set(expected.split()), model


def _into_a_new_directory(host: ModelHost) -> None:
    with host.open_top("/d") as top, top.open("A") as old:
        top.make("prefix", FOLDER)
        with top.open("prefix") as new:
            old.rename("x", new, "x")
            new.sync()


def test_a_new_directory_comes_with_its_sync_except_in_the_worst_posix() -> None:
    for model, expected in (("J", {"prefix"}), ("B", {"prefix"}), ("P", {"prefix", "A"})):
        left = _left(_into_a_new_directory, model)
        assert {next(path.split("/")[2] for path in files if path.endswith("inside")) for files in left} == expected


def _copy(*, files: bool, folder: bool) -> Callable[[ModelHost], None]:
    def run(host: ModelHost) -> None:
        with host.open_top("/d") as top, top.open("B") as new:
            top.make("temp", FOLDER)
            top.sync()
            with top.open("temp") as temp:
                temp.write("f", b"12345678", FILE)
                if files:
                    temp.sync_file("f")
                if folder:
                    temp.sync()
            top.rename("temp", new, "copy")
            new.sync()

    return run


@pytest.mark.parametrize("model", ["J", "B", "P"])
def test_files_copied_without_a_sync_may_be_empty_under_their_final_name(model: str) -> None:
    left = {files.get("/d/B/copy/f") for files in _left(_copy(files=False, folder=True), model)}
    assert left == {b"", b"1234", b"12345678"}


@pytest.mark.parametrize(
    ("model", "expected"), [("J", {b"12345678"}), ("B", {b"12345678"}), ("P", {b"12345678", None})]
)
def test_files_synced_in_a_directory_that_was_not(model: str, expected: set[bytes | None]) -> None:
    assert {files.get("/d/B/copy/f") for files in _left(_copy(files=True, folder=False), model)} == expected


def _replace(host: ModelHost, *, file: bool, folder: bool) -> None:
    with host.open_top("/d") as top:
        top.write("temp", b"new!", FILE)
        if file:
            top.sync_file("temp")
        top.replace("temp", "other")
        if folder:
            top.sync()


@pytest.mark.parametrize("model", ["J", "B", "P"])
@pytest.mark.parametrize(
    ("file", "folder", "expected"),
    [
        (False, False, {b"old", b"new!", b"ne", b""}),
        (False, True, {b"new!", b"ne", b""}),
        (True, False, {b"old", b"new!"}),
        (True, True, {b"new!"}),
    ],
)
def test_a_file_written_over_another(model: str, file: bool, folder: bool, expected: set[bytes]) -> None:
    left = _left(lambda host: _replace(host, file=file, folder=folder), model)
    assert {files.get("/d/other") for files in left} == expected


def _swift(host: ModelHost) -> None:
    with host.open_top("/d") as top, top.open("A") as old, old.open("x") as source, top.open("B") as new:
        source.link("inside", new, "linked")
        top.write("temp", b"done", FILE)
        top.sync_file("temp")
        top.replace("temp", "other")


def test_progress_synced_after_a_link_may_outlive_the_link_on_a_log_tree() -> None:
    def pairs(model: str) -> set[tuple[bool, bool]]:
        left = _left(_swift, model)
        return {("/d/B/linked" in files, files.get("/d/temp", files["/d/other"]) == b"done") for files in left}

    assert pairs("J") == {(True, True)}
    assert (False, True) in pairs("B")
    assert (False, True) in pairs("P")


def test_a_removed_directory_is_never_gone_before_what_was_in_it() -> None:
    def run(host: ModelHost) -> None:
        with host.open_top("/d") as top, top.open("A") as old, old.open("x") as inner:
            inner.unlink("inside")
            old.remove("x")

    start = _start().world()
    recording = record(start, lambda host, _: run(host))
    trees = [set(recording.world(crash).tree()) for crash in recording.crashes("P", 2)]
    assert len(trees) == 3
    assert all("/d/A/x" in tree for tree in trees if "/d/A/x/inside" in tree)


def test_two_crossing_moves_close_no_circle() -> None:
    def run(host: ModelHost) -> None:
        with host.open_top("/d") as top, top.open("A") as old, top.open("B") as new:
            old.rename("x", top, "x")
            with top.open("x") as moved:
                top.rename("A", moved, "A")
            top.rename("x", new, "x")

    trees = _left(run, "P")
    assert len(trees) == 5
    for files in trees:
        assert sum(path.endswith("/inside") for path in files) == 1


@pytest.mark.parametrize("makes_unnamed", [True, False])
def test_a_file_killed_in_its_making_is_not_there_or_first_the_makers(makes_unnamed: bool) -> None:
    world = ModelHost.with_disks("/d").world()
    world = world._replace(volumes=(world.volumes[0]._replace(makes_unnamed=makes_unnamed),))
    recording = record(world, lambda host, _: host.open_top("/d").write("f", b"1234", FILE._replace(uid=7), 5))
    nodes = [recording.world(crash).tree().get("/d/f") for crash in recording.crashes("K", 0)]
    seen = [(n.data, n.owner) if n else None for n in nodes]
    (whole,) = recording.crashes("K", 1)
    done = recording.world(whole).tree()["/d/f"]
    assert (done.data, done.owner, done.mtime_ns) == (b"1234", Owner(7, 0, 0o644), 5)
    if makes_unnamed:
        assert set(seen) == {None}
        return
    assert seen == [
        None,
        (b"", Owner(0, 0, 0o600)),
        (b"", Owner(7, 0, 0o600)),
        (b"", Owner(7, 0, 0o644)),
        (b"12", Owner(7, 0, 0o644)),
        (b"1234", Owner(7, 0, 0o644)),
    ]


@pytest.mark.parametrize(("call", "gone"), [("fsync", b""), ("fsync-dir", None)])
def test_after_a_failed_sync_no_later_one_brings_it_back(call: str, gone: bytes | None) -> None:
    def run(host: ModelHost) -> None:
        host.fail(Failure(0, name=call))
        with host.open_top("/d") as top:
            top.write("f", b"1234", FILE)
            for _ in range(2):
                with suppress(OSError):
                    top.sync() if call == "fsync-dir" else top.sync_file("f")
        assert [made.errno for made in host.records] == [0, errno.EIO, 0]

    left = {files.get("/d/f") for files in _left(run, "F")}
    assert {gone, b"1234"} <= left


def test_a_kill_leaves_everything_pending_and_a_power_cut_then_takes_it() -> None:
    recording = record(_start().world(), lambda host, _: _rename("none")(host))
    (killed,) = recording.crashes("K", 1)
    world = recording.world(killed)
    assert not world.rebooted
    assert "/d/B/x/inside" in world.files()
    later = record(world, lambda host, _: None)
    assert {"/d/B/x/inside" in later.world(crash).files() for crash in later.crashes("J", 0)} == {True, False}
    synced = record(world, lambda host, _: host.open_top("/d/B").sync())
    assert {"/d/B/x/inside" in synced.world(crash).files() for crash in synced.crashes("P", 1)} == {True}


def test_a_lost_disk_is_absent_read_only_or_empty() -> None:
    recording = record(_start().world(), lambda host, _: None)
    worlds = {crash.statuses: recording.world(crash) for crash in recording.crashes("D", 0)}
    assert worlds["absent",].files() == worlds["empty",].files() == {}
    assert worlds["read-only",].files() == _start().world().files()
    with pytest.raises(FileNotFoundError):
        ModelHost(worlds["absent",]).open_top("/d")
    assert ModelHost(worlds["empty",]).open_top("/d").identity() != _start().open_top("/d").identity()


def test_several_disks_lose_independently() -> None:
    host = ModelHost.with_disks("/d1", "/d2")

    def run(host: ModelHost, acks: Acks) -> None:
        for mount in ("/d1", "/d2"):
            with host.open_top(mount) as top:
                top.make("a", FOLDER)

    recording = record(host.world(), run)
    trees = [tuple(sorted(set(recording.world(c).tree()) - {"/d1", "/d2"})) for c in recording.crashes("J", 2)]
    assert sorted(set(trees)) == [(), ("/d1/a",), ("/d1/a", "/d2/a"), ("/d2/a",)]


def _busy(files: int) -> Recording:
    """Return a run that makes and moves many files, and syncs none."""
    host = ModelHost.with_disks("/d")
    for number in range(60):
        host.plant(f"/d/k{number % 12}/f{number}", b"x" * 100)

    def run(host: ModelHost, acks: Acks) -> None:
        with host.open_top("/d") as top:
            for number in range(files):
                top.write(f"f{number}", b"1234", FILE)
                with top.open(f"k{number % 12}") as inner:
                    top.rename(f"f{number}", inner, f"g{number}")

    return record(host.world(), run)


@pytest.mark.parametrize("model", ["J", "P"])
def test_too_many_states_are_sampled_the_same_each_time(model: str) -> None:
    def states() -> tuple[list[tuple[Loss, ...]], bool]:
        recording = _busy(14)
        return [crash.losses for crash in recording.crashes(model, 28)], recording.is_sampled

    once, is_sampled = states()
    assert is_sampled
    assert len(once) > LIMIT
    assert states() == (once, True)
    recording = _busy(2)
    assert list(recording.crashes(model, 4))
    assert not recording.is_sampled


def test_states_are_told_apart_by_their_trees() -> None:
    recording = _busy(3)
    for model in ("J", "B", "P"):
        crashes = list(recording.crashes(model, 6))
        trees = {tuple((path, n.data, n.owner) for path, n in recording.world(c).tree().items()) for c in crashes}
        assert len(trees) == len(crashes) > 20


def test_states_are_made_fast() -> None:
    recording = _busy(14)
    started = time.perf_counter()
    states = sum(1 for model in ("J", "P") for _ in recording.crashes(model, 28))
    rate = states / (time.perf_counter() - started)
    # A tenth of what was measured, so that a busy machine does not fail it.
    assert rate > 500, f"{rate:,.0f} states/s"


def _anything(pool: list[Directory], rng: random.Random) -> None:
    at, to = rng.choice(pool), rng.choice(pool)
    name, new = rng.choice(["x", "y", "other"]), rng.choice(["x", "y", "z"])
    calls: list[Callable[[], None]] = [
        lambda: at.write(new, b"12", FILE),
        lambda: at.make(new, FOLDER),
        lambda: at.rename(name, to, new),
        lambda: at.link(name, to, new),
        lambda: at.unlink(name),
        lambda: at.remove(name),
        lambda: at.replace(name, new),
        lambda: at.truncate(name, 1),
        lambda: at.sync_file(name),
        at.sync,
    ]
    rng.choice(calls)()


@pytest.mark.parametrize("seed", range(40))
def test_every_model_keeps_what_the_stricter_one_keeps(seed: int) -> None:
    """K is in J's states, J's in B's; and in all of them each name leads somewhere."""
    rng = random.Random(seed)

    def run(host: ModelHost, acks: Acks) -> None:
        with host.open_top("/d") as top, top.open("A") as a, top.open("B") as b:
            for _ in range(8):
                with suppress(OSError):
                    _anything([top, a, b], rng)

    recording = record(_start().world(), run)
    assert not recording.error
    end = len(recording.records)
    found = {
        model: {recording.world(crash).digest()[1:] for crash in recording.crashes(model, end)}
        for model in ("K", "J", "B", "P")
    }
    assert found["K"] == {recording.world_now().digest()[1:]}
    assert found["K"] <= found["J"] <= found["B"]
    assert found["K"] <= found["P"]


def test_subsets_are_those_found_by_trying_all() -> None:
    """Independent of how they are enumerated: each of the 2^n sets of calls, replayed by itself, if it can be."""
    moves = ["A x B x", "top other A other", "B x top y", "A other B other", "B other x other"]

    def run(chosen: int, host: ModelHost, acks: Acks) -> None:
        with host.open_top("/d") as top, top.open("A") as a, top.open("B") as b, a.open("x") as x:
            pool = {"top": top, "A": a, "B": b, "x": x}
            for number, move in enumerate(moves):
                at, name, to, new_name = move.split()
                if chosen >> number & 1:
                    pool[at].rename(name, pool[to], new_name)

    alone = [record(_start().world(), partial(run, chosen)) for chosen in range(1 << len(moves))]
    expected = {tuple(sorted(each.world_now().files())) for each in alone if not each.error}
    whole = alone[-1]
    found = [tuple(sorted(whole.world(crash).files())) for crash in whole.crashes("P", len(moves))]
    assert sorted(found) == sorted(expected)
    assert len(expected) == 3 * 4
