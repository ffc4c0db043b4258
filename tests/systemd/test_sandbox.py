"""What the sandbox leaves to logdird, and what it does not: tried by a process in it, and by logdird itself.

Spec: design §2 law 9, §3.3; attacks A6, A24; reliability §7 row 25.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logdir import clock
from logdir.disk.kernel.kernel_clock import is_synchronised, read_instant
from logdir.formats.own import heartbeat_file
from logdir.formats.own.heartbeat_file import Boot, Heartbeat, Steady
from tests.builders import partition
from tests.systemd.machine import PYTHON, SHARED_GID, UID, UNITS, Machine, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
DAEMON, BROKER = "logdird@b1.service", "kafka.service"
NAMED = ("--config", "/etc/logdird/b1.yaml")
UNIQUE = "0123456789abcdef0123456789abcdef"
_NOT_OF_A_PROBE = (
    "ConditionPathExists=", "Wants=", "After=", "Type=", "ExecStart=", "ExecReload=", "WatchdogSec=", "Restart=",
    "RestartSec=",
)  # fmt: skip
_ADJ_MAXERROR, _ADJ_STATUS, _STA_UNSYNC = 0x0004, 0x0010, 0x40
_UP_MS = 15 * 60 * 1000
"""Before that no gap is credited (design §3.3)."""
_HOUR_MS = 60 * 60 * 1000


class Timex(ctypes.Structure):
    """``struct timex`` up to its status."""

    _fields_ = (
        ("modes", ctypes.c_uint), ("offset", ctypes.c_long), ("freq", ctypes.c_long), ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long), ("status", ctypes.c_int), ("rest", ctypes.c_char * 512),
    )  # fmt: skip


@contextmanager
def synchronised() -> Iterator[None]:
    """Let the kernel call its clock synchronised, which no time service of a test machine may have told it.

    The clock itself is not touched, and what the kernel said before is said again at the end.
    """
    if is_synchronised():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    before = Timex()
    libc.adjtimex(ctypes.byref(before))
    said = Timex(modes=_ADJ_STATUS | _ADJ_MAXERROR, status=before.status & ~_STA_UNSYNC, maxerror=0)
    if libc.adjtimex(ctypes.byref(said)) < 0 or not is_synchronised():
        pytest.skip(f"needs a clock that is called synchronised: adjtimex: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        back = Timex(modes=_ADJ_STATUS | _ADJ_MAXERROR, status=before.status, maxerror=before.maxerror)
        libc.adjtimex(ctypes.byref(back))


def probed(machine: Machine) -> dict[str, Any]:
    """Run ``probe.py`` in a unit with the settings of logdird's, and of its drop-in; return what it found."""
    lines = (machine.root / UNITS / "logdird@.service").read_text("utf-8").replace("%i", "b1").splitlines()
    kept = [line for line in lines if not line.startswith((*_NOT_OF_A_PROBE, "[Install]", "WantedBy="))]
    words = ("/var/lib/logdird/b1/probed", "/mnt/d2/kafka", "/mnt/d2/kafka.logdird", SHARED_GID)
    command = " ".join(map(str, (PYTHON, "/opt/logdird/src/tests/systemd/probe.py", *words)))
    start = ["[Service]", "Type=oneshot", "Environment=PYTHONPATH=/opt/logdird/src", f"ExecStart={command}"]
    machine.write(f"/{UNITS}/logdird-probe.service", "".join(f"{line}\n" for line in (*kept, *start)))
    ours = (machine.root / UNITS / "logdird@b1.service.d" / "50-logdirctl.conf").read_text("utf-8")
    machine.write(f"/{UNITS}/logdird-probe.service.d/50-logdirctl.conf", ours)
    machine.drop_in("logdird-probe.service", "[Service]", "StandardError=append:/run/probe.log")
    done = machine.run("systemctl", "start", "logdird-probe.service", status=None)
    assert done.returncode == 0, (machine.root / "run/probe.log").read_text()
    found: dict[str, Any] = json.loads((machine.root / "var/lib/logdird/b1/probed").read_text())
    return found


