"""The thread that keeps the watch processes: it waits without waking up, and hears what is asked of it."""

from __future__ import annotations

import errno
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logdir import clock
from logdir.daemon import watches as watching
from logdir.daemon.report.status import LogDirStatus
from logdir.daemon.state import LogDirState
from logdir.daemon.watches import Watches, shown
from logdir.worker.watch import FAILED, READY, Watch
from tests.logdir.daemon.rig import until
from tests.tools.ctl import HOME


def test_a_log_dir_that_is_left_loses_its_watch_and_gets_it_back(tmp_path: Path) -> None:
    tops = [tmp_path / "d1", tmp_path / "d2"]
    for top in tops:
        top.mkdir()
    hints: list[int] = []
    watches = Watches([str(top) for top in tops], lambda: hints.append(1))
    watches.start()
    try:
        until("both are watched", lambda: len(hints) >= 2)
        watches.leave([str(tops[0])])
        heard = len(hints)
        (tops[1] / "pay-0.0123456789abcdef0123456789abcdef-delete").mkdir()
        until("the other is watched", lambda: len(hints) > heard)
        heard = len(hints)
        watches.leave(())
        until("the first is watched again", lambda: len(hints) > heard)
    finally:
        watches.stop()
    started_ms = clock.monotonic_ms()
    watches.leave([str(tops[0])])  # Of one that has ended nothing is asked.
    assert clock.monotonic_ms() - started_ms < 2000  # It would wait so long for a watch that does not end.
    watches.stop()


def test_an_error_that_no_rule_foresees_does_not_end_the_hints(tmp_path: Path) -> None:
    errors, hints = [MemoryError()], []

    def hint() -> None:
        if errors:
            raise errors.pop()
        hints.append(1)

    watches = Watches([str(tmp_path)], hint)
    watches.start()
    try:
        until("the first hint has failed", lambda: not errors)
        (tmp_path / "pay-0.0123456789abcdef0123456789abcdef-delete").mkdir()
        until("the next one comes", lambda: bool(hints))
    finally:
        watches.stop()


class NoProcess(Watch):
    """A watch without a process, which has said something."""

    def __init__(self, log_dir: str, said: bytes) -> None:
        ours, self.theirs = socket.socketpair()
        super().__init__(log_dir, 0, ours)
        self.theirs.sendall(said)

    def close(self) -> None:
        self.connection.close()
        self.theirs.close()


def _no_process(log_dir: str) -> Watch:
    raise OSError(errno.EAGAIN, "Resource temporarily unavailable")


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        (_no_process, "Resource temporarily unavailable"),
        (
            lambda log_dir: NoProcess(log_dir, FAILED + b"inotify instance limit reached"),
            "inotify instance limit reached",
        ),
    ],
    ids=["no process", "no instance"],
)
def test_a_log_dir_without_a_watch_is_named_until_it_has_one(
    fails: Callable[[str], Watch], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_AGAIN_MS", 20)
    monkeypatch.setattr(watching, "start_watch", fails)
    hints: list[int] = []
    watches = Watches(["/d1", "/d2"], lambda: hints.append(1))
    watches.start()
    try:
        until("both have none", lambda: watches.failures() == {"/d1": why, "/d2": why})
        assert hints == []
        monkeypatch.setattr(watching, "start_watch", lambda log_dir: NoProcess(log_dir, READY))
        until("both are watched", lambda: not watches.failures())
        until("what came before is looked for", lambda: len(hints) >= 2)
    finally:
        watches.stop()


def test_a_log_dir_that_is_let_go_is_not_called_unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "start_watch", _no_process)
    watches = Watches(["/d1", "/d2"], lambda: None)
    watches.start()
    try:
        until("both have none", lambda: len(watches.failures()) == 2)
        watches.leave(["/d1"])
        until("one was let go", lambda: list(watches.failures()) == ["/d2"])
    finally:
        watches.stop()


@pytest.mark.parametrize("state", LogDirState)
def test_the_status_says_of_each_log_dir_whether_it_is_watched(state: LogDirState) -> None:
    log_dirs = tuple(LogDirStatus(log_dir=path, state=state) for path in ("/d1", "/d2"))
    found, problems = shown(log_dirs, {"/d2": "no instance is left", "/elsewhere": "it ended"}, 7_500)
    assert [one.is_watched for one in found] == [True, False]
    if state in (LogDirState.OFFLINE, LogDirState.SUSPECT):  # That alone is what is wrong with it.
        assert problems == ()
        return
    (problem,) = problems
    assert problem.line().startswith(
        "log-dir-not-watched: /d2: expected a watch that shows deletions at once, found no instance is left; "
        "deletions are found by the sweep alone, every 7.5 s at the latest; "
    )
    assert shown(log_dirs, {}, 7_500) == (log_dirs, ())


CODE = """
import sys, time
from pathlib import Path
from logdir.daemon import watches

def until(what, found):
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.02)

watches._AGAIN_MS = 200
hints = []
one = watches.Watches([sys.argv[1]], lambda: hints.append(1))
one.start()
until("no watch", lambda: one.failures())
print(*one.failures().values(), len(hints))
Path("/proc/sys/user/max_inotify_instances").write_text("16")
until("a watch", lambda: not one.failures() and hints)
before = len(hints)
Path(sys.argv[1], "pay-0.0123456789abcdef0123456789abcdef-delete").mkdir()
until("a hint", lambda: len(hints) > before)
print("watched")
one.stop()
"""


def test_where_the_kernel_has_no_inotify_instance_there_is_no_watch_until_it_has_one(tmp_path: Path) -> None:
    words = ("unshare", "--user", "--map-root-user", "sh", "-c")
    limited = "echo 0 > /proc/sys/user/max_inotify_instances"
    if shutil.which("unshare") is None or subprocess.run([*words, limited], capture_output=True).returncode != 0:
        pytest.skip("needs user namespaces with a limit of their own: kernel.unprivileged_userns_clone=1")
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [*words, f'{limited}; exec "$@"', "sh", sys.executable, "-c", CODE, str(tmp_path)],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert (first.split()[-1], last) == ("0", "watched")
    assert "inotify" in first or "Too many open files" in first, first
