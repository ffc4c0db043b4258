"""What a purge asks before it truncates a file, and how long it waits after a step."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from logdir.disk.kernel.host import HostDisk
from logdir.disk.kernel.in_use import in_use
from logdir.disk.replica.rate_limiter import RateLimiter


def test_a_file_is_in_use_while_it_is_open_or_mapped(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"data")
    with HostDisk().open_top(str(tmp_path)) as top:
        assert not in_use(top, "f")
        for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
            descriptor = os.open(tmp_path / "f", flags)
            assert in_use(top, "f")
            os.close(descriptor)
        with (tmp_path / "f").open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 4, prot=mmap.PROT_READ)
        assert in_use(top, "f")
        mapped.close()
        assert not in_use(top, "f")
        assert in_use(top, "none")
        (tmp_path / "d").mkdir()
        assert in_use(top, "d")
    assert (tmp_path / "f").read_bytes() == b"data"


class Time:
    def __init__(self) -> None:
        self.ms = 1000.0

    def now(self) -> int:
        return int(self.ms)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.ms += max(seconds * 1000, 1)


def test_bytes_and_files_take_their_time_and_none_is_saved_up() -> None:
    time = Time()
    pace = RateLimiter(1 << 20, 10, clock_ms=time.now, sleep=time.sleep)
    pace(4 << 20, 0)
    assert 5000 <= time.ms <= 5010
    pace(0, 5)
    assert 5500 <= time.ms <= 5520
    time.ms += 60_000
    before = time.ms
    pace(1 << 20, 1)
    assert 1000 <= time.ms - before <= 1010


def test_a_purge_that_is_asked_nothing_else_takes_no_more_than_256_mib_and_500_files_a_second() -> None:
    time = Time()
    pace = RateLimiter(clock_ms=time.now, sleep=time.sleep)
    pace(512 << 20, 1)
    assert 3000 <= time.ms <= 3010
    pace(1, 1000)
    assert 5000 <= time.ms <= 5020


def test_without_a_limit_nothing_waits() -> None:
    time = Time()
    pace = RateLimiter(0, 0, clock_ms=time.now, sleep=time.sleep)
    pace(1 << 40, 1000)
    assert (time.ms, pace.at_once) == (1000, 2)
    assert [RateLimiter(*limits).at_once for limits in ((1, 0), (0, 1), (1, 1))] == [1, 1, 1]
