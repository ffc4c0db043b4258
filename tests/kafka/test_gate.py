"""The gate before stock brokers: what it passes starts, what it refuses does not, and each comes to its end in time.

The gate is a process of its own, as ``ExecStartPre=`` of a unit and an init container start it.

Not here: a disk that hangs (``tests/hung/test_gate.py``), starts amid the batches of a daemon, again and again
(``test_daemon_starts``).

Spec: issue "The daemon at home on a host", The gate; design §6 ``handover``, §8; attacks A11, A22, A30.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.kafka.rig import Broker, Rig, await_true
from tests.kafka.rotation import releases_of
from tests.kafka.test_daemon_starts import Operator
from tests.kafka.undo_rig import await_in_sync, stop
from tests.logdir.daemon.rig import Process
from tests.releases.make import KILLED
from tests.tools.ctl import HOME, ctl, launch
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(30 * 60)]

_AT_MOST_S: Final = 30
_TRIMMED: Final = 20
_PARTITIONS: Final = 4
_PROPERTIES: Final = {
    "broker.session.timeout.ms": "3000",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
}
_STARTS = "log-start-offset-checkpoint"
_FEW_SECONDS = {"initial.broker.registration.timeout.ms": "3000"}


class Passed(NamedTuple):
    """What the gate answered."""

    status: int
    err: str


def gate(config: Path, *more: str) -> Passed:
    """Type the command of the unit, and wait for its end, which has a deadline."""
    began = time.monotonic()
    with launch("handover", "--config", config, "--quiet", *more) as asked:
        out, err = asked.communicate(timeout=2 * _AT_MOST_S)
    assert time.monotonic() - began <= _AT_MOST_S
    assert out == b""
    return Passed(asked.returncode, err.decode())


def slugs(passed: Passed) -> list[str]:
    """Return the slugs of the problems that were printed."""
    return [line.split(": ")[1] for line in passed.err.splitlines()]


def start(broker: Broker) -> None:
    """Start a broker that the gate let pass."""
    assert broker.try_start() is None, broker.trouble()
    assert "Failed to acquire lock" not in broker.log_text


@contextmanager
def filled(make_rig: Callable[[str], Rig], version: str, folder: Path) -> Iterator[tuple[Rig, Broker, Path]]:
    """Make a broker with a topic, and work roots; yield it, stopped, with the configuration of its daemon."""
    with make_rig(version) as rig:
        broker = rig.add_broker(log_dirs=3, properties=_PROPERTIES)
        broker.start()
        rig.client.create_on("pay", [[1]] * _PARTITIONS)
        await_in_sync(rig, "pay", [1])
        rig.client.produce_rich("pay", records=100)
        configuration = broker.write_configuration()
        assert ctl("init", "--server-properties", configuration, "--apply").status == Exit.DONE
        stop(broker)
        config = folder / "b1.yaml"
        config.write_text(
            f"server.properties: {configuration}\nstate.dir: state\nsocket: s.sock\nstaged.min.free: 1\n"
            "sweep.interval.ms: 500\n"
            "auto.while.stopped: true\n"
        )
        yield rig, broker, config


@pytest.mark.parametrize("version", releases_of("gate"))
def test_a11_a_broker_starts_over_what_a_kill_left(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    """A staging that was killed before its rename: its marker lies in a live replica."""
    with filled(make_rig, version, tmp_path) as (rig, broker, config):
        words = ("stage", "pay-0", "--even-if-unknown", "--even-over-limit", "--even-if-last", "--apply")
        done = subprocess.run(
            [sys.executable, "-c", KILLED, "rename", "/pay-0 ", "1", *words, "--config", str(config)],
            cwd=HOME,
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done
        (marker,) = (path for top in broker.log_dirs for path in top.glob("pay-0/replica.json"))
        assert gate(config) == Passed(Exit.DONE, "")
        assert not marker.exists()
        start(broker)
        await_in_sync(rig, "pay", [1])
        assert rig.client.digest("pay").records == 100


@pytest.mark.parametrize("version", releases_of("gate"))
def test_a22_a_broker_starts_whatever_its_daemon_is_at(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    """Amid its batches, just started, killed so that its socket is left, stopped in order, and stopped by a signal."""
    with filled(make_rig, version, tmp_path) as (rig, broker, config), Process(config).running() as daemon:
        assert daemon.process is not None
        metadata = next(path for top in broker.log_dirs for path in top.glob("pay-*/partition.metadata"))
        pay_id = metadata.read_text().split()[-1]
        with Operator(daemon.socket, broker.log_dirs, pay_id).working():
            time.sleep(1)
            assert gate(config) == Passed(Exit.DONE, "")
            start(broker)
            await_true("the daemon sees it", lambda: daemon.status().broker_runs is True)
            assert gate(config).status == Exit.BROKER_RUNS
        broker.kill()
        # Stopped by a signal it holds our locks, and answers nothing: no broker is to start beside it.
        os.kill(daemon.process.pid, signal.SIGSTOP)
        refused = gate(config, "--at-most", "5")
        assert (refused.status, slugs(refused)) == (Exit.REFUSED, ["gate-timed-out"]), refused
        assert "LOGDIRD_SKIP_GATE=1" in refused.err
        os.kill(daemon.process.pid, signal.SIGCONT)
        await_true("the daemon goes on", lambda: daemon.state() == "RUNNING")
        assert gate(config) == Passed(Exit.DONE, "")
        # Killed: its socket stays, and nobody listens on it.
        daemon.stop(signal.SIGKILL)
        assert Path(daemon.socket).is_socket()
        assert gate(config) == Passed(Exit.DONE, "")
        start(broker)
        broker.kill()
        daemon.start(is_awaited=False)
        assert gate(config) == Passed(Exit.DONE, "")
        start(broker)
        broker.kill()
        await_true("the daemon runs", lambda: daemon.state() == "RUNNING")
        assert daemon.stop() == 0
        assert gate(config) == Passed(Exit.DONE, "")
        start(broker)
        await_in_sync(rig, "pay", [1])


def log_starts(broker: Broker, topic: str) -> set[str]:
    """Return the entries of a topic among the log starts of a broker."""
    files = [top / _STARTS for top in broker.log_dirs if (top / _STARTS).exists()]
    return {line for file in files for line in file.read_text().splitlines() if line.startswith(f"{topic} ")}


def fail_a_start(broker: Broker) -> None:
    """Start a broker whose registration times out after a few seconds, because no controller runs."""
    before, broker.properties = broker.properties, {**broker.properties, **_FEW_SECONDS}
    assert broker.try_start() is not None
    broker.properties = before


@pytest.mark.parametrize("version", releases_of("gate"))
def test_a30_a_checkpoint_file_that_a_failed_start_emptied_is_noticed_at_the_next_one(
    version: str, make_rig: Callable[[str], Rig], tmp_path: Path
) -> None:
    """The records that were deleted are served again, unless their log start is put back."""
    with make_rig(version) as rig:
        controller = rig.add_broker(log_dirs=1, properties=_PROPERTIES)
        broker = rig.add_broker(log_dirs=2, properties=_PROPERTIES)
        controller.start()
        broker.start()
        rig.client.create_on("pay", [[2]])
        await_in_sync(rig, "pay", [2])
        rig.client.produce_rich("pay", records=100)
        assert rig.client.trim("pay", 0, _TRIMMED) == _TRIMMED
        await_true("the log start is written", lambda: log_starts(broker, "pay") == {f"pay 0 {_TRIMMED}"})
        configuration = broker.write_configuration()
        assert ctl("init", "--server-properties", configuration, "--apply").status == Exit.DONE
        config = tmp_path / "b2.yaml"
        config.write_text(f"server.properties: {configuration}\nstate.dir: state\nsocket: s.sock\n")
        stop(broker)
        for is_restored in (True, False):
            stop(controller)
            assert log_starts(broker, "pay") == {f"pay 0 {_TRIMMED}"}
            assert gate(config) == Passed(Exit.DONE, "")
            for _ in range(2 if is_restored else 1):  # As a unit that is started again and again.
                fail_a_start(broker)
                assert log_starts(broker, "pay") == set()
                noticed = gate(config)
                assert noticed.status == Exit.DONE
                assert "checkpoint-log-starts-lost" in slugs(noticed)
                assert f"pay-0 at {_TRIMMED}" in noticed.err
            if is_restored:
                restored = gate(config, "--log-starts", "restore")
                assert (restored.status, "checkpoint-log-starts-lost" in slugs(restored)) == (Exit.DONE, False), (
                    restored
                )
                assert log_starts(broker, "pay") == {f"pay 0 {_TRIMMED}"}
            controller.start()
            start(broker)
            await_in_sync(rig, "pay", [2])
            assert rig.client.digest("pay").begin == (_TRIMMED if is_restored else 0)
            stop(broker)
            # What it has written anew is lost no more.
            left = set() if is_restored else {"checkpoint-log-starts-lost"}
            later = gate(config)
            assert (later.status, set(slugs(later))) == (Exit.DONE, left), later
