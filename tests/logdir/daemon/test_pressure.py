"""A nearly full disk under the daemon: what was freed and is not reported yet, and replicas that cannot be removed."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logdir import clock
from logdir.daemon.config import parse
from logdir.daemon.look import look_at
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.work import Work
from logdir.disk.kernel.calls import Space
from logdir.disk.kernel.host import HostDirectory
from logdir.service.batch.purge_recheck import PurgeOverrides
from logdir.service.batch.use_cases import spec_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.log_dirs.glances import Glances
from logdir.service.purge import PurgeRequest
from logdir.service.report.staged import Selection
from logdir.worker.directory import RemoteDirectory
from tests.builders import partition
from tests.logdir.daemon.rig import Daemon, stage_of
from tests.logdir.daemon.test_due import OTHER_ID
from tests.logdir.daemon.test_sweep import working

MINUTE_MS = 60_000
ASK_AGAIN_MS = 10 * MINUTE_MS


class Disk:
    """What the file system reports: of 10,000 bytes 750 are free, and 250 more would be enough."""

    def __init__(self) -> None:
        self.free_bytes = 750

    def space(self) -> Space:
        return Space(free_bytes=self.free_bytes, free_inodes=500, total_bytes=10_000, total_inodes=1000)


def reported(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Let every log dir report what a test says."""
    found = Disk()
    for directory in (HostDirectory, RemoteDirectory):
        monkeypatch.setattr(directory, "space", lambda _: found.space())
    monkeypatch.setattr(Glances, "space_of", lambda *_: found.space())
    return found


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return reported(monkeypatch)


@contextmanager
def captured(folder: Path, count: int, *, more: str = "") -> Iterator[tuple[Daemon, Work, Path]]:
    """Capture replicas of 100 bytes, the first one first, that are gone by themselves; yield where they are staged."""
    one = Daemon(folder, disks=1, more=f"staged.min.free: 0\n{more}")
    with working(one) as work:
        for number in range(count):
            gone = one.delete(partition(one.log_dirs[0] / f"pay-{number}", segments={0: 100}))
            work.sweep()
            one.remove(gone)
        work.session.config = parse(one.config.read_bytes().replace(b"free: 0", b"free: 10"), str(one.config))
        object.__setattr__(work.session.broker.request, "least_free_percent", 10)
        yield one, work, Path(f"{one.log_dirs[0]}.logdird/deleting")


def partitions(deleting: Path) -> list[str]:
    """Return the partitions that are staged there, and ``.purging`` behind those that are claimed."""
    return sorted(name.rpartition("_")[2] for name in os.listdir(deleting))


def stuck(deleting: Path, number: int) -> Path:
    """Make a captured replica one that was claimed and cannot be removed: something was made in it."""
    (path,) = deleting.glob(f"*_{number}")
    claimed = path.rename(f"{path}.purging")
    (claimed / "a").mkdir()
    return claimed


