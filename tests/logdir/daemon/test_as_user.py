"""The user as whom the tests start a daemon: without the rights of root, and owner of what root's tests make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.logdir.daemon.as_user import Rights, as_user, rights_of
from tests.tools.ctl import HOME

ASK = """
import os
from tests.logdir.daemon.as_user import as_user, rights_of
found = rights_of(os.getpid())
print(as_user("program"), found.are_none, set(found.users) == {os.geteuid()})
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose rights are given up")


def run(*command: str) -> str:
    return subprocess.run(as_user(*command), cwd=HOME, capture_output=True, text=True, check=True).stdout.strip()


def test_a_program_has_no_capability_and_is_not_root() -> None:
    with subprocess.Popen(as_user("true")) as started:
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)  # It has ended, and its status can still be read.
        found = rights_of(started.pid)
    assert found.are_none, found


def test_for_a_user_who_is_not_root_nothing_changes() -> None:
    if run("id", "-u") == "0":
        pytest.skip("needs a user namespace, or a run by a user who is not root")
    assert run(sys.executable, "-c", ASK) == "['program'] True True"


def test_what_the_tests_make_belongs_to_that_user(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run("stat", "-c", "%u", str(tmp_path / "file")) == run("id", "-u")


@needs_root
def test_that_user_may_not_do_what_root_may(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("read by root")
    secret.chmod(0)
    assert secret.read_text() == "read by root"
    with pytest.raises(subprocess.CalledProcessError):
        run("cat", str(secret))
    with pytest.raises(subprocess.CalledProcessError):
        run("chown", "4242", str(secret))


@needs_root
def test_the_rights_of_root_are_seen() -> None:
    found = rights_of(os.getpid())
    assert (found.users, found.capabilities > 0, found.are_none) == ((0,) * 4, True, False)


@pytest.mark.parametrize(
    ("found", "are_none"),
    [
        (Rights((1000,) * 4, 0), True),
        (Rights((1000,) * 4, 1 << 1), False),
        (Rights((0,) * 4, 1 << 1), False),
    ],
    ids=["a user", "a user with a capability", "root"],
)
def test_a_capability_is_a_right(found: Rights, *, are_none: bool) -> None:
    assert found.are_none is are_none


def test_no_test_starts_a_daemon_with_other_rights() -> None:
    starts = "entry import logdird" + ";", "DaemonProcess" + "("
    tests = HOME / "tests"
    found = {
        str(path.relative_to(tests))
        for path in tests.rglob("*.py")
        if any(start in path.read_text("utf-8") for start in starts)
    }
    found.remove("logdir/daemon/test_reload.py")  # Its parts are made there, and none is started.
    assert found == {"logdir/daemon/rig.py", "logdir/daemon/test_process.py"}
    assert all("as_user(sys.executable" in (tests / name).read_text("utf-8") for name in found)
    stories = {
        str(path.relative_to(tests)) for path in tests.rglob("*.py") if "undo." + "run(" in path.read_text("utf-8")
    }
    # The demonstration starts a daemon, too. Tests of brokers are as a whole run without rights: tests.kafka.no_rights.
    assert stories == {"test_demo.py", "kafka/test_demo.py"}
    assert "as_user(sys.executable" in (tests / "test_demo.py").read_text("utf-8")
