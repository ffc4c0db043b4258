"""A time in which nobody looked for deletions is counted and named, whether a daemon ran meanwhile or not, for good."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from logdir import clock
from logdir.daemon.looks import Looks, longest_ms
from logdir.daemon.report.history import History
from logdir.errors import Problem
from logdir.formats.own import own_json
from logdir.text import utc
from tests.logdir.daemon.rig import daemon, until
from tests.tools.ctl import ctl

MINUTE_MS = 60_000
BOOT, OTHER = "f251f93c-c03a-428b-afb6-8d376a2dcf1c", "00000000-0000-0000-0000-000000000000"


class Rig:
    """The clocks, and daemons one after the other on one state directory."""

    def __init__(self, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state_dir, self.boot, self.boottime_ms, self.wall_ms = state_dir, BOOT, 1_000_000, 1_700_000_000_000
        self.is_killed = False
        """Whether the daemon is killed between the files that it writes after a look."""
        monkeypatch.setattr(clock, "boot_id", lambda: self.boot)
        monkeypatch.setattr(clock, "boottime_ms", lambda: self.boottime_ms)
        monkeypatch.setattr(clock, "now_ms", lambda: self.wall_ms)
        self.restart()

    def restart(self) -> None:
        self.looks = Looks(str(self.state_dir), self.write)

    def write(self, look: str, gaps: bytes) -> None:
        if gaps:
            (self.state_dir / "gaps.json").write_bytes(gaps)
        if not self.is_killed:
            (self.state_dir / "last-look").write_text(look)

    def gaps(self) -> tuple[int, str, str, str]:
        """Return their number, since when they are counted, and beginning and end of the last."""
        count, since_ms, last = self.looks.gaps
        return (count, utc(since_ms), *(("", "") if last is None else (utc(last.from_ms), utc(last.to_ms))))

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
    assert rig.gaps() == (1, "2023-11-14T22:13:20Z", "2023-11-14T22:14:10Z", "2023-11-14T22:15:00Z")
    problem = rig.looks.late
    assert problem is not None
    assert problem.line() == (
        "look-too-late: /etc/kafka/server.properties: expected a look for deletions every 50 s: the broker keeps them "
        "60 s, found none from 2023-11-14T22:14:10Z to 2023-11-14T22:15:00Z (UTC); if the broker ran, what it deleted "
        "then may be gone; the daemon has to run while the broker does"
    )
    assert not rig.look(1)
    assert rig.look(5 * MINUTE_MS)
    assert rig.gaps() == (2, "2023-11-14T22:13:20Z", "2023-11-14T22:15:00Z", "2023-11-14T22:20:00Z")


def test_no_restart_forgets_a_gap(rig: Rig) -> None:
    rig.look()
    rig.restart()
    assert rig.gaps() == (0, "2023-11-14T22:13:20Z", "", "")
    for number, began in enumerate(("22:13:20", "22:18:20", "22:23:20"), 1):
        assert rig.look(5 * MINUTE_MS)
        rig.restart()
        found = rig.gaps()
        assert (found[:2], found[2][11:19]) == ((number, "2023-11-14T22:13:20Z"), began)
        assert rig.looks.late is None
    assert not rig.look(1)
    rig.boot, rig.boottime_ms = OTHER, 0
    rig.restart()
    rig.look(1)
    assert rig.gaps() == (3, "2023-11-14T22:13:20Z", "2023-11-14T22:23:20Z", "2023-11-14T22:28:20Z")


@pytest.mark.parametrize("is_rebooted", [False, True])
def test_a_gap_is_counted_once_although_the_daemon_is_killed_after_it_wrote_it_down(
    rig: Rig, is_rebooted: bool
) -> None:
    rig.look()
    if is_rebooted:
        rig.boot, rig.boottime_ms = OTHER, 0
        rig.restart()
    rig.is_killed = True
    assert rig.look(5 * MINUTE_MS)
    rig.is_killed = False
    rig.restart()
    assert rig.looks.gaps.total == 1
    assert rig.look(MINUTE_MS)
    assert rig.gaps() == (1, "2023-11-14T22:13:20Z", "2023-11-14T22:13:20Z", "2023-11-14T22:19:20Z")
    assert rig.look(5 * MINUTE_MS)
    assert rig.looks.gaps.total == 2


def test_on_a_host_that_counted_none_yet_the_count_begins_with_its_last_look(rig: Rig) -> None:
    rig.look()
    (rig.state_dir / "gaps.json").unlink()
    rig.wall_ms += 10 * MINUTE_MS
    rig.boottime_ms += 10 * MINUTE_MS
    rig.restart()
    assert rig.gaps()[:2] == (0, "2023-11-14T22:13:20Z")
    (rig.state_dir / "last-look").unlink()
    rig.restart()
    assert rig.gaps()[:2] == (0, "2023-11-14T22:23:20Z")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def _of_a_newer_release(path: Path) -> None:
    path.write_bytes(own_json.render("gaps", 2, {"total": 1}))


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGED = {
    "cut off": (_cut, "malformed-file: {}: expected one line that ends with LF"),
    "empty": (lambda path: path.write_bytes(b""), "malformed-file: {}: expected one line that ends with LF"),
    "garbage": (lambda path: path.write_bytes(bytes(range(256)) * 100), "malformed-file: {}: expected at most 4096"),
    "of a newer release": (_of_a_newer_release, "unsupported-version: {}: expected gaps version 1, found 2"),
    "a directory": (_directory, "io-error: {}: expected a file that can be read, found Is a directory"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_count_that_cannot_be_read_is_named_and_kept_aside(rig: Rig, name: str) -> None:
    damage, start = DAMAGED[name]
    path = rig.state_dir / "gaps.json"
    rig.look()
    rig.look(5 * MINUTE_MS)
    damage(path)
    was = path.read_bytes() if path.is_file() else None
    rig.restart()
    line = _line(rig.looks.unread)
    assert line.startswith(start.format(path)), line
    aside = rig.state_dir / "gaps.json.1700000300000"
    assert line.endswith(f"; gaps are counted anew from 2023-11-14T22:18:20Z on; what lay there is kept as {aside}")
    assert "\n" not in line
    assert (aside.read_bytes() if aside.is_file() else None) == was
    assert rig.gaps() == (0, "2023-11-14T22:18:20Z", "", "")
    assert rig.look(2 * MINUTE_MS)
    rig.restart()
    assert (rig.looks.unread, rig.gaps()[:2]) == (None, (1, "2023-11-14T22:18:20Z"))


def test_a_count_that_can_be_neither_read_nor_moved_is_never_replaced(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = rig.state_dir / "gaps.json"
    path.write_text("x")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", _no_permission)
        rig.restart()
    assert _line(rig.looks.unread).endswith(
        "; move it away (Permission denied), and start logdird again: until then a restart forgets the gaps it counts"
    )
    rig.look()
    assert rig.look(5 * MINUTE_MS)
    assert (rig.looks.gaps.total, path.read_text()) == (1, "x")


def _no_permission(path: Path, to: str) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _line(problem: Problem | None) -> str:
    assert problem is not None
    return problem.line()


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
        history.keep_look(f"look {number}\n", b"")
    assert history.close(10)
    assert (tmp_path / "last-look").read_text() == "look 99\n"
    assert [path.name for path in tmp_path.iterdir()] == ["last-look"]


def test_the_history_syncs_the_gaps_before_it_keeps_the_look_and_only_where_they_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        seen.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        sync(descriptor)

    def replaced(path: Path, to: Path) -> Path:
        seen.append(f"rename {path.name}")
        return replace(path, to)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    history = History(str(tmp_path))
    for number, gaps in enumerate((b"0", b"0", b"1")):
        history.keep_look(f"look {number}\n", gaps)
        until("it is kept", lambda: seen.count("rename last-look.tmp") == number + 1)  # noqa: B023 - called at once
    assert history.close(10)
    kept = ["sync gaps.json.tmp", "rename gaps.json.tmp", f"sync {tmp_path.name}", "rename last-look.tmp"]
    assert seen == [*kept, "rename last-look.tmp", *kept]
    assert ((tmp_path / "gaps.json").read_text(), (tmp_path / "last-look").read_text()) == ("1", "look 2\n")


def test_a_look_is_not_kept_where_the_gap_before_it_cannot_be(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    history.keep_look("look 1\n", b"0")
    until("it is kept", (tmp_path / "last-look").exists)
    (tmp_path / "gaps.json").unlink()
    (tmp_path / "gaps.json").mkdir()
    history.keep_look("look 2\n", b"1")
    history.add("an event")
    until("the event is written", (tmp_path / "history.jsonl").exists)
    assert (tmp_path / "last-look").read_text() == "look 1\n"
    (tmp_path / "gaps.json").rmdir()
    history.keep_look("look 3\n", b"1")
    assert history.close(10)
    assert ((tmp_path / "gaps.json").read_text(), (tmp_path / "last-look").read_text()) == ("1", "look 3\n")


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
        counted = one.status()
        assert counted.last_gap_from_ms == int(wall_ms) - MINUTE_MS
        # Each restart is far shorter than this delay allows, and forgets no gap.
        one.server_properties.write_text(one.server_properties.read_text().replace("=4000", "=600000"))
        one.stop(signal.SIGKILL)
        one.start()
        again = one.status()
        assert "look-too-late" not in {problem.slug for problem in again.waiting}
        assert (again.gaps, again.gaps_since_ms) == (1, counted.gaps_since_ms)
        assert (again.last_gap_from_ms, again.last_gap_to_ms) == (counted.last_gap_from_ms, counted.last_gap_to_ms)
        said = ctl("status", "--config", one.config)
        since, began, ended = map(utc, (again.gaps_since_ms, again.last_gap_from_ms, again.last_gap_to_ms))
        assert f"\n1 gap without a look for deletions since {since}, the last from {began} to {ended}\n" in said.out
        # What is no count is named, and lies beside the new one.
        one.stop()
        (tmp_path / "state" / "gaps.json").write_text("garbage")
        one.start()
        said = ctl("status", "--config", one.config)
        assert "\nno gap without a look for deletions since " in said.out
        assert f"malformed-file: {tmp_path}/state/gaps.json: expected " in said.err
        (aside,) = (tmp_path / "state").glob("gaps.json.[0-9]*")  # No file that is being written.
        assert aside.read_text() == "garbage"
