"""Capture on real directories: beside a broker that removes, renames and is ended; every call interrupted (A17)."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.disk.kernel import small_file
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.record import checkpoints
from logdir.disk.recover_log_dir import recover
from logdir.disk.replica.capture import Linked, capture, complete, link_up
from logdir.disk.replica.capture_item import CaptureItem
from logdir.disk.replica.outcome import Outcome, Result
from logdir.disk.replica.replica_dir import read_marker
from logdir.errors import ReadOnlyDiskError
from logdir.evidence import Absent, Proof, Removed
from logdir.formats.kafka.offset_checkpoint import NAMES
from logdir.formats.own.replica_marker import Checkpoints, Intent, ReplicaMarker
from logdir.names import DirForm, name_for, parse_partition_dir
from logdir.reasons import Reason
from tests.crash.model import Failure, ModelHost
from tests.logdir.disk import rescue_crash as rescue
from tests.logdir.disk.rescue import (
    DELAY_MS,
    DELETED,
    FILES,
    NEW,
    NEW_FILES,
    OLD,
    STRAY,
    UNIQUE,
    entries,
    files_of,
    instant,
    make_root,
    meta,
    numbered,
    open_site,
    put,
    quick_path,
    stopped,
)

ITEM = CaptureItem(name=DELETED, delay_ms=DELAY_MS)
REMOVAL = sorted(
    FILES, key=lambda n: (not n[:20].isdecimal() or n.endswith(".snapshot"), n[:20], "log index timeindex".find(n[21:]))
)
"""In which order a broker removes: by segment, each before its indexes, then the rest (LogSegment, LocalLog)."""
WHOLE = f"deleting/{OLD}_0"
PARTIAL = f"incoming/{OLD}_0"


class Host:
    """One log dir on this host; something may happen before a call."""

    def __init__(self, path: Path) -> None:
        self.top = path / "kafka"
        self.work = path / "kafka.logdird"
        put(self.top, {"meta.properties": meta(0), **entries(recovery_point=9, log_start=6, high_watermark=9)})
        make_root(HostDisk(), str(self.top))
        put(self.top / DELETED, FILES)
        self.calls: list[Call] = []
        self.before: Callable[[int, Call], None] = lambda number, call: None

    def tell(self, call: Call) -> None:
        self.calls.append(call)
        self.before(len(self.calls) - 1, call)

    def capture(self, *items: CaptureItem, threads: int = 1) -> list[Outcome]:
        self.calls = []
        with open_site(HostDisk(self.tell), str(self.top)) as root:
            return capture(root.open_dir, items or [ITEM], instant, threads)

    def recover(self) -> None:
        with open_site(HostDisk(), str(self.top)) as root:
            recover(root.open_dir)

    def marker(self, place: str) -> ReplicaMarker:
        with HostDisk().open_top(str(self.work / place)) as directory:
            marker = read_marker(directory)
        assert marker is not None
        return marker

    def places(self) -> list[str]:
        return sorted(
            str(p.relative_to(self.work)) for d in ("deleting", "incoming") for p in (self.work / d).iterdir()
        )


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "one")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[], Host]]:
    count = iter(range(10_000))
    with quick_path(tmp_path) as path:
        yield lambda: Host(path / str(next(count)))


def test_a17_what_is_captured_outlives_its_broker_and_says_everything(host: Host) -> None:
    source = host.top / DELETED
    before = {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in source.iterdir()}
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.DONE, WHOLE)
    assert {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in source.iterdir()} == before
    marker = host.marker(WHOLE)
    assert marker == ReplicaMarker(
        intent=Intent.CAPTURED,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        node_id=1,
        directory_id="JEXY6aqzQY-32P5TStzaFg",
        topic="t",
        topic_id=OLD,
        partition=0,
        birth_inode=(host.work / WHOLE).stat().st_ino,
        path=DELETED,
        reason=Reason.CAPTURED,
        evidence=Removed(proof=Proof.BROKER_DELETED, as_of_ms=1_700_000_000_000),
        staged_at_ms=1_700_000_000_000,
        delay_ms=DELAY_MS,
        boot_id="b",
        boottime_ms=5_000,
        checkpoints=Checkpoints(recovery_point=9, log_start=6, high_watermark=9),
        clean=False,
    )
    shutil.rmtree(source)
    assert files_of(host.work / WHOLE) == FILES
    assert {p.stat().st_nlink for p in (host.work / WHOLE).iterdir()} == {1}
    assert host.places() == [WHOLE]


def test_a17_a_second_capture_makes_no_second_copy_and_the_first_durable(host: Host) -> None:
    """Who made the first may have been killed before its place was durable; the broker goes by what the second says."""
    synced = [("fsync-dir", str(host.work / parent)) for parent in ("deleting", "incoming")]
    host.capture()
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.DONE, WHOLE)
    assert [(call.name, call.path) for call in host.calls] == synced
    (host.top / DELETED / "00000000000000000005.log").unlink()  # its broker has begun
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.DONE, WHOLE)
    assert [(call.name, call.path) for call in host.calls] == synced
    for at in range(len(synced)):

        def fail(number: int, call: Call, at: int = at) -> None:
            if number == at:
                raise OSError(errno.EIO, os.strerror(errno.EIO), call.path)

        host.before = fail
        with pytest.raises(ReadOnlyDiskError):
            host.capture()


def test_a18_what_was_claimed_for_its_removal_is_captured_anew_and_stays(host: Host) -> None:
    host.capture()
    (host.work / WHOLE).rename(host.work / f"{WHOLE}.purging")
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.DONE, f"{WHOLE}.2")
    shutil.rmtree(host.work / f"{WHOLE}.purging")
    shutil.rmtree(host.top / DELETED)
    assert files_of(host.work / f"{WHOLE}.2") == FILES


def test_a_stray_is_captured_without_a_deadline(host: Host) -> None:
    (host.top / DELETED).rename(host.top / STRAY)
    (outcome,) = host.capture(replace(ITEM, name=STRAY))
    assert outcome.place == WHOLE
    marker = host.marker(WHOLE)
    assert marker.delay_ms is None
    assert isinstance(marker.evidence, Absent)


@pytest.mark.parametrize("known", [True, False])
def test_a17_a_name_kafka_cut_is_no_topic(host: Host, known: bool) -> None:
    topic = "long." + "x" * 240
    name = name_for(topic, 0, DirForm.DELETE, UNIQUE)
    assert topic not in name
    (host.top / DELETED).rename(host.top / name)
    cut = parse_partition_dir(name)
    assert cut is not None
    for number, checkpoint in enumerate(NAMES):  # a topic may be called as what is left of the other's name
        (host.top / checkpoint).write_text(f"0\n2\n{cut.topic} 0 {number}\n{topic} 0 {number + 10}\n")
    (outcome,) = host.capture(replace(ITEM, name=name, topic=topic if known else None))
    assert outcome.place == WHOLE
    marker = host.marker(WHOLE)
    assert (marker.topic_id, marker.topic == topic, marker.delay_ms) == (OLD, known, DELAY_MS if known else None)
    own = Checkpoints(recovery_point=10, log_start=11, high_watermark=12, cleaner=13)
    assert marker.checkpoints == (own if known else Checkpoints())


@pytest.mark.parametrize(
    ("in_file", "seen", "kept"),
    [
        (None, 7, 7),
        (None, None, None),
        (9, 7, 9),  # as the broker wrote it last
        (None, 0, None),  # the first segment begins there: nothing was cut off
    ],
)
def test_a_log_start_that_the_broker_took_out_of_its_file_is_the_one_that_was_seen_before(
    host: Host, in_file: int | None, seen: int | None, kept: int | None
) -> None:
    entry = "" if in_file is None else f"t 0 {in_file}\n"
    (host.top / "log-start-offset-checkpoint").write_text(f"0\n{0 if in_file is None else 1}\n{entry}")
    host.capture(replace(ITEM, log_start_seen=seen))
    assert host.marker(WHOLE).checkpoints.log_start == kept


def test_a_log_start_seen_of_a_topic_whose_name_may_be_cut_is_another_topics(host: Host) -> None:
    (host.top / "log-start-offset-checkpoint").write_text("0\n0\n")
    name = name_for("long." + "x" * 240, 0, DirForm.DELETE, UNIQUE)
    (host.top / DELETED).rename(host.top / name)
    host.capture(replace(ITEM, name=name, topic=None, log_start_seen=7))
    (marker,) = [host.marker(place) for place in host.places()]
    assert marker.checkpoints.log_start is None


def test_entries_of_a_topic_made_again_are_not_those_of_the_old_one(host: Host) -> None:
    (host.top / "t-0").mkdir()
    host.capture()
    assert host.marker(WHOLE).checkpoints == Checkpoints()


def test_a_torn_checkpoint_file_does_not_keep_the_data_from_being_saved(host: Host) -> None:
    (host.top / "log-start-offset-checkpoint").write_bytes(b"0\n9\nt 0")
    (outcome,) = host.capture()
    assert outcome.result is Result.DONE
    assert host.marker(WHOLE).checkpoints == Checkpoints()


def test_a17_what_retention_had_let_go_is_not_held(host: Host) -> None:
    put(host.top / DELETED, {"00000000000000000000.log.deleted": b"old"})
    host.before = lambda number, call: (
        (host.top / DELETED / "00000000000000000000.log.deleted").unlink(missing_ok=True) if number == 6 else None
    )
    (outcome,) = host.capture()
    assert outcome.place == WHOLE
    assert files_of(host.work / WHOLE) == FILES


@pytest.mark.parametrize(
    ("gone", "found"),
    [
        (["partition.metadata"], "no partition.metadata"),
        (["00000000000000000005.log"], "00000000000000000005.index without its segment"),
        (
            ["00000000000000000005.log", "00000000000000000005.index", "00000000000000000005.timeindex"],
            "a log from 5 on whose first segment is 7",
        ),
    ],
)
def test_a17_what_a_broker_ended_in_its_removal_left_is_partial(host: Host, gone: list[str], found: str) -> None:
    for name in gone:
        (host.top / DELETED / name).unlink()
    (outcome,) = host.capture()
    assert outcome.result is Result.UNDONE
    assert outcome.error is not None
    assert outcome.error.found == found
    assert outcome.place is not None
    assert outcome.place.startswith("incoming/")
    assert host.marker(outcome.place).delay_ms is None
    host.recover()
    assert host.places() == [outcome.place]
    assert files_of(host.work / outcome.place) == {n: d for n, d in FILES.items() if n not in gone}


def test_an_empty_directory_leaves_nothing(host: Host) -> None:
    for path in (host.top / DELETED).iterdir():
        path.unlink()
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place, host.places()) == (Result.UNDONE, None, [])


@pytest.mark.parametrize(
    "name",
    ["t-0", "t-0.x-delete", f"t-0.{UNIQUE}-future", "__cluster_metadata-0", f"__cluster_metadata-0.{UNIQUE}-delete"],
)
def test_only_what_a_broker_staged_is_captured(host: Host, name: str) -> None:
    (host.top / DELETED).rename(host.top / name)
    (outcome,) = host.capture(replace(ITEM, name=name))
    assert (outcome.result, host.calls, host.places()) == (Result.UNDONE, [], [])


@pytest.mark.parametrize("topic", ["u", "t2", "T"])
def test_a17_no_directory_is_captured_for_another_topic_than_its_own(host: Host, topic: str) -> None:
    (outcome,) = host.capture(replace(ITEM, topic=topic))
    assert (outcome.result, host.calls, host.places()) == (Result.UNDONE, [], [])
    assert host.capture(replace(ITEM, topic="t"))[0].place == WHOLE


def test_a_link_in_the_directory_is_refused(host: Host) -> None:
    (host.top / DELETED / "x").symlink_to("/etc/passwd")
    (outcome,) = host.capture()
    assert (outcome.result, host.calls, host.places()) == (Result.UNDONE, [], [])


def test_a17_a_broker_that_removes_at_any_moment_leaves_a_whole_one_or_a_partial_one(
    fresh: Callable[[], Host],
) -> None:
    host = fresh()
    host.capture()
    calls = len(host.calls)
    results = set()
    for at in range(calls):
        for removed in (1, 2, 3, 5, len(FILES)):
            host = fresh()
            source = host.top / DELETED

            def act(number: int, call: Call, at: int = at, source: Path = source, removed: int = removed) -> None:
                if number == at:
                    for name in REMOVAL[:removed]:
                        (source / name).unlink()
                    if removed == len(FILES):
                        source.rmdir()

            host.before = act
            (outcome,) = host.capture()
            results.add((outcome.result, (outcome.place or "none").partition("/")[0]))
            if outcome.result is Result.DONE:
                assert files_of(host.work / WHOLE) == FILES
            elif outcome.place is not None:
                held = files_of(host.work / outcome.place)
                assert held.items() <= FILES.items()
                host.before = lambda number, call: None
                (again,) = host.capture()
                assert again.result is Result.UNDONE
            assert len(host.places()) == (outcome.place is not None)
    assert results == {(Result.DONE, "deleting"), (Result.UNDONE, "incoming"), (Result.UNDONE, "none")}


def test_a17_a_directory_renamed_meanwhile_is_captured_all_the_same(fresh: Callable[[], Host]) -> None:
    host = fresh()
    host.capture()
    for at in range(len(host.calls)):
        host = fresh()

        def act(number: int, call: Call, at: int = at, top: Path = host.top) -> None:
            if number == at:
                (top / DELETED).rename(top / f"t-0.{UNIQUE[::-1]}-delete")

        host.before = act
        (outcome,) = host.capture()
        assert outcome.place == WHOLE
        assert files_of(host.work / WHOLE) == FILES


def test_a_capture_stopped_at_any_call_is_finished_by_the_next(fresh: Callable[[], Host]) -> None:
    host = fresh()
    host.capture()
    calls = len(host.calls)
    assert calls > 2 * len(FILES)
    for at in range(calls):
        host = fresh()

        with stopped(host, numbered(at)):
            host.capture()
        host.recover()
        (outcome,) = host.capture()
        assert outcome.result is Result.DONE
        assert host.places() == [WHOLE]
        assert files_of(host.work / WHOLE) == FILES
        marker = host.marker(WHOLE)
        assert (marker.delay_ms, marker.checkpoints.log_start) == (DELAY_MS, 6)


@pytest.mark.parametrize("number", [errno.EMLINK, errno.EXDEV, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a17_an_error_of_any_call_ends_done_undone_or_read_only(fresh: Callable[[], Host], number: int) -> None:
    host = fresh()
    host.capture()
    calls = len(host.calls)
    for at in range(calls):
        host = fresh()

        def fail(count: int, call: Call, at: int = at) -> None:
            if count == at:
                raise OSError(number, os.strerror(number), call.path)

        host.before = fail
        try:
            (outcome,) = host.capture()
        except ReadOnlyDiskError:
            assert number == errno.EIO or host.calls[at].name.startswith("fsync")
        else:
            assert number != errno.EIO
            if outcome.result is Result.UNDONE:
                assert host.places() == [], host.calls[at]
        assert files_of(host.top / DELETED) == FILES
        host.before = lambda count, call: None
        host.recover()
        (outcome,) = host.capture()
        assert (outcome.result, host.places()) == (Result.DONE, [WHOLE])
        assert files_of(host.work / WHOLE) == FILES


def test_a17_no_file_that_its_broker_replaced_stays_as_it_was_first_linked(host: Host) -> None:
    """It writes its small files beside, and renames them over what is there: the later one counts."""
    newer = b"0\n2\n0 5\n1 9\n"

    def act(number: int, call: Call) -> None:
        if call.name == "link" and call.path.endswith("partition.metadata") and len(host.calls) < 20:
            put(host.top / DELETED, {"leader-epoch-checkpoint.tmp": newer})
            (host.top / DELETED / "leader-epoch-checkpoint.tmp").rename(host.top / DELETED / "leader-epoch-checkpoint")
            host.before = lambda number, call: None

    host.before = act
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place, host.places()) == (Result.DONE, WHOLE, [WHOLE])
    assert files_of(host.work / WHOLE) == {**FILES, "leader-epoch-checkpoint": newer}


def test_a_name_that_is_gone_since_it_was_listed_keeps_no_capture_from_its_place(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge claims, and a withdrawal takes away, what lies beside."""
    listed = HostDirectory.names

    def names(directory: HostDirectory) -> list[str]:
        beside = directory.path.endswith(("/deleting", "/incoming"))
        return [*([f"{OLD}_0.7", f"{OLD}_0.8"] if beside else []), *listed(directory)]

    monkeypatch.setattr(HostDirectory, "names", names)
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.DONE, WHOLE)


