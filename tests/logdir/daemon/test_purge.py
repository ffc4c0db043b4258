"""Purges that end early: what was removed by then is counted, and a pause file stops them until it is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from logdir import clock
from logdir.daemon.supervisor import Supervisor
from logdir.disk.kernel.host import HostDirectory
from logdir.disk.replica.rate_limiter import RateLimiter
from logdir.service.batch.purge_recheck import Rechecking
from logdir.service.batch.use_cases import spec_of
from logdir.service.cluster.source import SourceRequest
from logdir.service.purge import PurgeRequest
from logdir.service.report.staged import Selection
from logdir.worker import operations
from tests.builders import partition
from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.logdir.daemon.test_sweep import working
from tests.tools.ctl import ctl, launch
from tools.cli.arguments import Exit

SOON = "delete.topic.delay.ms: 1s\nsweep.interval.ms: 500\n"


def made(one: Daemon, replicas: int, size: int) -> list[Path]:
    paths = [partition(one.log_dirs[0] / f"pay-{number}", segments={0: size}) for number in range(replicas)]
    for path in paths:
        (path / "00000000000000000000.log").write_bytes(bytes(size))
    return paths


def staged(one: Daemon, replicas: int, size: int) -> tuple[object, ...]:
    """Let the daemon stage replicas; return the command that purges them before their time."""
    made(one, replicas, size)
    overrides = ("--even-if-unknown", "--even-over-limit")
    assert ctl("stage", "pay", *overrides, "--config", one.config, "--apply").status == Exit.DONE
    early = ("--even-if-early", "--include-held", "--even-if-last")
    return "staged", "purge", "pay", *early, "--config", one.config


def captured(one: Daemon, replicas: int, size: int) -> None:
    """Let replicas be captured whose broker has removed them, so that their bytes are theirs alone."""
    gone = [one.delete(path) for path in made(one, replicas, size)]
    until("they are captured", lambda: len(one.staged()) == replicas)
    for path in gone:
        one.remove(path)


def paused(one: Daemon) -> list[str]:
    return [problem.line() for problem in one.status().waiting if problem.slug == "pause-file"]


def staged_bytes(one: Daemon) -> int:
    found = 0
    for folder, _, names in os.walk(f"{one.log_dirs[0]}.logdird/deleting"):
        for name in names:
            try:
                found += Path(folder, name).stat().st_size
            except FileNotFoundError:
                continue
    return found


@pytest.mark.slow
def test_what_a_stopped_purge_removed_is_in_the_history(tmp_path: Path) -> None:
    with daemon(tmp_path, more=f"{SOON}purge.bytes.per.second: 4194304\n", is_started=False) as one:
        (one.folder / "state").mkdir()
        (one.folder / "state" / "pause-purge").touch()
        one.start()
        captured(one, 30, 1 << 20)
        (one.folder / "state" / "pause-purge").unlink()
        until("the purge has begun", lambda: len(one.staged()) < 30)
        assert one.stop() == 0
        left = len(one.staged())
        assert 0 < left < 30
        assert [event["event"] for event in one.events()].count("purged") == 30 - left


@pytest.mark.slow
def test_a_stopped_purge_of_an_operator_says_what_it_removed(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        purge = staged(one, 30, 1 << 20)
        with launch(*purge, "--bytes-per-second", 4194304, "--apply") as asked:
            until("the purge has begun", lambda: len(one.staged()) < 30)
            assert one.stop() == 0
            out, err = asked.communicate(timeout=30)
        left = len(one.staged())
        assert 0 < left < 30
        assert asked.returncode == Exit.PROBLEMS, err
        assert err.decode().count("daemon-stopping") + err.decode().count("purge-paused") >= 1
        assert out.decode().count(" done ") == 30 - left
        assert [event["event"] for event in one.events()].count("purged") == 30 - left


@pytest.mark.slow
def test_a_handover_ends_a_purge_that_keeps_the_broker_from_its_start(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        purge = staged(one, 30, 1 << 20)
        with launch(*purge, "--bytes-per-second", 1 << 20, "--apply") as asked:
            until("the purge has begun", lambda: len(one.staged()) < 30)
            said = ctl("handover", "--config", one.config)
            assert said.status == Exit.DONE, said
            _, err = asked.communicate(timeout=30)
        assert 0 < len(one.staged()) < 30
        assert (asked.returncode, b"handed-over" in err) == (Exit.PROBLEMS, True), err


@pytest.mark.slow
def test_while_the_pause_file_exists_nothing_that_is_due_is_purged(tmp_path: Path) -> None:
    with daemon(tmp_path, more=SOON) as one:
        (one.folder / "state" / "pause-purge").touch()
        captured(one, 2, 100)
        until("it is due", lambda: (one.status().next_due_ms or 0) < time.time() * 1000 and bool(paused(one)))
        (line,) = paused(one)
        path = one.folder / "state" / "pause-purge"
        assert line == (
            f"pause-file: {path}: expected no such file, to purge anything, found the file; "
            "remove it, and the purges go on"
        )
        swept = one.status().looked_at_ms
        until("it has looked twice more", lambda: (one.status().looked_at_ms or 0) > (swept or 0) + 1000)
        assert len(one.staged()) == 2
        path.unlink()
        until("they are purged", lambda: one.staged() == [])
        until("nothing waits", lambda: paused(one) == [])


@pytest.mark.slow
def test_a_purge_in_progress_stops_and_goes_on(tmp_path: Path) -> None:
    with daemon(tmp_path, more=f"{SOON}purge.bytes.per.second: 16777216\n") as one:
        captured(one, 1, 160 << 20)
        until("the purge has begun", lambda: staged_bytes(one) < 150 << 20)
        (one.folder / "state" / "pause-purge").touch()
        until("it has stopped", lambda: bool(paused(one)))
        size = staged_bytes(one)
        time.sleep(1.5)
        assert staged_bytes(one) == size > 0
        (one.folder / "state" / "pause-purge").unlink()
        until("it is purged", lambda: one.staged() == [])


class FakeTime:
    """The time of a purge in this process: only what waits takes any; the pause file appears at its moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pause: Path) -> None:
        self.ms, self.pause = 1_000_000.0, pause
        self.at_ms: float | None = None
        """When the pause file appears."""
        self.began_ms: list[float] = []
        """When each call began that removes or shortens a file."""
        pace = partial(RateLimiter, clock_ms=lambda: int(self.ms), sleep=lambda seconds: self.go_on(1000 * seconds))
        monkeypatch.setattr(clock, "monotonic_ms", lambda: int(self.ms))
        monkeypatch.setattr(operations, "RateLimiter", pace)
        for call in ("unlink", "truncate"):
            monkeypatch.setattr(HostDirectory, call, self._noted(getattr(HostDirectory, call)))

    def go_on(self, ms: float) -> None:
        self.ms += ms
        if self.at_ms is not None and self.ms >= self.at_ms and not self.pause.exists():
            self.pause.touch()

    def _noted(self, call: Callable[..., None]) -> Callable[..., None]:
        def noted(directory: HostDirectory, *rest: Any) -> None:
            self.began_ms.append(self.ms)
            call(directory, *rest)

        return noted


