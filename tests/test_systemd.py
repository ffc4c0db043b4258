"""The files for systemd: what they start can be typed, systemd finds nothing wrong with them, and little is left open.

Not here: units that really run (``tests/systemd``), the drop-ins of a host (``tests/logdir/service/systemd``).

Spec: reliability §7 row 25; attacks A6; systemd-analyze(1).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from logdir.service.systemd.drop_ins import UNITS, Facts, drop_ins
from logdir.service.systemd.unit_text import sealed
from tools.logdirctl.main import build_parser
from tools.logdird import build_parser as build_daemon_parser

HOME = Path(__file__).parents[1] / "systemd"
EXAMPLES = HOME / "examples"
GATE = EXAMPLES / "kafka.service.d" / "50-logdird-b1.conf"
DAEMON, RECOVER = HOME / "logdird@.service", HOME / "logdird-recover@.service"
SERVICES = (DAEMON, RECOVER)
SOCKETS = {"status": HOME / "logdird-status@.socket", "metrics": HOME / "logdird-metrics@.socket"}
SHIPPED = "/opt/logdird/bin"
SAFE = 1.0
FORBIDDEN = (
    "BindPaths", "BindReadOnlyPaths", "DynamicUser", "InaccessiblePaths", "MountFlags", "PrivateUsers", "ProcSubset",
    "ProtectClock", "ReadOnlyPaths", "ReadWritePaths", "RemoveIPC", "RestrictSUIDSGID", "RootDirectory", "RootImage",
    "TemporaryFileSystem",
)  # fmt: skip
"""What hides the boot id or the clock, maps owners away, makes mounts of directories, or takes away what is shared."""
FACTS = Facts(
    name="b1",
    unit="kafka.service",
    programs=SHIPPED,
    user="kafka",
    group="kafka",
    log_dirs=("/data/d1/kafka", "/data/d2/kafka"),
    writable=("/data/d1", "/data/d2"),
    needed=("/var/lib/logdird/b1", "/etc/kafka/server.properties"),
    reads_homes=False,
    has_client=True,
    status_listen=("127.0.0.1", 9480),
    metrics_listen=("0.0.0.0", 9481),
)
"""Of the examples, which are the drop-ins of a broker with all that can be asked for."""


def examples() -> dict[Path, str]:
    """Return what stands in every example."""
    return {EXAMPLES / Path(path).relative_to(UNITS): sealed(text) for path, text in drop_ins(FACTS).items()}


def lines_of(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def command_of(path: Path, key: str) -> list[str]:
    (found,) = (line.removeprefix(f"{key}=") for line in lines_of(path) if line.startswith(f"{key}="))
    return shlex.split(found)


@pytest.mark.parametrize("path", examples(), ids=lambda path: "/".join(path.parts[-2:]))
def test_the_examples_are_what_init_writes(path: Path) -> None:
    """``python -m tests.test_systemd`` writes them again."""
    assert path.read_text("utf-8") == examples()[path]


def test_there_is_no_other_example() -> None:
    assert {path for path in EXAMPLES.rglob("*") if path.is_file()} == set(examples())


def test_the_commands_of_the_units_are_commands() -> None:
    program, *words = command_of(DAEMON, "ExecStart")
    assert (program, build_daemon_parser().parse_args(words).config) == (f"{SHIPPED}/logdird", "/etc/logdird/%i.yaml")
    program, *words = command_of(RECOVER, "ExecStart")
    arguments = build_parser(("handover",)).parse_args(words)
    assert (program, arguments.apply, arguments.quiet) == (f"{SHIPPED}/logdirctl", True, True)
    assert arguments.config == "/etc/logdird/%i.yaml"


def gate() -> list[str]:
    """Return the words of the start gate, as systemd passes them on."""
    return [
        word.replace("$$", "$") for word in command_of(EXAMPLES / "kafka.service.d/50-logdird-b1.conf", "ExecStartPre")
    ]


def test_the_start_gate_is_a_handover_that_says_nothing_of_a_start_that_goes_well() -> None:
    shell, c, _, name, program, *words = gate()
    assert (shell, c, name) == ("/bin/sh", "-c", "gate")
    arguments = build_parser(("handover",)).parse_args(words)
    assert (program, arguments.apply, arguments.quiet) == (f"{SHIPPED}/logdirctl", True, True)
    assert arguments.config == "/etc/logdird/b1.yaml"


@pytest.mark.parametrize(
    ("value", "status"), [(None, 4), ("", 4), ("0", 4), ("no", 4), ("false", 4), ("1", 0), ("yes", 0)]
)
def test_the_start_gate_passes_on_a_refusal_but_for_its_one_way_round(
    tmp_path: Path, value: str | None, status: int
) -> None:
    shell, c, script, name, _, *words = gate()
    program = tmp_path / "logdir ctl"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 4\n')
    program.chmod(0o755)
    environment = {"PATH": os.environ["PATH"]} | ({} if value is None else {"LOGDIRD_SKIP_GATE": value})
    done = subprocess.run(
        [shell, c, script, name, program, *words], capture_output=True, text=True, check=False, env=environment
    )
    said = "logdird: gate-skipped: LOGDIRD_SKIP_GATE is set\n" if not status else "".join(f"{one}\n" for one in words)
    assert (done.returncode, done.stdout) == (status, said)


def test_the_start_gate_has_time_for_a_log_dir_that_hangs() -> None:
    (found,) = (line for line in lines_of(GATE) if "TimeoutStartSec" in line)
    # Half a minute is the deadline of the gate itself.
    assert int(found.partition("=")[2]) >= 2 * 30


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a06_a24_a_service_has_no_rights_and_nothing_that_it_needs_is_hidden(path: Path) -> None:
    lines = lines_of(path)
    assert {"User=kafka", "CapabilityBoundingSet=", "NoNewPrivileges=yes", "SystemCallErrorNumber=EPERM"} <= set(lines)
    assert {"RestrictAddressFamilies=AF_UNIX", "ProtectSystem=strict"} <= set(lines)
    # Their paths are the host's.
    assert [line for line in lines if line.startswith(FORBIDDEN)] == []
    assert "clock_adjtime" in " ".join(line for line in lines if line.startswith("SystemCallFilter="))


def test_a_worker_that_is_killed_ends_no_other_and_a_restart_keeps_the_sockets() -> None:
    lines = set(lines_of(DAEMON))
    assert {"Type=notify", "OOMPolicy=continue", "WatchdogSec=60", "Restart=on-failure"} <= lines
    assert {"RuntimeDirectoryPreserve=yes", "SupplementaryGroups=logdird", "UMask=0027"} <= lines


def test_recovery_comes_before_the_daemon_and_fails_nobody() -> None:
    assert "Before=logdird@%i.service" in lines_of(RECOVER)
    daemon = " ".join(lines_of(DAEMON))
    assert "Wants=logdird-recover@%i.service" in daemon
    assert "Requires=" not in daemon
    # A daemon that starts again beside its running broker has nothing to recover.
    assert {"Type=oneshot", "RemainAfterExit=yes", "SuccessExitStatus=3"} <= set(lines_of(RECOVER))


@pytest.mark.parametrize("name", SOCKETS)
def test_a_socket_is_for_this_host_and_starts_no_daemon_that_was_stopped(name: str) -> None:
    lines = set(lines_of(SOCKETS[name]))
    assert {f"FileDescriptorName={name}", "Service=logdird@%i.service", "PartOf=logdird@%i.service"} <= lines
    assert {"WantedBy=logdird@%i.service", "IPAddressDeny=any", "IPAddressAllow=localhost"} <= lines
    assert [line for line in lines if line.startswith("ListenStream=127.0.0.1:")]


def test_sysusers_makes_one_group_and_no_user() -> None:
    assert lines_of(HOME / "sysusers.d" / "logdird.conf") == ["g logdird -"]


def test_tmpfiles_takes_nothing_away() -> None:
    lines = lines_of(HOME / "tmpfiles.d" / "logdird.conf")
    assert [line.split()[:2] for line in lines] == [
        ["d", "/etc/logdird"], ["d", "/var/lib/logdird"], ["d", "/run/logdird"],
    ]  # fmt: skip


def analyze() -> str:
    """Return ``systemd-analyze``, or skip."""
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("needs systemd-analyze: apt install systemd")
    return found


def put_together(folder: Path, *drop_ins: Path) -> dict[str, Path]:
    """Make a directory of units of the broker b1, with programs that exist; return the units by name."""
    programs, units = folder / "bin", folder / "units"
    programs.mkdir()
    units.mkdir()
    for name in ("logdird", "logdirctl", "kafka"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    (units / "kafka.service").write_text(f"[Service]\nExecStart={programs}/kafka\n")
    texts = {path.name.replace("@", "@b1"): path for path in (*SERVICES, *SOCKETS.values())}
    texts |= {str(path.relative_to(EXAMPLES)): path for path in drop_ins}
    for name, path in texts.items():
        place = units / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(path.read_text("utf-8").replace(SHIPPED, str(programs)))
    return {name: units / name for name in ("kafka.service", *texts) if "/" not in name}


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    units = put_together(tmp_path, *examples())
    done = subprocess.run(
        [analyze(), "verify", "--man=no", *units.values()],
        capture_output=True,
        text=True,
        check=False,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}/units:", "PATH": os.environ["PATH"]},
    )
    ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "logdird" in line or "kafka" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


def score(unit: Path) -> float:
    """Return the exposure of a unit; what it consists of is printed, the worst first."""
    done = subprocess.run(
        [analyze(), "security", "--offline=yes", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
    )
    found = re.search(r"Overall exposure level for .*: (\d+\.\d)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    print(*(line for line in done.stdout.splitlines() if not line.startswith("✓")), sep="\n")
    return float(found[1])


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_service_is_safe(tmp_path: Path, capsys: pytest.CaptureFixture[str], path: Path) -> None:
    found = score(put_together(tmp_path)[path.name.replace("@", "@b1")])
    with capsys.disabled():
        print(f"\nsystemd-analyze security: {path.name}: {found}")
    assert found <= SAFE


def test_the_drop_ins_of_a_host_cost_nothing_and_the_client_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = EXAMPLES / "logdird@b1.service.d" / "50-logdirctl.conf"
    client = EXAMPLES / "logdird@b1.service.d" / "60-client.conf"
    (tmp_path / "without").mkdir()
    (tmp_path / "with").mkdir()
    assert score(put_together(tmp_path / "without", ours)["logdird@b1.service"]) <= SAFE
    found = score(put_together(tmp_path / "with", ours, client)["logdird@b1.service"])
    with capsys.disabled():
        print(f"\nsystemd-analyze security: {DAEMON.name} with {client.name}: {found}")
    # As docs/install.md says: sockets to other hosts, and no network of its own.
    assert SAFE < found <= 2.0


if __name__ == "__main__":
    for file, text in examples().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    sys.exit(0)
