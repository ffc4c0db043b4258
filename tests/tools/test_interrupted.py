"""Ctrl-C: what a command says then is so, with ``--json`` too, and what it proposes can be typed."""

from __future__ import annotations

import io
import json
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logdir.disk.record import start_block
from logdir.disk.replica import purge
from logdir.service import layout
from logdir.service.batch import layout_moves, use_cases
from tests.tools.cluster_log import elsewhere
from tests.tools.command_lines import require_parsable
from tests.tools.ctl import ctl, ctl_json, launch, two_disks
from tests.tools.layout_fleet import Planned, rollback
from tools.cli.arguments import Exit
from tools.logdirctl import metadata
from tools.logdirctl.main import main


def interrupting(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, *, after: int = 0) -> None:
    """Let a function of a module be interrupted when it is called, the first few times not."""
    real: Callable[..., Any] = getattr(module, name)
    calls: list[None] = []

    def interrupted(*given: Any, **more: Any) -> Any:
        if len(calls) >= after:
            raise KeyboardInterrupt
        calls.append(None)
        return real(*given, **more)

    monkeypatch.setattr(module, name, interrupted)


def typed(*argv: object) -> tuple[int, str, dict[str, Any]]:
    """Type a command twice, with ``--json`` the second time; return status, line and the one problem of the envelope.

    What it proposes is typed, too: it is a command, and not refused.
    """
    said = ctl(*argv)
    lines = said.err.splitlines()
    assert [line for line in lines if "nothing half-written" in line] == []
    (line,) = (line for line in lines if ": interrupted: " in line)
    (following,) = (line.removeprefix("next: logdirctl ") for line in lines if line.startswith("next: "))
    out, err = io.StringIO(), io.StringIO()
    status = main([*map(str, argv), "--json"], out, err)
    envelope = json.loads(out.getvalue())
    (problem,) = envelope["problems"]
    assert (envelope["exit"], status, said.status) == (130, 130, 130)
    assert (problem["slug"], envelope["result"]) == ("interrupted", {})
    # Without --json the fix has no command: it stands in a line of its own.
    assert following.split(" --json")[0] in problem["fix"].replace(" --json", "")
    require_parsable(problem["fix"])
    return said.status, line, {"next": shlex.split(following), **problem}


