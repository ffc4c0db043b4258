"""After a handover the daemon keeps its hands off Kafka's locks until the broker runs, or five minutes have passed."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from logdir import clock
from logdir.daemon.start_awaited import StartAwaited
from logdir.disk.root.open_log_dir import OpenLogDir
from logdir.errors import Problem, RefusedError
from logdir.refusal_slug import Why
from logdir.service.batch.handover import HandoverRequest
from logdir.service.batch.use_cases import NAMES, spec_of
from logdir.service.log_dirs.open_broker import OpenBroker
from tests.logdir.daemon.rig import daemon, until
from tests.logdir.daemon.test_inbox import WITH_GONE
from tests.tools.ctl import ctl, ctl_json, held, launch
from tests.whole_refusal import require_whole
from tools.cli.arguments import Exit

LOCKLESS = {"capture", "staged hold", "staged export", "staged purge"}
MINUTE_MS = 60_000


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let ``CLOCK_BOOTTIME`` be what stands in a list."""
    at = [1_000_000_000]
    monkeypatch.setattr(clock, "boottime_ms", lambda: at[0])
    return at


def test_until_five_minutes_have_passed_only_what_needs_no_lock_is_done(now: list[int]) -> None:
    awaited = StartAwaited()
    specs = {name: spec_of(name) for name in NAMES}
    for name in sorted(NAMES, key=lambda name: name == "handover"):
        assert awaited.admit(specs[name], ("/d1",)) is specs[name]
        awaited.note(specs[name])
        assert awaited.is_on is (name == "handover")
    now[0] += 5 * MINUTE_MS - 1
    for name in NAMES:
        if name in LOCKLESS:
            # Crash recovery would take the locks, so it is left out.
            admitted = awaited.admit(specs[name], ("/d1",))
            admitted.prepare(cast(OpenBroker, None))
        elif name == "handover":
            assert awaited.admit(specs[name], ("/d1",)) is specs[name]
        else:
            with pytest.raises(RefusedError, match="expected log dirs that are not handed over to a broker"):
                awaited.admit(specs[name], ("/d1",))
    now[0] += 1
    assert awaited.admit(specs["stage"], ("/d1",)) is specs["stage"]


def test_what_needs_a_lock_is_refused_with_how_long_it_waits(now: list[int]) -> None:
    awaited = StartAwaited()
    awaited.begin()
    now[0] += MINUTE_MS + 1
    with pytest.raises(RefusedError) as raised:
        awaited.admit(spec_of("stage"), ("/d1", "/d2"))
    require_whole(
        raised.value,
        Why.HANDED_OVER,
        path="/d1, /d2",
        expected="log dirs that are not handed over to a broker",
        found="a handover, and no broker that runs since",
        fix="wait until it runs; if none starts, wait 240 s",
    )


def test_a_broker_that_runs_is_awaited_no_more(now: list[int]) -> None:
    awaited = StartAwaited()
    awaited.begin()
    now[0] += 1000
    awaited.end()
    assert not awaited.is_on
    # Neither is it after the daemon has read its log dirs again: that handover is over.
    awaited.begin(now[0] - 1000)
    assert not awaited.is_on
    now[0] += 1000
    awaited.begin(now[0])
    assert awaited.is_on


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        (None, 0),
        ('{"handover":1', 5),  # cut off: as if it were of now
    ],
)
def test_after_a_restart_the_file_says_when_it_was(
    now: list[int], text: str | None, minutes: int, tmp_path: Path
) -> None:
    def read(name: str, most: int) -> bytes:
        if text is None:
            raise FileNotFoundError(name)
        return text.encode()

    one = SimpleNamespace(log_dir="/d1", work=SimpleNamespace(path="/d1.logdird", read=read))
    awaited = StartAwaited()
    awaited.read([cast(OpenLogDir, one)])
    now[0] += minutes * MINUTE_MS - 1
    assert awaited.is_on is (minutes > 0)
    now[0] += 1
    assert not awaited.is_on
    # Once: a file that stays unreadable does not keep the daemon away for ever.
    awaited.read([cast(OpenLogDir, one)])
    assert not awaited.is_on


def test_a_mere_recovery_does_without_a_log_dir_that_failed(now: list[int]) -> None:
    failed = {"/d2": Problem("log-dir-offline", "/d2", "a directory", "nothing")}
    awaited, spec = StartAwaited(), spec_of("handover")
    assert not awaited.is_opening_needed(spec, HandoverRequest(is_recovery_only=True), failed)
    assert not awaited.is_opening_needed(spec, HandoverRequest(skipped=("/d2",)), failed)
    assert awaited.is_opening_needed(spec, HandoverRequest(), failed)


