"""What ends the quarantine of a log dir: the next heartbeat, another disk, or nothing but a restart."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from pathlib import Path
from typing import Any, NoReturn

import pytest

from logdir.daemon.config import parse
from logdir.daemon.quarantines import DiskIdentity, Quarantined
from logdir.daemon.session import Kept, Session
from logdir.daemon.state import LogDirState
from logdir.disk.kernel.calls import Directory
from logdir.disk.kernel.kernel_clock import read_instant
from logdir.disk.kernel.small_file import replace_file
from logdir.disk.record import heartbeat
from logdir.errors import LogDirReplacedError, Problem
from tests.builders import log_dir
from tests.logdir.daemon import rig
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.logdir.daemon.test_session import fail_syncs_of
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

ONLINE, QUARANTINED, READ_ONLY = LogDirState.ONLINE, LogDirState.QUARANTINED, LogDirState.READ_ONLY


def opened(one: Daemon, kept: Kept, *, is_first: bool = True) -> Session:
    session = Session.open(parse(one.config.read_bytes(), str(one.config)), kept, is_first=is_first)
    session.list()
    return session


def reopened(one: Daemon, session: Session) -> Session:
    session.close()
    return opened(one, session.kept, is_first=False)


def states(session: Session) -> list[LogDirState]:
    return [state for state, _ in session.states().values()]


def beat_failing(session: Session, log_dir: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> Problem:
    """Let a heartbeat fail on one log dir; return the problem that its status shows then."""

    def fails(directory: Directory, *arguments: Any, **more: Any) -> None:
        if directory.path == f"{log_dir}.logdird":
            raise OSError(number, os.strerror(number))
        replace_file(directory, *arguments, **more)

    with monkeypatch.context() as failing:
        failing.setattr(heartbeat, "replace_file", fails)
        session.beat(read_instant())
    problem = session.states()[str(log_dir)][1]
    assert problem is not None
    return problem


def replace_disk(one: Daemon, number: int) -> None:
    """Put a new disk in the place of one: another directory id, and a work root of its own."""
    place = one.log_dirs[number]
    shutil.rmtree(place)
    shutil.rmtree(f"{place}.logdird")
    log_dir(place, directory="AAAAAAAAAAAAAAAAAAAABQ")
    made = ctl("init", "--log-dirs", place, "--apply")
    assert made.status == Exit.DONE, made


@pytest.mark.parametrize("number", [errno.ENOMEM, errno.EMFILE, errno.EACCES], ids=["ENOMEM", "EMFILE", "EACCES"])
@pytest.mark.parametrize("way", ["the next heartbeat", "a reload"])
def test_a_heartbeat_that_failed_once_quarantines_until_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, way: str
) -> None:
    one = Daemon(tmp_path)
    session = opened(one, Kept())
    problem = beat_failing(session, one.log_dirs[1], number, monkeypatch)
    assert states(session) == [ONLINE, QUARANTINED]
    assert problem.fix.endswith("; logdird tries again every minute, and when it is reloaded (SIGHUP)")
    # Nothing is lost by a second failure.
    assert beat_failing(session, one.log_dirs[1], number, monkeypatch).fix == problem.fix
    if way == "a reload":
        session = reopened(one, session)
    session.beat(read_instant())
    assert states(session) == [ONLINE, ONLINE]
    assert all(facts.quarantined is None for facts in session.facts)
    session.close()


def test_law_6_what_a_sick_disk_failed_lasts_for_this_disk_and_ends_with_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path)
    place = one.log_dirs[1]
    session = opened(one, Kept())
    problem = beat_failing(session, place, errno.EIO, monkeypatch)
    assert states(session) == [ONLINE, READ_ONLY]
    assert problem.fix == (
        "nothing more is written here; check the kernel log, and repair or replace the disk; restart logdird once it "
        f"is repaired, or replace the disk: logdirctl disk release {place}, on the new one logdirctl init --log-dirs "
        f"{place}, reload logdird (SIGHUP)"
    )
    before = heartbeat.read(session.broker.open_dirs[1])
    session.beat(read_instant())
    session = reopened(one, session)
    session.beat(read_instant())
    assert states(session) == [ONLINE, READ_ONLY]
    assert heartbeat.read(session.broker.open_dirs[1]) == before
    replace_disk(one, 1)
    session = reopened(one, session)
    session.beat(read_instant())
    assert states(session) == [ONLINE, ONLINE]
    session.close()


def test_law_6_nothing_is_proven_on_a_sick_disk_when_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path)
    session = opened(one, Kept())
    beat_failing(session, one.log_dirs[1], errno.EIO, monkeypatch)
    proven: list[object] = []
    monkeypatch.setattr("logdir.service.log_dirs.proof.prove_use", proven.append)
    session = reopened(one, session)
    assert len(proven) == 1
    session.close()


def test_law_6_a_failed_sync_outlives_every_reload_on_its_disk_and_no_new_disk(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    session = opened(one, Kept())
    fail_syncs_of(session, one.log_dirs[0])
    session.note_failed_syncs()
    session = reopened(one, session)
    # Both lie on one device here.
    assert states(session) == [QUARANTINED, QUARANTINED]
    problem = session.states()[str(one.log_dirs[1])][1]
    assert problem is not None
    assert problem.fix == (
        "nothing is changed on it before it is repaired and the host restarted, or another disk is there: logdirctl "
        f"disk release {one.log_dirs[1]}, on the new one logdirctl init --log-dirs {one.log_dirs[1]}, reload logdird "
        "(SIGHUP)"
    )
    replace_disk(one, 1)
    session = reopened(one, session)
    assert states(session) == [QUARANTINED, ONLINE]
    session.close()


def test_law_6_a_heartbeat_may_fail_for_less_before_a_sync_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path)
    session = opened(one, Kept())
    beat_failing(session, one.log_dirs[1], errno.ENOMEM, monkeypatch)
    fail_syncs_of(session, one.log_dirs[1])
    session.note_failed_syncs()
    for _ in range(2):
        session.beat(read_instant())
        assert states(session) == [QUARANTINED, QUARANTINED]
        assert {why.slug for why in session.broker.quarantined.values()} == {"sync-failed"}
        session = reopened(one, session)
    session.close()


@pytest.mark.parametrize(
    ("slug", "before", "now", "is_over"),
    [
        pytest.param("disk-read-only", ("a", 1), ("a", 1), False, id="the same disk"),
        pytest.param("disk-read-only", ("a", 1), ("b", 1), True, id="another directory id"),
        pytest.param("disk-read-only", ("a", 1), ("a", 2), True, id="a copy on another device"),
        pytest.param("disk-read-only", (None, 1), (None, 1), False, id="no id, the same device"),
        pytest.param("disk-read-only", (None, 1), ("a", 1), False, id="an id that was added"),
        pytest.param("disk-read-only", (None, 1), (None, 2), True, id="no id, another device"),
        pytest.param("disk-read-only", ("a", 1), ("a", None), False, id="a device that cannot be read"),
        pytest.param("sync-failed", ("a", 1), ("a", 2), False, id="a failed sync on a disk mounted again"),
        pytest.param("sync-failed", (None, 1), (None, 2), False, id="a failed sync on a disk without an id"),
        pytest.param("sync-failed", ("a", 1), ("b", 1), True, id="a failed sync before another directory id"),
    ],
)
def test_another_disk_is_known_by_its_directory_id_or_its_device(
    slug: str, before: tuple[str | None, int | None], now: tuple[str | None, int | None], is_over: bool
) -> None:
    kept = Quarantined(Problem(slug, "/d", "a disk", "a sick one"), DiskIdentity(*before))
    assert kept.is_over(DiskIdentity(*now)) is is_over


def test_a_quarantine_of_a_log_dir_that_is_configured_no_more_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path)
    session = opened(one, Kept())
    beat_failing(session, one.log_dirs[1], errno.EIO, monkeypatch)
    listed = one.server_properties.read_text()
    one.server_properties.write_text(listed.replace(f",{one.log_dirs[1]}", ""))
    session = reopened(one, session)
    assert session.broker.quarantined == {}
    one.server_properties.write_text(listed)
    session = reopened(one, session)
    assert states(session) == [ONLINE, READ_ONLY]
    session.close()


def test_a26_no_heartbeat_is_tried_again_where_another_process_may_own_the_log_dir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(tmp_path)
    session = opened(one, Kept())
    beat_failing(session, one.log_dirs[1], errno.ENOMEM, monkeypatch)
    lock = Path(f"{one.log_dirs[1]}.logdird/owner.lock")
    lock.rename(lock.with_name("old"))
    lock.touch()

    def writes(*arguments: object) -> NoReturn:
        raise AssertionError("it is written")

    session.broker.quarantined[str(one.log_dirs[0])] = Problem("stale-disk", "", "", "")
    monkeypatch.setattr(heartbeat, "_write", writes)
    with pytest.raises(LogDirReplacedError):
        session.beat(read_instant())
    session.close()


FAILING = """
import os, pathlib, sys
from logdir.daemon import process, session
from logdir.disk.record import heartbeat

