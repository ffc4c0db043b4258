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
from logdir.disk.kernel.failure import syncing
from logdir.disk.kernel.host import Call, HostDisk
from logdir.disk.record.quarantine import read_suspects, tell_suspects
from logdir.disk.root.init import init
from logdir.disk.root.open_log_dir import Site
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
def sites(host: ModelHost) -> Iterator[tuple[Site, Site]]:
    with Sites(host) as found:
        yield found.of(A), found.of(C)


def _file(host: ModelHost, disk: int) -> bytes | None:
    return host.world().files().get(f"/d{disk}/kafka.logdird/suspect.json")


def test_the_others_say_it_durably_and_it_says_so_itself_to_nobody(host: ModelHost, sites: tuple[Site, Site]) -> None:
    one, two = sites
    failed = {one.top.identity().device: "no sync"}
    assert read_suspects(sites, "this") == {}
    assert tell_suspects(sites, failed, NOW) == (one.log_dir,)
    assert (_file(host, 0), _file(host, 1) is not None) == (None, True)
    touched = {record.call.path.split("/")[1] for record in host.records if record.is_change}
    assert touched == {"d1"}
    found = read_suspects(sites, "this")
    assert [(path, said.found, said.at_ms) for path, said in found.items()] == [(one.log_dir, "no sync", NOW.wall_ms)]
    assert read_suspects(sites, "another") == {}
    assert read_suspects((two,), "this") == {}
    node = host.world().tree()["/d1/kafka.logdird/suspect.json"]
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
        devices = [site.top.identity().device for site in three]
        tell_suspects(three, {devices[0]: "first"}, NOW)
        # Nothing is written to the first any more.
        tell_suspects(three, {devices[1]: "second"}, NOW, closed={three[0].log_dir})
        assert "suspect.json" not in three[0].work.names()
        assert {path: one.found for path, one in read_suspects(three, "this").items()} == {
            three[0].log_dir: "first",
            three[1].log_dir: "second",
        }
        tell_suspects(three, {devices[1]: "again"}, NOW._replace(boot_id="next"))
        assert {path: one.found for path, one in read_suspects(three, "next").items()} == {three[1].log_dir: "again"}


def test_no_word_of_a_disk_is_lost_that_another_process_said_in_this_boot() -> None:
    """The first one answers no more when the second one fails; the third one keeps both, and none of another boot."""
    with Sites(_three()) as found:
        three = tuple(found.at(f"/d{number}/kafka") for number in range(3))
        devices = [site.top.identity().device for site in three]
        tell_suspects(three, {devices[0]: "first"}, NOW)
        tell_suspects(three[1:], {devices[1]: "second"}, NOW)
        told = quarantine_file.parse(three[2].work.read("suspect.json", 4096))
        assert [(one.log_dir, one.found) for one in told.disks] == [
            (three[0].log_dir, "first"),
            (three[1].log_dir, "second"),
        ]
        tell_suspects(three[1:], {devices[1]: "again"}, NOW._replace(boot_id="next"))
        told = quarantine_file.parse(three[2].work.read("suspect.json", 4096))
        assert [(one.log_dir, one.found) for one in told.disks] == [(three[1].log_dir, "again")]


@pytest.mark.parametrize("wall_ms", [-1, 0, 1])
def test_a_clock_before_1970_keeps_no_disk_from_being_named(
    host: ModelHost, sites: tuple[Site, Site], wall_ms: int
) -> None:
    tell_suspects(sites, {sites[0].top.identity().device: "no sync"}, NOW._replace(wall_ms=wall_ms))
    assert [one.at_ms for one in read_suspects(sites, "this").values()] == [max(0, wall_ms)]


def test_a_disk_put_in_its_place_is_another(host: ModelHost, sites: tuple[Site, Site]) -> None:
    one, two = sites
    tell_suspects(sites, {one.top.identity().device: "no sync"}, NOW)
    assert read_suspects((replace(one, directory_id="AAAAAAAAAAAAAAAAAAAABA"), two), "this") == {}
    assert read_suspects((replace(one, log_dir="/elsewhere"), two), "this").keys() == {"/elsewhere"}


def test_two_log_dirs_of_one_disk_fail_together_and_have_nobody_to_tell(tmp_path: Path) -> None:
    tops = [
        make_log_dir(tmp_path / "d1", "a-0"),
        make_log_dir(tmp_path / "d2", directory="AAAAAAAAAAAAAAAAAAAABA"),
    ]
    with ExitStack() as stack:
        sites = [stack.enter_context(open_root(HostDisk(), str(top))).site for top in tops]
        failed = {tmp_path.stat().st_dev: "no sync"}
        assert tell_suspects(sites, failed, NOW) == tuple(map(str, tops))
    assert list(tmp_path.rglob("suspect.json")) == []


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"torn", MalformedFileError),
        (quarantine_file.render(quarantine_file.SuspectFile("b", (quarantine_file.Suspect("/d", None, "x", 1),)))[:-9],
         MalformedFileError),
        (own_json.render("suspect", 2, {}), UnsupportedVersionError),
    ],
)  # fmt: skip
def test_one_that_cannot_be_read_speaks_of_nobody_knows_whom(
    data: bytes, error: type[Exception], sites: tuple[Site, Site], host: ModelHost
) -> None:
    host.plant("/d1/kafka.logdird/suspect.json", data)
    with pytest.raises(error):
        read_suspects(sites, "this")
    tell_suspects(sites, {sites[0].top.identity().device: "no sync"}, NOW)
    if error is MalformedFileError:
        assert read_suspects(sites, "this").keys() == {sites[0].log_dir}
    else:
        assert _file(host, 1) == data


def test_a_disk_that_cannot_take_the_word_stops_nothing(host: ModelHost, sites: tuple[Site, Site]) -> None:
    host.fail(Failure(0, errno.EIO, for_ever=True, name="fsync"))
    assert tell_suspects(sites, {sites[0].top.identity().device: "no sync"}, NOW) == (sites[0].log_dir,)
    assert _file(host, 1) is None