@pytest.mark.slow
def test_a_daemon_that_hands_over_does_nothing_that_needs_locks_until_the_broker_runs(tmp_path: Path) -> None:
    with daemon(tmp_path, more="sweep.interval.ms: 500\n") as one:
        one.make()
        named = ("--config", one.config)
        inbox = Path(tmp_path, "state", "inbox")
        said = ctl("handover", *named, "--quiet")
        assert (said.status, said.out, said.err) == (Exit.DONE, "", "")
        (inbox / "1.json").write_text(json.dumps(WITH_GONE))
        until("the document waits", lambda: [p.slug for p in one.status().waiting] == ["request-waiting"])
        assert "a broker is about to start" in one.status().waiting[0].line()
        for _ in range(2):
            said = ctl("stage", "pay", *named, "--even-if-unknown", "--even-over-limit", "--apply")
            assert (said.status, "handed-over: " in said.err) == (Exit.REFUSED, True), said
            # A plan needs no lock; neither does a capture.
            assert ctl("stage", "pay", *named, "--even-if-unknown", "--even-over-limit").status == Exit.DONE
            one.stop(signal.SIGKILL)
            one.start()  # It reads when the handover was.
        # Again, as a unit that is started once more.
        status, result = ctl_json("handover", *named)
        assert (status, [item["state"] for item in result["items"]]) == (Exit.DONE, ["done", "done"])
        with held(one.log_dirs[0] / ".lock"), held(one.log_dirs[1] / ".lock"):
            until("it sees the broker", lambda: one.status().broker_runs is True)
            assert ctl("handover", *named).status == Exit.BROKER_RUNS
        until("it sees that the broker has ended", lambda: one.status().broker_runs is False)
        said = ctl("stage", "pay", *named, "--even-if-unknown", "--even-over-limit", "--apply")
        assert said.status == Exit.DONE, said


def test_without_one_of_its_disks_the_daemon_hands_nothing_over(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        named = ("--config", one.config)
        assert ctl("disk", "release", one.log_dirs[1], *named, "--apply").status == Exit.DONE
        said = ctl("handover", *named)
        assert (said.status, f"log-dirs-incomplete: {one.log_dirs[1]}: " in said.err) == (Exit.REFUSED, True), said
        assert "remove it from log.dirs" in said.err
        said = ctl("handover", *named, "--skip-log-dir", one.log_dirs[1])
        assert said.status == Exit.DONE, said
        assert f"{one.log_dirs[0]}: no change of layout is unfinished" in said.out


def test_a_daemon_that_has_just_been_started_is_waited_for(tmp_path: Path) -> None:
    """Both are started at boot, and until it serves its socket nobody else may touch its log dirs."""
    with daemon(tmp_path, is_started=False) as one:
        one.start(is_awaited=False)
        until("it has begun", (one.log_dirs[0].parent / "state").exists)
        said = ctl("handover", "--config", one.config, "--quiet")
        assert (said.status, said.err) == (Exit.DONE, ""), said
        until("it runs", lambda: one.state() == "RUNNING")


@pytest.mark.slow
def test_a_disk_that_is_back_is_handed_over_at_once(tmp_path: Path) -> None:
    """The daemon began without it, and would look for it once an hour."""
    with daemon(tmp_path, is_started=False) as one:
        away = tmp_path / "away"
        one.log_dirs[1].rename(away)
        one.start()
        named = ("--config", one.config)
        said = ctl("handover", *named)
        assert said.status == Exit.REFUSED, said
        assert f"log-dirs-incomplete: {one.log_dirs[1]}: " in said.err
        assert "found No such file or directory where " in said.err
        away.rename(one.log_dirs[1])
        said = ctl("handover", *named)
        assert said.status == Exit.DONE, said
        assert said.out.count("no change of layout is unfinished") == 2


def test_what_could_not_be_kept_once_is_no_problem_of_later_requests(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        named = ("--config", one.config)
        place = Path(f"{one.log_dirs[0]}.logdird/handover.json")
        place.mkdir()
        said = ctl("handover", *named)
        assert (said.status, "checkpoints-not-kept" in said.err) == (Exit.DONE, True), said
        assert "handover.json: something else" in said.err
        place.rmdir()
        said = ctl("handover", *named)
        assert (said.status, said.err) == (Exit.DONE, ""), said
        assert ctl("capture", *named, "--apply").err == ""


@pytest.mark.slow
def test_a_daemon_that_is_started_anew_meanwhile_is_waited_for(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        for number in (signal.SIGTERM, signal.SIGKILL):
            assert one.process is not None
            os.kill(one.process.pid, signal.SIGSTOP)
            with launch("handover", "--config", one.config, "--quiet") as asked:
                time.sleep(0.5)
                one.process.send_signal(number)
                os.kill(one.process.pid, signal.SIGCONT)
                one.process.wait(30)
                one.start(is_awaited=False)
                said = asked.communicate(timeout=60)
                assert asked.returncode == Exit.DONE, said
            until("it runs", lambda: one.state() == "RUNNING")