def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what sets the clock of this process to so long after now."""
    start_ms = clock.boottime_ms()

    def set_to(later_ms: int) -> None:
        monkeypatch.setattr(clock, "boottime_ms", lambda: start_ms + later_ms)

    set_to(0)
    return set_to


def test_a50_the_next_sweeps_wait_for_freed_space_that_is_reported_late(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = at(monkeypatch)
    with captured(tmp_path, 6) as (_, work, deleting):
        for later_ms in (0, 5, 10, 2_000, 30_000):
            later(later_ms)
            work.sweep()
            assert partitions(deleting) == ["3", "4", "5"], later_ms
        disk.free_bytes += 300
        work.sweep()
        later(5 * MINUTE_MS)
        work.sweep()
        assert partitions(deleting) == ["3", "4", "5"]


def test_a50_a_broker_that_writes_meanwhile_is_relieved_at_once(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch)
    with captured(tmp_path, 6) as (_, work, deleting):
        work.sweep()
        disk.free_bytes -= 51
        work.sweep()
        assert partitions(deleting) == ["4", "5"]


def test_a50_what_was_freed_and_is_not_reported_for_a_minute_counts_no_more(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = at(monkeypatch)
    with captured(tmp_path, 6) as (_, work, deleting):
        work.sweep()
        later(MINUTE_MS)
        work.sweep()
        assert partitions(deleting) == []


def test_a50_what_a_removal_has_freed_that_was_begun_before_counts_likewise(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch)
    disk.free_bytes = 901
    with captured(tmp_path, 3) as (_, work, deleting):
        (path,) = deleting.glob("*_0")
        path.rename(f"{path}.purging")
        work.rescan()
        work.sweep()
        assert partitions(deleting) == ["0.purging", "1", "2"]
        work.purge_due()
        assert partitions(deleting) == ["1", "2"]
        work.sweep()
        assert partitions(deleting) == ["1", "2"]


def test_a14_a_removal_that_takes_longer_than_a_step_goes_on_at_once(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch)
    asked: list[int | None] = []
    with captured(tmp_path, 2, more="purge.bytes.per.second: 2000\n") as (_, work, deleting):
        monkeypatch.setattr(work.purges._around, "set_next_due", asked.append)
        monkeypatch.setattr("logdir.daemon.purging.purges.STEP_MS", 1)
        work.sweep()
        assert partitions(deleting) == ["0.purging", "1"]
        assert asked[-1] is not None
        assert asked[-1] < clock.now_ms() + 1_000
        assert work.purges.waiting == ()


def test_a50_what_an_operator_has_purged_counts_likewise(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch)
    with captured(tmp_path, 2) as (one, work, deleting):
        partition(one.log_dirs[0] / "old-7", topic_id=OTHER_ID, segments={0: 100})
        work.run(spec_of("stage"), stage_of("old"), is_applied=True)
        disk.free_bytes = 901
        overrides = PurgeOverrides(is_even_if_early=True, is_even_if_last=True)
        request = PurgeRequest(
            source=SourceRequest(), selection=Selection("old"), overrides=overrides, includes_held=True
        )
        work.run(spec_of("staged purge"), request, is_applied=True)
        assert partitions(deleting) == ["0", "1"]
        work.sweep()
        assert partitions(deleting) == ["0", "1"]


def test_a_removal_that_fails_is_tried_again_later_and_says_why_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "logdir.daemon")
    later = at(monkeypatch)
    asked: list[int | None] = []
    with captured(tmp_path, 1) as (_, work, deleting):
        monkeypatch.setattr(work.purges._around, "set_next_due", asked.append)
        claimed = stuck(deleting, 0)
        work.rescan()
        for later_ms in (0, 100, 200, 5_000):
            later(later_ms)
            work.sweep()
            work.purge_due()
        work.sweep()
        assert asked[-1] is not None
        assert asked[-1] > clock.now_ms() + ASK_AGAIN_MS - MINUTE_MS
        losses = [record.getMessage() for record in caplog.records if record.getMessage().startswith("replica.loss")]
        (why,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("purge.failed")]
        assert len(losses) == 1
        assert f"{claimed}" in why
        (shown,) = [problem for problem in work.status().waiting if problem.path.startswith(str(claimed))]
        assert why == f"purge.failed {shown.line()}"
        (claimed / "a").rmdir()
        later(ASK_AGAIN_MS + 5_000)
        work.sweep()
        work.purge_due()
        work.sweep()
        assert partitions(deleting) == []
        assert work.purges.waiting == ()


def test_a50_a_removal_that_fails_does_not_switch_off_pressure_on_its_disk(tmp_path: Path, disk: Disk) -> None:
    disk.free_bytes = 901
    with captured(tmp_path, 3) as (_, work, deleting):
        stuck(deleting, 0)
        work.rescan()
        work.sweep()
        assert partitions(deleting) == ["0.purging", "1", "2"], "it may go on"
        work.purge_due()
        work.sweep()
        assert partitions(deleting) == ["0.purging", "2"]


def test_a_claim_that_fails_on_a_nearly_full_disk_is_shown_until_there_is_room(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk.free_bytes = 950
    before = HostDirectory.rename

    def rename(directory: HostDirectory, name: str, to: HostDirectory, new_name: str) -> None:
        if new_name.endswith("_0.purging"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        before(directory, name, to, new_name)

    monkeypatch.setattr(HostDirectory, "rename", rename)
    with captured(tmp_path, 4) as (_, work, deleting):
        for free_bytes, left in ((950, ["0", "2", "3"]), (950, ["0", "2", "3"]), (850, ["0", "3"])):
            disk.free_bytes = free_bytes
            work.sweep()
            assert partitions(deleting) == left
            (problem,) = work.purges.waiting
            assert (problem.found, problem.path[-2:]) == ("Permission denied", "_0")
        logged = [record.getMessage() for record in caplog.records]
        assert [line.startswith("purge.failed") for line in logged].count(True) == 1
        assert [line.startswith("replica.loss pay-0") for line in logged].count(True) == 1
        disk.free_bytes = 1000
        work.purges.note(look_at(work.session))  # On a stopped broker, too, where nothing is purged unasked.
        assert work.purges.waiting == ()


@pytest.mark.parametrize(("when", "left"), [("before", ["0", "1", "2", "3"]), ("amid", ["1", "2", "3"])])
def test_a_configuration_that_was_read_again_stops_a_relief(
    tmp_path: Path, disk: Disk, when: str, left: list[str]
) -> None:
    disk.free_bytes = 0
    with captured(tmp_path, 4) as (one, work, deleting):

        def reload() -> None:
            one.configure("pressure: hold\n")
            assert isinstance(work.supervisor, Supervisor)
            work.supervisor.reload(parse(one.config.read_bytes(), str(one.config)))

        if when == "before":
            reload()
        else:
            work.purges._between = reload
        work.sweep()
        work.sweep()
        assert partitions(deleting) == left
        assert work.purges.waiting == ()


def test_refused_captures_are_remembered_while_their_directories_are_there(tmp_path: Path, disk: Disk) -> None:
    one = Daemon(tmp_path, disks=1, more="staged.min.free: 10\n")
    with working(one) as work:
        for number in range(3):
            gone = one.delete(one.make(number=number))
            work.sweep()
            work.sweep()
            assert len(work._refused) == 1
            one.remove(gone)
        work.sweep()
        assert work._refused == set()
        events = [event["event"] for event in work.supervisor.history.last()]
        assert events.count("not-captured") == 3
