"""The process of a daemon: it ends by an error as soon as one of its threads has ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.logdir.daemon.as_user import as_user
from tests.logdir.daemon.rig import daemon
from tests.tools.ctl import HOME

CODE = """
import sys
from logdir.daemon.config import read_config
from logdir.daemon.process import DaemonProcess
from logdir.errors import LogDirError
from scheduler.timer import Timer

class Ended(Timer):
    def is_alive(self):
        return False

try:
    DaemonProcess(read_config(sys.argv[1]), version="0", make_timer=Ended).run()
except LogDirError as error:
    print(error.problem().line())
"""


@pytest.mark.slow
def test_a_daemon_whose_timer_has_ended_ends_so_that_systemd_starts_it_again(tmp_path: Path) -> None:
    """Without its timer it would neither sweep nor purge, and nothing would show that."""
    with daemon(tmp_path, is_started=False) as one:
        command = as_user(sys.executable, "-c", CODE, str(one.config))
        done = subprocess.run(command, cwd=HOME, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    line = "internal-error: logdird: expected threads that work, found that the thread timer has ended"
    assert done.stdout.startswith(line)
