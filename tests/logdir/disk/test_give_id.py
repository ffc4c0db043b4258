"""A topic id given to a replica that has none: whole, given away, and never over another."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from logdir.disk.kernel.host import Call, HostDirectory, HostDisk
from logdir.disk.replica.give_id import GiveItem, give_id
from logdir.disk.replica.outcome import Outcome, Result
from logdir.errors import DiskFullError, ReadOnlyDiskError, RefusedError
from logdir.formats.kafka import partition_metadata
from logdir.ids import TopicId
from tests.builders import TOPIC_ID
from tests.crash.model import Failure, ModelHost
from tests.crash.starts import ONE, A, Sites, start
from tests.logdir.disk.staged_rig import BY_ID, GID, UID, make_log_dir, opened, owner, seen

GIVEN = TopicId.parse(TOPIC_ID)
OTHER = "MkU3OEVBNTcwNTJENDM2Qg"


@pytest.fixture
def nameless(tmp_path: Path) -> Path:
    made = make_log_dir(tmp_path / "d1", "a-0")
    (made / "a-0" / "partition.metadata").unlink()
    return made


def give(made: Path, path: str = "a-0", topic_id: TopicId = GIVEN, disk: HostDisk | None = None) -> Outcome:
    with opened(made, disk) as open_dir:
        return give_id(open_dir, GiveItem(path=path, topic_id=topic_id))


def test_it_is_written_as_kafka_writes_it_and_belongs_to_the_log_dirs_owner(nameless: Path) -> None:
    before = seen(nameless.parent)
    outcome = give(nameless)
    assert (outcome.result, outcome.place) == (Result.DONE, "a-0")
    file = nameless / "a-0" / "partition.metadata"
    assert file.read_text() == f"version: 0\ntopic_id: {TOPIC_ID}"
    assert partition_metadata.parse(file.read_bytes()).topic_id == GIVEN
    assert owner(file) == (UID, GID, 0o640)
    after = seen(nameless.parent)
    assert set(after) - set(before) == {"d1/a-0/partition.metadata"}
    assert all(after[path] == before[path] for path in before)


def test_given_twice_it_is_given_once(nameless: Path) -> None:
    give(nameless)
    before = (nameless / "a-0" / "partition.metadata").stat().st_ino
    assert give(nameless).result is Result.DONE
    assert (nameless / "a-0" / "partition.metadata").stat().st_ino == before


def test_another_id_is_never_replaced(nameless: Path) -> None:
    file = nameless / "a-0" / "partition.metadata"
    file.write_text(f"version: 0\ntopic_id: {OTHER}")
    before = seen(nameless.parent)
    outcome = give(nameless)
    assert outcome.result is Result.UNDONE
    assert isinstance(outcome.error, RefusedError)
    assert OTHER in outcome.error.found
    assert seen(nameless.parent) == before


def test_one_that_appears_at_the_last_moment_is_not_replaced(nameless: Path) -> None:
    """The name is given by a rename that replaces nothing, whatever was seen before."""
    file = nameless / "a-0" / "partition.metadata"

    def meanwhile(call: Call) -> None:
        if call.name == "rename":
            file.write_text(f"version: 0\ntopic_id: {OTHER}")

    outcome = give(nameless, disk=HostDisk(meanwhile))
    assert outcome.result is Result.UNDONE
    assert file.read_text() == f"version: 0\ntopic_id: {OTHER}"
    assert not (nameless / "a-0" / "partition.metadata.tmp").exists()


def test_what_a_broker_left_half_written_goes(nameless: Path) -> None:
    (nameless / "a-0" / "partition.metadata.tmp").write_text("version: 0\nto")
    assert give(nameless).result is Result.DONE
    assert not (nameless / "a-0" / "partition.metadata.tmp").exists()


def test_the_order_is_file_sync_name_sync(nameless: Path) -> None:
    calls: list[str] = []
    give(nameless, disk=HostDisk(lambda call: calls.append(call.name)))
    assert calls == ["write", "fsync", "rename", "fsync-dir"]


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda at: (at / "partition.metadata").write_text("version: 0\ntopic_id: half"), "half"),
        (lambda at: (at / "sub").mkdir(), "found a directory;"),
        (lambda at: (at / "partition.metadata").symlink_to("/etc/hostname"), "found a symbolic link;"),
        (lambda at: os.mkfifo(at / "fifo"), "found neither a regular file nor a directory;"),
    ],
    ids=["garbage", "a sub-directory", "a link", "a FIFO"],
)
def test_what_is_not_plain_is_left_as_it_is(make: object, found: str, nameless: Path) -> None:
    assert callable(make)
    make(nameless / "a-0")
    names = sorted(os.listdir(nameless / "a-0"))
    outcome = give(nameless)
    assert outcome.result is Result.UNDONE
    assert found in str(outcome.error)
    assert "\n" not in str(outcome.error)
    assert sorted(os.listdir(nameless / "a-0")) == names


def test_a_replica_by_id_or_no_id_at_all_is_refused(tmp_path: Path, nameless: Path) -> None:
    by_id = make_log_dir(tmp_path / "d2", BY_ID)
    (by_id / BY_ID / "partition.metadata").unlink()
    assert isinstance(give(by_id, BY_ID).error, RefusedError)
    assert os.listdir(by_id / BY_ID).count("partition.metadata") == 0
    assert isinstance(give(nameless, topic_id=TopicId(bytes(16))).error, RefusedError)
    assert give(nameless, "b-0").result is Result.UNDONE


@pytest.mark.parametrize("call", ["write", "rename"])
def test_a_call_that_fails_leaves_it_as_it_was(call: str, nameless: Path) -> None:
    before = seen(nameless.parent)

    def failing(made: Call) -> None:
        if made.name == call:
            raise OSError(errno.EACCES, "no right", made.path)

    assert give(nameless, disk=HostDisk(failing)).result is Result.UNDONE
    assert seen(nameless.parent) == before


@pytest.mark.parametrize("call", ["fsync", "fsync-dir"])
def test_a_sync_that_fails_ends_writing(call: str, nameless: Path) -> None:
    def failing(made: Call) -> None:
        if made.name == call:
            raise OSError(errno.EIO, "sick", made.path)

    with pytest.raises(ReadOnlyDiskError):
        give(nameless, disk=HostDisk(failing))


@pytest.mark.parametrize("for_ever", [False, True])
@pytest.mark.parametrize("is_short", [False, True])
def test_a10_a_full_disk_takes_the_reserve_or_is_called_full(for_ever: bool, is_short: bool) -> None:
    """Whether the call that failed left nothing, or half of a file."""
    first = start(A, files=ONE)
    host = ModelHost(first.world()).fail(Failure(0, errno.ENOSPC, for_ever=for_ever, name="write", is_short=is_short))
    with Sites(host) as open_dirs:
        outcome = give_id(open_dirs.of(A), GiveItem(path=A.path, topic_id=GIVEN))
        reserve = open_dirs.of(A).work.stat("reserve").size_bytes
    assert (outcome.result is Result.DONE) != for_ever
    assert isinstance(outcome.error, DiskFullError) == for_ever
    assert reserve == 0
    left = {path.rpartition("/")[2] for path in host.world().files() if path.startswith(f"{A.log_dir}/{A.path}/")}
    assert left == ({*ONE} if for_ever else {*ONE, "partition.metadata"})


def test_no_id_is_given_that_does_not_read_back(nameless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(directory: HostDirectory, name: str, limit: int) -> bytes:
        data = real(directory, name, limit)
        return data.swapcase() if name == "partition.metadata.tmp" else data

    real = HostDirectory.read
    before = seen(nameless.parent)
    monkeypatch.setattr(HostDirectory, "read", read)
    outcome = give(nameless)
    assert isinstance(outcome.error, RefusedError)
    assert seen(nameless.parent) == before