def test_a_full_disk_leaves_no_empty_directory_of_a_capture() -> None:
    """Of a directory that was made and could not be given away: it is made once more out of the reserve."""
    for failures in (
        [Failure(0, errno.ENOSPC, name="mkdir", is_short=True)],
        [Failure(0, errno.EACCES, is_short=True)],
    ):
        start = rescue._deleted()
        host = ModelHost(start.world())
        for failure in failures:
            host.fail(failure)
        with open_site(host, "/d0/kafka") as root:
            (outcome,) = capture(root.open_dir, [ITEM], instant)
        is_full = failures[0].errno == errno.ENOSPC
        assert outcome.place == (WHOLE if is_full else None)
        left = {path for path in host.world().tree() if "/incoming/" in path}
        assert left == set()


def test_links_that_fail_while_the_broker_removes_keep_the_last_names(host: Host) -> None:
    def act(number: int, call: Call) -> None:
        if call.name == "link" and call.path.endswith("leader-epoch-checkpoint"):
            for path in (host.top / DELETED).iterdir():
                path.unlink()
            raise OSError(errno.EMLINK, "too many links", call.path)

    host.before = act
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.UNDONE, PARTIAL)
    held = files_of(host.work / PARTIAL)
    assert held.items() <= FILES.items()
    assert f"{5:020}.log" in held


