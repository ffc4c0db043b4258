"""Whether the kernel calls the wall clock right: asked by us, and by a program of somebody else's."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from logdir.disk.kernel.kernel_clock import is_synchronised, says_synchronised


def test_it_is_what_another_program_reads() -> None:
    timedatectl, adjtimex = shutil.which("timedatectl"), shutil.which("adjtimex")
    if adjtimex:
        said = subprocess.run([adjtimex, "--print"], capture_output=True, text=True).stdout
        status = next(int(line.split()[1]) for line in said.splitlines() if line.split()[0] == "status:")
        assert is_synchronised() is not bool(status & 0x40)
        return
    if timedatectl:
        command = [timedatectl, "show", "--property=NTPSynchronized", "--value"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip():
            assert is_synchronised() is (done.stdout.strip() == "yes")
            return
    pytest.skip("needs adjtimex, or a running systemd-timedated")


@pytest.mark.parametrize(
    ("state", "status", "expected"),
    [(0, 0, True), (0, 1, True), (1, 0x10, True), (5, 0, False), (5, 0x40, False), (0, 0x40, False), (-1, 0, False)],
    ids=["ok", "pll", "leap second to come", "error", "both", "unsync", "not allowed"],
)
def test_only_a_clock_without_error_is_synchronised(state: int, status: int, expected: bool) -> None:
    assert says_synchronised(state, status) is expected


def test_asking_twice_says_the_same() -> None:
    assert is_synchronised() is is_synchronised()
