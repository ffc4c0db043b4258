"""A disk that failed a sync is told of by the others for the rest of the boot, and by nobody afterwards."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from logdir.clock import Instant
from logdir.disk.kernel.fsync import syncing
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.record.quarantine import read_quarantine, write_quarantine
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.disk.root.plan import plan_init
from logdir.disk.root.work_root import open_root
from logdir.errors import MalformedFileError, ReadOnlyDiskError, UnsupportedVersionError
from logdir.formats.own import own_json, quarantine_file
from tests.builders import CLUSTER, META
from tests.crash.model import Failure, ModelHost
from tests.crash.starts import A, C, Sites, settled, start
from tests.logdir.disk.staged_rig import make_log_dir

NOW = Instant(boot_id="this", boottime_ms=5, wall_ms=1_800_000_000_000, is_synchronised=True)


class Sick(HostDisk):
    """Every sync of one kind fails."""

    def __init__(self, name: str) -> None:
        self._name = name
        super().__init__(self._observe)

    def _observe(self, call: Call) -> None:
        if call.name == self._name:
            raise OSError(errno.EIO, os.strerror(errno.EIO), call.path)


@pytest.mark.parametrize("name", ["fsync", "fsync-dir", "syncfs"])
def test_the_disk_keeps_in_mind_that_a_sync_failed_whoever_caught_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "f").write_bytes(b"data")
    disk = Sick(name)
    with disk.open_top(str(tmp_path)) as top:
        calls = {"fsync": lambda: top.sync_file("f"), "fsync-dir": top.sync, "syncfs": top.sync_disk}
        for other, call in calls.items():
            if other != name:
                call()
        with pytest.raises(FileNotFoundError):
            HostDisk().open_top(str(tmp_path)).sync_file("none")
        assert disk.failed == {}
        with pytest.raises(ReadOnlyDiskError), syncing(top):
            calls[name]()
    assert disk.failed == {tmp_path.stat().st_dev: f"{tmp_path}: Input/output error"}


@pytest.fixture
def host() -> ModelHost:
    return start(A, C)


@pytest.fixture
def open_dirs(host: ModelHost) -> Iterator[tuple[OpenLogDir, OpenLogDir]]:
    with Sites(host) as found:
        yield found.of(A), found.of(C)


def _file(host: ModelHost, disk: int) -> bytes | None:
    return host.world().files().get(f"/d{disk}/kafka.logdird/quarantine.json")


def test_the_others_say_it_durably_and_it_says_so_itself_to_nobody(
    host: ModelHost, open_dirs: tuple[OpenLogDir, OpenLogDir]
) -> None:
    one, two = open_dirs
    failed = {one.top.identity().device: "no sync"}
    assert read_quarantine(open_dirs, "this") == {}
    assert write_quarantine(open_dirs, failed, NOW) == (one.log_dir,)
    assert (_file(host, 0), _file(host, 1) is not None) == (None, True)
    touched = {record.call.path.split("/")[1] for record in host.records if record.is_change}
    assert touched == {"d1"}
    found = read_quarantine(open_dirs, "this")
    assert [(path, said.found, said.at_ms) for path, said in found.items()] == [(one.log_dir, "no sync", NOW.wall_ms)]
    assert read_quarantine(open_dirs, "another") == {}
    assert read_quarantine((two,), "this") == {}
    node = host.world().tree()["/d1/kafka.logdird/quarantine.json"]
    assert node.owner == one.owner.for_file()


def _three() -> ModelHost:
    host = ModelHost.with_disks("/d0", "/d1", "/d2")
    for number in range(3):
        directory = f"{'ABC'[number]}EXY6aqzQY-32P5TStzaFg"
        meta = META.format(node=1, directory=directory, cluster=CLUSTER)
        host.plant(f"/d{number}/kafka/meta.properties", meta.encode())
        init(host, plan_init(host, f"/d{number}/kafka", fs_type="ext4"), made_at_ms=5, reserve_bytes=32)
    return settled(host)


def test_a_second_one_is_added_and_another_boot_begins_anew() -> None:
    with Sites(_three()) as found:
        three = tuple(found.at(f"/d{number}/kafka") for number in range(3))
        devices = [open_dir.top.identity().device for open_dir in three]
        write_quarantine(three, {devices[0]: "first"}, NOW)
        # Nothing is written to the first any more.
        write_quarantine(three, {devices[1]: "second"}, NOW, quarantined={three[0].log_dir})
        assert "quarantine.json" not in three[0].work.names()
        assert {path: one.found for path, one in read_quarantine(three, "this").items()} == {
            three[0].log_dir: "first",
            three[1].log_dir: "second",
        }
        write_quarantine(three, {devices[1]: "again"}, NOW._replace(boot_id="next"))
        assert {path: one.found for path, one in read_quarantine(three, "next").items()} == {three[1].log_dir: "again"}


def test_no_word_of_a_disk_is_lost_that_another_process_said_in_this_boot() -> None:
    """The first one answers no more when the second one fails; the third one keeps both, and none of another boot."""
    with Sites(_three()) as found:
        three = tuple(found.at(f"/d{number}/kafka") for number in range(3))
        devices = [open_dir.top.identity().device for open_dir in three]
        write_quarantine(three, {devices[0]: "first"}, NOW)
        write_quarantine(three[1:], {devices[1]: "second"}, NOW)
        told = quarantine_file.parse(three[2].work.read("quarantine.json", 4096))
        assert [(one.log_dir, one.found) for one in told.disks] == [
            (three[0].log_dir, "first"),
            (three[1].log_dir, "second"),
        ]
        write_quarantine(three[1:], {devices[1]: "again"}, NOW._replace(boot_id="next"))
        told = quarantine_file.parse(three[2].work.read("quarantine.json", 4096))
        assert [(one.log_dir, one.found) for one in told.disks] == [(three[1].log_dir, "again")]


@pytest.mark.parametrize("wall_ms", [-1, 0, 1])
def test_a_clock_before_1970_keeps_no_disk_from_being_named(
    host: ModelHost, open_dirs: tuple[OpenLogDir, OpenLogDir], wall_ms: int
) -> None:
    write_quarantine(open_dirs, {open_dirs[0].top.identity().device: "no sync"}, NOW._replace(wall_ms=wall_ms))
    assert [one.at_ms for one in read_quarantine(open_dirs, "this").values()] == [max(0, wall_ms)]


def test_a_disk_put_in_its_place_is_another(host: ModelHost, open_dirs: tuple[OpenLogDir, OpenLogDir]) -> None:
    one, two = open_dirs
    write_quarantine(open_dirs, {one.top.identity().device: "no sync"}, NOW)
    assert read_quarantine((replace(one, directory_id="AAAAAAAAAAAAAAAAAAAABA"), two), "this") == {}
    assert read_quarantine((replace(one, log_dir="/elsewhere"), two), "this").keys() == {"/elsewhere"}


def test_two_log_dirs_of_one_disk_fail_together_and_have_nobody_to_tell(tmp_path: Path) -> None:
    tops = [
        make_log_dir(tmp_path / "d1", "a-0"),
        make_log_dir(tmp_path / "d2", directory="AAAAAAAAAAAAAAAAAAAABA"),
    ]
    with ExitStack() as stack:
        open_dirs = [stack.enter_context(open_root(HostDisk(), str(top))).open_dir for top in tops]
        failed = {tmp_path.stat().st_dev: "no sync"}
        assert write_quarantine(open_dirs, failed, NOW) == tuple(map(str, tops))
    assert list(tmp_path.rglob("quarantine.json")) == []


QUARANTINED = quarantine_file.QuarantinedDisk("/d", None, "x", 1)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"torn", MalformedFileError),
        (quarantine_file.render(quarantine_file.QuarantineFile("b", (QUARANTINED,)))[:-9], MalformedFileError),
        (own_json.render("quarantine", 2, {}), UnsupportedVersionError),
    ],
)  # fmt: skip
def test_one_that_cannot_be_read_speaks_of_nobody_knows_whom(
    data: bytes, error: type[Exception], open_dirs: tuple[OpenLogDir, OpenLogDir], host: ModelHost
) -> None:
    host.plant("/d1/kafka.logdird/quarantine.json", data)
    with pytest.raises(error):
        read_quarantine(open_dirs, "this")
    write_quarantine(open_dirs, {open_dirs[0].top.identity().device: "no sync"}, NOW)
    if error is MalformedFileError:
        assert read_quarantine(open_dirs, "this").keys() == {open_dirs[0].log_dir}
    else:
        assert _file(host, 1) == data


def test_a_disk_that_cannot_take_the_word_stops_nothing(
    host: ModelHost, open_dirs: tuple[OpenLogDir, OpenLogDir]
) -> None:
    host.fail(Failure(0, errno.EIO, for_ever=True, name="fsync"))
    assert write_quarantine(open_dirs, {open_dirs[0].top.identity().device: "no sync"}, NOW) == (open_dirs[0].log_dir,)
    assert _file(host, 1) is None


def test_a_directory_that_cannot_be_asked_for_its_device_keeps_no_failed_disk_from_being_named(tmp_path: Path) -> None:
    disk, top = HostDisk(), make_log_dir(tmp_path / "d1")
    with open_root(disk, str(top)) as root:
        closed = disk.open_top(str(top))
        closed.close()
        failed = {root.open_dir.work.identity().device: "no sync"}
        assert write_quarantine((replace(root.open_dir, top=closed),), failed, NOW) == (str(top),)


def test_a_disk_that_fails_again_in_this_boot_is_told_of_once_as_it_failed_last() -> None:
    with Sites(_three()) as found:
        three = tuple(found.at(f"/d{number}/kafka") for number in range(3))
        device = three[0].top.identity().device
        write_quarantine(three, {device: "first"}, NOW)
        write_quarantine(three, {device: "again"}, NOW)
        told = quarantine_file.parse(three[2].work.read("quarantine.json", 4096))
        assert [(one.log_dir, one.found) for one in told.disks] == [(three[0].log_dir, "again")]


def test_a_failed_log_dir_without_an_id_is_known_by_its_path(open_dirs: tuple[OpenLogDir, OpenLogDir]) -> None:
    """Kafka before 3.7 gives a log dir no id."""
    one, two = replace(open_dirs[0], directory_id=None), open_dirs[1]
    write_quarantine((one, two), {one.top.identity().device: "no sync"}, NOW)
    assert read_quarantine((one, two), "this").keys() == {one.log_dir}
