"""Purges that end early: what was removed by then is counted, and a pause file stops them until it is gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.builders import partition
from tests.logdir.daemon.rig import Daemon, daemon, until
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
