"""One disk of a broker is replaced beside a running daemon: unmounted, made anew, mounted, while the others go on.

Spec: design §6 ``disk release``; law 6.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from logdir.daemon.state import LogDirState
from tests.builders import log_dir, partition
from tests.hung.rig import Broker
from tests.hung.test_daemon import captured_on, daemon_of, delete, problem_of, state_of
from tests.kernel.images import Images, Mounted
from tests.logdir.daemon.rig import until
from tests.tools.ctl import ctl
from tools.cli.arguments import Exit

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]


def test_a_disk_is_unmounted_made_again_mounted_and_taken_back_while_the_others_capture(
    images: Images, tmp_path: Path
) -> None:
    old = images.mount(images.make("ext4", 32), "ext4")
    broker = Broker(tmp_path, old.path)
    one, two, three = broker.disks
    daemon = daemon_of(broker)
    new: Mounted | None = None
    try:
        with daemon.running():
            assert [state_of(daemon, path) for path in broker.disks] == [LogDirState.ONLINE] * 3
            with pytest.raises(OSError, match="busy"):
                busy(old)
            said = ctl("disk", "release", two, "--config", daemon.config, "--apply")
            assert (said.status, said.err) == (Exit.DONE, ""), said
            old.unmount()
            delete(broker, 0)
            until("another disk captures", lambda: captured_on(daemon, one))
            assert state_of(daemon, two) is LogDirState.OFFLINE
            assert problem_of(daemon, two).startswith("log-dir-released: ")
            new = Mounted(images.make("ext4", 32), old.path, "ext4")
            log_dir(two, directory="AAAAAAAAAAAAAAAAAAAABQ")
            made = ctl("init", "--log-dirs", two, "--apply")
            assert made.status == Exit.DONE, made
            assert state_of(daemon, two) is LogDirState.OFFLINE
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGHUP)
            until("the disk is taken back", lambda: state_of(daemon, two) is LogDirState.ONLINE)
            partition(two / "pay-1", segments={0: 100})
            delete(broker, 1)
            delete(broker, 2)
            until("all are captured", lambda: captured_on(daemon, two) and captured_on(daemon, three))
            assert daemon.stop() == 0
    finally:
        if new is not None:
            new.unmount()


def busy(mounted: Mounted) -> None:
    """Try to unmount a disk that is in use, and leave it mounted. Raises ``OSError``."""
    import subprocess

    done = subprocess.run(["umount", str(mounted.path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr)
