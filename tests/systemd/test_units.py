"""The units really run: in which order they start, and what becomes of them when something goes wrong.

Spec: design §2 laws 5, 6; attacks A22; issue "The daemon at home on a host", systemd.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.builders import log_dir, partition
from tests.systemd.machine import CONFIG, PYTHON, UID, UNITS, Machine, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
DAEMON, RECOVER, BROKER = "logdird@b1.service", "logdird-recover@b1.service", "kafka.service"
CONFIGURED = "/etc/logdird/b1.yaml"
SOCKET = "logdird-status@b1.socket"
SEEN = "run/broker/seen.json"


def seen_by_broker(machine: Machine) -> dict[str, Any]:
    """Wait until the broker has its locks; return what it saw before."""
    until("the broker has its locks", (machine.root / SEEN).exists)
    seen: dict[str, Any] = json.loads((machine.root / SEEN).read_text())
    return seen


def test_a22_recovery_comes_first_then_the_daemon_then_the_gate_then_the_broker(machine: Machine) -> None:
    machine.run("systemctl", "start", BROKER)
    seen = seen_by_broker(machine)
    found = machine.until_running()
    (recovered,) = machine.show(RECOVER, "ExecMainExitTimestampMonotonic")
    started, ready = machine.show(DAEMON, "ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic")
    assert 0 < int(recovered) <= int(started) < int(ready) < seen["started_us"]
    assert machine.show(RECOVER, "Result", "ExecMainStatus", "ActiveState") == ["success", "0", "active"]
    assert seen["handed_over"] == [True, True]
    # The gate asked the daemon, which was there by then.
    requests = [event["detail"] for event in found["events"] if event["event"] == "request"]
    assert [detail for detail in requests if "handover" in detail] != []
    assert machine.show(DAEMON, "ActiveState", "SubState", "StatusText") == ["active", "running", "RUNNING"]
    until("logdird sees the broker", lambda: machine.status()["broker_runs"] is True)


def test_a22_recovery_alone_ends_what_was_cut_off_and_the_daemon_pulls_it_in(machine: Machine) -> None:
    replica = partition(machine.log_dirs[1] / "more-0")
    machine.run("chown", "-R", "kafka:shared", "/mnt/d2/kafka/more-0")
    machine.ctl("stage", "more", "--even-if-unknown", "--even-over-limit", "--config", CONFIGURED, "--apply")
    (staged,) = (machine.root / "mnt/d2/kafka.logdird/deleting").iterdir()
    # As where a restore was killed: the replica is back, and has a marker.
    staged.rename(replica)
    machine.run("systemctl", "start", DAEMON)
    (recovered,) = machine.show(RECOVER, "ExecMainExitTimestampMonotonic")
    (started,) = machine.show(DAEMON, "ExecMainStartTimestampMonotonic")
    assert 0 < int(recovered) <= int(started)
    machine.run("systemctl", "stop", DAEMON, RECOVER)
    assert not (replica / "replica.json").exists()

    machine.ctl("stage", "more", "--even-if-unknown", "--even-over-limit", "--config", CONFIGURED, "--apply")
    staged.rename(replica)
    machine.run("systemctl", "start", RECOVER)
    assert not machine.is_active(DAEMON)
    assert not (replica / "replica.json").exists()
    # No broker starts next: that is for the gate.
    assert not (machine.root / "mnt/d2/kafka.logdird/handover.json").exists()


def test_the_daemon_has_no_rights_and_its_socket_is_of_the_group(machine: Machine) -> None:
    machine.run("systemctl", "start", DAEMON)
    machine.until_running()
    lines = Path(f"/proc/{machine.main_pid()}/status").read_text("ascii").splitlines()
    found = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert {name: int(found[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {
        "CapEff": 0, "CapPrm": 0, "CapBnd": 0, "CapAmb": 0,
    }  # fmt: skip
    assert (found["NoNewPrivs"], found["Seccomp"], found["Uid"].split()) == ("1", "2", [str(UID)] * 4)
    groups = (line.split(":") for line in (machine.root / "etc/group").read_text().splitlines())
    (gid,) = (int(parts[2]) for parts in groups if parts[0] == "logdird")
    stat = (machine.root / "run/logdird/b1.sock").stat()
    assert (stat.st_mode & 0o777, stat.st_uid, stat.st_gid) == (0o660, UID, gid)
    # A user of that group reads the status, and another one does not reach the socket.
    for its_gid, status in ((gid, 0), (65534, 4)):
        who = ("setpriv", "--reuid=65534", "--clear-groups", f"--regid={its_gid}")
        machine.run(*who, "logdirctl", "status", "--config", CONFIGURED, status=status)


def test_logdird_of_another_user_takes_no_socket_away(machine: Machine) -> None:
    machine.run("systemctl", "start", DAEMON)
    machine.until_running()
    theirs = (machine.root / "run/logdird/b1.sock").stat()
    place = machine.root / "mnt/d3/kafka"
    place.parent.mkdir()
    log_dir(place, node=2)
    machine.run("chown", "-R", "nobody:nogroup", "/mnt/d3")
    machine.write("/etc/kafka/b2.properties", "broker.id=2\nlog.dirs=/mnt/d3/kafka\n")
    config, socket = "/etc/logdird/b2.yaml", "/run/logdird-b2/b2.sock"
    machine.write(config, "server.properties: /etc/kafka/b2.properties\n")
    machine.ctl("init", "--config", config, "--apply")
    refused = machine.run("logdirctl", "init", "--systemd", "--config", config, "--apply", status=2)
    assert f"socket: {socket} in the configuration" in refused.stderr
    machine.write(config, f"server.properties: /etc/kafka/b2.properties\nsocket: {socket}\n")
    machine.ctl("init", "--systemd", "--config", config, "--apply")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "logdird@b2.service")

    def are_running() -> bool:
        found = (machine.ctl("status", "--config", one, status=None)["result"] for one in (config, CONFIGURED))
        return {one.get("state") for one in found} == {"RUNNING"}

    until("both run", are_running)
    found = (machine.root / "run/logdird/b1.sock").stat()
    assert (found.st_uid, found.st_gid, found.st_mode) == (theirs.st_uid, theirs.st_gid, theirs.st_mode)


def test_a_daemon_that_hangs_is_started_again_by_the_watchdog(machine: Machine) -> None:
    machine.drop_in(DAEMON, "[Service]", "WatchdogSec=5", "RestartSec=0.1")
    machine.run("systemctl", "start", DAEMON)
    machine.until_running()
    before = machine.main_pid()
    os.kill(before, signal.SIGSTOP)
    until("systemd has started another one", lambda: machine.show(DAEMON, "NRestarts") != ["0"])
    machine.until_running()
    assert machine.main_pid() != before
    assert not Path(f"/proc/{before}").exists()


def test_a_reload_takes_the_new_configuration_or_keeps_the_former_and_says_so(machine: Machine) -> None:
    machine.run("systemctl", "start", DAEMON)
    machine.until_running()
    pid = machine.main_pid()
    machine.write(CONFIGURED, f"{CONFIG}delete.topic.delay.ms: 2h\n")
    machine.run("systemctl", "reload", DAEMON)
    until("it is reloaded", lambda: any(event["event"] == "reloaded" for event in machine.status()["events"]))
    machine.write(CONFIGURED, f"{CONFIG}no.such.key: 1\n")
    machine.run("systemctl", "reload", DAEMON)

    def is_refused() -> bool:
        return any(problem["slug"] == "config-error" for problem in machine.status()["waiting"])

    until("the status shows why the file was not taken", is_refused)
    assert machine.is_active(DAEMON)
    machine.write(CONFIGURED, CONFIG)
    machine.run("systemctl", "reload", DAEMON)
    until("the status shows it no more", lambda: not is_refused())
    assert machine.main_pid() == pid


def test_the_gate_works_by_itself_where_no_daemon_runs(machine: Machine) -> None:
    machine.run("systemctl", "mask", "--runtime", DAEMON)
    machine.run("systemctl", "start", BROKER)
    assert seen_by_broker(machine)["handed_over"] == [True, True]
    assert machine.is_active(BROKER)
    assert not machine.is_active(DAEMON)


@pytest.mark.parametrize("is_unit", [False, True], ids=["no mount unit", "a mount unit that fails"])
def test_without_one_of_its_disks_only_the_way_round_the_gate_starts_the_broker(
    machine: Machine, is_unit: bool
) -> None:
    machine.run("umount", "/mnt/d2")
    if is_unit:
        machine.write(f"/{UNITS}/mnt-d2.mount", "[Mount]\nWhat=disk\nWhere=/mnt/d2\nType=nosuchfs\n")
    machine.drop_in(BROKER, "[Service]", "StandardError=append:/run/gate.log")
    done = machine.run("systemctl", "start", BROKER, status=None)
    assert done.returncode != 0
    assert not machine.is_active(BROKER)
    assert "log-dirs-incomplete: /mnt/d2/kafka: " in (machine.root / "run/gate.log").read_text()
    # One sick disk harms nobody else (law 6): recovery has failed, and the daemon serves the other one.
    assert not machine.is_active(RECOVER)
    until("logdird serves the other log dir", lambda: machine.status().get("state") == "RUNNING")
    assert [one["state"] for one in machine.status()["items"]] == ["online", "offline"]

    machine.run("mkdir", "/mnt/d2/kafka")
    machine.run("chown", "kafka:kafka", "/mnt/d2/kafka")
    machine.run("systemctl", "set-environment", "LOGDIRD_SKIP_GATE=1")
    machine.run("systemctl", "reset-failed")
    machine.run("systemctl", "start", BROKER)
    seen_by_broker(machine)
    assert machine.is_active(BROKER)


def test_a_page_gets_its_socket_from_systemd_and_ends_with_the_daemon(machine: Machine) -> None:
    machine.run("systemctl", "enable", SOCKET)
    machine.run("systemctl", "start", DAEMON)
    machine.until_running()
    assert machine.is_active(SOCKET)
    # Of its environment the kernel shows what it was started with.
    variables = Path(f"/proc/{machine.main_pid()}/environ").read_bytes().split(b"\0")
    assert b"LISTEN_FDNAMES=status" in variables
    code = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9470/', timeout=20).status)"
    assert machine.run(PYTHON, "-c", code).stdout == "200\n"
    machine.run("systemctl", "restart", DAEMON)
    machine.until_running()
    assert machine.is_active(SOCKET)
    machine.run("systemctl", "stop", DAEMON)
    # A scrape does not start a daemon that was stopped.
    until("the socket is closed", lambda: not machine.is_active(SOCKET))