def test_a17_what_its_broker_removes_while_the_links_are_dropped_keeps_the_last_names(host: Host) -> None:
    """Each had another name when the links were counted, and has none when its own turn comes."""

    def act(number: int, call: Call) -> None:
        if call.name == "link" and call.path.endswith("leader-epoch-checkpoint"):
            raise OSError(errno.EMLINK, "too many links", call.path)
        if call.name == "unlink":
            for path in (host.top / DELETED).iterdir():
                path.unlink()

    host.before = act
    (outcome,) = host.capture()
    assert (outcome.result, outcome.place) == (Result.UNDONE, PARTIAL)
    held = files_of(host.work / PARTIAL)
    linked = [os.path.basename(call.path) for call in host.calls if call.name == "link"][:-1]
    # The broker removed all others between the last look at one and its removal: that one is gone, and no other.
    assert len(held) == len(linked) - 1 > 2
    assert held.items() <= FILES.items()
    assert host.marker(PARTIAL).topic_id == OLD


def test_a_name_that_kafka_cut_gets_no_entries_of_another_topic_in_the_same_batch(host: Host) -> None:
    topic = "long." + "x" * 240
    cut_name = name_for(topic, 0, DirForm.DELETE, UNIQUE)
    cut = parse_partition_dir(cut_name)
    assert cut is not None
    (host.top / DELETED).rename(host.top / cut_name)
    # Another topic is called as what is left of that name.
    another = f"{cut.topic}-0.{'1' * 32}-stray"
    put(host.top / another, {**FILES, "partition.metadata": NEW_FILES["partition.metadata"]})
    for checkpoint in NAMES:
        (host.top / checkpoint).write_text(f"0\n1\n{cut.topic} 0 5\n")
    with open_site(HostDisk(), str(host.top)) as root:
        items = [replace(ITEM, name=another, topic=None), replace(ITEM, name=cut_name, topic=None)]
        outcomes = capture(root.open_dir, items, instant)
    first, second = (host.marker(str(outcome.place)) for outcome in outcomes)
    assert (first.topic_id, first.checkpoints.log_start) == (NEW, 5)
    assert (second.topic_id, second.checkpoints) == (OLD, Checkpoints())


