"""The clocks: one boot has one clock, whatever namespace asks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from logdir import clock
from logdir.disk.kernel import kernel_clock

ASK = "from logdir import clock; print(clock.boottime_ms(), clock.boot_id())"


def test_boot_time_goes_on_and_is_that_of_the_host() -> None:
    before = clock.boottime_ms()
    seconds = float(Path("/proc/uptime").read_text().split()[0])
    assert before <= clock.boottime_ms()
    assert abs(before / 1000 - seconds) < 60


def test_the_boot_id_is_a_uuid_and_stays() -> None:
    assert clock.boot_id() == clock.boot_id()
    assert len(clock.boot_id()) == 36


@pytest.mark.parametrize(
    ("text", "shift_ms"),
    [
        ("monotonic  5 0\nboottime  100 500000000\n", 100_500),
        ("monotonic           0         0\nboottime         -10         0\n", -10_000),
        ("", 0),
        (None, 0),
    ],
    ids=["ahead", "behind", "empty", "an old kernel"],
)
def test_the_shift_of_a_time_namespace_is_taken_off(tmp_path: Path, text: str | None, shift_ms: int) -> None:
    path = tmp_path / "timens_offsets"
    if text is not None:
        path.write_text(text)
    told = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    assert abs(clock.boottime_ms(str(path)) - (told - shift_ms)) < 5_000


@pytest.mark.root
def test_a_container_with_its_own_boot_time_tells_the_same() -> None:
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None or not Path("/proc/self/ns/time").exists():
        pytest.skip("needs root, util-linux and time namespaces")
    command = [unshare, "--time", "--fork", "--boottime", "100000", sys.executable, "-c", ASK]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs time namespaces: {done.stderr.strip()}")
    boottime_ms, boot_id = done.stdout.split()
    assert abs(int(boottime_ms) - clock.boottime_ms()) < 60_000
    assert boot_id == clock.boot_id()


def test_an_instant_is_what_the_clocks_say() -> None:
    now = kernel_clock.read_instant()
    assert now.boot_id == clock.boot_id()
    assert 0 <= clock.boottime_ms() - now.boottime_ms < 60_000
    assert abs(clock.now_ms() - now.wall_ms) < 60_000
    assert now.is_synchronised is kernel_clock.is_synchronised()


def test_the_wall_clock_stays_as_far_ahead_as_it_is_while_nobody_sets_it() -> None:
    before, wall_ms, boottime_ms = clock.wall_ahead_ms(), clock.now_ms(), clock.boottime_ms("/no/such/file")
    assert abs(before - (wall_ms - boottime_ms)) < 60_000
