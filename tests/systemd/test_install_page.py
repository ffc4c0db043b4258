"""docs/install.md as it is typed on a fresh host, but for ``make``, which ``tests/test_install.py`` runs.

Spec: issue "The daemon at home on a host", systemd.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.systemd.machine import HOME, UNITS, Machine, booted, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
PAGE = (HOME / "docs" / "install.md").read_text("utf-8")
BROKER, DAEMON, RECOVER = "kafka.service", "logdird@b1.service", "logdird-recover@b1.service"


def typed(title: str) -> list[str]:
    """Return the commands below a title of the page, without those that run ``make`` or what it brings."""
    (part,) = re.findall(rf"^## {title}\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for line in part.splitlines() if line.startswith("    ") and "→" not in line]
    return [line for line in lines if not line.startswith("make ")]


@pytest.fixture
def bare(able: None, tmp_path: Path) -> Iterator[Machine]:
    """Start a machine with log dirs and a broker that runs, and nothing of logdird but what ``make install`` leaves."""
    with booted(tmp_path) as one:
        one.make_disks()
        one.run("systemctl", "start", BROKER)
        yield one


def type_all(machine: Machine, lines: list[str]) -> str:
    """Type lines in one shell, each of which must end well; return what is printed."""
    assert lines != []
    return machine.run("/bin/sh", "-euxc", "\n".join(lines)).stdout


def test_what_the_page_says_is_typed_from_the_first_line_to_the_removal(bare: Machine) -> None:
    said = type_all(bare, typed("First configuration"))
    assert "b1: RUNNING" in said or "b1: STARTING" in said or "b1: RECOVERY" in said
    bare.until_running()
    until("logdird sees the broker", lambda: bare.status()["broker_runs"] is True)
    assert bare.show(RECOVER, "Result", "ExecMainStatus") == ["success", "3"]
    # The broker goes through its gate from its next start on.
    bare.run("systemctl", "restart", BROKER)
    assert [event["detail"] for event in bare.status()["events"] if "handover" in event["detail"]] != []
    assert all("is there" in line for line in type_all(bare, typed("Upgrade")).splitlines() if "50-" in line)

    bare.run("systemctl", "stop", BROKER)
    type_all(bare, typed("Remove"))
    assert [path.name for path in (bare.root / UNITS).rglob("*") if "50-" in path.name] == []
    assert [unit for unit in (DAEMON, RECOVER) if bare.is_active(unit)] == []
    assert [log_dir for log_dir in bare.log_dirs if Path(f"{log_dir}.logdird").exists()] == []
    bare.run("systemctl", "start", BROKER)
    assert bare.is_active(BROKER)