def test_a17_what_is_partial_is_linked_without_a_sync_too(host: Host) -> None:
    gone = [name for name in FILES if name.startswith(REMOVAL[0][:20])]
    for name in gone:
        (host.top / DELETED / name).unlink()

    def synced() -> list[str]:
        names = [os.path.basename(call.path) for call in host.calls if call.name == "fsync"]
        return [name for name in names if name in FILES]

    with open_site(HostDisk(host.tell), str(host.top)) as root:
        host.calls = []
        (linked,) = link_up(root.open_dir, [ITEM], instant)
        assert isinstance(linked, Linked)
        assert synced() == []
        (outcome,) = complete(root.open_dir, [linked], instant)
    assert (outcome.result, outcome.place, outcome.error) == (Result.UNDONE, PARTIAL, linked.lack)
    assert len(synced()) == len(FILES) - len(gone)


def test_what_got_the_name_of_a_linked_capture_meanwhile_is_not_taken_for_it(host: Host) -> None:
    with open_site(HostDisk(), str(host.top)) as root:
        (linked,) = link_up(root.open_dir, [ITEM], instant)
        assert isinstance(linked, Linked)
        shutil.rmtree(host.work / PARTIAL)
        later = instant()._replace(wall_ms=instant().wall_ms + 1)
        (another,) = link_up(root.open_dir, [ITEM], lambda: later)
        assert isinstance(another, Linked)
        assert (another.name, another.begun == linked.begun) == (linked.name, False)
        (outcome,) = complete(root.open_dir, [linked], instant)
        assert outcome.result is Result.UNDONE
        assert outcome.error is not None
        assert outcome.error.slug == "marker-unusable"
        assert outcome.error.found == "the marker of another capture"
        assert outcome.error.fix == "nothing was removed; run logdirctl capture again, which begins a new copy"
        (outcome,) = complete(root.open_dir, [another], instant)
    assert (outcome.result, outcome.place) == (Result.DONE, WHOLE)


