"""Beside captures and purges the daemon upgrades work roots of an older release and compares checkpoint files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logdir import clock
from logdir.daemon.supervisor import Supervisor
from logdir.daemon.work import Work
from logdir.formats.own import heartbeat_file
from tests.builders import partition
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.logdir.daemon.test_session import deleted_on_a_stale_disk
from tests.logdir.daemon.test_sweep import working
from tests.releases.older import as_0_2_0, version_of
from tests.tools.ctl import ctl, held
from tools.cli.arguments import Exit

POINTS, STARTS = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"
EMPTY, GOOD = b"0\n0\n", b"0\n1\npay 0 5\n"
LOST = "checkpoint-log-starts-lost"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAABA"


@pytest.fixture
def one(tmp_path: Path) -> Daemon:
    """Make the log dirs of a stopped broker, handed over; the log of ``pay-0`` begins at 5 of its records."""
    made = Daemon(tmp_path)
    made.make()
    (made.log_dirs[0] / STARTS).write_bytes(GOOD)
    assert ctl("handover", "--server-properties", made.server_properties, "--quiet").status == Exit.DONE
    return made


def fail_a_start(one: Daemon) -> None:
    for name in (POINTS, STARTS):
        (one.log_dirs[0] / name).write_bytes(EMPTY)


def waits(work: Work) -> list[str]:
    return [problem.slug for problem in work.status().waiting]


def events(work: Work) -> list[object]:
    supervisor = work.supervisor
    assert isinstance(supervisor, Supervisor)
    # The clock is moved by hours in one instant here, and each move is a gap between two looks.
    return [event["event"] for event in supervisor.history.last() if event["event"] != "look-too-late"]


def test_a30_what_a_failed_start_emptied_before_the_daemon_came_is_shown(one: Daemon) -> None:
    fail_a_start(one)
    with working(one) as work:
        work.sweep()
        assert waits(work) == [LOST]
        work.sweep()
        assert (waits(work), events(work)) == ([LOST], ["checkpoints-lost"])


def test_a30_a_start_that_fails_is_seen_when_the_broker_lets_its_lock_go(
    one: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = clock.boottime_ms()
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms)
    lock = one.log_dirs[0] / ".lock"
    lock.touch()
    with working(one) as work:
        work.sweep()
        with held(lock):
            work.sweep()
            assert waits(work) == []
            fail_a_start(one)
            now_ms += 10_000
            work.sweep()
            assert waits(work) == [], "while it runs the files are its own, for two minutes"
        work.sweep()
        assert waits(work) == [LOST]
        # Once it is put back nothing is shown any more, at the latest a minute later.
        (one.log_dirs[0] / STARTS).write_bytes(GOOD)
        work.sweep()
        assert waits(work) == [LOST]
        now_ms += 60_000
        work.sweep()
        assert (waits(work), events(work)) == ([], ["checkpoints-lost"])


def test_a_broker_that_runs_on_emptied_files_is_seen_two_minutes_after_its_start(
    one: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = clock.boottime_ms()
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms)
    lock = one.log_dirs[0] / ".lock"
    lock.touch()
    with working(one) as work, held(lock):
        work.sweep()
        (one.log_dirs[0] / STARTS).write_bytes(EMPTY)
        now_ms += 119_999
        work.sweep()
        assert waits(work) == []
        now_ms += 1
        work.sweep()
        assert waits(work) == [LOST]


def test_a_start_that_was_over_between_two_looks_is_seen_within_a_minute(
    one: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = clock.boottime_ms()
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms)
    with working(one) as work:
        work.sweep()
        fail_a_start(one)
        now_ms += 59_999
        work.sweep()
        assert waits(work) == []
        now_ms += 1
        work.sweep()
        assert waits(work) == [LOST]


def test_work_roots_of_0_2_0_are_upgraded_before_anything_is_written(one: Daemon) -> None:
    roots = [Path(f"{top}.logdird") for top in one.log_dirs]
    as_0_2_0(*roots)
    with working(one) as work:
        assert [version_of(root) for root in roots] == [2, 2]
        assert events(work) == ["upgraded", "upgraded"]
    shutil.rmtree(one.folder / "state")
    with working(one) as work:
        assert events(work) == []


def test_a_work_root_that_cannot_be_upgraded_gets_no_heartbeat_and_is_tried_again(
    one: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.2.0 would drop what a heartbeat of this release says, and purge too early."""
    now_ms = clock.boottime_ms()
    monkeypatch.setattr(clock, "boottime_ms", lambda: now_ms)
    roots = [Path(f"{top}.logdird") for top in one.log_dirs]
    as_0_2_0(*roots)
    heartbeat = roots[0] / "heartbeat.json"
    before = heartbeat.read_bytes()
    in_the_way = roots[0] / "work-root.json.tmp"
    in_the_way.mkdir()
    with working(one) as work:
        assert [version_of(root) for root in roots] == [1, 2]
        now_ms += 60_000
        work.sweep()
        assert list(work.session.broker.quarantined) == [str(one.log_dirs[0])]
        assert heartbeat.read_bytes() == before
        in_the_way.rmdir()
        now_ms += 60_000
        work.sweep()
        assert [version_of(root) for root in roots] == [2, 2]
        assert not work.session.broker.quarantined
        assert heartbeat.read_bytes() != before


def test_a_disk_that_may_not_be_changed_keeps_the_version_of_its_work_root(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    partition(one.log_dirs[1] / "other-0")
    deleted_on_a_stale_disk(one)
    roots = [Path(f"{top}.logdird") for top in one.log_dirs]
    as_0_2_0(*roots)
    with working(one):
        assert [version_of(root) for root in roots] == [2, 1]
        assert heartbeat_file.parse((roots[1] / "heartbeat.json").read_bytes()).boots[-1].boot_id == "before"


@pytest.mark.slow
def test_a_daemon_shows_what_a_handover_found_and_what_it_put_back(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more="sweep.interval.ms: 500\n") as one:
        one.make()
        (one.log_dirs[0] / STARTS).write_bytes(GOOD)
        one.start()
        named = ("--config", one.config)
        assert ctl("handover", *named, "--quiet").err == ""
        fail_a_start(one)
        said = ctl("handover", *named, "--quiet")
        assert (said.status, LOST in said.err) == (Exit.DONE, True), said
        until("the status shows it", lambda: LOST in [problem.slug for problem in one.status().waiting])
        assert "checkpoints-lost" in [event["event"] for event in one.events()]
        said = ctl("handover", *named, "--log-starts", "restore")
        assert (said.status, "log starts restored: 1" in said.out) == (Exit.DONE, True), said
        until("nothing is lost any more", lambda: LOST not in [problem.slug for problem in one.status().waiting])
        assert (one.log_dirs[0] / STARTS).read_bytes() == GOOD


@pytest.mark.slow
def test_a_recovery_alone_does_not_keep_the_daemon_from_the_locks(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.make()
        named = ("--config", one.config)
        assert ctl("handover", *named, "--recover-only").status == Exit.DONE
        said = ctl("stage", "pay", *named, "--even-if-unknown", "--even-over-limit", "--apply")
        assert said.status == Exit.DONE, said
