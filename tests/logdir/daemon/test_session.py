"""The broker as the daemon has it open: a failed sync is final, for this process and for later ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from logdir.clock import Instant
from logdir.daemon.config import parse
from logdir.daemon.report.history import History
from logdir.daemon.session import Kept, Session
from logdir.daemon.state import LogDirState
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.work import Work
from logdir.decide.auto_capture import CapturePolicy
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.record import heartbeat
from logdir.errors import DiskFullError, LogDirReplacedError
from logdir.formats.own import heartbeat_file
from logdir.formats.own.heartbeat_file import Boot
from logdir.service.batch import auto_capture
from logdir.service.batch.auto_capture import capture_new
from logdir.service.report.result import ItemState
from logdir.worker.port import LocalPort
from logdir.worker.reaping import Unreaped, has_ended
from logdir.worker.remote import RemotePort
from tests.builders import TOPIC_ID, partition
from tests.logdir.daemon.rig import UNIQUE, Daemon, until


def opened(one: Daemon) -> Session:
    session = Session.open(parse(one.config.read_bytes(), str(one.config)), Kept())
    session.list()
    return session


def fail_syncs_of(session: Session, log_dir: Path) -> None:
    """Let a sync on the disk of a log dir have failed, as ``HostDisk`` remembers it."""
    port = session.broker.ports.port(str(log_dir))
    assert isinstance(port, LocalPort)
    port.disk.failed[log_dir.stat().st_dev] = "Input/output error"


def test_a_failed_sync_is_final_at_once_and_for_later_processes(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    session = opened(one)
    path = partition(one.log_dirs[0] / "pay-0")
    path.rename(path.with_name(f"pay-0.{UNIQUE}-delete"))
    # Both lie on one device here: both are sick.
    fail_syncs_of(session, one.log_dirs[0])
    session.note_failed_syncs()
    assert {state for state, _ in session.states().values()} == {LogDirState.QUARANTINED}
    found = capture_new(session.broker, session.kept.leavers, CapturePolicy())
    (item,) = found.items
    assert item.state is ItemState.REFUSED
    assert item.problem is not None
    assert item.problem.slug == "sync-failed"
    assert one.staged() == []
    session.close()


def deleted_on_a_stale_disk(one: Daemon) -> None:
    """Put the second disk back to two hours ago, in the boot before this one; let a broker have deleted there."""
    file = Path(f"{one.log_dirs[1]}.logdird/heartbeat.json")
    known = heartbeat_file.parse(file.read_bytes())
    before = (Boot(boot_id="before", seen_ms=60_000, credited_ms=0),)
    file.write_bytes(heartbeat_file.render(replace(known, boots=before, wall_ms=known.wall_ms - 2 * 3_600_000)))
    one.delete(one.make(disk=1))


def test_a25_a_stale_disk_on_which_a_sync_failed_gets_no_capture(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    deleted_on_a_stale_disk(one)
    session = opened(one)
    assert session.broker.quarantined[str(one.log_dirs[1])].slug == "stale-disk"
    fail_syncs_of(session, one.log_dirs[1])
    session.note_failed_syncs()
    (item,) = capture_new(session.broker, session.kept.leavers, CapturePolicy()).items
    assert (item.state, item.problem and item.problem.slug) == (ItemState.REFUSED, "sync-failed")
    assert one.staged(1) == []
    session.close()


def test_a25_a_stale_disk_with_another_owner_lock_gets_no_capture(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    deleted_on_a_stale_disk(one)
    session = opened(one)
    lock = Path(f"{one.log_dirs[1]}.logdird/owner.lock")
    lock.rename(lock.with_name("old"))
    lock.touch()
    with pytest.raises(LogDirReplacedError):
        capture_new(session.broker, session.kept.leavers, CapturePolicy())
    assert one.staged(1) == []
    session.close()


def test_a_quarantined_log_dir_stays_so_when_the_broker_is_opened_again(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    session = opened(one)
    fail_syncs_of(session, one.log_dirs[0])
    session.note_failed_syncs()
    session.close()
    again = Session.open(session.config, Kept(session.kept.leavers, session.kept.quarantined), is_first=False)
    assert {state for state, _ in again.states().values()} == {LogDirState.QUARANTINED}
    again.close()


def test_a_heartbeat_that_is_lost_is_noted_once_and_until_it_is_back(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    session = opened(one)
    heartbeat = Path(f"{one.log_dirs[1]}.logdird/heartbeat.json")
    kept = heartbeat.read_bytes()
    heartbeat.unlink()
    for _ in range(3):
        session.beat(read_instant())
    assert [note.slug for note in session.broker.notes] == ["heartbeat-lost"]
    heartbeat.write_bytes(kept)
    session.beat(read_instant())
    assert session.broker.notes == []
    session.close()


def test_a_hundred_directories_are_captured_by_two_calls(tmp_path: Path) -> None:
    one = Daemon(tmp_path, disks=1)
    session = opened(one)
    for number in range(100):
        path = partition(one.log_dirs[0] / f"pay-{number}")
        path.rename(path.with_name(f"pay-{number}.{UNIQUE}-delete"))
    found = capture_new(session.broker, session.kept.leavers, CapturePolicy())
    assert {item.state for item in found.items} == {ItemState.DONE}
    assert len(one.staged()) == 100
    assert capture_new(session.broker, session.kept.leavers, CapturePolicy()).items == ()
    assert session.kept.leavers.missed == 0
    session.close()


class Hanging:
    """The port of a worker that was killed and does not end, as one that waits for its disk."""

    pid: int | None = 4242

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = str(log_dir)
        self.has_ended = False

    def is_reaped(self) -> bool:
        return self.has_ended


def test_a40_a_log_dir_whose_worker_has_not_ended_is_not_opened_again_until_it_has(tmp_path: Path) -> None:
    """Whatever the broker is opened again for: the old worker may still finish its last call there."""
    one = Daemon(tmp_path)
    first, second = map(str, one.log_dirs)
    session = opened(one)
    hanging, unreaped = Hanging(one.log_dirs[1]), Unreaped()
    unreaped.keep([hanging])
    session.close()

    def again() -> Session:
        kept = Kept(session.kept.leavers, session.kept.quarantined, unreaped)
        return Session.open(session.config, kept, is_first=False)

    for _ in range(2):
        session = again()
        session.list()
        states = session.states()
        assert states[first] == (LogDirState.ONLINE, None)
        state, problem = states[second]
        assert state is LogDirState.SUSPECT
        assert problem is not None
        assert problem.line() == (
            f"log-dir-suspect: {second}: expected the end of its worker process, which was killed, "
            "found pid 4242, which hangs in the kernel; "
            "SUSPECT: check the kernel log; logdird opens the log dir again once that process has ended"
        )
        assert [open_dir.log_dir for open_dir in session.broker.open_dirs] == [first]
        assert not session.may_renew()
        session.close()
    hanging.has_ended = True
    assert session.may_renew()
    session = again()
    assert {state for state, _ in session.states().values()} == {LogDirState.ONLINE}
    session.close()


def test_a40_two_disks_hang_and_the_one_whose_worker_has_ended_is_taken_back(tmp_path: Path) -> None:
    one = Daemon(tmp_path, disks=3)
    ports = [Hanging(path) for path in one.log_dirs[1:]]
    unreaped = Unreaped()
    unreaped.keep(ports)
    config = parse(one.config.read_bytes(), str(one.config))
    session = Session.open(config, Kept(unreaped=unreaped))
    assert not session.may_renew()
    ports[0].has_ended = True
    assert session.may_renew()
    session.close()


def test_a40_the_worker_that_is_killed_and_lives_on_is_kept_when_its_session_is_closed(
    workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path)
    unreaped = Unreaped()
    config = parse(one.config.read_bytes(), str(one.config))
    session = Session.open(config, Kept(unreaped=unreaped))
    port = session.broker.ports.port(str(one.log_dirs[1]))
    assert isinstance(port, RemotePort)
    with monkeypatch.context() as hangs:
        hangs.setattr("logdir.worker.remote.has_ended", lambda pid, ms: pid != port.pid and has_ended(pid, ms))
        port.give_up()
        session.close()
        assert unreaped.pids() == {str(one.log_dirs[1]): port.pid}
    until("the killed process has ended", lambda: unreaped.pids() == {})


def link_only(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a look link one of two deletions of the first log dir, and end."""
    with monkeypatch.context() as short:
        short.setattr(auto_capture, "LOOK_MS", 0)
        short.setattr(auto_capture, "AT_ONCE", 1)
        assert capture_new(session.broker, session.kept.leavers, CapturePolicy()).items == ()
    assert [len(names) for names in session.kept.leavers.linked.values()] == [1]