def mixed(one: Daemon) -> int:
    """Make replicas of which half cost bytes and half cost files: together a batch of nearly two seconds."""
    for number in range(8):
        path = partition(one.log_dirs[0] / f"pay-{number}", segments={0: 100})
        if number % 2:
            for file in range(100):
                (path / f"{file:020}.snapshot").touch()
        else:
            (path / "00000000000000000000.log").write_bytes(bytes(900_000))
        one.delete(path)
    return 8


def huge(one: Daemon) -> int:
    """Make one replica that takes twenty steps."""
    path = partition(one.log_dirs[0] / "pay-0", segments={0: 100})
    with (path / "00000000000000000000.log").open("wb") as file:
        file.truncate(200 << 20)
    one.delete(path)
    return 1


@pytest.mark.parametrize("after_ms", [1, 400, 600, 1100])
@pytest.mark.parametrize("is_slow", [False, True], ids=["", "what comes between takes five seconds"])
@pytest.mark.parametrize("is_asked", [False, True], ids=["what is due", "what an operator names"])
@pytest.mark.parametrize(("make", "rate"), [(mixed, 4_000_000), (huge, 16 << 20)])
def test_no_step_of_a_purge_begins_later_than_a_second_after_the_pause_file_appears(
    make: Callable[[Daemon], int],
    rate: int,
    is_asked: bool,
    is_slow: bool,
    after_ms: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Daemon(tmp_path, more=f"{SOON}purge.bytes.per.second: {rate}\n")
    fake = FakeTime(monkeypatch, tmp_path / "state" / "pause-purge")
    with working(one) as work:
        count = make(one)
        work.sweep()
        assert len(one.staged()) == count
        for path in one.log_dirs[0].glob("*-delete"):
            one.remove(path)
        late_ms = clock.boottime_ms() + 60_000
        monkeypatch.setattr(clock, "boottime_ms", lambda: late_ms)
        fake.at_ms = fake.ms + after_ms
        if is_slow:
            for where, name in ((Rechecking, "against"), (Supervisor, "capture_between")):
                monkeypatch.setattr(where, name, slow(fake, getattr(where, name)))
        fake.began_ms.clear()
        if is_asked:
            request = PurgeRequest(source=SourceRequest(), selection=Selection("pay"), bytes_per_second=rate)
            work.run(spec_of("staged purge"), request, is_applied=True)
        else:
            for _ in range(20):
                work.sweep()
                work.purge_due()
        assert fake.pause.exists()
        assert max(fake.began_ms, default=0) <= fake.at_ms + 1000
        assert one.staged()
        if not is_slow:
            assert fake.began_ms


def slow(fake: FakeTime, call: Callable[..., Any]) -> Callable[..., Any]:
    def called(*rest: Any) -> Any:
        fake.go_on(5000)
        return call(*rest)

    return called


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "link", "directory"])
def test_a_purge_of_an_operator_is_refused_while_it_exists(tmp_path: Path, kind: str) -> None:
    with daemon(tmp_path) as one:
        asked = staged(one, 1, 100)
        pause = one.folder / "state" / "pause-purge"
        match kind:
            case "file":
                pause.touch()
            case "link":
                pause.symlink_to("nowhere")
            case _:
                pause.mkdir()
        assert ctl(*asked).status == Exit.DONE
        said = ctl(*asked, "--apply")
        assert (said.status, "pause-file: " in said.err, len(one.staged())) == (Exit.REFUSED, True, 1)


@pytest.mark.slow
def test_a_purge_of_an_operator_stops_when_it_appears(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        purge = staged(one, 2, 80 << 20)
        with launch(*purge, "--bytes-per-second", 16 << 20, "--apply") as asked:
            until("the purge has begun", lambda: staged_bytes(one) < 150 << 20)
            (one.folder / "state" / "pause-purge").touch()
            _, err = asked.communicate(timeout=30)
        assert asked.returncode == Exit.PROBLEMS
        assert "pause-file: " in err.decode()
        assert "purge-paused: " in err.decode()
        size = staged_bytes(one)
        time.sleep(1.5)
        assert staged_bytes(one) == size > 0
