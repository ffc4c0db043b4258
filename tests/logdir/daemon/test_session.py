"""The broker as the daemon has it open: a failed sync is final, for this process and for later ones."""

from __future__ import annotations

from pathlib import Path

from logdir.daemon.config import parse
from logdir.daemon.session import Session
from logdir.daemon.state import LogDirState
from logdir.decide.auto_capture import CapturePolicy
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.service.batch.auto_capture import Leavers, capture_new
from logdir.service.report.result import ItemState
from logdir.worker.port import LocalPort
from tests.builders import partition
from tests.logdir.daemon.rig import UNIQUE, Daemon


def opened(one: Daemon) -> Session:
    session = Session.open(parse(one.config.read_bytes(), str(one.config)), quarantined={}, leavers=Leavers())
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
    found = capture_new(session.broker, session.leavers, CapturePolicy())
    (item,) = found.items
    assert item.state is ItemState.REFUSED
    assert item.problem is not None
    assert item.problem.slug == "sync-failed"
    assert one.staged() == []
    session.close()


def test_a_quarantined_log_dir_stays_so_when_the_broker_is_opened_again(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    session = opened(one)
    fail_syncs_of(session, one.log_dirs[0])
    session.note_failed_syncs()
    session.close()
    again = Session.open(session.config, quarantined=session.quarantined, leavers=session.leavers, is_first=False)
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
    found = capture_new(session.broker, session.leavers, CapturePolicy())
    assert {item.state for item in found.items} == {ItemState.DONE}
    assert len(one.staged()) == 100
    assert capture_new(session.broker, session.leavers, CapturePolicy()).items == ()
    assert session.leavers.missed == 0
    session.close()
