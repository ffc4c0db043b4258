"""A daemon beside a log dir that hangs: it starts, captures on the others, answers, and takes the disk back.

Spec: design §2 law 6; attacks A40, A41, A49; reliability §6.3, §7 rows 18, 20.
"""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from logdir.daemon.state import LogDirState
from tests.hung.rig import Broker, Sick, on_frozen, on_loop
from tests.kernel.images import Images
from tests.logdir.daemon.rig import UNIQUE, Process, until
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]

ANSWER_S = 1.0
"""A status comes from memory."""
START_S = 20.0
"""It waits three seconds for a disk; this machine has two cores, and others use them."""


def daemon_of(broker: Broker) -> Process:
    """Return a daemon for a broker of the rig, which waits one second for a disk."""
    folder = broker.folder / "logdird"
    folder.mkdir()
    (folder / "server.properties").write_text(f"broker.id=1\nlog.dirs={','.join(map(str, broker.disks))}\n")
    config = folder / "b1.yaml"
    config.write_text(
        "server.properties: server.properties\nstate.dir: state\nsocket: s.sock\n"
        "disk.timeout.ms: 1000\nsweep.interval.ms: 500\nauto.while.stopped: true\n"
    )
    return Process(config)


def delete(broker: Broker, number: int) -> None:
    """Rename the live replica of a disk as a broker does."""
    path = broker.disks[number] / f"pay-{number}"
    path.rename(path.with_name(f"{path.name}.{UNIQUE}-delete"))


def state_of(daemon: Process, path: Path) -> LogDirState:
    began = time.monotonic()
    found = {disk.log_dir: disk.state for disk in daemon.status().log_dirs}
    assert time.monotonic() - began < ANSWER_S
    return found[str(path)]


def problem_of(daemon: Process, path: Path) -> str:
    return next(disk.problem.line() for disk in daemon.status().log_dirs if disk.log_dir == str(path) and disk.problem)


def captured_on(daemon: Process, path: Path) -> bool:
    return any(Path(f"{path}.logdird/deleting").glob("eXOy6xj-Q8ivrWAlsZGnkw_*")) and daemon.status().missed == 0


def the_others_are_captured_and_the_disk_is_taken_back(sick: Sick, daemon: Process) -> None:
    """Delete on every disk: the second, which hangs, is captured on when it goes on, and the others before."""
    broker = sick.broker
    one, two, three = broker.disks
    for number in (0, 2):
        delete(broker, number)
    until("the others are captured", lambda: captured_on(daemon, one) and captured_on(daemon, three))
    assert state_of(daemon, two) is LogDirState.SUSPECT
    sick.go_on()
    until("the disk is taken back", lambda: state_of(daemon, two) is LogDirState.ONLINE, 90)
    delete(broker, 1)
    until("it is captured there, too", lambda: captured_on(daemon, two))


def test_a49_a_daemon_starts_beside_a_disk_whose_reads_hang_and_takes_it_back(images: Images, tmp_path: Path) -> None:
    with on_loop(images, tmp_path) as sick:
        broker = sick.broker
        two = broker.disks[1]
        sick.hang("READ")
        daemon = daemon_of(broker)
        began = time.monotonic()
        with daemon.running():
            assert time.monotonic() - began < START_S
            assert state_of(daemon, two) is LogDirState.SUSPECT
            assert any(problem.path == str(two) for problem in daemon.status().waiting)
            the_others_are_captured_and_the_disk_is_taken_back(sick, daemon)
            assert daemon.stop() == 0


def test_a40_a49_a_disk_that_freezes_amid_the_work_harms_no_other_and_nothing_late(
    images: Images, tmp_path: Path
) -> None:
    with on_frozen(images, tmp_path) as sick:
        broker = sick.broker
        two = broker.disks[1]
        daemon = daemon_of(broker)
        with daemon.running():
            assert [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 3
            sick.hang()
            said = ctl("staged", "hold", "old", "--config", daemon.config, "--apply")
            assert said.status == Exit.PROBLEMS, said
            assert f"log-dir-suspect: {two}" in said.err
            until("the disk is SUSPECT", lambda: state_of(daemon, two) is LogDirState.SUSPECT)
            the_others_are_captured_and_the_disk_is_taken_back(sick, daemon)
            held = ctl("staged", "hold", "pay", "--config", daemon.config, "--apply")
            assert (held.status, held.out.count("done")) == (Exit.DONE, 3), held
            assert daemon.stop() == 0


def test_a40_a_configuration_read_again_does_not_open_a_disk_whose_worker_still_hangs(
    images: Images, tmp_path: Path
) -> None:
    with on_frozen(images, tmp_path) as sick:
        one, two, three = sick.broker.disks
        daemon = daemon_of(sick.broker)
        with daemon.running():
            sick.hang()
            assert ctl("staged", "hold", "old", "--config", daemon.config, "--apply").status == Exit.PROBLEMS
            until("the disk is SUSPECT", lambda: state_of(daemon, two) is LogDirState.SUSPECT)
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGHUP)
            until("the old process is named", lambda: ", which hangs in the kernel" in problem_of(daemon, two))
            assert (state_of(daemon, one), state_of(daemon, three)) == (LogDirState.ONLINE, LogDirState.ONLINE)
            (pid,) = re.findall(r"found pid (\d+), which hangs", problem_of(daemon, two))
            assert int(pid) in daemon.children()
            the_others_are_captured_and_the_disk_is_taken_back(sick, daemon)
            assert int(pid) not in daemon.children()
            assert daemon.stop() == 0
