"""The files for systemd: what they start can be typed, and systemd itself finds nothing wrong with them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.logdirctl.main import build_parser
from tools.logdird import build_parser as build_daemon_parser

HOME = Path(__file__).parents[1] / "systemd"
UNIT, DROP_IN = HOME / "logdird@.service", HOME / "kafka.service.d" / "logdird.conf"
SHIPPED = "/opt/logdird/bin"
OWN_MOUNTS = (
    "BindPaths", "BindReadOnlyPaths", "DynamicUser", "ExecPaths", "ExtensionDirectories", "ExtensionImages",
    "InaccessiblePaths", "LogNamespace", "MountAPIVFS", "MountFlags", "MountImages", "NetworkNamespacePath",
    "NoExecPaths", "PrivateDevices", "PrivateIPC", "PrivateMounts", "PrivateNetwork", "PrivateTmp", "PrivateUsers",
    "ProcSubset", "ProtectControlGroups", "ProtectHome", "ProtectKernelLogs", "ProtectKernelModules",
    "ProtectKernelTunables", "ProtectProc", "ProtectSystem", "ReadOnlyPaths", "ReadWritePaths", "RootDirectory",
    "RootImage", "TemporaryFileSystem",
)  # fmt: skip
"""Settings with which systemd gives a service mounts of its own, or may (systemd.exec(5))."""


def command_of(path: Path, key: str) -> list[str]:
    (found,) = (line.removeprefix(f"{key}=") for line in path.read_text().splitlines() if line.startswith(f"{key}="))
    return shlex.split(found)


def test_the_commands_of_the_units_are_commands() -> None:
    program, *words = command_of(UNIT, "ExecStart")
    assert (program, build_daemon_parser().parse_args(words).config) == (f"{SHIPPED}/logdird", "/etc/logdird/%i.yaml")
    program, *words = command_of(DROP_IN, "ExecStartPre")
    arguments = build_parser(("handover",)).parse_args(words)
    # It acts, and says nothing in the journal of a start that goes well.
    assert (program, arguments.apply, arguments.quiet) == (f"{SHIPPED}/logdirctl", True, True)


def test_a06_the_unit_has_no_rights_and_no_mounts_of_its_own() -> None:
    lines = UNIT.read_text().splitlines()
    assert {"User=kafka", "CapabilityBoundingSet=", "NoNewPrivileges=yes", "Type=notify"} <= set(lines)
    assert not [line for line in lines if line.startswith(OWN_MOUNTS)]


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze: install systemd")
    for name in ("logdird", "logdirctl", "kafka"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    units = tmp_path / "units"
    (units / "kafka.service.d").mkdir(parents=True)
    (units / "kafka.service").write_text(f"[Service]\nExecStart={tmp_path}/kafka\n")
    for path, place in ((UNIT, units / "logdird@b1.service"), (DROP_IN, units / "kafka.service.d" / "logdird.conf")):
        place.write_text(path.read_text().replace(SHIPPED, str(tmp_path)))
    command: list[str | Path] = [
        "systemd-analyze",
        "verify",
        "--man=no",
        units / "logdird@b1.service",
        units / "kafka.service",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"SYSTEMD_UNIT_PATH": f"{units}:", "PATH": "/bin"}
    )
    ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "logdird" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