def test_a06_a24_what_is_needed_is_allowed_and_nothing_else(machine: Machine) -> None:
    machine.write("/tmp/of-another", "")
    with synchronised():
        found = probed(machine)
        assert found["is_synchronised"] is True
    assert found["boot_id"] == clock.boot_id()
    needed = ("lease", "rename", "link", "chown")
    assert {name: found[name] for name in needed} == dict.fromkeys(needed, "")
    # One path for log dir and work root would else be two mounts: EXDEV.
    refused = {
        "write elsewhere": "EROFS",
        "write the checkout": "EROFS",
        "set the clock": "EPERM",
        "network": "EAFNOSUPPORT",
        "mounts of its own": "EPERM",
        "code in memory": "EPERM",
        "priority": "EPERM",
    }
    assert {name: found[name] for name in refused} == refused
    assert found["tmp"] == []
    # The first process and those of other users are hidden; those of the broker's user would not be.
    assert found["own_pid"] in found["pids"]
    assert 1 not in found["pids"]


def test_a_deleted_replica_is_captured_and_a_staged_one_comes_back(machine: Machine) -> None:
    machine.run("systemctl", "start", BROKER)
    machine.until_running()
    until("logdird sees the broker", lambda: machine.status()["broker_runs"] is True)
    deleted = partition(machine.log_dirs[0] / "pay-0", segments={0: 100})
    moved = partition(machine.log_dirs[1] / "more-0", topic_id="MkU3OEVBNTcwNTJENDM2QQ")
    machine.run("chown", "-R", "kafka:kafka", "/mnt/d1/kafka/pay-0")
    machine.run("chown", "-R", "kafka:shared", "/mnt/d2/kafka/more-0")
    deleted.rename(deleted.with_name(f"pay-0.{UNIQUE}-delete"))
    until("it is captured", lambda: machine.status()["captured"] == 1)
    (captured,) = (machine.root / "mnt/d1/kafka.logdird/deleting").iterdir()
    assert (captured / "00000000000000000000.log").stat().st_nlink == 2

    machine.run("systemctl", "stop", BROKER)
    until("logdird sees the broker stop", lambda: machine.status()["broker_runs"] is False)
    machine.ctl("stage", "more", "--even-if-unknown", "--even-over-limit", *NAMED, "--apply")
    (staged,) = (machine.root / "mnt/d2/kafka.logdird/deleting").iterdir()
    stat = (staged / "replica.json").stat()
    # As its log dir: the broker's user, and the group that they share.
    assert (stat.st_uid, stat.st_gid) == (UID, SHARED_GID)
    assert not moved.exists()
    machine.ctl("staged", "restore", "more", "--even-if-unknown", *NAMED, "--apply")
    assert moved.is_dir()


def test_a24_a_gap_between_two_boots_is_credited(machine: Machine) -> None:
    if clock.boottime_ms() < _UP_MS:
        pytest.skip(f"needs a host that is up for {_UP_MS // 60_000} minutes")
    with synchronised():
        now = read_instant()
        since = now.boottime_ms - 10 * 60 * 1000
        # As the newest heartbeat of a host that was off for an hour, and whose clock is steady since ten minutes.
        before = Heartbeat(
            boots=(
                Boot(boot_id="11111111-1111-1111-1111-111111111111", seen_ms=_HOUR_MS, credited_ms=0, from_ms=0),
                Boot(boot_id=now.boot_id, seen_ms=now.boottime_ms, credited_ms=0, from_ms=since),
            ),
            wall_ms=now.wall_ms,
            steady=Steady(boottime_ms=since, wall_ms=now.wall_ms - (now.boottime_ms - since)),
            gap_from_ms=now.wall_ms - (now.boottime_ms - since) - _HOUR_MS,
        )
        files = [Path(f"{log_dir}.logdird", "heartbeat.json") for log_dir in machine.log_dirs]
        for file in files:
            file.write_bytes(heartbeat_file.render(before))
        machine.run("systemctl", "start", DAEMON)
        machine.until_running()

        def credited() -> list[int]:
            return [heartbeat_file.parse(file.read_bytes()).boots[-1].credited_ms for file in files]

        until("the hour is credited, but for the error of a clock", lambda: min(credited()) > _HOUR_MS // 2, 150)
        assert max(credited()) <= _HOUR_MS