session.BEAT_MS, write = 200, heartbeat.replace_file
failing = pathlib.Path(sys.argv[2]).with_name("errno")


def replace_file(directory, *arguments, **more):
    if failing.exists() and directory.path.endswith("d2.logdird"):
        raise OSError(int(failing.read_text()), "it fails")
    write(directory, *arguments, **more)


heartbeat.replace_file = replace_file
"""
"""Lets the heartbeats of the second log dir fail by the error that a file beside the configuration names."""


def state_of_second(one: Daemon) -> str:
    return one.status().log_dirs[1].state.value


@pytest.mark.slow
def test_one_heartbeat_without_memory_quarantines_a_disk_for_no_longer_than_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig, "CODE", FAILING + rig.CODE)
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        (tmp_path / "errno").write_text(str(errno.ENOMEM))
        until("it is quarantined", lambda: state_of_second(one) == "quarantined")
        (tmp_path / "errno").unlink()
        until("it is taken back", lambda: state_of_second(one) == "online")
        one.delete(one.make(disk=1))
        until("it captures", lambda: one.status().captured == 1)


@pytest.mark.slow
def test_the_documented_replacement_brings_a_new_disk_back_after_an_error_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig, "CODE", FAILING + rig.CODE)
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        (tmp_path / "errno").write_text(str(errno.EIO))
        until("it is read-only", lambda: state_of_second(one) == "read-only")
        (tmp_path / "errno").unlink()
        assert one.process is not None
        one.process.send_signal(signal.SIGHUP)
        until("the configuration is read", lambda: "config.reloaded" in one.log)
        until("it is opened again", lambda: [event["event"] for event in one.events()].count("reloaded") == 1)
        assert state_of_second(one) == "read-only"
        said = ctl("disk", "release", one.log_dirs[1], "--config", one.config, "--apply")
        assert said.status == Exit.DONE
        replace_disk(one, 1)
        one.process.send_signal(signal.SIGHUP)
        until("the new disk is taken", lambda: state_of_second(one) == "online")
        one.delete(one.make(disk=1))
        until("it captures", lambda: one.status().captured == 1)