def test_what_was_linked_is_not_completed_on_a_disk_on_which_a_sync_failed_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path)
    session = opened(one)
    for number in range(2):
        one.delete(one.make(number=number))
    link_only(session, monkeypatch)
    fail_syncs_of(session, one.log_dirs[0])
    session.note_failed_syncs()
    found = capture_new(session.broker, session.kept.leavers, CapturePolicy())
    assert sorted(item.state.value for item in found.items) == ["refused", "undone"]
    assert (one.staged(), session.kept.leavers.linked) == ([], {})
    session.close()


@pytest.mark.parametrize("way", ["the daemon ends", "the broker stops"])
def test_a17_what_was_linked_is_completed_before_the_log_dirs_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    one = Daemon(tmp_path)
    if way == "the broker stops":
        one.config.write_text(one.config.read_text().replace("auto.while.stopped: true", "auto.while.stopped: false"))
    (tmp_path / "state").mkdir()
    session = opened(one)
    work = Work(session, Supervisor(session.config, version="0", history=History(session.config.state_dir)))
    work.begin()
    gone = [one.delete(one.make(number=number)) for number in range(2)]
    link_only(session, monkeypatch)
    if way == "the daemon ends":
        work.finish()
    else:
        work.sweep()
    assert one.staged() == [f"{TOPIC_ID}_0"]
    assert gone[1].exists()
    assert work.status().captured == 1
    session.close()


