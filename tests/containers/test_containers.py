"""Containers on shared directories: what holds between them, and what does not.

Spec: design §5; attacks A5, A6, A22, A32; docs/containers.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from logdir.daemon.report.status import StatusResult
from logdir.daemon.socket import client
from logdir.service.report.exit_status import AnsweredError
from tests.containers import rig
from tests.logdir.daemon.rig import CODE as DAEMON
from tests.logdir.daemon.rig import Daemon, until
from tests.tools.ctl import HOME
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
HOLDER = HOME / "tests" / "logdir" / "disk" / "lock_holder.py"
OTHER: Final = 4711
"""A user whom no container here has."""
BROKER, INSIDE = "tests.systemd.broker", "tests.containers.inside"


@pytest.fixture
def broker(tmp_path: Path) -> Daemon:
    """Make two log dirs, their work roots and a configuration; nothing runs."""
    if reason := rig.lacking():
        pytest.skip(reason)
    return Daemon(tmp_path)


def named(one: Daemon) -> tuple[str, Path]:
    return "--server-properties", one.server_properties


@contextmanager
def sidecar(one: Daemon) -> Iterator[None]:
    """Let logdird run in a container of its own, where only its volumes can be written."""
    words = (sys.executable, "-c", DAEMON, "--config", one.config)
    with rig.running(*words, log=one.folder / "log", volumes=(one.folder,), is_read_only=True) as process:
        until("logdird runs", lambda: process.poll() is not None or state(one) == "RUNNING")
        assert process.poll() is None, one.log
        yield


def status(one: Daemon) -> StatusResult:
    """Ask the daemon from outside of its container: root may."""
    return client.status(one.socket)


def state(one: Daemon) -> str:
    try:
        return status(one).state
    except (client.DaemonUnreachableError, AnsweredError):
        return "-"


@contextmanager
def stock_broker(one: Daemon) -> Iterator[None]:
    """Let what stands in for a broker run in a container of its own, with its locks."""
    seen = one.folder / "seen.json"
    seen.unlink(missing_ok=True)
    with rig.running(*rig.module(BROKER, seen, *one.log_dirs), log=one.folder / "broker-log") as process:
        until("the broker has its locks", lambda: seen.exists() or process.poll() is not None)
        assert process.poll() is None, (one.folder / "broker-log").read_text()
        yield


def test_a32_the_lock_of_a_broker_in_another_container_holds_and_its_holder_is_outside(broker: Daemon) -> None:
    broker.make("pay")
    words = ("stage", "pay", "--even-if-unknown", "--even-over-limit", *named(broker), "--apply")
    with stock_broker(broker):
        said = rig.ctl(*words)
        assert (said.returncode, "lock-held" in said.stderr) == (Exit.BROKER_RUNS, True), said.stderr
        assert "a process outside this container" in said.stderr
        assert broker.staged() == []
    # With the container the lock is gone.
    said = rig.ctl(*words)
    assert (said.returncode, len(broker.staged())) == (Exit.DONE, 1), said.stderr


def test_a32_two_of_ours_in_two_containers_never_work_in_one_work_root(broker: Daemon) -> None:
    log_dirs = ",".join(map(str, broker.log_dirs))
    with sidecar(broker):
        said = rig.ctl("uninstall", "--log-dirs", log_dirs, "--apply")
        assert (said.returncode, "work-root-owned" in said.stderr) == (Exit.REFUSED, True), said.stderr
    said = rig.ctl("uninstall", "--log-dirs", log_dirs, "--apply")
    assert said.returncode == Exit.DONE, said.stderr


@pytest.mark.parametrize("kind", ["posix", "ofd"])
def test_a32_a_lock_of_either_kind_is_seen_in_another_container(broker: Daemon, kind: str) -> None:
    path = broker.log_dirs[0] / ".lock"
    with rig.running(sys.executable, HOLDER, kind, path, log=broker.folder / "holder-log") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert rig.run(sys.executable, HOLDER, "posix", path).returncode != 0
        assert rig.run(sys.executable, HOLDER, "ofd", path).returncode != 0


def test_a17_a_lease_sees_a_file_that_is_open_in_another_container(broker: Daemon) -> None:
    replica = broker.make("pay")
    name = "00000000000000000000.log"
    asked = rig.module(INSIDE, "in-use", replica, name)
    with rig.running(*rig.module(INSIDE, "hold", replica, name), log=broker.folder / "hold-log") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        done = rig.run(*asked)
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    done = rig.run(*asked)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_a_file_of_one_container_gets_a_second_name_by_another(broker: Daemon) -> None:
    replica = broker.make("pay")
    to = Path(f"{broker.log_dirs[0]}.logdird", "linked")
    done = rig.run(*rig.module(INSIDE, "link", replica, "00000000000000000000.log", to))
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    to.unlink()


def test_what_another_user_wrote_is_neither_linked_nor_leased_nor_handed_over(broker: Daemon) -> None:
    """As between two pods whose users are not the same outside: it is refused by name."""
    replica = broker.make("pay")
    name = "00000000000000000000.log"
    for top in (*broker.log_dirs, *(Path(f"{log_dir}.logdird") for log_dir in broker.log_dirs)):
        subprocess.run(["chown", "-R", f"{OTHER}:{OTHER}", top], check=True)
    asked = ("link", replica, name, broker.folder / "linked"), ("in-use", replica, name)
    for words in asked:
        done = rig.run(*rig.module(INSIDE, *words))
        assert done.returncode != 0
        assert "[Errno 1] Operation not permitted" in done.stderr or "[Errno 13] Permission denied" in done.stderr
    assert not (broker.folder / "linked").exists()
    said = rig.ctl("handover", "--quiet", *named(broker))
    assert (said.returncode, "no-permission: " in said.stderr) == (Exit.REFUSED, True), said.stderr


def test_a22_the_recipe_init_container_then_broker_and_sidecar(broker: Daemon) -> None:
    gate = ("handover", "--quiet", *named(broker))
    said = rig.ctl(*gate)
    assert (said.returncode, said.stdout, said.stderr) == (Exit.DONE, "", "")
    with sidecar(broker):
        with stock_broker(broker):
            seen = json.loads((broker.folder / "seen.json").read_text())
            assert seen["handed_over"] == [True, True]
            gone = broker.delete(broker.make("pay"))
            until("it is captured", lambda: status(broker).captured == 1)
            broker.remove(gone)
            assert len(broker.staged()) == 1
        # The pod starts its broker again, with the sidecar still there: the init container asks it, by its socket.
        said = rig.ctl("handover", "--quiet", "--config", broker.config)
        assert (said.returncode, said.stderr) == (Exit.DONE, ""), broker.log
        assert [one.detail for one in status(broker).events if one.event == "request" and "handover" in one.detail]


def test_a22_an_init_container_keeps_a_broker_from_its_start_where_a_disk_is_missing(broker: Daemon) -> None:
    broker.log_dirs[1].rename(broker.folder / "away")
    said = rig.ctl("handover", "--quiet", *named(broker))
    # Without a daemon the command itself could not open it.
    assert said.returncode in (Exit.REFUSED, Exit.PROBLEMS), said.stderr
    assert str(broker.log_dirs[1]) in said.stderr
    assert "LOGDIRD_SKIP_GATE=1" in said.stderr


def test_a05_a_volume_mounted_at_the_log_dir_has_its_work_root_within(tmp_path: Path, broker: Daemon) -> None:
    one = broker.log_dirs[0]
    log_dirs = ",".join(map(str, broker.log_dirs))
    assert rig.ctl("uninstall", "--log-dirs", log_dirs, "--apply").returncode == Exit.DONE
    said = rig.ctl("init", "--log-dirs", one, "--json", volumes=(one,))
    assert [item["kind"] for item in json.loads(said.stdout)["result"]["items"]] == ["in-place"], said.stderr


def test_a06_log_dir_and_work_root_in_two_volumes_are_refused_by_name(broker: Daemon) -> None:
    one = broker.log_dirs[0]
    volumes = (one, Path(f"{one}.logdird"))
    words = (sys.executable, "-c", DAEMON, "--config", broker.config, "--check-config")
    assert rig.run(*words).returncode == Exit.DONE
    said = rig.run(*words, volumes=volumes)
    assert (said.returncode, "mounts-differ" in said.stderr) == (Exit.REFUSED, True), said.stderr
