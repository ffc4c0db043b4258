"""Disks that come and go under a running unit, and one that hangs while the unit is stopped.

Spec: design §2 laws 5, 6; attacks A6, A40, A41; docs/daemon.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.lock_holder import holder_pid
from logdir.observe.mounts import Mount, parse_mountinfo
from tests.builders import log_dir, partition
from tests.systemd.machine import UID, Machine, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
DAEMON, BROKER = "logdird@b1.service", "kafka.service"
NAMED = ("--config", "/etc/logdird/b1.yaml")
NEW = "AAAAAAAAAAAAAAAAAAAACA"


def mounts_of(pid: int, point: str) -> list[Mount]:
    """Return what a process sees mounted at a place."""
    found = parse_mountinfo(Path(f"/proc/{pid}/mountinfo").read_bytes())
    return [mount for mount in found if mount.point == point.encode()]


def options_of(pid: int, point: str) -> list[list[str]]:
    """Return the options of each mount at a place, as a process sees them."""
    lines = (line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text("utf-8").splitlines())
    return [fields[5].split(",") for fields in lines if fields[4] == point]


def states(machine: Machine) -> list[str]:
    return [one["state"] for one in machine.status().get("items", ())]


def test_a06_a_disk_that_is_unmounted_on_the_host_is_unmounted_for_the_daemon_and_another_one_comes(
    machine: Machine,
) -> None:
    machine.run("systemctl", "start", DAEMON)
    machine.until_running()
    pid = machine.main_pid()
    # The unit's settings made no mount of a disk, and let it write there; what is not named it may not write.
    assert [len(mounts_of(pid, f"/mnt/d{number}")) for number in (1, 2)] == [1, 1]
    assert ["rw" in options for options in options_of(pid, "/mnt/d2")] == [True]
    assert ["ro" in options for options in options_of(pid, "/mnt")] == [True]

    machine.ctl("disk", "release", "/mnt/d2/kafka", *NAMED, "--apply")
    until("it is unmounted", lambda: machine.run("umount", "/mnt/d2", status=None).returncode == 0)
    assert mounts_of(pid, "/mnt/d2") == []

    machine.run("mount", "-t", "tmpfs", "-o", f"mode=755,uid={UID},gid={UID}", "disk", "/mnt/d2")
    assert ["rw" in options for options in options_of(pid, "/mnt/d2")] == [True]
    log_dir(machine.log_dirs[1], directory=NEW)
    machine.run("chown", "-R", "kafka:kafka", "/mnt/d2/kafka")
    machine.ctl("init", "--log-dirs", "/mnt/d2/kafka", "--apply")
    machine.run("systemctl", "reload", DAEMON)
    machine.until_running()
    assert machine.main_pid() == pid


def asleep(machine: Machine) -> list[int]:
    """Return the processes of the daemon that sleep so that no signal ends them."""
    (group,) = machine.show(DAEMON, "ControlGroup")
    found = []
    for pid in (machine.root / f"sys/fs/cgroup{group}/cgroup.procs").read_text("ascii").split():
        with suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "D":
                found.append(int(pid))
    return found


@contextmanager
def freezable(machine: Machine) -> Iterator[None]:
    """Put the second log dir on ext4, which can be frozen: every change hangs, and what is read is answered."""
    for program in ("mkfs.ext4", "fsfreeze"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}: apt install e2fsprogs util-linux")
    if not os.access("/dev/loop-control", os.W_OK):
        pytest.skip("needs loop devices: modprobe loop")
    machine.run("umount", "/mnt/d2")
    machine.run("truncate", "--size=64M", "/mnt/image")
    machine.run("mkfs.ext4", "-q", "-F", "/mnt/image")
    machine.run("mount", "-o", "loop", "/mnt/image", "/mnt/d2")
    machine.run("rmdir", "/mnt/d2/lost+found")
    machine.run("chown", "kafka:kafka", "/mnt/d2")
    log_dir(machine.log_dirs[1], directory=NEW)
    partition(machine.log_dirs[1] / "pay-0")
    machine.run("chown", "-R", "kafka:kafka", "/mnt/d2/kafka")
    machine.ctl("init", "--log-dirs", "/mnt/d2/kafka", "--apply")
    try:
        yield
    finally:
        machine.run("fsfreeze", "--unfreeze", "/mnt/d2", status=None)


@contextmanager
def frozen(machine: Machine) -> Iterator[None]:
    """Freeze the second disk, until the end."""
    machine.run("fsfreeze", "--freeze", "/mnt/d2")
    try:
        yield
    finally:
        machine.run("fsfreeze", "--unfreeze", "/mnt/d2")


def stop_with_hung_worker(machine: Machine) -> None:
    """Let a worker hang, stop the daemon, and look at what is left."""
    words = ("stage", "pay", "--even-if-unknown", "--even-over-limit", *NAMED, "--apply")
    with frozen(machine):
        with subprocess.Popen(
            machine.inside("logdirctl", *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as command:
            until("a worker hangs", lambda: bool(asleep(machine)))
            until("the log dir is suspect", lambda: states(machine) == ["online", "suspect"])
            hung = asleep(machine)
            machine.run("systemctl", "stop", DAEMON, status=None)
            command.wait(60)
        state, main = machine.show(DAEMON, "ActiveState", "MainPID")
        assert (state in ("inactive", "failed"), main) == (True, "0")
        with Path(f"{machine.log_dirs[0]}.logdird/owner.lock").open("rb") as lock:
            assert holder_pid(lock.fileno()) is None
        # What hangs in the kernel stays, and holds up the start of nothing else.
        assert [pid for pid in hung if Path(f"/proc/{pid}").exists()] != []
        machine.run("systemctl", "reset-failed", DAEMON, status=None)
        machine.run("systemctl", "start", DAEMON)
        until("the other log dir is served", lambda: states(machine)[:1] == ["online"])


def test_a_stop_waits_for_no_worker_that_hangs_and_the_next_start_serves_the_others(machine: Machine) -> None:
    with freezable(machine):
        machine.drop_in(DAEMON, "[Service]", "TimeoutStopSec=5")
        run_and_end_the_wait_for_a_broker(machine)
        stop_with_hung_worker(machine)
        machine.run("systemctl", "reload", DAEMON)  # At once, and not when it looks for the disk again.
        machine.until_running()


def run_and_end_the_wait_for_a_broker(machine: Machine) -> None:
    """Start the daemon and its broker, and end the broker: until it was seen, nothing may take Kafka's locks."""
    machine.run("systemctl", "start", BROKER)
    machine.until_running()
    until("logdird sees the broker", lambda: machine.status()["broker_runs"] is True)
    machine.run("systemctl", "stop", BROKER)
    until("logdird sees the broker stop", lambda: machine.status()["broker_runs"] is False)


def test_the_gate_ends_in_time_beside_a_disk_that_hangs(machine: Machine) -> None:
    with freezable(machine):
        machine.drop_in(BROKER, "[Service]", "StandardError=append:/run/gate.log")
        run_and_end_the_wait_for_a_broker(machine)
        with frozen(machine):
            done: subprocess.CompletedProcess[Any] = machine.run("systemctl", "start", BROKER, status=None)
            assert done.returncode != 0
            assert "/mnt/d2/kafka" in (machine.root / "run/gate.log").read_text()
        machine.run("systemctl", "reset-failed", BROKER, status=None)
        machine.run("systemctl", "reload", DAEMON)  # At once, and not when it looks for the disk again.
        machine.until_running()
        machine.run("systemctl", "start", BROKER)
        until("the broker runs", lambda: machine.status()["broker_runs"] is True)
