"""The gate beside a disk that hangs: it ends within half a minute, refused by the name of the disk, or without it.

The time-out of the disk is its default: what holds is the limit of the gate.

Spec: issue "The daemon at home on a host", The gate; design §2 laws 5, 6; attacks A22, A40.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hung.rig import (
    AT_MOST_S,
    Answer,
    Broker,
    Running,
    Sick,
    all_ended,
    before_all_others,
    on_frozen,
    on_loop,
)
from tests.hung.test_every_command import prepare, require_works
from tests.kernel.images import Images
from tests.logdir.daemon.rig import Process
from tests.tools.ctl import CODE, HOME
from tools.cli.arguments import Exit

pytestmark = pytest.mark.root

_LIMIT_S = 30
_INCOMPLETE = "log-dirs-incomplete"
_Put = Callable[[Images, Path, Callable[[Broker], object]], AbstractContextManager[Sick]]
DISKS: dict[str, tuple[_Put, tuple[str, ...]]] = {
    "in the kernel": (on_loop, ("READ", "WRITE", "FSYNC")),
    "frozen": (on_frozen, ()),
}
"""How the disk is made, and what of it hangs."""


def gate(broker: Broker, *more: str) -> Answer:
    """Type the command of the unit, with the time-out that a disk has by default."""
    return Running(("handover", *broker.named, *more, "--json")).answer()


def require_in_time(answer: Answer) -> None:
    """Assert that the gate ended within its limit."""
    assert answer.seconds <= _LIMIT_S, answer


@pytest.mark.parametrize("disk", DISKS)
def test_a22_it_is_refused_by_the_name_of_the_disk_and_passed_without_it_in_time(
    disk: str, images: Images, tmp_path: Path
) -> None:
    put, hung = DISKS[disk]
    with put(images, tmp_path, prepare) as sick:
        broker = sick.broker
        sick.hang(*hung)
        refused = gate(broker)
        assert [one["path"] for one in refused.problems if one["slug"] == _INCOMPLETE] == [str(broker.sick)], refused
        assert refused.status == Exit.REFUSED
        assert "LOGDIRD_SKIP_GATE=1" in refused.problems[0]["fix"]
        require_in_time(refused)
        without = gate(broker, "--skip-log-dir", str(broker.sick))
        assert without.status == Exit.DONE, without
        require_in_time(without)
        sick.go_on()
        assert all_ended(refused.session, without.session)
        require_works(broker)


def test_the_way_round_it_asks_no_disk(images: Images, tmp_path: Path) -> None:
    with on_loop(images, tmp_path, prepare) as sick:
        sick.hang("READ")
        began = time.monotonic()
        done = subprocess.run(
            [*before_all_others(), sys.executable, "-c", CODE, "handover", *sick.broker.named, "--json"],
            cwd=HOME,
            env={**os.environ, "LOGDIRD_SKIP_GATE": "1"},
            capture_output=True,
            text=True,
            timeout=AT_MOST_S,
            check=False,
        )
        assert time.monotonic() - began <= 5, "it has waited for a disk"
        said: dict[str, Any] = json.loads(done.stdout)
        assert (done.returncode, [one["slug"] for one in said["problems"]]) == (Exit.DONE, ["gate-skipped"])
        sick.go_on()


@contextmanager
def daemon_of(broker: Broker, folder: Path) -> Iterator[Process]:
    """Run a daemon on these log dirs; nothing of it is left at the end."""
    (folder / "server.properties").write_text(f"broker.id=1\nlog.dirs={broker.named[1]}\n")
    config = folder / "b1.yaml"
    config.write_text("server.properties: server.properties\nstate.dir: state\nsocket: s.sock\n")
    with Process(config).running() as daemon:
        yield daemon


@pytest.mark.parametrize("disk", DISKS)
def test_a22_a_daemon_whose_disk_hangs_answers_the_gate_in_time(disk: str, images: Images, tmp_path: Path) -> None:
    """Its own time-out of the disk, and a look that waits for it, go before the answer."""
    put, hung = DISKS[disk]
    with put(images, tmp_path, prepare) as sick:
        broker = sick.broker
        with daemon_of(broker, tmp_path) as daemon:
            sick.hang(*hung)
            refused = Running(("handover", "--config", str(daemon.config), "--json")).answer()
            assert refused.status == Exit.REFUSED, refused
            assert str(broker.sick) in {one["path"] for one in refused.problems}, refused
            require_in_time(refused)
            words = ("handover", "--config", str(daemon.config), "--skip-log-dir", str(broker.sick), "--json")
            without = Running(words).answer()
            assert without.status == Exit.DONE, without
            require_in_time(without)
            sick.go_on()


def test_a_bug_report_leaves_out_the_log_dir_that_hangs(images: Images, tmp_path: Path) -> None:
    with on_loop(images, tmp_path, prepare) as sick:
        broker = sick.broker
        sick.hang("READ")
        answer = broker.sees("bug-report", "--output", str(tmp_path / "report.tar.gz"))
        assert (answer.status, answer.suspects) == (Exit.PROBLEMS, [str(broker.sick)]), answer
        names = {one["path"] for one in answer.result["items"]}
        assert {"log-dirs/1-own-files.jsonl", "log-dirs/3-own-files.jsonl"} <= names
        assert "log-dirs/2-own-files.jsonl" not in names
        sick.go_on()
        assert all_ended(answer.session)