def put_several(host: Host) -> list[CaptureItem]:
    names = [f"t-{partition}.{UNIQUE}-delete" for partition in (1, 2, 3)]
    for name in names:
        put(host.top / name, FILES)
    return [replace(ITEM, name=name) for name in names]


def test_a17_every_marker_is_durable_before_the_first_link_and_their_names_are_at_once(host: Host) -> None:
    host.capture(*put_several(host))
    first = next(at for at, call in enumerate(host.calls) if call.name == "link")
    made = [call for call in host.calls[:first] if call.name.startswith("fsync")]
    places = [f"{host.work}/incoming/{OLD}_{partition}" for partition in (1, 2, 3)]
    assert {call.path for call in made if call.name == "fsync"} == {f"{place}/replica.json" for place in places}
    assert [call.path for call in made if call.name == "fsync-dir"] == [*places, f"{host.work}/incoming"]


def test_the_checkpoint_files_are_read_once_for_several(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    put(host.top, entries(2, recovery_point=9, log_start=6, high_watermark=9))
    real, read = small_file.read_file, []

    def read_file(directory: Directory, name: str) -> bytes | None:
        read.append(name)
        return real(directory, name)

    monkeypatch.setattr(checkpoints, "read_file", read_file)
    host.capture(*put_several(host))
    assert sorted(read) == sorted(NAMES)
    assert [host.marker(f"deleting/{OLD}_{p}").checkpoints.high_watermark for p in (1, 2, 3)] == [None, 9, None]


def test_entries_of_a_topic_made_again_after_they_were_read_are_not_those_of_the_old_one(host: Host) -> None:
    def act(number: int, call: Call) -> None:
        if call.name == "mkdir":
            put(host.top / "t-0", FILES)

    host.before = act
    (outcome,) = host.capture()
    assert (outcome.place, host.marker(WHOLE).checkpoints) == (WHOLE, Checkpoints())


def test_several_at_a_time_are_all_captured(host: Host) -> None:
    items = []
    for partition in range(1, 30):
        name = f"t-{partition}.{UNIQUE}-delete"
        put(host.top / name, FILES)
        items.append(replace(ITEM, name=name))
    outcomes = host.capture(*items, threads=4)
    assert [o.place for o in outcomes] == [f"deleting/{OLD}_{p}" for p in range(1, 30)]
    for partition in range(1, 30):
        assert files_of(host.work / f"deleting/{OLD}_{partition}") == FILES
        assert host.marker(f"deleting/{OLD}_{partition}").partition == partition


def test_a17_nothing_is_captured_twice_where_several_are_captured_at_a_time(host: Host) -> None:
    names = [f"t-{partition}.{UNIQUE}-delete" for partition in range(1, 100)]
    for name in names:
        put(host.top / name, FILES)
    items = [replace(ITEM, name=name) for name in names]
    for _ in range(10):
        host.capture(*items, threads=4)
    assert host.places() == sorted(f"deleting/{OLD}_{p}" for p in range(1, 100))


def test_two_different_directories_of_one_replica_both_find_a_place(host: Host) -> None:
    host.capture()
    other = f"t-0.{UNIQUE[::-1]}-delete"
    put(host.top / other, {**FILES, "00000000000000000007.log": b"another"})
    (outcome,) = host.capture(replace(ITEM, name=other))
    assert outcome.place == f"{WHOLE}.2"
    assert host.places() == [WHOLE, f"{WHOLE}.2"]


def test_no_directory_whose_id_is_gone_by_now_is_captured_a_second_time(tmp_path: Path) -> None:
    """A broker that goes on removing may take partition.metadata before the segments."""
    host = Host(tmp_path)
    assert [one.place for one in host.capture()] == [WHOLE]
    (host.top / DELETED / "partition.metadata").unlink()
    assert [one.place for one in host.capture()] == [WHOLE]
    assert os.listdir(host.work / "deleting") == [f"{OLD}_0"]