@pytest.mark.parametrize("is_well", [True, False], ids=["in order", "after an error"])
def test_what_is_linked_is_completed_before_the_log_dirs_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_well: bool
) -> None:
    one = Daemon(tmp_path)
    (tmp_path / "state").mkdir()
    config = parse(one.config.read_bytes(), str(one.config))
    supervisor = Supervisor(config, version="0", history=History(config.state_dir))
    gone = [one.delete(one.make(number=number)) for number in range(2)]

    def serve(self: Supervisor, work: Work) -> bool:
        link_only(work.session, monkeypatch)
        return is_well

    monkeypatch.setattr(Supervisor, "_serve", serve)
    monkeypatch.setattr(Supervisor, "_rest", lambda self: True)
    assert supervisor._serve_once()
    assert one.staged() == [f"{TOPIC_ID}_0"]
    assert gone[1].exists()


def test_a10_time_counts_on_a_disk_that_is_too_full_for_a_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path)
    session = opened(one)
    (open_dir, _) = session.broker.open_dirs
    start = Instant(boot_id="another", boottime_ms=3_600_000, wall_ms=1_800_000_000_000, is_synchronised=False)
    with monkeypatch.context() as full:

        def fails(*arguments: object) -> NoReturn:
            raise DiskFullError("heartbeat.json", expected="free space", found="none", fix="free some")

        full.setattr(heartbeat, "_write", fails)
        for hours in (0, 1, 30):
            now = start._replace(boottime_ms=start.boottime_ms + hours * 3_600_000)
            session.beat(now)
    known = session.broker.heartbeat_of(open_dir)
    assert known is not None
    assert known.boots[-1] == Boot(boot_id="another", seen_ms=31 * 3_600_000, credited_ms=0, from_ms=3_600_000)
    assert session.broker.quarantined == {}
    # It is written as soon as there is space.
    session.beat(now)
    written = heartbeat.read(open_dir)
    assert written is not None
    assert written.boots[-1] == known.boots[-1]
    session.close()
