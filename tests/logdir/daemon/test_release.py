"""``logdirctl disk release``: the daemon lets go one disk until an operator says that it is back; the others go on."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.logdir.daemon.rig import Daemon, daemon, until
from tests.logdir.daemon.test_requests import plan_of
from tests.tools.ctl import ctl, ctl_json
from tools.cli.arguments import Exit

OFTEN = "sweep.interval.ms: 500\n"


def opened_below(one: Daemon, log_dir: Path) -> list[str]:
    """Return what the processes of a daemon have open in a log dir or its work root."""
    assert one.process is not None
    found = []
    for pid in (one.process.pid, *one.children()):
        with suppress(FileNotFoundError, ProcessLookupError):  # A process or file that is gone is not open.
            for number in os.listdir(f"/proc/{pid}/fd"):
                with suppress(FileNotFoundError):
                    at = str(Path(f"/proc/{pid}/fd/{number}").readlink())
                    if f"{at}/".startswith((f"{log_dir}/", f"{log_dir}.logdird/")):
                        found.append(f"{pid}: {at}")
    return found


def states(one: Daemon) -> list[str]:
    return [disk.state.value for disk in one.status().log_dirs]


def release(one: Daemon, number: int, *words: str) -> tuple[int, str]:
    said = ctl("disk", "release", one.log_dirs[number], "--config", one.config, *words)
    assert said.err == ""
    return said.status, said.out


def test_a_plan_lets_nothing_go_and_says_what_to_type(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        status, out = release(one, 1)
        assert status == Exit.DONE
        assert out == (
            f"{one.log_dirs[1]}: planned: worker, locks and watch end; requests that need this log dir are refused "
            "until logdird is reloaded\n"
            f"next: logdirctl disk release {one.log_dirs[1]} --config {one.config} --apply\n"
        )
        assert states(one) == ["online", "online"]
        assert opened_below(one, one.log_dirs[1])


def test_a_disk_that_is_let_go_is_held_by_no_process_and_the_others_go_on_until_it_is_back(tmp_path: Path) -> None:
    with daemon(tmp_path, more=OFTEN) as one:
        until("both are watched", lambda: len(one.watches()) == 2)
        status, out = release(one, 1, "--apply")
        assert (status, out.splitlines()[0]) == (
            Exit.DONE,
            f"{one.log_dirs[1]}: done: nothing of logdird has it open: its disk can be unmounted",
        )
        assert opened_below(one, one.log_dirs[1]) == []
        assert len(one.watches()) == 1
        until("it is offline", lambda: states(one) == ["online", "offline"])
        problem = one.status().log_dirs[1].problem
        assert problem is not None
        assert problem.line() == (
            f"log-dir-released: {one.log_dirs[1]}: expected a log dir that logdird has open, found one that was let go "
            f"by logdirctl disk release; mount its disk (a new one: logdirctl init --log-dirs {one.log_dirs[1]} "
            "--apply), then reload logdird (SIGHUP)"
        )
        assert [waiting.slug for waiting in one.status().waiting] == ["log-dir-released"]
        assert release(one, 1, "--apply")[0] == Exit.DONE  # A second time does nothing.
        one.delete(one.make())
        until("the other one captures", lambda: one.status().captured == 1)
        one.delete(one.make("later", disk=1))
        assert one.staged(1) == []
        assert one.process is not None
        one.process.send_signal(signal.SIGHUP)
        until("it is taken back", lambda: states(one) == ["online", "online"])
        until("what was deleted there meanwhile is captured", lambda: len(one.staged(1)) == 1)
        until("it is watched again", lambda: len(one.watches()) == 2)
        assert "released" in [event["event"] for event in one.events()]
        assert one.stop() == 0


def test_it_stays_let_go_when_the_broker_is_opened_again_for_another_reason(tmp_path: Path) -> None:
    with daemon(tmp_path, disks=3, more=OFTEN) as one:
        assert release(one, 2, "--apply")[0] == Exit.DONE
        shutil.rmtree(f"{one.log_dirs[1]}.logdird")
        until("the broker is opened again", lambda: states(one) == ["online", "offline", "offline"])
        problems = [disk.problem.slug for disk in one.status().log_dirs if disk.problem is not None]
        assert problems == ["no-work-root", "log-dir-released"]
        assert opened_below(one, one.log_dirs[2]) == []


def test_a_new_disk_with_a_new_work_root_is_taken_while_the_daemon_runs(tmp_path: Path) -> None:
    from tests.builders import log_dir

    with daemon(tmp_path, more=OFTEN) as one:
        assert release(one, 1, "--apply")[0] == Exit.DONE
        shutil.rmtree(one.log_dirs[1])
        shutil.rmtree(f"{one.log_dirs[1]}.logdird")
        log_dir(one.log_dirs[1], directory="AAAAAAAAAAAAAAAAAAAABQ")
        made = ctl("init", "--log-dirs", one.log_dirs[1], "--apply")
        assert made.status == Exit.DONE, made
        assert one.process is not None
        one.process.send_signal(signal.SIGHUP)
        until("it is taken", lambda: states(one) == ["online", "online"])


@pytest.mark.slow
def test_a_request_that_needs_every_log_dir_is_refused_by_its_name(tmp_path: Path) -> None:
    with daemon(tmp_path, more=OFTEN) as one:
        gone = one.delete(one.make())
        until("it is captured", lambda: one.status().captured == 1)
        one.remove(gone)
        assert release(one, 1, "--apply")[0] == Exit.DONE
        said = ctl("staged", "restore", "pay", "--even-if-unknown", "--config", one.config, "--apply")
        assert said.status == Exit.REFUSED, said
        assert str(one.log_dirs[1]) in said.err
        held = ctl("staged", "hold", "pay", "--config", one.config, "--apply", "--json")
        found = json.loads(held.out)
        assert [item["state"] for item in found["result"]["items"]] == ["done"]
        assert [problem["slug"] for problem in found["problems"]] == ["log-dir-released"]


def blocked(one: Daemon) -> list[bool]:
    return [(path / "logdird-start-block.txt").exists() for path in one.log_dirs]


@pytest.mark.slow
def test_a21_no_start_block_is_lifted_beside_a_disk_that_was_let_go_unless_a_rollback_names_it(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        one.make()
        one.make(number=1, disk=1)
        plan = plan_of(one)
        for verb in ("apply", "verify"):
            assert ctl("layout", verb, plan, "--config", one.config, "--apply").status == Exit.DONE
        assert release(one, 1, "--apply")[0] == Exit.DONE
        for words in (["finalize", "--for-broker", "ours"], ["rollback"]):
            said = ctl("layout", *words, "--config", one.config, "--apply")
            assert (said.status, f"log-dirs-incomplete: {one.log_dirs[1]}: " in said.err) == (Exit.REFUSED, True), said
            assert f"logdirctl layout rollback --skip-log-dir {one.log_dirs[1]}" in said.err
        assert blocked(one) == [True, True]
        named = ("--skip-log-dir", os.path.relpath(one.log_dirs[1]))
        said = ctl("layout", "rollback", "--config", one.config, "--apply", *named)
        assert (said.status, "not finished, 1 log dir left out" in said.out) == (Exit.PROBLEMS, True), said
        assert blocked(one) == [False, True]


def test_what_is_no_log_dir_of_the_broker_is_refused(tmp_path: Path) -> None:
    with daemon(tmp_path) as one:
        said = ctl("disk", "release", tmp_path / "d9", "--socket", one.socket, "--apply")
        assert (said.status, "one of the broker's log dirs" in said.err) == (Exit.USAGE, True)


def test_without_a_daemon_nothing_holds_the_disk(tmp_path: Path) -> None:
    one = Daemon(tmp_path)
    status, out = release(one, 1, "--apply")
    assert (status, out) == (
        Exit.DONE,
        f"no logdird answers at {one.socket}: nothing of it has {one.log_dirs[1]} open\n",
    )
    named = ("disk", "release", one.log_dirs[1], "--config", one.config)
    assert ctl_json(*named) == (Exit.DONE, {"applied": False, "items": []})


def test_a_socket_that_cannot_be_asked_is_not_taken_for_no_daemon(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = ctl("disk", "release", tmp_path, "--socket", tmp_path / "file" / "s.sock")
    assert (said.status, "daemon-unreachable" in said.err) == (Exit.REFUSED, True)
