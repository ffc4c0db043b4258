"""The life of a daemon: starts that are refused, signals, a configuration read again, purges on time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from logdir.service.report.json_form import to_json
from tests.builders import TOPIC_ID, log_dir
from tests.logdir.daemon.as_user import as_user
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.tools.ctl import HOME, ctl, held, launch


def ended(one: Daemon) -> tuple[int, str]:
    one.start(is_awaited=False)
    assert one.process is not None
    status = one.process.wait(30)
    return status, one.log.splitlines()[-1]


def test_a_second_daemon_is_refused(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        first, log = one.process, one.folder / "log"
        shutil.copy(log, tmp_path / "log-of-the-first")
        status, line = ended(one)
        assert status == 4
        assert line.startswith("logdird: socket-in-use: ")
        # By another socket it meets the owner locks.
        one.configure("".replace("s.sock", ""))
        other = one.config.with_name("b2.yaml")
        other.write_text(one.config.read_text().replace("s.sock", "s2.sock").replace("state\n", "state2\n"))
        one.config = other
        status, line = ended(one)
        assert status == 4
        assert line.startswith("logdird: work-root-owned: ")
        one.process = first
        assert one.state() == "RUNNING"


def test_a_log_dir_without_a_work_root_is_refused(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        shutil.rmtree(f"{one.log_dirs[1]}.logdird")
        status, line = ended(one)
        assert status == 4
        assert "no-work-root" in line
        assert "logdirctl init" in line


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a log dir to another user")
def test_a_log_dir_of_another_user_is_refused(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        os.chown(one.log_dirs[1], 4242, 4242)
        seen = subprocess.check_output(as_user("stat", "-c", "%u", *map(str, one.log_dirs)), text=True)
        own, other = seen.split()  # As the user of the daemon numbers them.
        assert own != other
        status, line = ended(one)
        assert status == 4
        assert f"no-permission: {one.log_dirs[1]}: expected a log dir of user {own}, as which logdird runs" in line
        assert f"found one of user {other}" in line


def test_a_configuration_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        one.configure("sokcet: x\n")
        status, line = ended(one)
        assert (status, "did you mean socket?" in line) == (2, True)


def test_a_file_in_the_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        (tmp_path / "s.sock").write_text("somebody's")
        status, line = ended(one)
        assert (status, "socket-in-use" in line, "found no socket" in line) == (4, True, True)
        assert (tmp_path / "s.sock").read_text() == "somebody's"


@pytest.mark.parametrize("place", ["d1/state", "d2", "d1.logdird/state"])
def test_a_state_directory_on_a_path_of_the_broker_is_refused(tmp_path: Path, place: str) -> None:
    with daemon(tmp_path, is_started=False) as one:
        before = sorted(path.name for path in one.log_dirs[0].iterdir())
        one.config.write_text(one.config.read_text().replace("state.dir: state", f"state.dir: {place}"))
        status, line = ended(one)
        assert (status, "state.dir: expected a path outside every log dir and work root" in line) == (2, True)
        assert sorted(path.name for path in one.log_dirs[0].iterdir()) == before


@pytest.mark.slow
def test_on_a_stopped_broker_nothing_is_done_unless_the_configuration_allows_it(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        text = one.config.read_text().replace("auto.while.stopped: true", "auto.while.stopped: false")
        one.config.write_text(f"{text}sweep.interval.ms: 500\n")
        one.start()
        one.delete(one.make())
        time.sleep(2)
        assert (one.staged(), one.status().broker_runs) == ([], False)
        (one.log_dirs[1] / ".lock").touch()
        with held(one.log_dirs[1] / ".lock"):
            until("it is captured once a broker runs", lambda: one.status().captured == 1)
            assert one.status().broker_runs is True


@pytest.mark.slow
def test_a_disk_that_loses_its_work_root_later_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        shutil.rmtree(f"{one.log_dirs[1]}.logdird")
        until("it is left out", lambda: one.status().log_dirs[1].state.value == "offline")
        one.delete(one.make())
        until("the other one captures", lambda: one.status().captured == 1)
        said = ctl("staged", "hold", "pay", "--config", one.config, "--apply")
        assert (said.status, said.out.count("done")) == (1, 1), said
        assert f"no-work-root: {one.log_dirs[1]}: " in said.err
        handed = ctl("handover", "--config", one.config)
        assert handed.status == 4
        assert "found no work root where a work root was expected" in handed.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("belongs", [{"node": 7}, {"cluster": "AkU3OEVBNTcwNTJENDM2Qk"}])
def test_a25_the_disk_of_another_broker_is_left_out_and_the_others_go_on(
    tmp_path: Path, number: int, belongs: dict[str, Any]
) -> None:
    with daemon(tmp_path, disks=3, more="sweep.interval.ms: 500\n") as one:
        place = one.log_dirs[number]
        for path in (place, Path(f"{place}.logdird")):
            path.rename(path.with_name(f"was-{path.name}"))
        log_dir(place, directory="AAAAAAAAAAAAAAAAAAAABQ", **belongs)
        assert ctl("init", "--log-dirs", place, "--apply").status == 0
        foreign = one.delete(one.make(disk=number))
        assert one.process is not None
        one.process.send_signal(signal.SIGHUP)  # It may have been looked at when it was not made to its end.

        def is_foreign() -> bool:
            found = one.status().log_dirs[number].problem
            return found is not None and found.slug == "foreign"

        until("it is left out", is_foreign)
        assert one.status().log_dirs[number].state.value == "offline"
        problem = one.status().log_dirs[number].problem
        assert problem is not None
        assert (problem.slug, problem.path) == ("foreign", f"{place}/meta.properties")
        handed = ctl("handover", "--config", one.config)
        assert (handed.status, f"found {problem.found} where " in handed.err) == (4, True), handed
        one.delete(one.make("other", disk=2))
        until("another one captures", lambda: one.status().captured == 1)
        assert foreign.is_dir()
        assert one.staged(number) == []


def test_check_config_says_ok_or_everything_that_is_wrong(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        command = one.command("--check-config")
        done = subprocess.run(command, cwd=HOME, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"OK: {one.config}: node 1, log dirs {one.log_dirs[0]}")
        one.configure("x: 1\ny: 2\n")
        done = subprocess.run(command, cwd=HOME, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 2


def test_sigterm_ends_it_in_order(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        assert one.stop() == 0
        assert [e["state"] for e in one.events() if e["event"] == "state"][-2:] == [
            "PENDING_CONTROLLED_SHUTDOWN",
            "SHUTTING_DOWN",
        ]
        assert not Path(one.socket).exists()
        assert ctl("staged", "ls", "--server-properties", one.server_properties).status == 0


def test_a_disk_that_is_gone_does_not_keep_the_others_from_being_served(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        one.log_dirs[1].rename(tmp_path / "away")
        one.start()
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        states = {Path(disk.log_dir).name: disk.state.value for disk in one.status().log_dirs}
        assert states == {"d1": "online", "d2": "offline"}
        assert any(problem.path == str(one.log_dirs[1]) for problem in one.status().waiting)


def test_the_empty_mount_point_of_a_disk_does_not_keep_the_others_from_being_served(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False) as one:
        one.log_dirs[1].rename(tmp_path / "away")
        one.log_dirs[1].mkdir()
        one.start()
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        states = {Path(disk.log_dir).name: disk.state.value for disk in one.status().log_dirs}
        assert states == {"d1": "online", "d2": "offline"}
        assert [problem.slug for problem in one.status().waiting] == ["not-formatted"]
        assert list(one.log_dirs[1].iterdir()) == []


def test_replicas_of_a_disk_that_fails_are_told_in_the_shape_of_kip_631(tmp_path: Path) -> None:
    with daemon(tmp_path, is_started=False, more="sweep.interval.ms: 500\n") as one:
        one.make(disk=1)
        one.make("pay", 4, disk=1)
        one.delete(one.make("pay", 7, disk=1))
        one.start()
        assert one.status().failed_replicas is None
        one.log_dirs[1].rename(tmp_path / "away")
        until("it has failed", lambda: one.status().failed_replicas is not None)
        failed = to_json(one.status().failed_replicas)
        assert failed == {"brokerId": 1, "topics": [{"topicId": TOPIC_ID, "partitions": [0, 4]}]}
        (line,) = [line for line in map(json.loads, one.log.splitlines()) if line["event"] == "disk.failed"]
        assert json.loads(line["detail"].partition("FailedReplicas=")[2]) == failed
        (tmp_path / "away").rename(one.log_dirs[1])
        # Once the broker was opened again without the disk, the daemon looks for it each minute.
        until("it is back", lambda: one.status().failed_replicas is None, 90)
        told = [(event["event"], event.get("partitions")) for event in one.events() if "disk" in event["event"]]
        assert told == [("disk-failed", 2), ("disk-back", None)]


@pytest.mark.slow
def test_sighup_reads_the_configuration_again(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.configure("delete.topic.delay.ms: 2d\n")
        assert one.process is not None
        one.process.send_signal(signal.SIGHUP)
        until("it is read", lambda: "config.reloaded" in one.log)
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        assert (one.status().next_due_ms or 0) > time.time() * 1000 + 24 * 60 * 60 * 1000


@pytest.mark.slow
def test_a_configuration_that_does_not_fit_is_not_taken(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.configure("delete.topic.delay.ms: soon\nx: 1\n")
        assert one.process is not None
        one.process.send_signal(signal.SIGHUP)
        until("it is refused", lambda: one.log.count("config.refused") == 2)
        assert len(one.status().waiting) == 2
        one.configure("socket: elsewhere\n".replace("socket", "capture.exclude: []\n#"))
        one.process.send_signal(signal.SIGHUP)
        until("the former problems are gone", lambda: one.status().waiting == ())
        assert one.state() == "RUNNING"


@pytest.mark.slow
def test_what_is_due_is_purged_on_time_and_not_before(tmp_path: Path) -> None:
    with daemon(tmp_path, more="delete.topic.delay.ms: 3s\nsweep.interval.ms: 500\n") as one:
        gone = one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        at_ms = one.status().next_due_ms
        assert at_ms is not None
        one.remove(gone)
        while time.time() * 1000 < at_ms - 200:
            assert len(one.staged()) == 1
            time.sleep(0.05)
        until("it is purged", lambda: one.staged() == [])
        until("it is counted", lambda: one.status().purged == 1)
        assert [event["event"] for event in one.events()].count("purged") == 1


@pytest.mark.slow
def test_a_deadline_goes_on_over_a_restart(tmp_path: Path) -> None:
    with daemon(tmp_path, more="delete.topic.delay.ms: 4s\nsweep.interval.ms: 500\n") as one:
        one.remove(one.delete(one.make())) if False else one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        at_ms = one.status().next_due_ms
        one.stop(signal.SIGKILL)
        one.start()
        until("it is seen", lambda: one.status().next_due_ms is not None or one.staged() == [])
        until("it is purged", lambda: one.staged() == [])
        assert at_ms is not None
        assert time.time() * 1000 >= at_ms


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        (worker, *_) = [p for p in one.children() if b"worker.child" in Path(f"/proc/{p}/cmdline").read_bytes()]
        os.kill(worker, signal.SIGKILL)
        until("the broker is opened again", lambda: "broker.reopened" in one.log)
        one.delete(one.make())
        one.delete(one.make(number=1, disk=1))
        until("both are captured", lambda: one.status().captured == 2)
        assert [disk.state.value for disk in one.status().log_dirs] == ["online", "online"]


@pytest.mark.slow
def test_a_broker_whose_configuration_changed_is_opened_again(tmp_path: Path) -> None:
    with daemon(tmp_path, disks=3, more="sweep.interval.ms: 500\n") as one:
        text = one.server_properties.read_text().replace(f",{one.log_dirs[2]}", "")
        one.server_properties.write_text(text)
        until("two log dirs are left", lambda: len(one.status().log_dirs) == 2)
        one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)


def test_a_password_of_the_brokers_configuration_is_nowhere_shown(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        until("its start is over", lambda: len(one.watches()) == 2)  # Which reads the file, too.
        with one.server_properties.open("a") as file:
            file.write("ssl.keystore.password=s3cret\\users\n")
        where = "another text in line 4, ssl.keystore.password"
        until("its sweep meets it", lambda: any(where in problem.found for problem in one.status().waiting))
        assert one.process is not None
        one.process.send_signal(signal.SIGHUP)
        until("it is refused", lambda: "config.refused" in one.log)
        assert where in one.log
        assert any(where in json.dumps(event) for event in one.events())
        assert "s3cret" not in one.log + json.dumps([to_json(one.status()), one.events()])


def test_the_command_is_found_by_its_name() -> None:
    process = launch("status", "--help")
    out, _ = process.communicate(timeout=60)
    assert b"--watch" in out
