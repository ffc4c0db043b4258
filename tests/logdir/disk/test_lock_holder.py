"""Who holds a lock is told apart by the disk, too: disks that were formatted alike have equal inode numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.ctl import HOME

_HOLDER = Path(__file__).with_name("lock_holder.py")
_IN_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
_SCRIPT = f"""
import os, subprocess, sys
from logdir.disk.lock_holder import holder_pid

children = []
for disk in ("a", "b"):
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", disk, disk], check=True)
    command = [sys.executable, "-S", {str(_HOLDER)!r}, "ofd", disk + "/.lock"]
    children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    children[-1].stdout.readline()
inodes = set()
for child, disk in zip(children, ("a", "b")):
    file = os.open(disk + "/.lock", os.O_RDWR)
    inodes.add(os.fstat(file).st_ino)
    print(holder_pid(file) == child.pid)
print(len(inodes))
for child in children:
    child.communicate()
"""


def test_a32_two_disks_whose_locks_have_equal_inode_numbers_are_told_apart(tmp_path: Path) -> None:
    if subprocess.run([*_IN_NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs user namespaces: sysctl user.max_user_namespaces")
    done = subprocess.run(
        [*_IN_NAMESPACE, sys.executable, "-c", _SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # Each is held by its own process, and the inodes are one number.
    assert done.stdout.split() == ["True", "True", "1"]
