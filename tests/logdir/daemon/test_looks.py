"""A time in which nobody looked for deletions is counted and named, whether a daemon ran meanwhile or not."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from logdir import clock
from logdir.daemon.looks import Looks, longest_ms
from logdir.daemon.report.history import History
from tests.logdir.daemon.rig import daemon, until

MINUTE_MS = 60_000
BOOT, OTHER = "f251f93c-c03a-428b-afb6-8d376a2dcf1c", "00000000-0000-0000-0000-000000000000"


class Rig:
    """The clocks, and daemons one after the other on one state directory."""

    def __init__(self, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state_dir, self.boot, self.boottime_ms, self.wall_ms = state_dir, BOOT, 1_000_000, 1_700_000_000_000
        monkeypatch.setattr(clock, "boot_id", lambda: self.boot)
        monkeypatch.setattr(clock, "boottime_ms", lambda: self.boottime_ms)
        monkeypatch.setattr(clock, "now_ms", lambda: self.wall_ms)
        self.restart()

    def restart(self) -> None:
        self.looks = Looks(str(self.state_dir), self.write)

    def write(self, text: str) -> None:
        (self.state_dir / "last-look").write_text(text)

    def look(self, after_ms: int = 0, *, delay_ms: int = MINUTE_MS, is_running: bool = True) -> bool:
        """Look after a time; return whether that is too late."""
        self.boottime_ms += after_ms
        self.wall_ms += after_ms
        return self.looks.note("/etc/kafka/server.properties", delay_ms, is_running=is_running) is not None


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(tmp_path, monkeypatch)


@pytest.mark.parametrize(("delay_ms", "longest"), [(60_000, 50_000), (20_000, 10_000), (5_000, 2_500), (0, 0)])
def test_a_look_comes_ten_seconds_before_the_broker_removes_anything(delay_ms: int, longest: int) -> None:
    assert longest_ms(delay_ms) == longest


@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_is_longer_is_counted_and_named(rig: Rig, is_restarted: bool) -> None:
    assert not rig.look()
    assert not rig.look(50_000)
    if is_restarted:
        rig.restart()
    assert rig.look(50_001)
    assert rig.looks.gaps == 1
    problem = rig.looks.problem
    assert problem is not None
    assert problem.line() == (
        "look-too-late: /etc/kafka/server.properties: expected a look for deletions every 50 s: the broker keeps them "
        "60 s, found none from 2023-11-14T22:14:10Z to 2023-11-14T22:15:00Z (UTC); if the broker ran, what it deleted "
        "then may be gone; the daemon has to run while the broker does"
    )
    assert not rig.look(1)
    assert rig.look(5 * MINUTE_MS)
    assert rig.looks.gaps == 2


def test_the_first_daemon_of_a_host_has_missed_nothing(rig: Rig) -> None:
    assert not rig.look(100 * MINUTE_MS)


@pytest.mark.parametrize("text", ["", "x", f"{BOOT} 1", f"{BOOT} a b", "\udcff", "x" * 5000])
def test_a_file_that_says_nothing_counts_as_none(rig: Rig, text: str) -> None:
    (rig.state_dir / "last-look").write_bytes(text.encode("utf-8", "surrogateescape"))
    rig.restart()
    assert not rig.look(100 * MINUTE_MS)


@pytest.mark.parametrize(
    ("uptime_ms", "is_running", "is_late"), [(50_000, True, False), (50_001, True, True), (50_001, False, False)]
)
def test_over_a_reboot_only_a_broker_that_was_started_first_may_have_deleted_anything(
    rig: Rig, uptime_ms: int, is_running: bool, is_late: bool
) -> None:
    rig.look()
    rig.boot, rig.boottime_ms = OTHER, 0
    rig.restart()
    assert rig.look(uptime_ms, is_running=is_running) is is_late


def test_the_history_keeps_the_last_look(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    for number in range(100):
        history.keep_look(f"look {number}\n")
    assert history.close(10)
    assert (tmp_path / "last-look").read_text() == "look 99\n"
    assert [path.name for path in tmp_path.iterdir()] == ["last-look"]


def test_a_daemon_that_was_away_too_long_says_so(tmp_path: Path) -> None:
    with daemon(tmp_path, delete_delay_ms=4000, more="sweep.interval.ms: 500\n") as one:
        until("it has looked", (tmp_path / "state" / "last-look").exists)
        assert one.status().gaps == 0
        one.stop(signal.SIGKILL)
        path = tmp_path / "state" / "last-look"
        boot_id, boottime_ms, wall_ms = path.read_text().split()
        path.write_text(f"{boot_id} {int(boottime_ms) - MINUTE_MS} {int(wall_ms) - MINUTE_MS}\n")
        one.start()
        until("it says so", lambda: one.status().gaps == 1)
        assert "look-too-late" in {problem.slug for problem in one.status().waiting}
        assert [event["event"] for event in one.events()].count("look-too-late") == 1
        assert "look.too-late" in one.log