@pytest.mark.parametrize("verb", ["apply", "rollback"])
def test_no_interrupted_change_of_layout_hides_that_no_broker_starts(
    verb: str, broker: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: tuple[object, ...] = ("layout", "apply", broker.plan, *broker.words, "--apply")
    if verb == "rollback":
        assert ctl(*words).status == Exit.DONE
        words = ("layout", "rollback", *broker.words, "--apply")
    interrupting(monkeypatch, layout_moves, "to_ids" if verb == "apply" else "to_names")
    _, line, problem = typed(*words)
    monkeypatch.undo()
    for text in (line, problem["fix"]):
        assert "no broker starts" in text
        assert "logdirctl layout rollback" in text
    assert problem["next"] == ["layout", "status", *broker.words]
    assert ctl(*problem["next"]).status == Exit.DONE
    # As it says: both the same command and a rollback go on.
    assert ctl(*words).status == Exit.DONE
    assert rollback(broker)[0] == Exit.DONE


def test_no_change_of_layout_that_had_not_begun_is_said_to_keep_brokers_out(
    broker: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupting(monkeypatch, layout, "carry_out")
    _, line, problem = typed("layout", "apply", broker.plan, *broker.words, "--apply")
    for text in (line, problem["fix"]):
        assert "a broker can start" in text
        assert "no broker starts" not in text


def test_a_start_block_of_which_only_the_files_stand_is_said_to_keep_no_broker_out(
    broker: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupting(monkeypatch, start_block, "_put")
    _, line, problem = typed("layout", "apply", broker.plan, *broker.words, "--apply")
    monkeypatch.undo()
    assert [(one / "start-block.json").exists() for one in broker.log_dirs] == [True, True]
    for text in (line, problem["fix"]):
        assert "no log dir is blocked" in text
        assert "a broker can start" in text
    said = ctl(*problem["next"])
    assert said.status == Exit.PROBLEMS
    assert "start-block-begun: " in said.err
    assert "start-block-partial" not in said.err
    assert rollback(broker)[0] == Exit.DONE


def test_no_interrupted_change_is_said_to_let_a_broker_start_over_a_work_root_inside(
    broker: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctl("uninstall", *broker.words, "--apply").status == Exit.DONE
    inside = ("--work-root", "inside", "--even-if-found", "work-root-inside")
    assert ctl("init", *broker.words, *inside, "--apply").status == Exit.DONE
    interrupting(monkeypatch, layout, "carry_out")
    _, line, problem = typed("layout", "apply", broker.plan, *broker.words, "--apply")
    monkeypatch.undo()
    for text in (line, problem["fix"]):
        assert "a broker can start" not in text
        assert "no stock broker starts" in text
    said = ctl(*problem["next"])
    assert said.status == Exit.PROBLEMS
    assert "work-root-inside: " in said.err
    assert said.out.splitlines()[-1] == f"next: logdirctl uninstall {' '.join(broker.words)}"
    assert ctl("uninstall", *broker.words, "--apply").status == Exit.DONE


def test_no_interrupted_purge_hides_that_what_it_began_with_cannot_be_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = two_disks(tmp_path, replicas=4)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    words = (*elsewhere(tmp_path), *named, "--apply", "--even-over-limit", "--delay-ms", 0)
    assert ctl("stage", "pay", *words).status == Exit.DONE
    interrupting(monkeypatch, purge, "_remove", after=1)
    _, line, problem = typed("staged", "purge", *named, "--apply")
    monkeypatch.undo()
    assert ".purging" in line
    assert problem["next"] == ["staged", "ls", *named]
    _, listing = ctl_json(*problem["next"])
    assert "purging" in {item["state"] for item in listing["items"]}
    assert ctl("staged", "purge", *named, "--apply").status == Exit.DONE


def test_what_only_reads_says_that_nothing_was_changed_and_proposes_no_override(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disks = two_disks(tmp_path)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    interrupting(monkeypatch, use_cases, "opened")
    for override in ((), ("--even-if-unknown",)):
        _, line, problem = typed("stage", "pay", *named, *override)
        assert "no log dir was changed" in line
        assert problem["next"] == (["staged", "ls", *named] if override else ["stage", "pay", *named])


@pytest.mark.parametrize("words", ["ls --directory {}", "cat /local/endOffset --log-dirs {}", "dump {}/a.log"])
def test_what_names_no_broker_is_proposed_again(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("session", "files_to_dump"):
        interrupting(monkeypatch, metadata, name)
    argv = ["metadata", *words.format(tmp_path).split()]
    _, line, problem = typed(*argv)
    assert "no log dir was changed" in line
    assert problem["next"][: len(argv)] == argv


def test_a_process_that_sigint_ends_amid_its_pauses_prints_the_envelope_and_no_trace(tmp_path: Path) -> None:
    disks = two_disks(tmp_path, replicas=4)
    named = ("--log-dirs", f"{disks[0]},{disks[1]}")
    assert ctl("init", *named, "--apply").status == Exit.DONE
    words = (*elsewhere(tmp_path), *named, "--apply", "--even-over-limit", "--delay-ms", 0)
    assert ctl("stage", "pay", *words).status == Exit.DONE
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # else it may be ignored, and inherited so
    try:
        child = launch("staged", "purge", *named, "--apply", "--bytes-per-second", 1, "--json")
    finally:
        signal.signal(signal.SIGINT, before)
    with child:
        while child.poll() is None and not list(tmp_path.glob("*.logdird/deleting/*.purging")):
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate()
    assert (child.returncode, json.loads(out)["exit"], b"Traceback" in err) == (130, 130, False)
