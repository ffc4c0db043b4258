"""One batch of replicas to ids and back: what is refused, what an error leaves, what is kept."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logdir.decide.layout.action import ToIds, ToNames
from logdir.disk.kernel.calls import Owner
from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.replica.outcome import Outcome
from logdir.disk.replica.relayout import remove_empty_prefixes, to_ids, to_names
from logdir.disk.replica.relayout_metadata import NEW_METADATA
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import DiskFullError, ReadOnlyDiskError
from logdir.formats.kafka import partition_metadata
from logdir.formats.own import relayout_file
from logdir.formats.own.relayout_file import Original, RelayoutFile
from logdir.ids import TopicId
from logdir.observe.classify import Type
from logdir.replica_ref import ReplicaRef, TopicIdPartition
from tests.builders import TOPIC_ID, log_dir, partition
from tests.crash.model import Failure, ModelHost
from tests.logdir.disk.layout_rig import WORK, add_work, opened, snapshot

ID = TopicId.parse(TOPIC_ID)
OTHER = TopicId.parse("bXOy6xj-Q8ivrWAlsZGnkw")
META = b"version=1\nnode.id=1\ncluster.id=x\n"
PLAIN = f"version: 0\ntopic_id: {TOPIC_ID}".encode()


def item(topic: str = "a", number: int = 0, *, topic_id: TopicId = ID, own: bool = True) -> ToIds:
    return ToIds(ref=TopicIdPartition(topic=topic, topic_id=topic_id, partition=number), has_own_id=own)


def back(of: ToIds) -> ToNames:
    return ToNames(ref=of.ref, path=of.place)


def mend(of: ToIds) -> ToNames:
    return ToNames(ref=of.ref.by_name, path=of.path)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    made = log_dir(tmp_path / "d1")
    add_work(made)
    return made


@pytest.fixture
def open_dir(top: Path) -> Iterator[OpenLogDir]:
    with opened(HostDisk(), [str(top)]) as open_dirs:
        yield open_dirs[0]


def why(outcome: Outcome) -> str:
    assert outcome.place is None
    return str(outcome.error)


def test_a_replica_goes_under_its_id_with_its_topics_name(top: Path, open_dir: OpenLogDir) -> None:
    path = partition(top / "a-0")
    (path / "mine.txt").write_text("x")
    os.utime(path / "partition.metadata", ns=(5, 123_456_789))
    (outcome,) = to_ids(open_dir, [item()])
    assert (outcome.place, outcome.error) == (f"eX/{TOPIC_ID}_0", None)
    place = top / f"eX/{TOPIC_ID}_0"
    assert sorted(p.name for p in place.iterdir()) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "mine.txt",
        "partition.metadata",
    ]
    data = (place / "partition.metadata").read_bytes()
    assert partition_metadata.parse(data) == (0, ID, "a")
    assert (place / "partition.metadata").stat().st_mtime_ns == 123_456_789


@pytest.mark.parametrize(
    "data",
    [
        None,
        PLAIN + b"\n",
        f"version: 0\r\ntopic_id: {ID.hex()}".encode(),
        f"version: 1\ntopic_id: {TOPIC_ID}\nmore: x\n".encode(),
        PLAIN + b"\ntopic_name: another",
    ],
)
def test_what_cannot_be_made_again_is_kept(top: Path, open_dir: OpenLogDir, data: bytes | None) -> None:
    path = partition(top / "a-0", topic_id=None)
    if data is not None:
        (path / "partition.metadata").write_bytes(data)
        (path / "partition.metadata").chmod(0o640)
        os.utime(path / "partition.metadata", ns=(5, 77))
    before = snapshot(top)
    assert to_ids(open_dir, [item(own=data is not None)])[0].error is None
    place = top / item().place
    kept = relayout_file.parse((place / "relayout.json").read_bytes())
    assert kept == RelayoutFile(None if data is None else Original(data, 77))
    assert partition_metadata.parse((place / "partition.metadata").read_bytes()) == (0, ID, "a")
    assert to_names(open_dir, [back(item())])[0].place == "a-0"
    assert remove_empty_prefixes(open_dir) == ()
    assert snapshot(top) == before


def test_a08_our_names_in_a_partition_directory_end_in_json() -> None:
    assert relayout_file.FILE_NAME.endswith(".json")
    assert NEW_METADATA.endswith(".json")


def test_a_stale_step_is_refused_by_name_and_the_rest_goes_on(top: Path, open_dir: OpenLogDir) -> None:
    partition(top / "a-0")
    partition(top / "b-0", topic_id=str(OTHER))
    partition(top / "c-0", topic_id=None)
    partition(top / "d-0")
    (top / "d-0/partition.metadata").write_bytes(b"torn")
    items = [item("gone"), item("b", 1), item("c", 2), item("d", 3), item()]
    items[1:4] = [item("b"), item("c"), item("d")]
    before = snapshot(top)
    outcomes = to_ids(open_dir, items)
    assert [o.path for o in outcomes] == ["gone-0", "b-0", "c-0", "d-0", "a-0"]
    assert "No such file" in why(outcomes[0])
    assert f"b-0: expected topic id {TOPIC_ID}, found {OTHER}" in why(outcomes[1])
    assert "found no partition.metadata; take the inventory and plan again" in why(outcomes[2])
    assert "d-0/partition.metadata" in why(outcomes[3])
    assert outcomes[4].place == item().place
    assert to_names(open_dir, [back(item())])[0].error is None
    remove_empty_prefixes(open_dir)
    assert snapshot(top) == before


def test_a44_what_is_no_plain_directory_is_not_touched(top: Path, open_dir: OpenLogDir, tmp_path: Path) -> None:
    outside = partition(tmp_path / "elsewhere")
    (top / "a-0").symlink_to(outside)
    partition(top / "b-0", topic_id=str(OTHER))
    (top / "b-0" / "inner").mkdir()
    partition(top / "c-0")
    (top / "c-0" / "00000000000000000000.log").unlink()
    (top / "c-0" / "00000000000000000000.log").symlink_to(outside / "00000000000000000000.log")
    (top / "d-0").write_text("a file")
    partition(top / "e-0")
    (top / "e-0" / "replica.json").write_text("{}")
    before = snapshot(top, outside)
    items = [item("a"), item("b", topic_id=OTHER), item("c", 3), item("d", 4), item("e")]
    items[2:4] = [item("c"), item("d")]
    outcomes = to_ids(open_dir, items)
    assert all(outcome.error is not None for outcome in outcomes)
    assert "found a directory" in why(outcomes[1])
    assert "found a symbolic link" in why(outcomes[2])
    assert "first recovers the log dir" in why(outcomes[4])
    assert snapshot(top, outside) == before


def test_a35_the_metadata_log_is_only_read(top: Path, open_dir: OpenLogDir) -> None:
    partition(top / "__cluster_metadata-0")
    before = snapshot(top)
    assert "the metadata log" in why(to_ids(open_dir, [item("__cluster_metadata")])[0])
    assert snapshot(top) == before


def test_a_place_that_is_taken_is_not_replaced_and_leaves_nothing(top: Path, open_dir: OpenLogDir) -> None:
    partition(top / "a-0", topic_id=None)
    (top / item().place).mkdir(parents=True)
    (top / "eX").rename(top / "eX.")
    (top / "eX").write_text("a file in the way")
    partition(top / "b-0", topic_id=str(OTHER))
    before = snapshot(top)
    taken, other = to_ids(open_dir, [item(own=False), item("b", topic_id=OTHER)])
    assert "eX: expected a directory, found a regular file" in why(taken)
    assert other.error is None
    (top / "eX").unlink()
    (top / "eX.").rename(top / "eX")
    assert "File exists" in why(to_ids(open_dir, [item(own=False)])[0])
    to_names(open_dir, [back(item("b", topic_id=OTHER))])
    assert remove_empty_prefixes(open_dir) == ("eX",)
    found = snapshot(top)
    assert {path: said for path, said in found.items() if "eX" not in path} == {
        path: said for path, said in before.items() if "eX" not in path
    }


def test_a_name_that_is_taken_leaves_the_replica_under_its_id(top: Path, open_dir: OpenLogDir) -> None:
    partition(top / "a-0")
    to_ids(open_dir, [item()])
    (top / "a-0").mkdir()
    before = snapshot(top)
    assert "File exists" in why(to_names(open_dir, [back(item())])[0])
    assert snapshot(top) == before


def test_one_that_says_another_topic_does_not_go_back(top: Path, open_dir: OpenLogDir) -> None:
    partition(top / "a-0")
    to_ids(open_dir, [item()])
    before = snapshot(top)
    other = ToNames(ref=ReplicaRef(topic="b", topic_id=ID, partition=0), path=item().place)
    assert "found topic a with" in why(to_names(open_dir, [other])[0])
    (top / item().place / "partition.metadata").write_bytes(PLAIN)
    assert "found topic None with" in why(to_names(open_dir, [back(item())])[0])
    (top / item().place / "partition.metadata").unlink()
    assert "found no such file" in why(to_names(open_dir, [back(item())])[0])
    assert set(snapshot(top)) == set(before) - {f"d1/{item().place}/partition.metadata"}


def test_what_is_kept_but_torn_holds_the_replica(top: Path, open_dir: OpenLogDir) -> None:
    partition(top / "a-0", topic_id=None)
    to_ids(open_dir, [item(own=False)])
    (top / item().place / "relayout.json").write_bytes(b"{}\n")
    before = snapshot(top)
    assert "relayout.json" in why(to_names(open_dir, [back(item())])[0])
    assert snapshot(top) == before


@pytest.mark.parametrize(("size", "said"), [(131_072, "one line that ends with LF"), (131_073, "at most 131072 bytes")])
def test_nothing_kept_is_read_that_is_larger_than_any_of_ours(
    top: Path, open_dir: OpenLogDir, size: int, said: str
) -> None:
    partition(top / "a-0", topic_id=None)
    to_ids(open_dir, [item(own=False)])
    (top / item().place / "relayout.json").write_bytes(bytes(size))
    before = snapshot(top)
    assert said in why(to_names(open_dir, [back(item())])[0])
    assert snapshot(top) == before


def test_what_is_kept_but_torn_is_not_moved_to_where_it_could_not_come_back_from(
    top: Path, open_dir: OpenLogDir
) -> None:
    path = partition(top / "a-0", topic_id=None)
    (path / "partition.metadata").write_bytes(PLAIN + b"\ntopic_name: a")
    (path / "relayout.json").write_bytes(b"{}\n")
    before = snapshot(top)
    assert "relayout.json" in why(to_ids(open_dir, [item()])[0])
    assert snapshot(top) == before


@pytest.mark.parametrize("size", [65536, 65537])
def test_no_file_is_kept_that_is_too_large_to_be_read_again(top: Path, open_dir: OpenLogDir, size: int) -> None:
    path = partition(top / "a-0", topic_id=None)
    (path / "partition.metadata").write_bytes((PLAIN + b"\nmore: ").ljust(size, b"x"))
    before = snapshot(top)
    (outcome,) = to_ids(open_dir, [item()])
    if size > 65536:
        assert "at most 65536 bytes" in why(outcome)
    else:
        assert outcome.error is None
        assert to_names(open_dir, [back(item())])[0].place == "a-0"
        assert remove_empty_prefixes(open_dir) == ()
    assert snapshot(top) == before


@pytest.mark.parametrize("mtime_ns", [-1, 0])
def test_no_time_of_change_is_lost_for_lying_in_1970(top: Path, open_dir: OpenLogDir, mtime_ns: int) -> None:
    path = partition(top / "a-0")
    os.utime(path / "partition.metadata", ns=(mtime_ns, mtime_ns))
    before = snapshot(top)
    (outcome,) = to_ids(open_dir, [item()])
    assert (outcome.error is None) == (mtime_ns == 0)
    if mtime_ns == 0:
        assert (top / item().place / "partition.metadata").stat().st_mtime_ns == 0
        to_names(open_dir, [back(item())])
        remove_empty_prefixes(open_dir)
    assert snapshot(top) == before


def test_a44_what_came_into_a_replica_under_its_id_keeps_it_there(top: Path, open_dir: OpenLogDir) -> None:
    partition(top / "a-0")
    to_ids(open_dir, [item()])
    (top / item().place / "inner").mkdir()
    before = snapshot(top)
    assert "inner: expected only regular files" in why(to_names(open_dir, [back(item())])[0])
    assert snapshot(top) == before


@pytest.mark.parametrize("is_back", [False, True], ids=["to ids", "to names"])
def test_a09_what_does_not_read_back_never_gets_the_name(
    top: Path, open_dir: OpenLogDir, monkeypatch: pytest.MonkeyPatch, is_back: bool
) -> None:
    partition(top / "a-0")
    if is_back:
        to_ids(open_dir, [item()])
    place = top / (item().place if is_back else "a-0")
    before = (place / "partition.metadata").read_bytes()
    read = HostDirectory.read

    def flipped(directory: HostDirectory, name: str, limit: int) -> bytes:
        data = read(directory, name, limit)
        return data[:-1] + b"?" if name == NEW_METADATA else data

    monkeypatch.setattr(HostDirectory, "read", flipped)
    (outcome,) = to_names(open_dir, [back(item())]) if is_back else to_ids(open_dir, [item()])
    assert "expected the bytes just written" in why(outcome)
    assert (place / "partition.metadata").read_bytes() == before


def test_replicas_under_their_names_are_not_written_to(top: Path) -> None:
    partition(top / "a-0")
    partition(top / "b-0", topic_id=None)
    told: list[Call] = []
    with opened(HostDisk(told.append), [str(top)]) as (open_dir,):
        outcomes = to_names(open_dir, [mend(item("a")), mend(item("b"))])
    assert [(o.place, o.error) for o in outcomes] == [("a-0", None), ("b-0", None)]
    assert told == []


def test_prefix_directories_are_made_once_and_each_batch_syncs_three_times(top: Path) -> None:
    items = [item("a", number) for number in range(5)]
    for each in items:
        partition(top / each.path)
    told: list[Call] = []
    with opened(HostDisk(told.append), [str(top)]) as (open_dir,):
        to_ids(open_dir, items)
        there = [call.name for call in told]
        assert (there.count("syncfs"), there.count("mkdir"), there.count("fsync")) == (3, 1, 0)
        assert there.index("rename") > max(n for n, name in enumerate(there[:-1]) if name == "syncfs")
        del told[:]
        to_names(open_dir, [back(each) for each in items])
        assert [call.name for call in told].count("syncfs") == 2


# Errors, on the model disk.


def start(*paths: str) -> ModelHost:
    host = ModelHost.with_disks("/d1", uid=7, gid=8)
    host.plant("/d1/k/meta.properties", META)
    for name in ("deleting", "incoming"):
        host.plant(f"/d1/k{WORK}/{name}", kind=Type.DIRECTORY, owner=Owner(7, 8, 0o755))
    host.plant(f"/d1/k{WORK}/reserve", bytes(4096))
    for path in paths:
        host.plant(f"/d1/k/{path}/00000000000000000000.log", path.encode(), mtime_ns=11)
    host.plant("/d1/k/a-0/partition.metadata", PLAIN, mtime_ns=12)
    return host


def tree(host: ModelHost, below: str = "/d1/k/") -> dict[str, tuple[object, ...]]:
    return {
        path: (node.owner, node.data, node.mtime_ns if node.type is Type.FILE else 0)
        for path, node in host.world().tree().items()
        if path.startswith(below)
    }


ITEMS = (item("a", 0), item("b", 0, topic_id=OTHER, own=False))


def test_every_errno_at_every_call_ends_done_undone_or_read_only() -> None:
    whole = start("a-0", "b-0")
    before = tree(whole)
    with opened(whole, ["/d1/k"]) as (open_dir,):
        assert all(outcome.error is None for outcome in to_ids(open_dir, ITEMS))
    after = tree(whole)
    ends = set()
    for number in (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EEXIST, errno.EDQUOT, errno.EMFILE):
        for at in range(len(whole.records)):
            for is_short in (False, True):
                host = start("a-0", "b-0").fail(Failure(at, number, is_short=is_short))
                call = whole.records[at].call
                with opened(host, ["/d1/k"]) as (open_dir,):
                    try:
                        outcomes = to_ids(open_dir, ITEMS)
                    except ReadOnlyDiskError:
                        assert number in (errno.EIO, errno.EROFS) or "sync" in call.name, call
                        ends.add("read-only")
                        host.failures.clear()
                    else:
                        for of, outcome in zip(ITEMS, outcomes, strict=True):
                            ends.add("done" if outcome.error is None else "undone")
                            place = f"/d1/k/{of.place if outcome.error is None else of.path}/"
                            expected = after if outcome.error is None else before
                            found = {p: s[:2] for p, s in tree(host, place).items()}
                            assert found == {p: s[:2] for p, s in expected.items() if p.startswith(place)}, call
                    lying = [back(of) if of.path not in open_dir.top.names() else mend(of) for of in ITEMS]
                    assert all(outcome.error is None for outcome in to_names(open_dir, lying)), call
                    assert remove_empty_prefixes(open_dir) == ()
                assert tree(host) == before, (call, number)
    assert ends == {"done", "undone", "read-only"}


def test_every_errno_at_every_call_of_the_way_back() -> None:
    first = start("a-0", "b-0")
    before = tree(first)

    def applied() -> ModelHost:
        host = start("a-0", "b-0")
        with opened(host, ["/d1/k"]) as (open_dir,):
            to_ids(open_dir, ITEMS)
        world = host.world()
        return ModelHost(world._replace(generation=1, volumes=tuple(volume.durable() for volume in world.volumes)))

    lying = [back(of) for of in ITEMS]
    whole = applied()
    with opened(whole, ["/d1/k"]) as (open_dir,):
        to_names(open_dir, lying)
    undone = 0
    for number in (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EEXIST):
        for at in range(len(whole.records)):
            host = applied().fail(Failure(at, number))
            with opened(host, ["/d1/k"]) as (open_dir,):
                try:
                    outcomes = to_names(open_dir, lying)
                except ReadOnlyDiskError:
                    host.failures.clear()
                else:
                    undone += sum(outcome.error is not None for outcome in outcomes)
                again = [back(of) if of.path not in open_dir.top.names() else mend(of) for of in ITEMS]
                assert all(outcome.error is None for outcome in to_names(open_dir, again))
                remove_empty_prefixes(open_dir)
            assert tree(host) == before, (whole.records[at].call, number)
    assert undone > 10


def test_nothing_is_written_after_a_sync_failed() -> None:
    whole = start("a-0", "b-0")
    with opened(whole, ["/d1/k"]) as (open_dir,):
        to_ids(open_dir, ITEMS)
    for at, record in enumerate(whole.records):
        if not record.is_change:
            host = start("a-0", "b-0").fail(Failure(at))
            with opened(host, ["/d1/k"]) as (open_dir,), pytest.raises(ReadOnlyDiskError):
                to_ids(open_dir, ITEMS)
            assert len(host.records) == at + 1


def test_nothing_is_moved_after_a_disk_said_that_it_is_sick() -> None:
    """What was begun and means nothing may be taken away, as far as that goes; no other item is begun."""
    whole = start("a-0", "b-0")
    with opened(whole, ["/d1/k"]) as (open_dir,):
        to_ids(open_dir, ITEMS)
    for at, record in enumerate(whole.records):
        host = start("a-0", "b-0").fail(Failure(at, errno.EROFS, for_ever=True))
        with opened(host, ["/d1/k"]) as (open_dir,), pytest.raises(ReadOnlyDiskError):
            to_ids(open_dir, ITEMS)
        assert {made.call.name for made in host.records[at:]} <= {record.call.name, "unlink"}


def test_of_two_errors_the_one_that_ended_it_is_told() -> None:
    host = start("a-0", "b-0").fail(Failure(1, errno.ENOSPC, name="write", for_ever=True))
    host.fail(Failure(0, errno.EPERM, name="unlink", for_ever=True))
    with opened(host, ["/d1/k"]) as (open_dir,):
        outcomes = to_ids(open_dir, [ITEMS[1]])
    assert isinstance(outcomes[0].error, DiskFullError)
    assert outcomes[0].error.found == "No space left on device"


def test_a10_a_full_disk_gives_up_its_reserve() -> None:
    host = start("a-0", "b-0")
    system = host.systems[0]
    host = ModelHost(
        host.world()._replace(volumes=(system.volume()._replace(capacity_bytes=system.used_bytes()),), generation=1)
    )
    with opened(host, ["/d1/k"]) as (open_dir,):
        assert all(outcome.error is None for outcome in to_ids(open_dir, ITEMS))
        assert open_dir.work.stat("reserve").size_bytes == 0


def test_a09_everything_made_belongs_to_the_owner_of_the_log_dir() -> None:
    host = start("a-0", "b-0")
    host = ModelHost(host.world()._replace(uid=0, gid=0, generation=1))
    with opened(host, ["/d1/k"]) as (open_dir,):
        to_ids(open_dir, ITEMS)
    owners = {node.owner[:2] for path, node in host.world().tree().items() if path.startswith("/d1/k/")}
    assert owners == {(7, 8)}
